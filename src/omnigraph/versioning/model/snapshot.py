"""Immutable view of a graph at one commit. Reads access the graph only through a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Damaged, TypeNotFound
from omnigraph.storage.lance.tables import Table
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.model.manifest_objects import MAIN, Commit, EmbeddingSpace, Pin, SchemaRecord

if TYPE_CHECKING:
    from omnigraph.versioning.write.repository import Repository


@dataclass(frozen=True)
class PinnedTable:
    """A table at the version that a snapshot pins."""

    pin: Pin
    folder: str

    @property
    def open_args(self) -> tuple[str, int, str]:
        """The arguments of `TableStore.open`."""
        return self.folder, self.pin.lance_version, self.pin.transaction


class Snapshot:
    """The tables of one commit, opened on demand."""

    def __init__(
        self,
        repository: Repository,
        branch: str,
        commit_id: str,
        version: int,
        schema_hash: str,
        tables: Mapping[str, PinnedTable],
    ) -> None:
        self._repository = repository
        self.branch = branch
        self.commit_id = commit_id
        self.version = version
        """The manifest version in which the commit was published."""
        self.schema_hash = schema_hash
        self.tables = dict(sorted(tables.items()))

    def __repr__(self) -> str:
        return f"Snapshot(branch={self.branch!r}, commit_id={self.commit_id!r}, version={self.version})"

    @cached_property
    def commit(self) -> Commit:
        """The commit of the snapshot."""
        return self._repository.get_commit(self.commit_id)

    @cached_property
    def made_on(self) -> str:
        """The branch on which the commit was made; a branch without commits of its own reads those of another."""
        return self.commit.branch

    @cached_property
    def schema(self) -> SchemaRecord:
        """The schema at the commit."""
        return self._repository.schema(self.schema_hash)

    def table(self, key: str) -> Table:
        """Open a table by its key, `node:Name` or `edge:Name`."""
        pinned = self.tables.get(key)
        if pinned is None:
            raise TypeNotFound(
                f"'{key}' does not exist at commit {self.commit_id}", hint=did_you_mean(key, self.tables)
            )
        return self._repository.tables.open(*pinned.open_args)

    def embedding(self, key: str, column: str) -> EmbeddingSpace | None:
        """Return the embedding space of a column; None if the graph computed none of its vectors."""
        pinned = self.tables.get(key)
        return dict(pinned.pin.embeddings).get(column) if pinned is not None and pinned.pin.row_count else None

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
        rows = to_dicts(self.table(key).rows_of([id_]))
        return rows[0] if rows else None

    def to_json(self) -> dict[str, Any]:
        """Return the output of `omnigraph snapshot`."""
        return {
            "branch": self.branch,
            "manifest_version": self.version,
            "internal_schema_version": self._repository.format,
            "graph_commit_id": self.commit_id,
            "tables": [
                {
                    "table_key": key,
                    "table_path": table.folder,
                    "table_version": table.pin.table_version,
                    "table_branch": self._writer_of(table.pin),
                    "row_count": table.pin.row_count,
                }
                for key, table in self.tables.items()
            ],
        }

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
