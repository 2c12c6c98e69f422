"""The plan of a query: frozen, typed, and complete.

Nothing in it needs the schema's text or a name lookup: variables are unique across the whole plan
(a name the user reused in a `not` block is told apart by a `#` suffix no source can contain), every
expression carries its type, constants are in the form tables store, hops know their direction.

A read is a pipeline of operations over a bag of rows, each row binding variables to entities:

    NodeScan   cross product with the rows of a node table that pass `filters`
    Expand     follow an edge from a bound variable; see the class
    Filter     keep rows where the condition is definitely true
    FindPaths  follow hops from a bound variable, and bind the paths themselves
    AntiJoin   drop rows for which the inner pipeline, its outer variables fixed, yields any row
    LeftJoin   extend rows by what the inner pipeline yields; a row it yields nothing for stays as it is

followed by columns, order and limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from omnigraph.types import ListType, ObjectType, PropertyType, ResultType

NOW = "__nanograph_now"
"""The parameter that carries the one instant `now()` means in a whole execution."""

ROW = "row"
"""The variable of a mutation's `where`: the row being looked at."""

GROUP = "#group"
"""The variable of what speaks of groups: a group's keys and aggregates, named by their numbers in `group_exprs`."""

RANKED = "#ranked"
"""The variable of what is known of a ranked row beside its entities: its fused score, and why it is where it is."""

TYPE = "#type"
"""The property of a variable of several types that says which of them its node is of."""

BOOL = PropertyType("Bool")
F64 = PropertyType("F64")
I64 = PropertyType("I64")
DATETIME = PropertyType("DateTime")

STRING = PropertyType("String")
NULL = PropertyType("String", nullable=True)
"""The type of a `null` that nothing around it gives a type to."""

CompareOp = Literal[
    "=", "!=", "<", "<=", ">", ">=", "contains_item", "contains_text", "starts_with", "ends_with", "matches"
]  # fmt: skip
ArithmeticOp = Literal["+", "-", "*", "/", "%"]
ValueFunction = Literal["lower", "upper", "length", "coalesce", "concat", "type"]
TextFunction = Literal["search", "match_text", "fuzzy"]
AggregateFunction = Literal["count", "sum", "avg", "min", "max", "collect"]
Direction = Literal["out", "in", "both"]
PathKind = Literal["path", "shortest", "all shortest"]

LENGTH, WEIGHT = "#length", "#weight"
"""What a path has like properties: how many edges, and what they add up to."""


# -- expressions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    """A constant in stored form."""

    value: Any
    type: PropertyType


