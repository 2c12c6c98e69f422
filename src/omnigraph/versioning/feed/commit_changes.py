"""The changes of one commit relative to its first parent: exact, by value, in a stable order.

Nodes precede edges, then types are ordered by an id that survives renames, then rows by id. A commit that rewrote equal
values, compacted or indexed has no changes. Tables whose pin the commit did not change are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import ChangeDiffRefused
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.diff import (
    Columns,
    DiffView,
    Identity,
    Op,
    RowChange,
    Sight,
    TablePair,
    changed_pairs,
    diff_pair,
)
from omnigraph.versioning.compare.rows import ToJson, to_plain
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.model.snapshot import Snapshot, on_branch
from omnigraph.versioning.write.repository import Repository

_KIND_RANK = {"node": 0, "edge": 1}


@dataclass(frozen=True)
class CommitChange:
    """One row that a commit inserted, updated or deleted."""

    type_id: str
    """Opaque; unchanged if the type is renamed."""
    row: RowChange

    @property
    def kind(self) -> str:
        """`node` or `edge`."""
        return TableKey.parse(self.row.table_key).kind

    @property
    def type_name(self) -> str:
        """The name of the type at the commit."""
        return TableKey.parse(self.row.table_key).type_name

    @property
    def id(self) -> str:
        """The id of the row."""
        return self.row.id

    @property
    def op(self) -> Op:
        """The operation."""
        return self.row.op

    @property
    def before(self) -> dict[str, Any] | None:
        """The row before the commit."""
        return self.row.before

    @property
    def after(self) -> dict[str, Any] | None:
        """The row after the commit."""
        return self.row.after

    @property
    def sort_key(self) -> tuple[int, str, str]:
        """The sort key of the change, unique within a commit."""
        return _KIND_RANK[self.kind], self.type_id, self.id

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form that all interfaces show; an absent image is omitted, and `value` converts rows."""
        data: dict[str, Any] = {
            "kind": self.kind,
            "type": {"id": self.type_id, "name": self.type_name},
            "id": self.id,
            "op": self.op,
        }
        if self.before is not None:
            data["before"] = value(self.before)
        if self.after is not None:
            data["after"] = value(self.after)
        return data


@dataclass(frozen=True)
class ChangeFilter:
    """Filter of changes. An absent list restricts nothing; a change must pass all lists."""

    kinds: frozenset[str] | None = None
    types: frozenset[str] | None = None
    ops: frozenset[str] | None = None

    @classmethod
    def of(
        cls, kinds: Sequence[str] | None = None, types: Sequence[str] | None = None, ops: Sequence[str] | None = None
    ) -> ChangeFilter:
        """Create a filter from lists."""
        return cls(*(None if chosen is None else frozenset(chosen) for chosen in (kinds, types, ops)))

    def has_table(self, key: str) -> bool:
        """Return True if changes of a table can pass the filter."""
        kind, name = TableKey.parse(key).parts
        return (self.kinds is None or kind in self.kinds) and (self.types is None or name in self.types)

    def has_op(self, op: str) -> bool:
        """Return True if changes with this operation pass the filter."""
        return self.ops is None or op in self.ops

    def to_json(self) -> dict[str, list[str] | None]:
        """Return the filter in canonical form, independent of the order of its lists."""
        sides = {"kinds": self.kinds, "types": self.types, "ops": self.ops}
        return {name: None if chosen is None else sorted(chosen) for name, chosen in sides.items()}


