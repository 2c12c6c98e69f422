"""A graph at one commit without access to its data: commit, schema and pinned tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from omnigraph.fast_dataclass import dataclass
from omnigraph.versioning.model.manifest_objects import Commit, EmbeddingSpace, Pin, SchemaRecord


@dataclass(frozen=True)
class PinnedTable:
    """A table at the version that a snapshot pins."""

    pin: Pin
    folder: str

    @property
    def open_args(self) -> tuple[str, int, str]:
        """The arguments of `TableStore.open`."""
        return self.folder, self.pin.lance_version, self.pin.transaction


class SnapshotView(ABC):
    """The commit, the schema and the tables of a snapshot."""

    def __init__(
        self,
        branch: str,
        commit_id: str,
        version: int,
        schema_hash: str,
        tables: Mapping[str, PinnedTable],
        queries_hash: str = "",
        aliases_hash: str = "",
    ) -> None:
        self.branch = branch
        self.commit_id = commit_id
        self.version = version
        """The manifest version in which the commit was published."""
        self.schema_hash = schema_hash
        self.queries_hash = queries_hash
        """The stored queries; empty if there are none."""
        self.aliases_hash = aliases_hash
        """The aliases of nodes; empty if there are none."""
        self.tables = dict(sorted(tables.items()))

    def __repr__(self) -> str:
        return f"Snapshot(branch={self.branch!r}, commit_id={self.commit_id!r}, version={self.version})"

    @property
    @abstractmethod
    def commit(self) -> Commit:
        """The commit of the snapshot."""

    @property
    @abstractmethod
    def schema(self) -> SchemaRecord:
        """The schema at the commit."""

    @property
    @abstractmethod
    def format(self) -> int:
        """The version of the storage format."""

    @abstractmethod
    def table_branch(self, key: str) -> str | None:
        """Return the branch that published the version of a table; None for main."""

    @cached_property
    def made_on(self) -> str:
        """The branch on which the commit was made; a branch without commits of its own reads those of another."""
        return self.commit.branch

    @property
    def point(self) -> str:
        """A text that names the snapshot: its commit, or if that was made on another branch, its branch and version.

        Rules for rows are those of the branch that is read.
        """
        if self.made_on == self.branch:
            return self.commit_id
        return f"manifest:{self.branch}:v{self.version}"

    def embedding(self, key: str, column: str) -> EmbeddingSpace | None:
        """Return the embedding space of a column; None if the graph computed none of its vectors."""
        pinned = self.tables.get(key)
        return dict(pinned.pin.embeddings).get(column) if pinned is not None and pinned.pin.row_count else None

    def to_json(self) -> dict[str, Any]:
        """Return the output of `omnigraph snapshot`."""
        return {
            "branch": self.branch,
            "manifest_version": self.version,
            "internal_schema_version": self.format,
            "graph_commit_id": self.commit_id,
            "tables": [
                {
                    "table_key": key,
                    "table_path": table.folder,
                    "table_version": table.pin.table_version,
                    "table_branch": self.table_branch(key),
                    "row_count": table.pin.row_count,
                }
                for key, table in self.tables.items()
            ],
        }