@dataclass(frozen=True, slots=True)
class ParamRef:
    """A parameter's value."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Prop:
    """A property of the entity a variable is bound to."""

    var: str
    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Entity:
    """A whole node, as an object of its id and properties."""

    var: str
    type_name: str
    type: ObjectType


@dataclass(frozen=True, slots=True)
class Compare:
    """A test that is true, false, or (with a null operand) unknown."""

    op: CompareOp
    left: Expr
    right: Expr

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class TextMatch:
    """Does the text hold a token of the query, or (fuzzy) one within `max_edits` of it?"""

    function: TextFunction
    prop: Prop
    query: Expr
    max_edits: Expr | None = None

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Nearest:
    """Cosine distance to a vector, or to the embedding of a text; smaller is better."""

    prop: Prop
    query: Expr

    @property
    def type(self) -> PropertyType:
        """F64; null where the vector is."""
        return F64.with_nullable(self.prop.type.nullable)


@dataclass(frozen=True, slots=True)
class Bm25:
    """Text relevance; larger is better, 0 is no match."""

    prop: Prop
    query: Expr

    @property
    def type(self) -> PropertyType:
        """Always F64."""
        return F64


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion of rankings of one variable; larger is better."""

    arms: tuple[Nearest | Bm25, ...]
    k: Expr
    weights: tuple[Expr | None, ...] = ()
    """What each arm counts, one where there is none; empty when each counts one."""

    @property
    def type(self) -> PropertyType:
        """Always F64."""
        return F64


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One value for a group of rows."""

    function: AggregateFunction
    argument: Expr
    type: PropertyType | ListType
    distinct: bool = False
    """Each value of a group counts once."""


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """The value of an earlier returned column."""

    index: int
    type: ResultType


@dataclass(frozen=True, slots=True)
class Logic:
    """True, false or unknown by Kleene: an unknown part decides nothing unless it could not matter."""

    op: Literal["and", "or"]
    parts: tuple[Condition, ...]

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown stays unknown."""

    part: Condition

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a value is not there; never unknown."""

    value: Expr

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers and what comes out; null when an operand is, or when there is no result in `type`."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Negative:
    """A number with the other sign."""

    value: Expr
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Function:
    """A value computed from values."""

    name: ValueFunction
    arguments: tuple[Expr, ...]
    type: PropertyType


@dataclass(frozen=True, slots=True)
class PathPart:
    """A whole path as an object, or its nodes or edges as a list of objects."""

    var: str
    part: Literal["path", "nodes", "edges"]
    type: ObjectType | ListType


@dataclass(frozen=True, slots=True)
class Object:
    """Values under names, in their order."""

    fields: tuple[tuple[str, Expr], ...]

    @property
    def type(self) -> ObjectType:
        """The fields and their types."""
        return ObjectType(tuple((name, value.type) for name, value in self.fields))


@dataclass(frozen=True, slots=True)
class ListOf:
    """Values of one type, one behind the other."""

    items: tuple[Expr, ...]
    type: ListType


@dataclass(frozen=True, slots=True)
class Why:
    """What put a row where it is in the ranking the rows are ordered by: an object for each ranker."""

    @property
    def type(self) -> ListType:
        """A list of objects."""
        return WHY


@dataclass(frozen=True, slots=True)
class GroupValue:
    """A key or an aggregate of a group that is no plain value; a plain one is a `Prop` of `GROUP`."""

    index: int
    type: ObjectType | ListType


WHY = ListType(
    ObjectType(
        (
            ("by", STRING),
            ("rank", I64.with_nullable(True)),
            ("score", F64.with_nullable(True)),
            ("share", F64.with_nullable(True)),
        )
    )
)

Rank = Nearest | Bm25 | Rrf
Computed = Arithmetic | Negative | Function
Value = Const | ParamRef | Prop | Compare | TextMatch | Logic | Not | IsNull | Computed | Rank
"""What has the type of a property."""
Made = Object | ListOf | Why | GroupValue
"""What is only returned: objects and lists, put together by the query."""
Expr = Value | Entity | PathPart | Made | Aggregate | ColumnRef
Condition = Compare | TextMatch | Logic | Not | IsNull | Prop | ParamRef | Const | Computed
"""What can filter: the tests, and any other expression of type Bool."""


def group_column(index: int, expr: Expr) -> Prop | GroupValue:
    """One of the keys and aggregates of a group, as a value of the group."""
    type_ = expr.type
    return Prop(GROUP, str(index), type_) if isinstance(type_, PropertyType) else GroupValue(index, type_)


def column_number(expr: Expr) -> int | None:
    """Which of the keys and aggregates of a group an expression is, if that is all it is."""
    if isinstance(expr, GroupValue):
        return expr.index
    return int(expr.name) if isinstance(expr, Prop) and expr.var == GROUP else None


def parts_of(expr: Expr) -> tuple[Expr, ...]:
    """The expressions an expression is made of."""
    match expr:
        case Compare() | Arithmetic():
            return (expr.left, expr.right)
        case Logic():
            return expr.parts
        case Not():
            return (expr.part,)
        case IsNull() | Negative():
            return (expr.value,)
        case Function():
            return expr.arguments
        case TextMatch() | Nearest() | Bm25():
            return (expr.prop, expr.query)
        case Rrf():
            return expr.arms
        case Aggregate():
            return (expr.argument,)
        case Object():
            return tuple(value for _, value in expr.fields)
        case ListOf():
            return expr.items
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """An expression and everything it is made of."""
    yield expr
    for part in parts_of(expr):
        yield from walk(part)


def with_parts(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with each of the expressions it is made of changed; a rank or a search keeps its own."""
    match expr:
        case Compare() | Arithmetic():
            return replace(expr, left=change(expr.left), right=change(expr.right))
        case Logic():
            return replace(expr, parts=tuple(cast(Condition, change(part)) for part in expr.parts))
        case Not():
            return Not(cast(Condition, change(expr.part)))
        case IsNull() | Negative():
            return replace(expr, value=change(expr.value))
        case Function():
            return replace(expr, arguments=tuple(map(change, expr.arguments)))
        case Object():
            return Object(tuple((name, change(value)) for name, value in expr.fields))
        case ListOf():
            return replace(expr, items=tuple(map(change, expr.items)))
        case _:
            return expr


