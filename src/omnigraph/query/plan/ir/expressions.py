"""Expressions of a plan: typed, with all names resolved and constants in stored form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, assert_never, cast

from omnigraph.fast_dataclass import dataclass
from omnigraph.older_names import NOW_PARAMETER
from omnigraph.query.aggregates import AggregateFunction
from omnigraph.types import ListType, ObjectType, PropertyType, ResultType

NOW = NOW_PARAMETER
"""The parameter that holds the value of `now()`, which is constant during an execution."""

ROW = "row"
"""The variable of the `where` of a mutation: the current row."""

GROUP = "#group"
"""The variable of expressions over groups: the keys and aggregates of a group, named by their index in `group_exprs`.
"""

RANKED = "#ranked"
"""The variable of the ranking data of a row: its fused score and the explanation of its rank."""

CARRIED = "_#with"
"""Prefix of the variables that hold the values of stages; their properties are the values, named `$n`."""

TYPE = "#type"
"""The property that holds the type of the node, for a variable of several types."""

BOOL = PropertyType("Bool")
F64 = PropertyType("F64")
I64 = PropertyType("I64")
DATETIME = PropertyType("DateTime")

STRING = PropertyType("String")
NULL = PropertyType("String", nullable=True)
"""The type of a `null` whose context determines no type."""

CompareOp = Literal[
    "=", "!=", "<", "<=", ">", ">=", "contains_item", "contains_text", "starts_with", "ends_with", "matches"
]  # fmt: skip
ArithmeticOp = Literal["+", "-", "*", "/", "%"]
TextFunction = Literal["search", "match_text", "fuzzy"]
Direction = Literal["out", "in", "both"]
PathKind = Literal["path", "shortest", "all shortest"]

LENGTH, WEIGHT = "#length", "#weight"
"""The properties of a path: its number of edges and their total weight."""

PATH_PARTS = ("#nodes:", "#edges:")
"""Prefixes of the properties of a path that list a property of its nodes or edges: part, scalar, property."""


def path_property(part: str, scalar: str, name: str) -> str:
    """Return the name of the property of a path that lists a property of its nodes or edges."""
    return f"#{part}:{scalar}:{name}"


@dataclass(frozen=True, slots=True)
class Const:
    """A constant in stored form."""

    value: Any
    type: PropertyType

    def __hash__(self) -> int:
        return hash((tuple(self.value) if isinstance(self.value, list) else self.value, self.type))


@dataclass(frozen=True, slots=True)
class ParamRef:
    """The value of a parameter."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Prop:
    """A property of the entity that a variable is bound to."""

    var: str
    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Entity:
    """A whole node as an object of its id and properties."""

    var: str
    type_name: str
    type: ObjectType


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison; unknown if an operand is null."""

    op: CompareOp
    left: Expr
    right: Expr

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class TextMatch:
    """True if the text contains a token of the query, `every` token, or (fuzzy) a token within `max_edits` of one."""

    function: TextFunction
    prop: Prop
    query: Expr
    max_edits: Expr | None = None
    every: bool = False

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Nearest:
    """Cosine distance to a vector, or to the embedding of a text; smaller is better."""

    prop: Prop
    query: Expr
    approx: bool = False
    """True if the ranking may be found by an approximate index."""

    @property
    def type(self) -> PropertyType:
        """F64; nullable if the vector is."""
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
    """The weight of each arm; None means 1. Empty if all weights are 1."""

    @property
    def type(self) -> PropertyType:
        """Always F64."""
        return F64


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function over a group of rows."""

    function: AggregateFunction
    argument: Expr
    type: PropertyType | ListType
    distinct: bool = False
    """Equal values of a group count once."""
    where: Condition | None = None
    """Rows for which it is not true are ignored."""


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """The value of an earlier column of the result."""

    index: int
    type: ResultType


