"""The tree of a `.gq` file, as written: nothing resolved, spans kept, equality blind to spans.

Expressions are one family. Conditions are expressions too (`Compare`, `Logic`, a text `Call`): what can
be asked of a row can also be returned for it. Parentheses are not kept; the printer puts them where the
tree needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal as OneOf

from omnigraph.lang.spans import NOWHERE, Name, Span
from omnigraph.scalar_types.registry import LiteralCall

LiteralKind = OneOf["string", "int", "decimal", "bool"] | LiteralCall
CompareOp = OneOf[
    "=", "!=", "<", "<=", ">", ">=", "contains", "starts_with", "ends_with",
    "icontains", "istarts_with", "iends_with", "matches", "in", "not in",
]  # fmt: skip
ArithmeticOp = OneOf["+", "-", "*", "/", "%"]

ANONYMOUS = "_"
"""The name of `$_`, which stands for a different node wherever it is written."""

ANY_EDGE = "->"
"""What stands for an edge's name in a hop over whatever edge there is."""


# -- expressions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; a date or datetime keeps the text it was written with."""

    kind: LiteralKind
    value: str | int | float | bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b, …]`; where only constants make sense, the type checker says so."""

    items: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Field:
    """`name: value` of an object."""

    name: Name
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ObjectLiteral:
    """`{ name: value, … }` as a value."""

    fields: tuple[Field, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Var:
    """`$x` alone: a parameter, or the whole entity."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PropertyOf:
    """`$x.p`."""

    var: Name
    property: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`function(argument, …)`."""

    function: str
    arguments: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)
    distinct: bool = False
    """`count(distinct …)`: each value once."""


@dataclass(frozen=True, slots=True)
class Branch:
    """`when condition then value`; behind a subject the condition is a value to compare it with."""

    condition: Expr
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """`case when a then b … else c end`, or `case x when a then b … end`."""

    subject: Expr | None
    branches: tuple[Branch, ...]
    otherwise: Expr | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Word:
    """A bare name: an alias of a returned item, or a property where the context supplies the entity."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right`."""

    op: CompareOp
    left: Expr
    right: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Logic:
    """`a and b and …`, or the same with `or`: at least two parts."""

    op: OneOf["and", "or"]
    parts: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """`not condition`; with braces it is a `Negation` instead."""

    expr: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    """`expr is null` or `expr is not null`."""

    expr: Expr
    negated: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left op right` that computes a value."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Negative:
    """`-expr`; a number written with a sign is a `Literal`."""

    expr: Expr
    span: Span = field(default=NOWHERE, compare=False)


Expr = (
    Literal
    | ListLiteral
    | ObjectLiteral
    | Var
    | PropertyOf
    | Call
    | Case
    | Word
    | Compare
    | Logic
    | Not
    | IsNull
    | Arithmetic
    | Negative
)


def calls_in(node: object) -> Iterator[Call]:
    """Every call in an expression, the outer ones first."""
    if isinstance(node, Call):
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
    """`p: value` inside a binding's braces."""

    property: Name
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """`$x: Type { p: value, … }`, or with alternatives `$x: Type|Other`."""

    var: Name
    type: Name
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    also: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """`{min,max}` on a hop; a missing `max` parses, and is refused by the type checker."""

    min: int
    max: int | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Hop:
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
class Path:
    """`$p: path { hops }`, `$p: shortest { hop } by property`; `body` spans the braces."""

    var: Name
    kind: PathKind
    hops: tuple[Hop, ...]
    by: Name | None = None
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { clauses }`; `body` spans the braces."""

    clauses: tuple[Clause, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Optional:
    """`optional { clauses }`; `body` spans the braces."""

    clauses: tuple[Clause, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter: an expression that is true, false or unknown in a row."""

    expr: Expr
    span: Span = field(default=NOWHERE, compare=False)


Clause = Binding | Hop | Path | Negation | Optional | Condition


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
class Read:
    """`match { … } return { … } having { … } order { … } skip n limit n`; the spans cover the blocks' braces."""

    clauses: tuple[Clause, ...]
    items: tuple[ReturnItem, ...]
    order: tuple[SortItem, ...] = ()
    limit: int | Var | None = None
    match_body: Span = field(default=NOWHERE, compare=False)
    return_body: Span = field(default=NOWHERE, compare=False)
    order_body: Span = field(default=NOWHERE, compare=False)
    limit_span: Span = field(default=NOWHERE, compare=False)
    distinct: bool = False
    having: tuple[Condition, ...] = ()
    skip: int | Var | None = None
    having_body: Span = field(default=NOWHERE, compare=False)
    skip_span: Span = field(default=NOWHERE, compare=False)


# -- writes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """`p: value`."""

    property: Name
    value: Expr
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { p: value, … } as $x`."""

    type: Name
    assigns: tuple[Assign, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { p: value, … } where condition as $x`."""

    type: Name
    assigns: tuple[Assign, ...]
    where: Expr
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where condition as $x`."""

    type: Name
    where: Expr
    span: Span = field(default=NOWHERE, compare=False)
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class Upsert:
    """`upsert Type { key: value, … } new { … } existing { … } as $x`; a branch that is not written is None.

    `key` holds the whole key and the assignments that apply to new and existing rows alike.
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


Statement = Insert | Update | Delete | Upsert


@dataclass(frozen=True, slots=True)
class Write:
    """One or more statements, run in order as one change; `atomic { … }` may hold statements of both kinds.

    `items` are what it returns of the rows its statements touched.
    """

    statements: tuple[Statement, ...]
    atomic: bool = False
    items: tuple[ReturnItem, ...] = ()
    body: Span = field(default=NOWHERE, compare=False)
    return_body: Span = field(default=NOWHERE, compare=False)


# -- files -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Param:
    """`$p: Type?`; the type's name is not looked up yet."""

    name: Name
    type_name: Name
    is_list: bool = False
    dim: int | None = None
    nullable: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    alternatives: tuple[str, ...] = ()
    """Other scalars its value can be read as, where the value alone gave the type."""


@dataclass(frozen=True, slots=True)
class Meta:
    """`@description("…")` or `@instruction("…")`."""

    name: str
    text: str
    text_span: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
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
        """Whether the query was written without a head, and so cannot declare its parameters."""
        return self.braces != NOWHERE and self.params_span.start == self.params_span.end

    @property
    def is_mutation(self) -> bool:
        """Whether the query writes."""
        return isinstance(self.body, Write)


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The queries of a text, in order."""

    queries: tuple[Query, ...]