def variables_of(expr: Expr) -> Iterator[str]:
    """The variables an expression reads, with repeats."""
    if isinstance(expr, Prop | Entity | PathPart):
        yield expr.var
    elif isinstance(expr, GroupValue):
        yield GROUP
    for part in parts_of(expr):
        yield from variables_of(part)


def conjuncts_of(condition: Condition) -> Iterator[Condition]:
    """The conditions that must all be true for this one to be."""
    if isinstance(condition, Logic) and condition.op == "and":
        for part in condition.parts:
            yield from conjuncts_of(part)
    else:
        yield condition


# -- reads -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """A declared parameter."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class NodeScan:
    """Bind `var` to every row of a node table that passes all `filters`."""

    var: str
    type_name: str
    filters: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Expand:
    """Follow `edge_type` from the bound `src_var` to `dst_var`.

    Without `edge_var` each far node counts once per row; with it, each edge row does. When
    `dst_bound`, the far variable already has a value and the row stays only if it is reached (once
    per edge row when there is an `edge_var`). `max_hops` below `min_hops` reaches nothing. `backward`:
    `src_var` is where the hop ends, not where it starts.
    `dst_filters` and `edge_filters` speak of the far node and of the edge alone.
    """

    src_var: str
    dst_var: str
    edge_type: str
    direction: Direction
    dst_type: str
    min_hops: int = 1
    max_hops: int = 1
    dst_bound: bool = False
    edge_var: str | None = None
    dst_filters: tuple[Condition, ...] = ()
    edge_filters: tuple[Condition, ...] = ()
    backward: bool = False
    also: tuple[str, ...] = ()
    """Other edge types that are followed as well; then there is no `edge_var`."""
    src_type: str | None = None
    """What `src_var` is of where the ends are not simply those of the edges: nodes that are not at such an edge fall
    away, and edges may lead between other types than one another. None where that is not so."""

    @property
    def edge_types(self) -> tuple[str, ...]:
        """Every edge type that is followed."""
        return (self.edge_type, *self.also)


@dataclass(frozen=True, slots=True)
class PathStep:
    """A hop of a path, as it is walked: over `edge_types` to `dst_var`, which must pass `filters`."""

    dst_var: str
    dst_type: str
    edge_types: tuple[str, ...]
    direction: Direction
    min_hops: int = 1
    max_hops: int = 1
    dst_bound: bool = False
    filters: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class FindPaths:
    """Bind `var` to paths, a row for each: all there are, or for each pair of ends a shortest or all shortest ones.

    A path visits no node twice. From the bound `src_var` it is followed along `ahead` to its end, and along `back`
    to its start. With `by`, what the edges have of that property is added up, and shortest is the smallest sum.
    """

    var: str
    src_var: str
    src_type: str
    ahead: tuple[PathStep, ...]
    back: tuple[PathStep, ...] = ()
    kind: PathKind = "path"
    by: str | None = None
    filters: tuple[Condition, ...] = ()
    """What must be true of the path alone."""
    measured: bool = False
    """Nobody looks at what is on a path: its ends and its length or weight are enough."""

    @property
    def steps(self) -> tuple[PathStep, ...]:
        """Every step, as they are walked."""
        return self.ahead + self.back

    @property
    def edge_types(self) -> tuple[str, ...]:
        """Every edge type that is followed."""
        return tuple(dict.fromkeys(edge_type for step in self.steps for edge_type in step.edge_types))

    @property
    def bound_vars(self) -> tuple[str, ...]:
        """The variables that have a value before."""
        return (self.src_var, *(step.dst_var for step in self.steps if step.dst_bound))


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep rows for which the condition is definitely true."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Drop each row for which `inner`, with `outer_vars` fixed to the row's values, has a match."""

    outer_vars: tuple[str, ...]
    inner: Pipeline


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """Extend each row by every match of `inner`, its `outer_vars` fixed; without any, keep it without `variables`."""

    outer_vars: tuple[str, ...]
    inner: Pipeline
    variables: tuple[str, ...]


