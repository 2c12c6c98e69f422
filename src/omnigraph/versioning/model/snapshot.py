"""Immutable view of a graph at one commit. Reads access the graph only through a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Damaged, TypeNotFound
from omnigraph.storage.lance.tables import Table
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.model.aliases import AliasSet
from omnigraph.versioning.model.manifest_objects import MAIN, Commit, Pin, QueriesRecord, SchemaRecord
from omnigraph.versioning.model.snapshot_view import PinnedTable, SnapshotView

if TYPE_CHECKING:
    from omnigraph.versioning.write.repository import Repository


class Snapshot(SnapshotView):
    """The tables of one commit, opened on demand."""

    def __init__(
        self,
        repository: Repository,
        branch: str,
        commit_id: str,
        version: int,
        schema_hash: str,
        tables: Mapping[str, PinnedTable],
        queries_hash: str = "",
        aliases_hash: str = "",
        *,
        purge_epoch: int,
    ) -> None:
        super().__init__(branch, commit_id, version, schema_hash, tables, queries_hash, aliases_hash)
        self._repository = repository
        self.purge_epoch = purge_epoch
        """The number of purges and redactions before the snapshot was opened; each changes what a commit shows."""

    @cached_property
    def commit(self) -> Commit:
        """The commit of the snapshot."""
        return self._repository.get_commit(self.commit_id)

    @cached_property
    def schema(self) -> SchemaRecord:
        """The schema at the commit."""
        return self._repository.schema(self.schema_hash)

    @property
    def queries(self) -> QueriesRecord | None:
        """The stored queries at the commit; None if there are none."""
        return self._repository.queries(self.queries_hash) if self.queries_hash else None

    @cached_property
    def aliases(self) -> AliasSet:
        """The aliases of nodes at the commit."""
        return self._repository.aliases(self.aliases_hash)

    def find_alias(self, key: str, id_: str) -> str | None:
        """Return the id of the node that an alias of a node table denotes; None if the text is not an alias."""
        if not self.aliases_hash or (pinned := self.tables.get(key)) is None:
            return None
        return self.aliases.find(pinned.pin.table_id, id_)

    def table(self, key: str) -> Table:
        """Open a table by its key, `node:Name` or `edge:Name`."""
        pinned = self.tables.get(key)
        if pinned is None:
            raise TypeNotFound(
                f"'{key}' does not exist at commit {self.commit_id}", hint=did_you_mean(key, self.tables)
            )
        return self._repository.tables.open(*pinned.open_args)

    def open(self, pinned: PinnedTable) -> Table:
        """Open a table that this or a related snapshot pins."""
        return self._repository.tables.open(*pinned.open_args)

    def find_removed(self) -> Damaged | None:
        """Return the error that names this version if one of its tables was removed; None otherwise."""
        for key, table in self.tables.items():
            if not self._repository.tables.has_version(*table.open_args):
                return Damaged(
                    f"version {self.version} (commit {self.commit_id}) cannot be read: the data of '{key}' was removed "
                    "by a cleanup, or lost",
                    code="version_reclaimed",
                    hint="a cleanup removes old versions; read a newer commit, and tag a commit to keep it",
                )
        return None

    def entity(self, key: str, id_: str) -> dict[str, Any] | None:
        """Return one row by id; None if it does not exist."""
        pinned = self.tables.get(key)
        # A part of a version is not built for one row.
        table = self.table(key) if pinned is None else self._repository.tables.open_row(*pinned.open_args, id_)
        rows = to_dicts(table.rows_of([id_]))
        return rows[0] if rows else None

    @property
    def format(self) -> int:
        """The version of the storage format."""
        return self._repository.format

    def table_branch(self, key: str) -> str | None:
        """Return the branch that published the version of a table; None for main."""
        return self._writer_of(self.tables[key].pin)

    def _writer_of(self, pin: Pin) -> str | None:
        """Return the branch that published a pin; None for main.

        A branch that did not write a table has the pin of its fork point.
        """
        branch, state = self.branch, self._repository.state()
        seen = {MAIN}
        while branch not in seen:
            seen.add(branch)
            head = state.find_head(branch)
            forked = self._repository.find_commit(head.fork_commit_id, state) if head and head.fork_commit_id else None
            if forked is None or pin not in forked[1]:
                return branch
            branch = forked[0].branch
        return None if branch == MAIN else branch


def on_branch(snapshot: Snapshot, branch: str) -> Snapshot:
    """Return a snapshot as a point of a branch that contains its commit."""
    if branch == snapshot.branch:
        return snapshot
    tables, schema, sets = snapshot.tables, snapshot.schema_hash, (snapshot.queries_hash, snapshot.aliases_hash)
    version, epoch = snapshot.version, snapshot.purge_epoch
    return Snapshot(snapshot._repository, branch, snapshot.commit_id, version, schema, tables, *sets, purge_epoch=epoch)
