"""History of one row: the commits that changed it, and the commit that last set each of its properties.

History is traversed from a commit through all its parents and simplified: a commit whose row equals that of a parent
changed nothing, and the traversal continues at that parent (the first, if several are equal). A change is therefore
reported at the commit that made it, on whatever branch, and a merge only if it created a row that neither side had.

The graph is not read again for every commit. Tables whose pin did not change are skipped, and a row is found by its
position: the ids of a data file are searched once, however many versions share the file.

A cleanup may have removed old versions. History then ends with the oldest readable state, reported as `found`: the row
had this content at that commit, and the commit that made it is unknown.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa

from omnigraph.checkpoints import checkpoint
from omnigraph.errors import CommitNotFound, Damaged
from omnigraph.storage.lance.row_finder import RowFinder
from omnigraph.versioning.compare.diff import Identity, row_op
from omnigraph.versioning.compare.equality import differing, same_row, same_value
from omnigraph.versioning.compare.rows import ToJson, to_dicts, to_plain
from omnigraph.versioning.model.manifest_objects import Commit, Pin
from omnigraph.versioning.write.repository import Repository

Row = dict[str, Any]
EntityOp = Literal["insert", "update", "delete", "found"]
Rename = Callable[[str], Mapping[str, str]]
"""Schema hash → the table's columns in that schema, and their names in the requested schema."""


@dataclass(frozen=True)
class EntityChange:
    """The change of one row by one commit."""

    commit: Commit
    before: Row | None
    after: Row | None
    known: bool = True
    """True if the previous state can still be read."""

    @property
    def op(self) -> EntityOp:
        """The operation; `found` if the previous state is unknown."""
        return row_op(self.before, self.after) if self.known else "found"

    @property
    def properties(self) -> list[str]:
        """The columns whose values differ."""
        return differing(self.before, self.after)

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form that all interfaces show; `value` converts rows."""
        return {
            "graph_commit_id": self.commit.id,
            "actor_id": self.commit.actor,
            "created_at": self.commit.created_us,
            "message": self.commit.message,
            "op": self.op,
            "properties": self.properties,
            "before": value(self.before),
            "after": value(self.after),
        }


@dataclass(frozen=True)
class Blame:
    """The value of a property and the commit that last set it."""

    property: str
    value: Any
    commit: Commit
    known: bool = True
    """False if the value is at least as old as this commit and older versions were cleaned up."""

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form that all interfaces show; `value` converts rows."""
        return {
            "property": self.property,
            "value": value(self.value),
            "known": self.known,
            "graph_commit_id": self.commit.id,
            "actor_id": self.commit.actor,
            "created_at": self.commit.created_us,
            "message": self.commit.message,
        }


class SeenRow(Protocol):
    """What a caller may see of a row at the commits of its history."""

    def key(self, commit_id: str) -> Hashable:
        """Return a key of what decides: at commits with equal keys, an equal row is judged alike."""

    def shown(self, commit_id: str, rows: pa.Table) -> pa.Table:
        """Return what is visible of the stored row at a commit, with the current column names."""


class EntityHistory:
    """One row of one table at any commit; `rename` maps the columns of a schema to their current names.

    With `seen`, it is the row that the caller may see: a row that became visible was inserted by that commit.
    """

    def __init__(
        self, repository: Repository, identity: Identity, row_id: str, rename: Rename, seen: SeenRow | None = None
    ) -> None:
        state = repository.state()
        self._repository = repository
        self._rename = rename
        self._seen = seen
        self._commits = repository.all_commits(state)
        self._pins = {
            commit_id: pin
            for commit_id, pins in repository.all_pins(state).items()
            for pin in pins
            if (pin.table_id, pin.incarnation) == identity
        }
        self._folder = state.tables[identity].folder
        self._finder = RowFinder(row_id)
        self._rows: dict[Hashable, Row | None] = {}

    def row(self, commit_id: str) -> Row | None:
        """Return the row after a commit, with the current column names."""
        pin = self._pins.get(commit_id)
        if pin is None:
            return None
        key = (pin.lance_version, self._commits[commit_id].schema_hash, self._seen and self._seen.key(commit_id))
        if key not in self._rows:
            self._rows[key] = self._read(pin, commit_id)
        return self._rows[key]

    def _read(self, pin: Pin, commit_id: str) -> Row | None:
        tables = self._repository.tables
        table = tables.open_row(self._folder, pin.lance_version, pin.transaction, self._finder.row_id)
        rows = self._finder.rows(table)
        if self._seen is not None:
            found = to_dicts(self._seen.shown(commit_id, rows)) if rows.num_rows else []
            return found[0] if found else None
        found = to_dicts(rows)
        if not found:
            return None
        names = self._rename(self._commits[commit_id].schema_hash)
        return {names[name]: value for name, value in found[0].items() if name in names}

    def _known(self, commit_id: str) -> bool:
        """Return True if the row after a commit can still be read."""
        try:
            self.row(commit_id)
        except Damaged as error:
            if error.code != "version_reclaimed":
                raise
            return False
        return True

    def changes(self, start: str) -> Iterator[EntityChange]:
        """Yield every change of the row that led to its state at `start`, newest first."""
        queue = [(-self._commit(start).manifest_version, start)]
        seen = {start}
        while queue:
            checkpoint()
            commit = self._commit(heapq.heappop(queue)[1])
            row = self.row(commit.id)
            parents = [parent for parent in commit.parents if self._known(parent)]
            alike = [parent for parent in parents if same_row(row, self.row(parent))]
            if not alike and (row is not None or commit.parents):
                known = len(parents) == len(commit.parents)
                before = self.row(parents[0]) if known and parents else None
                if known or row is not None:
                    yield EntityChange(commit, before, row, known)
            for parent in alike[:1] or parents:
                if parent not in seen:
                    seen.add(parent)
                    heapq.heappush(queue, (-self._commit(parent).manifest_version, parent))

    def blame(self, start: str) -> list[Blame]:
        """Return the commit that last set each property of the row at `start`; nothing for a missing row."""
        row = self.row(start)
        if row is None:
            return []
        found: dict[str, tuple[Commit, bool]] = {}
        pending: dict[str, set[str]] = {start: set(row)}
        queue = [(-self._commit(start).manifest_version, start)]
        while queue:
            checkpoint()
            commit = self._commit(heapq.heappop(queue)[1])
            left = pending.pop(commit.id)
            known = all(self._known(parent) for parent in commit.parents)
            for parent in commit.parents if known else ():
                before = self.row(parent)
                kept = {name for name in left if before is not None and same_value(before.get(name), row[name])}
                if kept:
                    if parent not in pending:
                        heapq.heappush(queue, (-self._commit(parent).manifest_version, parent))
                    pending.setdefault(parent, set()).update(kept)
                    left -= kept
            found.update(dict.fromkeys(left, (commit, known)))
        return [Blame(name, value, *found[name]) for name, value in row.items()]

    def _commit(self, commit_id: str) -> Commit:
        commit = self._commits.get(commit_id)
        if commit is None:
            raise CommitNotFound(f"there is no commit '{commit_id}'")
        return commit
