"""Expressions of a plan: typed, with every name resolved, constants in the form tables store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, assert_never, cast

from omnigraph.query.aggregates import AggregateFunction
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
TextFunction = Literal["search", "match_text", "fuzzy"]
Direction = Literal["out", "in", "both"]
PathKind = Literal["path", "shortest", "all shortest"]

LENGTH, WEIGHT = "#length", "#weight"
"""What a path has like properties: how many edges, and what they add up to."""

PATH_PARTS = ("#nodes:", "#edges:")
"""How the name of a property of a path begins that lists a property of its nodes or edges: part, scalar, property."""


def path_property(part: str, scalar: str, name: str) -> str:
    """The name of the property of a path that lists a property of each of its nodes or edges."""
    return f"#{part}:{scalar}:{name}"


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
    """Does the text hold a token of the query, `every` one, or (fuzzy) one within `max_edits` of it?"""

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
    """A value computed from values: a scalar function of `query.scalars`, `case`, or `type`.

    The arguments of `case` are a condition and a value in turns, and the value of `else` at the end.
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
    """Return the operands of an expression; a search has its property and its query."""
    operand: Expr
    operands: tuple[Expr, ...]
    match expr:
        case Compare() | Arithmetic():
            return (expr.left, expr.right)
        case Not(part=operand) | IsNull(value=operand) | Negative(value=operand) | Aggregate(argument=operand):
            return (operand,)
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
    """An expression and everything it is made of."""
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
