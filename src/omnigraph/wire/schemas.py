"""Documents of schemas, schema changes and lint reports."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

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
    description: str | UnsetType = UNSET


class TypeDocument(Document, kw_only=True):
    """A type of a catalog; an edge type has `from` and `to`."""

    name: str
    key: list[str]
    properties: list[PropertyDocument]
    implements: list[str] | UnsetType = UNSET
    from_: str | UnsetType = field(name="from", default=UNSET)
    to: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class CatalogDocument(Document):
    """The types of a schema."""

    hash: str
    interfaces: list[TypeDocument]
    nodes: list[TypeDocument]
    edges: list[TypeDocument]


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
    rename_hints: list[str] | UnsetType = UNSET
    losses: list[str] | UnsetType = UNSET
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