Op = NodeScan | Expand | FindPaths | Filter | AntiJoin | LeftJoin
Pipeline = tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A returned column."""

    name: str
    expr: Expr
    type: ResultType


@dataclass(frozen=True, slots=True)
class SortKey:
    """An ordering expression; for a rank the direction is the one that puts the best first."""

    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class QueryIR:
    """A read."""

    name: str
    params: tuple[ParamDecl, ...]
    pipeline: Pipeline
    columns: tuple[Column, ...]
    order_by: tuple[SortKey, ...] = ()
    limit: int | None = None
    skip: int = 0
    limit_param: str | None = None
    """The parameter that says the limit; null is none."""
    skip_param: str | None = None
    distinct: bool = False
    """Equal rows of the result are one."""
    having: tuple[Condition, ...] = ()
    """What must be true of a group, on `GROUP`."""
    grouped: tuple[Expr, ...] = ()
    """Keys and aggregates of groups, where some column is computed from them: then all columns are, on `GROUP`."""

    @property
    def group_exprs(self) -> tuple[Expr, ...]:
        """What is known of a group: its aggregates, and the keys it is told by."""
        return self.grouped or tuple(column.expr for column in self.columns)

    @property
    def group_order(self) -> tuple[SortKey, ...]:
        """What groups are ordered by, as values of the group."""
        shown = [
            column.expr if self.grouped else group_column(index, column.expr)
            for index, column in enumerate(self.columns)
        ]
        return tuple(
            replace(key, expr=shown[key.expr.index]) if isinstance(key.expr, ColumnRef) else key
            for key in self.order_by
        )

    @property
    def is_aggregate(self) -> bool:
        """Whether rows are grouped: by what is not an aggregate, and where equal rows are one, by everything."""
        return self.distinct or any(isinstance(expr, Aggregate) for expr in self.group_exprs)

    @property
    def is_cut(self) -> bool:
        """Whether how many rows come back is said by `skip` or by a parameter."""
        return bool(self.skip or self.skip_param or self.limit_param)


# -- writes ------------------------------------------------------------------------------------------
#
# `name` is the variable of the rows an operation touched, if it has one.


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Add a node, or replace the one with the same key; properties not named become null."""

    type_name: str
    values: tuple[tuple[str, Expr], ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """Add an edge between two nodes given by their ids."""

    type_name: str
    source: Expr
    target: Expr
    values: tuple[tuple[str, Expr], ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateNodes:
    """Set properties of the nodes that match."""

    type_name: str
    values: tuple[tuple[str, Expr], ...]
    where: Condition
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Remove the nodes that match, and every edge at them."""

    type_name: str
    where: Condition
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """Remove the edges that match."""

    type_name: str
    where: Condition
    name: str | None = None


@dataclass(frozen=True, slots=True)
class UpsertNode:
    """Add a node with this key and `new`; if there is one, set `existing` of it instead."""

    type_name: str
    key: tuple[tuple[str, Expr], ...]
    new: tuple[tuple[str, Expr], ...]
    existing: tuple[tuple[str, Expr], ...]
    name: str | None = None


MutationOp = InsertNode | InsertEdge | UpdateNodes | DeleteNodes | DeleteEdges | UpsertNode


@dataclass(frozen=True, slots=True)
class MutationIR:
    """A change: operations in order, published as one commit."""

    name: str
    params: tuple[ParamDecl, ...]
    ops: tuple[MutationOp, ...]
    columns: tuple[Column, ...] = ()
    """What it returns of the rows its operations named."""


AnyIR = QueryIR | MutationIR