@dataclass(frozen=True, slots=True)
class Logic:
    """Conjunction or disjunction in three-valued (Kleene) logic."""

    op: Literal["and", "or"]
    parts: tuple[Condition, ...]

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Not:
    """Negation; unknown stays unknown."""

    part: Condition

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class IsNull:
    """True if a value is null; never unknown."""

    value: Expr

    @property
    def type(self) -> PropertyType:
        """Always Bool."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic of two numbers; null if an operand is null or if `type` cannot represent the result."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Negative:
    """The negative of a number."""

    value: Expr
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function of `query.scalars`, `case`, or `type`.

    The arguments of `case` are conditions and values in turn, followed by the value of `else`.
    """

    name: str
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
    """An object: named values in order."""

    fields: tuple[tuple[str, Expr], ...]

    @property
    def type(self) -> ObjectType:
        """The fields and their types."""
        return ObjectType(tuple((name, value.type) for name, value in self.fields))


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of values of one type."""

    items: tuple[Expr, ...]
    type: ListType


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of the rank of a row: one object for each ranker."""

    @property
    def type(self) -> ListType:
        """A list of objects."""
        return WHY


@dataclass(frozen=True, slots=True)
class GroupValue:
    """A key or an aggregate of a group that is an object or a list; a plain value is a `Prop` of `GROUP`."""

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
"""Expressions whose type is a property type."""
Constructed = Object | ListOf | Why | GroupValue
"""Objects and lists built by the query, which can only be returned."""
Expr = Value | Entity | PathPart | Constructed | Aggregate | ColumnRef
Condition = Compare | TextMatch | Logic | Not | IsNull | Prop | ParamRef | Const | Computed
"""Expressions that can filter: predicates, and any other expression of type Bool."""


def carried_value(var: str, name: str, type_: PropertyType) -> Prop:
    """Return a value that a stage carries on, as a property of the variable of the stage."""
    return Prop(var, f"${name}", type_)


def group_column(index: int, expr: Expr) -> Prop | GroupValue:
    """Return a key or an aggregate as a value of the group."""
    type_ = expr.type
    return Prop(GROUP, str(index), type_) if isinstance(type_, PropertyType) else GroupValue(index, type_)


def column_number(expr: Expr) -> int | None:
    """Return the index of the key or aggregate that an expression refers to; None for any other expression."""
    if isinstance(expr, GroupValue):
        return expr.index
    return int(expr.name) if isinstance(expr, Prop) and expr.var == GROUP else None


def parts_of(expr: Expr) -> tuple[Expr, ...]:
    """Return the operands of an expression; a search has its property and its query."""
    operand: Expr
    operands: tuple[Expr, ...]
    match expr:
        case Compare() | Arithmetic():
            return (expr.left, expr.right)
        case Not(part=operand) | IsNull(value=operand) | Negative(value=operand):
            return (operand,)
        case Aggregate():
            return (expr.argument,) if expr.where is None else (expr.argument, expr.where)
        case Logic(parts=operands) | Function(arguments=operands) | Rrf(arms=operands) | ListOf(items=operands):
            return operands
        case TextMatch() | Nearest() | Bm25():
            return (expr.prop, expr.query)
        case Object():
            return tuple(value for _, value in expr.fields)
        case Const() | ParamRef() | Prop() | Entity() | PathPart() | ColumnRef() | GroupValue() | Why():
            return ()
        case _:
            assert_never(expr)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and all its operands, recursively."""
    yield expr
    for part in parts_of(expr):
        yield from walk(part)


def with_parts(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return the expression with `change` applied to its operands; rankings, searches and aggregates keep theirs."""
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
        case Const() | ParamRef() | Prop() | Entity() | PathPart() | ColumnRef() | GroupValue() | Why():
            return expr
        case TextMatch() | Nearest() | Bm25() | Rrf() | Aggregate():
            return expr
        case _:
            assert_never(expr)


CONSTANTS = (Const, ParamRef)
"""Expressions with one value in all rows."""
_WITH_VARIABLE = (Prop, Entity, PathPart)


def variables_of(expr: Expr) -> list[str]:
    """Return the variables that an expression reads, in order, with repeats."""
    # Every execution calls this for its conditions: the common kinds come first, and no union of types is built.
    if isinstance(expr, _WITH_VARIABLE):
        return [expr.var]
    if isinstance(expr, CONSTANTS):
        return []
    if isinstance(expr, Compare):
        return [*variables_of(expr.left), *variables_of(expr.right)]
    if isinstance(expr, GroupValue):
        return [GROUP]
    return [var for part in parts_of(expr) for var in variables_of(part)]


def conjuncts_of(condition: Condition) -> Iterator[Condition]:
    """Yield the conjuncts of a condition."""
    if isinstance(condition, Logic) and condition.op == "and":
        for part in condition.parts:
            yield from conjuncts_of(part)
    else:
        yield condition
