"""Documents of the state of a graph: snapshot, status, version."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document
from omnigraph.wire.pins import PinDocument


class SnapshotTableDocument(Document):
    """One table of a snapshot; `table_branch` is null for `main`. `pin` is in typed answers only."""

    table_key: str
    table_path: str
    table_version: int
    table_branch: str | None
    row_count: int
    pin: PinDocument | UnsetType = UNSET


class SchemaRecordDocument(Document):
    """A schema as it is stored: its hash, its text, and its document with the identities of types and properties."""

    hash: str
    source: str
    ir: str


class SnapshotDocument(Document):
    """The tables of a branch; the members after `tables` are in typed answers only."""

    branch: str
    manifest_version: int
    internal_schema_version: int
    graph_commit_id: str
    tables: list[SnapshotTableDocument]
    commit: CommitDocument | UnsetType = UNSET
    schema: SchemaRecordDocument | UnsetType = UNSET
    newest_version: int | UnsetType = UNSET


class TableRowsDocument(Document):
    """The number of rows of one table."""

    table_key: str
    row_count: int


class OtherBranchDocument(Document):
    """Another branch, and the number of commits that only one of the two branches has."""

    name: str
    ahead: int
    behind: int


class StatusDocument(Document):
    """A graph, a branch of it with its head and tables, the other branches, and the tags."""

    uri: str
    storage: str
    branch: str
    head: CommitDocument
    commits: int
    manifest_version: int
    merge_properties: Literal["conflict", "combine"]
    tables: list[TableRowsDocument]
    branches: list[OtherBranchDocument]
    tags: list[str]


class VersionDocument(Document):
    """The version of the program and of its storage format."""

    version: str
    internal_schema_version: int
