"""Syntax tree of a `.gq` file: names are not resolved, spans are kept, and equality ignores spans.

The suffix of a class is its category in the grammar: `…Expr` for expressions, `…Clause` for clauses of a match block,
`…Statement` for statements of a mutation. Nodes of a plan (`query.plan.ir`) have no suffix.

Conditions are expressions (`CompareExpr`, `LogicExpr`, a text `CallExpr`), so a condition can also be returned.
Parentheses are not kept; the formatter inserts those that the tree needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields, is_dataclass
from typing import Literal as OneOf

from omnigraph.fast_dataclass import dataclass
from omnigraph.lang.spans import NOWHERE, Name, Span
from omnigraph.scalar_types.registry import LiteralCall

LiteralKind = OneOf["string", "int", "decimal", "bool"] | LiteralCall
CompareOp = OneOf[
    "=", "!=", "<", "<=", ">", ">=", "contains", "starts_with", "ends_with",
    "icontains", "istarts_with", "iends_with", "matches", "in", "not in",
]  # fmt: skip
CheckExpect = OneOf["empty", "some", "unchanged", "at_most", "no_more_than_before"]
ArithmeticOp = OneOf["+", "-", "*", "/", "%"]

ANONYMOUS = "_"
"""The name of `$_`, which denotes a different node at each occurrence."""

ANY_EDGE = "->"
"""The edge name of a hop over any edge."""


# -- expressions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LiteralExpr:
    """A constant; a date or datetime keeps its source text."""

    kind: LiteralKind
    value: str | int | float | bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListExpr:
    """`[a, b, …]`; the type checker requires constants where only these are allowed."""

    items: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Field:
    """`name: value` in an object."""

    name: Name
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ObjectExpr:
    """`{ name: value, … }` as a value."""

    fields: tuple[Field, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class VarExpr:
    """`$x` alone: a parameter, or the whole entity."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PropertyExpr:
    """`$x.p`."""

    var: Name
    property: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class CallExpr:
    """`function(argument, …)`."""

    function: str
    arguments: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)
    distinct: bool = False
    """`count(distinct …)`: each value once."""
    where: Expr | None = None
    """`count($x where condition)`: only the rows for which the condition is true."""


@dataclass(frozen=True, slots=True)
class Branch:
    """`when condition then value`; in a `case` with a subject, the condition is the value that the subject is compared
    with.
    """

    condition: Expr
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class CaseExpr:
    """`case when a then b … else c end`, or `case x when a then b … end`."""

    subject: Expr | None
    branches: tuple[Branch, ...]
    otherwise: Expr | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class WordExpr:
    """A bare name: an alias of a returned item, or a property of the row of a statement."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class CompareExpr:
    """`left op right`."""

    op: CompareOp
    left: Expr
    right: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class LogicExpr:
    """`a and b and …` or `a or b or …`, with at least two parts."""

    op: OneOf["and", "or"]
    parts: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NotExpr:
    """`not condition`; with braces it is a `NotClause`."""

    expr: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class IsNullExpr:
    """`expr is null` or `expr is not null`."""

    expr: Expr
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ArithmeticExpr:
    """`left op right` with an arithmetic operator."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NegativeExpr:
    """`-expr`; a signed number is a `LiteralExpr`."""

    expr: Expr
    span: Span = field(default=NOWHERE, compare=False)


Expr = (
    LiteralExpr
    | ListExpr
    | ObjectExpr
    | VarExpr
    | PropertyExpr
    | CallExpr
    | CaseExpr
    | WordExpr
    | CompareExpr
    | LogicExpr
    | NotExpr
    | IsNullExpr
    | ArithmeticExpr
    | NegativeExpr
)


def calls_in(node: object) -> Iterator[CallExpr]:
    """Yield every call in an expression, outer calls first."""
    if isinstance(node, CallExpr):
        yield node
    if isinstance(node, tuple):
        for part in node:
            yield from calls_in(part)
    elif is_dataclass(node):
        for part in fields(node):
            yield from calls_in(getattr(node, part.name))


# -- reads -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`p: value` in the braces of a binding."""

    property: Name
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BindingClause:
    """`$x: Type { p: value, … }`, or with alternatives `$x: Type|Other`."""

    var: Name
    type: Name
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    also: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """`{min,max}` on a hop; the type checker refuses a missing `max`."""

    min: int
    max: int | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class HopClause:
    """`$a $w:edge{1,3} $b`, `$a <edge> $b`, with alternatives `$a edge|other $b`, or over any edge `$a -> $b`."""

    left: Name
    edge: Name
    right: Name
    edge_var: Name | None = None
    undirected: bool = False
    bounds: Bounds | None = None
    span: Span = field(default=NOWHERE, compare=False)
    also: tuple[Name, ...] = ()


PathKind = OneOf["path", "shortest", "all shortest"]


