"""Documents of the state of a graph: snapshot, status, version."""

from __future__ import annotations

from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document


class SnapshotTableDocument(Document):
    """One table of a snapshot; `table_branch` is null for `main`."""

    table_key: str
    table_path: str
    table_version: int
    table_branch: str | None
    row_count: int


class SnapshotDocument(Document):
    """The tables of a branch."""

    branch: str
    manifest_version: int
    internal_schema_version: int
    graph_commit_id: str
    tables: list[SnapshotTableDocument]


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
    tables: list[TableRowsDocument]
    branches: list[OtherBranchDocument]
    tags: list[str]


class VersionDocument(Document):
    """The version of the program and of its storage format."""

    version: str
    internal_schema_version: int