@dataclass(frozen=True)
class CommitBlock:
    """A commit and its changes, or those that fit into a page."""

    commit: Commit
    changes: tuple[CommitChange, ...]
    schema_changed: bool = False
    page: str | None = None
    """Token for the remaining changes; None if there are none."""

    def __iter__(self) -> Iterator[CommitChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form that all interfaces show; `value` converts rows."""
        commit = self.commit
        return {
            "cause": {
                "graph_commit_id": commit.id,
                "parent_commit_id": commit.parent_id,
                "merged_parent_commit_id": commit.merged_parent_id,
                "authored_branch": commit.branch,
                "actor_id": commit.actor,
                "authored_at": commit.created_us,
                "message": commit.message,
                "schema_changed": self.schema_changed,
            },
            "changes": [change.to_json(value) for change in self.changes],
        }


@dataclass(frozen=True)
class CommitImages:
    """The snapshots of a commit's first parent and of the commit, and what is visible of them (None: everything)."""

    before: Snapshot
    after: Snapshot
    seen: DiffView | None = None

    @property
    def schema_changed(self) -> bool:
        """True if the schemas differ, so rows cannot be compared column by column."""
        return self.before.schema_hash != self.after.schema_hash if self.seen is None else self.seen.schema_changed

    def check_schema(self) -> None:
        """Refuse a commit that changed the schema: its rows before and after have different columns."""
        if self.schema_changed:
            raise ChangeDiffRefused(
                f"commit {self.after.commit_id} changed the schema; its changes cannot be listed row by row",
                reason="schema_boundary",
                graph_commit_id=self.after.commit_id,
                hint="'diff' compares across schemas, and the feed continues after the commit",
            )


def commit_images(repository: Repository, commit: Commit, sight: Sight | None, branch: str) -> CommitImages:
    """Return both sides of a commit; with `sight`, as far as they are visible on a branch."""
    before, after = commit_pair(repository, commit)
    if sight is None:
        return CommitImages(before, after)
    before, after = on_branch(before, branch), on_branch(after, branch)
    return CommitImages(before, after, sight.compare(before, after))


def commit_pair(repository: Repository, commit: Commit) -> tuple[Snapshot, Snapshot]:
    """Return the snapshots of a commit's first parent and of the commit."""
    if commit.parent_id is None:
        raise ChangeDiffRefused(
            f"commit {commit.id} has no parent to compare with",
            reason="parentless_commit",
            graph_commit_id=commit.id,
            hint="read the first state of the graph with 'snapshot' or 'export'",
        )
    return repository.snapshot(at=commit.parent_id), repository.snapshot(at=commit.id)


def read_changes(
    images: CommitImages, columns: Columns, wanted: ChangeFilter, from_table: tuple[int, str] | None = None
) -> Iterator[CommitChange]:
    """Yield the changes between a commit and its parent in order, optionally starting at a table."""
    before, after, seen = images.before, images.after, images.seen
    for pair in sorted(changed_pairs(before, after, wanted.has_table, seen), key=_table_sort_key):
        if from_table is not None and _table_sort_key(pair) < from_table:
            continue
        type_id = _type_id(pair.identity)
        for changes in diff_pair(pair, before, after, columns, seen).ranges():
            yield from (CommitChange(type_id, row) for row in changes.rows() if wanted.has_op(row.op))


def count_changes(repository: Repository, commit: Commit, columns: Columns) -> dict[str, dict[Op, int]]:
    """Return the numbers of inserted, updated and deleted rows of a commit by table; unchanged tables are left out."""
    images = commit_images(repository, commit, None, commit.branch)
    before, after = images.before, images.after
    found: dict[str, dict[Op, int]] = {}
    for pair in sorted(changed_pairs(before, after, lambda _: True), key=_table_sort_key):
        counts: dict[Op, int] = {"insert": 0, "update": 0, "delete": 0}
        for changes in diff_pair(pair, before, after, columns).ranges():
            counts["insert"] += changes.inserted.num_rows
            counts["update"] += changes.new.num_rows
            counts["delete"] += changes.deleted.num_rows
        if any(counts.values()):
            found[pair.key] = counts
    return found


def _table_sort_key(pair: TablePair) -> tuple[int, str]:
    return _KIND_RANK[TableKey.parse(pair.key).kind], _type_id(pair.identity)


def _type_id(identity: Identity) -> str:
    return f"{identity[0]:016x}{identity[1]:016x}"