@dataclass(frozen=True, slots=True)
class PathClause:
    """`$p: path { hops }`, `$p: shortest { hop } by property`; `body` spans the braces."""

    var: Name
    kind: PathKind
    hops: tuple[HopClause, ...]
    by: Name | None = None
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class StepClause:
    """`$a -> $b in $p`: each edge of a path, between the node before it and the node after it; `<->` in both orders."""

    left: Name
    right: Name
    path: Name
    undirected: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NotClause:
    """`not { clauses }`; `body` spans the braces."""

    clauses: tuple[Clause, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class OptionalClause:
    """`optional { clauses }`; `body` spans the braces."""

    clauses: tuple[Clause, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FilterClause:
    """A filter: an expression that is true, false or unknown for a row."""

    expr: Expr
    span: Span = field(default=NOWHERE, compare=False)


Clause = BindingClause | HopClause | PathClause | StepClause | NotClause | OptionalClause | FilterClause


@dataclass(frozen=True, slots=True)
class ReturnItem:
    """`expr` or `expr as alias`."""

    expr: Expr
    alias: Name | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SortItem:
    """`expr`, `expr asc` or `expr desc`."""

    expr: Expr
    direction: OneOf["asc", "desc"] | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ValidClause:
    """`valid at $t`, or `valid during $a, $b` with `end`."""

    start: Expr
    end: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """`valid at $t match { … } return { … } having { … } order { … } skip n limit n`; the spans cover the blocks'
    braces.
    """

    clauses: tuple[Clause, ...]
    items: tuple[ReturnItem, ...]
    order: tuple[SortItem, ...] = ()
    limit: int | VarExpr | None = None
    match_body: Span = field(default=NOWHERE, compare=False)
    return_body: Span = field(default=NOWHERE, compare=False)
    order_body: Span = field(default=NOWHERE, compare=False)
    limit_span: Span = field(default=NOWHERE, compare=False)
    distinct: bool = False
    having: tuple[FilterClause, ...] = ()
    skip: int | VarExpr | None = None
    having_body: Span = field(default=NOWHERE, compare=False)
    skip_span: Span = field(default=NOWHERE, compare=False)
    stages: tuple[Read, ...] = ()
    """The parts before this one, in order: each ends with `with { … }` instead of `return { … }`, and an alias is the
    name of a variable.
    """
    valid: ValidClause | None = None
    """The valid time of the whole query."""


# -- writes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """`p: value`."""

    property: Name
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class InsertStatement:
    """`insert Type { p: value, … } as $x`."""

    type: Name
    assigns: tuple[Assign, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class UpdateStatement:
    """`update Type set { p: value, … } where condition valid from $t as $x`."""

    type: Name
    assigns: tuple[Assign, ...]
    where: Expr
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    name: Name | None = None
    valid_from: Expr | None = None
    """The instant at which the current periods end and new ones begin."""


@dataclass(frozen=True, slots=True)
class EndStatement:
    """`end Type where condition at $t as $x`."""

    type: Name
    where: Expr
    at: Expr
    span: Span = field(default=NOWHERE, compare=False)
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class DeleteStatement:
    """`delete Type where condition as $x`."""

    type: Name
    where: Expr
    span: Span = field(default=NOWHERE, compare=False)
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class UpsertStatement:
    """`upsert Type { key: value, … } new { … } existing { … } as $x`; an omitted branch is None.

    `key` holds the whole key and the assignments that apply to both new and existing rows.
    """

    type: Name
    key: tuple[Assign, ...]
    new: tuple[Assign, ...] | None = None
    existing: tuple[Assign, ...] | None = None
    key_body: Span = field(default=NOWHERE, compare=False)
    new_body: Span = field(default=NOWHERE, compare=False)
    existing_body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class EdgeRule:
    """`EdgeType: rule` of `unify`."""

    type: Name
    rule: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class UnifyStatement:
    """`unify Type drop into keep { p: rule, … } edges { EdgeType: rule, … } as $x`; omitted rules are None."""

    type: Name
    drop: Expr
    keep: Expr
    rules: tuple[Assign, ...] | None = None
    edges: tuple[EdgeRule, ...] | None = None
    rules_body: Span = field(default=NOWHERE, compare=False)
    edges_body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    name: Name | None = None


Statement = InsertStatement | UpdateStatement | EndStatement | DeleteStatement | UpsertStatement | UnifyStatement


@dataclass(frozen=True, slots=True)
class Write:
    """One or more statements, executed in order as one change; `atomic { … }` can contain statements of both kinds.

    `items` are the returned values of the affected rows.
    """

    statements: tuple[Statement, ...]
    atomic: bool = False
    items: tuple[ReturnItem, ...] = ()
    body: Span = field(default=NOWHERE, compare=False)
    return_body: Span = field(default=NOWHERE, compare=False)


# -- files -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Param:
    """`$p: Type?`; the type name is not resolved."""

    name: Name
    type_name: Name
    is_list: bool = False
    dim: int | None = None
    nullable: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    alternatives: tuple[str, ...] = ()
    """Other scalar types of the value, if the type was derived from the value alone."""


@dataclass(frozen=True, slots=True)
class QueryCheck:
    """`@check(empty)`: what the result of a query must be; `count` is the number of `at_most`."""

    expect: CheckExpect
    count: int | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Meta:
    """An annotation of a query, such as `@description("…")` or `@rows_max(100)`; `@definer` has no value."""

    name: str
    value: str | int | bool | QueryCheck | None
    text_span: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """`query name($p: T, …) @description("…") { … }`; `body` spans the braces."""

    name: Name
    params: tuple[Param, ...]
    metas: tuple[Meta, ...]
    body: Read | Write
    params_span: Span = field(default=NOWHERE, compare=False)
    braces: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def is_bare(self) -> bool:
        """True if the query has no head and so cannot declare its parameters."""
        return self.braces != NOWHERE and self.params_span.start == self.params_span.end

    @property
    def is_mutation(self) -> bool:
        """True if the query is a mutation."""
        return isinstance(self.body, Write)


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The queries of a text, in order."""

    queries: tuple[QueryDefinition, ...]
