"""Syntax tree of a `.pg` file: order, forms and spans as written, names not resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from omnigraph.lang.spans import NOWHERE, Name, Span
from omnigraph.types import PropertyType

ValueKind = Literal["string", "number", "bool", "name"]
ColumnRuleKind = Literal["key", "unique", "index"]


@dataclass(frozen=True, slots=True)
class AnnotationValue:
    """Argument of an annotation: the value of a string, or the source text of any other argument."""

    kind: ValueKind
    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name`, `@name(value)` or `@name(value, key=value, …)`."""

    name: Name
    value: AnnotationValue | None = None
    arguments: tuple[tuple[Name, AnnotationValue], ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TypeExpr:
    """Type of a property; `enum_order` keeps the values of an enum in source order."""

    type: PropertyType
    enum_order: tuple[str, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PropertyDecl:
    """`name: Type @annotation …`."""

    name: Name
    type: TypeExpr
    annotations: tuple[Annotation, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """`@key(a, b)`, `@unique(a, b)` or `@index(a, b)` in a body."""

    kind: ColumnRuleKind
    columns: tuple[Name, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RangeRule:
    """`@range(column, low..high)`; the bounds are number texts, and either may be absent."""

    column: Name
    low: Name | None
    high: Name | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class CheckRule:
    """`@check(column, "regex")`."""

    column: Name
    pattern: AnnotationValue
    span: Span = field(default=NOWHERE, compare=False)


Rule = ColumnRule | RangeRule | CheckRule
Member = PropertyDecl | Rule


@dataclass(frozen=True, slots=True)
class CardinalityExpr:
    """`@card(min..max)`; no `max` means unbounded."""

    min: int
    max: int | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ValidExpr:
    """`@valid(from: start, to: end)` behind a declaration."""

    start: Name
    end: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class InterfaceDecl:
    """`interface Name { properties }`."""

    name: Name
    members: tuple[PropertyDecl, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NodeDecl:
    """`node Name @valid(…) @annotation … implements A, B { members }`."""

    name: Name
    annotations: tuple[Annotation, ...]
    implements: tuple[Name, ...]
    members: tuple[Member, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    valid: ValidExpr | None = None


@dataclass(frozen=True, slots=True)
class EdgeDecl:
    """`edge Name: Source -> Target @card(…) @valid(…) @annotation … { members }`."""

    name: Name
    source: Name
    target: Name
    cardinality: CardinalityExpr | None
    annotations: tuple[Annotation, ...]
    members: tuple[Member, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    valid: ValidExpr | None = None


@dataclass(frozen=True, slots=True)
class MergeSetting:
    """`properties: combine` or `properties: conflict`."""

    value: Name
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MergeDecl:
    """`merge { properties: combine }`; `name` is the word `merge`."""

    name: Name
    members: tuple[MergeSetting, ...]
    body: Span = field(default=NOWHERE, compare=False)
    span: Span = field(default=NOWHERE, compare=False)


TypeDecl = InterfaceDecl | NodeDecl | EdgeDecl
Declaration = TypeDecl | MergeDecl


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """All declarations of a `.pg` text, in order."""

    declarations: tuple[Declaration, ...]
