"""Documents of schemas, schema changes and lint reports."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document
from omnigraph.wire.errors import DiagnosticDocument


class SchemaDocument(Document):
    """The text of a schema."""

    schema_source: str


class PropertyDocument(Document, kw_only=True):
    """A property of a type; `type` is written as in a schema, such as `String?` or `[I64]`."""

    name: str
    type: str
    optional: bool
    embed: str | UnsetType = UNSET
    """The property whose text an embedded vector is computed from."""
    number: int | UnsetType = UNSET
    """The number of the property, which a rename keeps; absent if rules limit what the caller may see."""
    description: str | UnsetType = UNSET


class ConstraintDocument(Document, kw_only=True):
    """A constraint of a type; `text` is written as in a schema, such as `@range(age, 0..)`."""

    kind: Literal["key", "unique", "index", "range", "check"]
    columns: list[str]
    text: str


class TypeDocument(Document, kw_only=True):
    """A type of a catalog; an edge type has `from`, `to` and the number of edges of a source, such as `0..1`."""

    name: str
    key: list[str]
    properties: list[PropertyDocument]
    constraints: list[ConstraintDocument]
    number: int | UnsetType = UNSET
    """The number of the type, which a rename keeps; absent if rules limit what the caller may see."""
    implements: list[str] | UnsetType = UNSET
    from_: str | UnsetType = field(name="from", default=UNSET)
    to: str | UnsetType = UNSET
    cardinality: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class CatalogDocument(Document):
    """The types of a schema."""

    hash: str
    interfaces: list[TypeDocument]
    nodes: list[TypeDocument]
    edges: list[TypeDocument]
    merge_properties: Annotated[
        Literal["conflict", "combine"], Meta(description="How edits of different properties of one row merge.")
    ] = "conflict"


class SchemaCheckDocument(Document):
    """A valid schema: the number of its declarations, its hash, and warnings."""

    status: Literal["ok"]
    path: str
    interfaces: int
    nodes: int
    edges: int
    hash: str
    warnings: list[str]


class SchemaPlanDocument(Document, kw_only=True):
    """The steps of a schema change: of a graph (`uri`), or between two files (`from`, `to`)."""

    uri: str | UnsetType = UNSET
    from_: str | UnsetType = field(name="from", default=UNSET)
    to: str | UnsetType = UNSET
    supported: bool
    step_count: int
    steps: list[dict[str, Any]]
    descriptions: list[str] | UnsetType = UNSET
    """One line for each step; in answers of a server only."""
    rename_hints: list[str] | UnsetType = UNSET
    losses: list[str] | UnsetType = UNSET
    broken_rules: list[str] | UnsetType = UNSET
    """Problems that the rules for rows of the policy have with the new schema."""
    diagnostics: list[dict[str, Any]] | UnsetType = UNSET
    accepted: dict[str, Any] | UnsetType = UNSET
    desired: dict[str, Any] | UnsetType = UNSET
    """The documents of both schemas with their identities; in typed answers only."""


class SchemaAppliedDocument(Document, kw_only=True):
    """The result of a schema change."""

    uri: str
    supported: bool
    applied: bool
    manifest_version: int
    commit_id: str | None
    step_count: int
    steps: list[dict[str, Any]]
    rename_hints: list[str] | UnsetType = UNSET
    losses: list[str] | UnsetType = UNSET
    broken_rules: list[str] | UnsetType = UNSET
    """Problems that the rules for rows of the policy have with the new schema."""
    commit: CommitDocument | UnsetType | None = UNSET


class LintedQueryDocument(Document, kw_only=True):
    """The lint result of one query: its errors, or its columns, reads and writes."""

    name: str
    kind: Literal["read", "mutation"]
    status: Literal["ok", "error"]
    warnings: list[str]
    error: str | UnsetType = UNSET
    diagnostics: list[DiagnosticDocument] | UnsetType = UNSET
    operation: dict[str, Any] | UnsetType = UNSET


class LintFindingDocument(Document, kw_only=True):
    """A lint finding that concerns several queries or the whole file."""

    severity: str
    code: str
    message: str
    type_name: str | UnsetType = UNSET
    property: str | UnsetType = UNSET
    query_names: list[str]
    diagnostics: list[DiagnosticDocument] | UnsetType = UNSET


class LintDocument(Document):
    """The lint result of a file of queries."""

    status: Literal["ok", "error"]
    schema_source: dict[str, str]
    query_path: str
    queries_processed: int
    errors: int
    warnings: int
    infos: int
    results: list[LintedQueryDocument]
    findings: list[LintFindingDocument]
