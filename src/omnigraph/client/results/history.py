"""Commits, branches, tags and snapshots from documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType, convert

from omnigraph.client.failures import reading, unreadable
from omnigraph.client.local_only import not_remote
from omnigraph.decodable import decodable
from omnigraph.versioning.model.manifest_objects import MAIN, Commit, Head, Pin, SchemaRecord, Tag
from omnigraph.versioning.model.snapshot_view import PinnedTable, SnapshotView
from omnigraph.wire.branches import BranchDocument, TagDocument
from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import plain
from omnigraph.wire.graph_state import SnapshotDocument
from omnigraph.wire.pins import PinDocument


def commit_of(document: CommitDocument | UnsetType) -> Commit:
    """Return the commit of a document."""
    if document is UNSET or document.schema_hash is UNSET or document.since is UNSET:
        raise unreadable("it has no full commit")
    return Commit(
        document.graph_commit_id,
        document.manifest_branch or MAIN,
        document.manifest_version,
        document.parent_commit_id,
        document.merged_parent_commit_id,
        document.actor_id,
        document.created_at,
        document.message,
        document.metadata,
        document.kind,
        tuple(document.changed),
        document.schema_hash,
        document.since,
        None if document.fork_commit_id is UNSET else document.fork_commit_id,
    )


@reading
def head_of(document: BranchDocument | UnsetType) -> Head:
    """Return the head of a branch."""
    if document is UNSET or document.details is UNSET:
        raise unreadable("it has no full branch")
    shown = {
        "branch": document.name,
        "commit_id": document.head.graph_commit_id,
        "owner": document.owner,
        "description": document.description,
        "expires_us": document.expires_at,
    }
    return convert({**shown, **plain(document.details)}, decodable(Head))


def tag_of(document: TagDocument) -> Tag:
    """Return the tag of a document."""
    if document.pins is UNSET:
        raise unreadable("it has no full tag")
    pins = tuple(map(_pin, document.pins))
    return Tag(document.name, document.graph_commit_id, document.created_at, document.actor_id, document.message, pins)


@reading
def _pin(document: PinDocument | UnsetType) -> Pin:
    if document is UNSET:
        raise unreadable("it has no pinned table version")
    return convert(plain(document), decodable(Pin))


class RemoteSnapshot(SnapshotView):
    """A snapshot of a graph on a server. Its tables cannot be opened; the methods of the graph read them."""

    def __init__(self, document: SnapshotDocument) -> None:
        commit = commit_of(document.commit)
        tables = {each.table_key: PinnedTable(_pin(each.pin), each.table_path) for each in document.tables}
        super().__init__(
            document.branch, document.graph_commit_id, document.manifest_version, commit.schema_hash, tables
        )
        if document.schema is UNSET:
            raise unreadable("it has no schema")
        self._commit = commit
        self._schema = SchemaRecord(document.schema.hash, document.schema.source, document.schema.ir)
        self._format = document.internal_schema_version
        self._branches: Mapping[str, str | None] = {each.table_key: each.table_branch for each in document.tables}

    @property
    def commit(self) -> Commit:
        """The commit of the snapshot."""
        return self._commit

    @property
    def schema(self) -> SchemaRecord:
        """The schema at the commit."""
        return self._schema

    @property
    def format(self) -> int:
        """The version of the storage format."""
        return self._format

    def table_branch(self, key: str) -> str | None:
        """Return the branch that published the version of a table; None for main."""
        return self._branches[key]

    def table(self, key: str) -> Any:  # noqa: ARG002 (as in `Snapshot`)
        """Raise `InputError`: a table of a server cannot be opened."""
        raise not_remote("Snapshot.table")

    def entity(self, key: str, id_: str) -> Any:  # noqa: ARG002 (as in `Snapshot`)
        """Raise `InputError`: a snapshot reads no rows."""
        raise not_remote("Snapshot.entity")
