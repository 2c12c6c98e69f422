"""Documents of stored queries."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document

ParameterKind = Literal[
    "string", "bool", "int", "bigint", "float", "date", "datetime", "uuid", "blob", "vector", "list"
]


class QueryParameterDocument(Document, kw_only=True):
    """A parameter of a stored query. Values of the kinds bigint, date, datetime, uuid and blob travel as strings."""

    name: str
    type: str
    """The type as written, such as `I64?`."""
    kind: ParameterKind
    item_kind: ParameterKind | UnsetType = UNSET
    vector_dim: int | UnsetType = UNSET
    nullable: bool


class QueryCheckDocument(Document):
    """What a proposal expects of the result of a query."""

    expect: str
    count: int | None
    required: bool


class StoredQueryDocument(Document, kw_only=True):
    """A stored query; `source` is in the answer for one query, and in typed lists."""

    name: str
    tool_name: str
    description: str | UnsetType = UNSET
    instruction: str | UnsetType = UNSET
    mutation: bool
    expose: bool
    definer: bool
    timeout_ms: int | UnsetType = UNSET
    rows_max: int | UnsetType = UNSET
    check: QueryCheckDocument | UnsetType = UNSET
    actor_id: str | None
    """The actor who stored it."""
    params: list[QueryParameterDocument]
    source: str | UnsetType = UNSET


class StoredQueryListDocument(Document):
    """The stored queries of a branch that the caller may call, by name."""

    queries: list[StoredQueryDocument]


class QueryChangeDocument(Document, kw_only=True):
    """The result of storing or deleting queries, by name; without a change there is no commit."""

    branch: str
    stored: list[str]
    deleted: list[str]
    unchanged: list[str]
    actor_id: str | None
    commit: CommitDocument | None


class QueryBreakageDocument(Document):
    """A stored query that a schema does not permit."""

    query: str
    message: str


class QueryValidationDocument(Document):
    """The result of checking the stored queries of a branch against a schema."""

    ok: bool
    breakages: list[QueryBreakageDocument]
    warnings: list[str]
    queries: int = 0
    """The number of queries that were checked."""
