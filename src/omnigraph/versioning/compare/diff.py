"""Logical difference of two snapshots, row by row.

Tables that are pinned at the same version are skipped. Otherwise only rows stored at different positions are read and
compared by value, so a rewrite of equal values is not a change. Tables are matched by identity: a renamed type is the
same table. Columns are matched by `Columns`; a column that only one side has counts as null on the other side.

Under rules for rows and properties, a `DiffView` tells what is visible of both sides. Each image of a row is judged in
its own snapshot: a row that is visible only after is an insert, one that is visible only before a delete. A row can
appear or disappear without a change of its own: an edge with its ends, and any row if the rules of the sides differ.

Rows stay in Arrow and are processed in ranges of ids, so memory is proportional to a range, not to the difference. Only
the ids of all candidates are held at once, and only if they do not fit into one range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checked, checkpoint
from omnigraph.errors import Damaged
from omnigraph.storage.lance.tables import Table
from omnigraph.storage.lance.version_diff import EVERYTHING, IdRange, StoredRows, all_rows, difference, with_rows
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.equality import differing, same_rows
from omnigraph.versioning.compare.rows import ToJson, to_dicts, to_plain
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.snapshot_view import PinnedTable

Op = Literal["insert", "update", "delete"]
Identity = tuple[int, int]
"""Table id and incarnation. A type keeps them when it is renamed."""

Names = Mapping[str, str] | None
"""Column of one side → name under which it is compared; an absent column is not compared. None: every column under its
own name.
"""

Columns = Callable[[Snapshot, Snapshot], Mapping[Identity, Mapping[str, str]]]
"""Returns the names of each table's columns on the other side; only the caller knows schemas."""

ROWS_MAX = 200_000
"""Maximum number of candidate rows in one range."""
_SHOWN_ROWS = 4_096


@dataclass(frozen=True)
class RowChange:
    """One row before and after; the image of a side without the row is None."""

    table_key: str
    id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def op(self) -> Op:
        """The operation that changed the row."""
        return row_op(self.before, self.after)

    @property
    def properties(self) -> list[str]:
        """The columns whose values differ."""
        return differing(self.before, self.after)

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form that all interfaces show; `value` converts rows."""
        kind, type_name = TableKey.parse(self.table_key).parts
        data: dict[str, Any] = {
            "table_key": self.table_key,
            "kind": kind,
            "type_name": type_name,
            "id": self.id,
            "op": self.op,
            "before": value(self.before),
            "after": value(self.after),
        }
        if kind == "edge":
            row = self.after or self.before or {}
            data["endpoints"] = {"src": row.get("src"), "dst": row.get("dst")}
        return data


def row_op(before: object | None, after: object | None) -> Op:
    """Return the operation that leads from one image of a row to another; an absent image is None."""
    if before is None:
        return "insert"
    return "delete" if after is None else "update"


@dataclass(frozen=True)
class TableChanges:
    """The changes of one table, or of one range of its ids; `old` and `new` contain the same rows in the same order."""

    key: str
    inserted: pa.Table
    deleted: pa.Table
    old: pa.Table
    new: pa.Table

    @property
    def count(self) -> int:
        """The number of changed rows."""
        return int(self.inserted.num_rows + self.deleted.num_rows + self.new.num_rows)

    @cached_property
    def ids(self) -> pa.Array:
        """The ids of the changed rows, in no guaranteed order."""
        return pa.concat_arrays(
            chunk for rows in (self.inserted, self.deleted, self.new) for chunk in _chunks(rows["id"])
        )

    def rows(self) -> Iterator[RowChange]:
        """Yield the changes by id; only a few are Python objects at a time."""
        order = pc.array_sort_indices(self.ids).to_numpy()
        ends = np.cumsum([self.inserted.num_rows, self.deleted.num_rows])
        for start in checked(range(0, len(order), _SHOWN_ROWS)):
            positions = order[start : start + _SHOWN_ROWS]
            part = _at(self.inserted, positions[positions < ends[0]])
            removed = _at(self.deleted, positions[(positions >= ends[0]) & (positions < ends[1])] - ends[0])
            updated = positions[positions >= ends[1]] - ends[1]
            changes = [RowChange(self.key, row["id"], None, row) for row in part]
            changes += [RowChange(self.key, row["id"], row, None) for row in removed]
            pairs = zip(_at(self.old, updated), _at(self.new, updated), strict=True)
            changes += [RowChange(self.key, after["id"], before, after) for before, after in pairs]
            yield from sorted(changes, key=lambda change: change.id)


RowNumbers = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Row numbers of one version of a table."""


class PairView(Protocol):
    """What is visible of one table in two snapshots."""

    @property
    def alike(self) -> bool:
        """True if the rules of both sides judge a stored row alike, the ends of edges aside."""

    def moved_rows(self) -> tuple[RowNumbers, RowNumbers]:
        """Return the edges before, and those after, that an end which is visible on this side alone makes visible."""

    def before(self, rows: pa.Table) -> pa.Table:
        """Return what is visible of stored rows of the earlier side."""

    def after(self, rows: pa.Table) -> pa.Table:
        """Return what is visible of stored rows of the later side."""


class TableDiff:
    """Two versions of a table and the rows they store at different positions; an absent version has no rows.

    With `seen`, only what is visible of them is compared.
    """

    def __init__(
        self,
        key: str,
        before: Table | None,
        after: Table | None,
        names: Names = None,
        after_names: Names = None,
        seen: PairView | None = None,
    ) -> None:
        assert before is not None or after is not None
        self.key = key
        self._names = names
        self._after_names = after_names
        self._seen = seen
        self._before: StoredRows | None = None
        self._after: StoredRows | None = None
        if before is not None and after is not None:
            if seen is not None and not seen.alike:
                self._before, self._after = all_rows(before), all_rows(after)
            elif seen is not None:
                found = difference(before, after, _unshared_fields(before, after, names, after_names))
                self._before, self._after = map(with_rows, found, seen.moved_rows())
            elif before.version != after.version:
                self._before, self._after = difference(
                    before, after, _unshared_fields(before, after, names, after_names)
                )
        elif before is not None:
            self._before = all_rows(before)
        elif after is not None:
            self._after = all_rows(after)

    @property
    def stored(self) -> tuple[StoredRows | None, StoredRows | None]:
        """The stored rows that may have changed, before and after."""
        return self._before, self._after

    @property
    def sides(self) -> list[StoredRows]:
        """The rows that may have changed, before and after."""
        return [side for side in self.stored if side is not None]

    def changes(self, within: IdRange = EVERYTHING) -> TableChanges:
        """Return the changes in a range of ids."""
        checkpoint()
        removed, added = _read(self._before, self._after, within), _read(self._after, self._before, within)
        if self._seen is not None:
            removed = self._seen.before(removed) if self._before is not None else removed
            added = self._seen.after(added) if self._after is not None else added
        return compare(self.key, _renamed(removed, self._names), _renamed(added, self._after_names))

    def touches(self, ids: pa.Array, within: IdRange = EVERYTHING) -> bool:
        """Return True if any of these rows may have changed; reads only ids."""
        found = (side.read(["id"], within)["id"] for side in self.sides)
        return any(pc.any(pc.is_in(column, value_set=ids)).as_py() for column in found)

    def ranges(self, start: str | None = None) -> Iterator[TableChanges]:
        """Yield all changes range by range, ids ascending, from the id `start` on."""
        for within in split_ids(self.sides):
            if start is not None:
                if within.high is not None and within.high <= start:
                    continue
                within = IdRange(max(start, within.low or ""), within.high)
            changes = self.changes(within)
            if changes.count:
                yield changes


def split_ids(sides: Sequence[StoredRows], rows_max: int = ROWS_MAX) -> list[IdRange]:
    """Return ranges that together cover all ids, each with about `rows_max` of the given rows."""
    total = sum(side.count for side in sides)
    if total <= rows_max:
        return [EVERYTHING]
    ids = pa.chunked_array([chunk for side in sides for chunk in side.ids().chunks], pa.utf8())
    positions = pc.array_sort_indices(ids)[rows_max::rows_max]
    bounds = list(dict.fromkeys(ids.take(positions).to_pylist()))
    return [IdRange(low, high) for low, high in zip([None, *bounds], [*bounds, None], strict=True)]


def compare(key: str, removed: pa.Table, added: pa.Table) -> TableChanges:
    """Return the changes from removed and added rows; rows in both with equal values are not changes."""
    position = pc.index_in(added["id"], value_set=one_array(removed["id"]))
    is_new = pc.is_null(position)
    old = removed.take(one_array(pc.drop_null(position)))
    new = added.filter(pc.invert(is_new))
    changed = pa.array(~same_rows(old, new))
    kept = np.ones(removed.num_rows, dtype=bool)
    kept[one_array(pc.drop_null(position)).to_numpy()] = False
    return TableChanges(
        key, added.filter(is_new), removed.filter(pa.array(kept)), old.filter(changed), new.filter(changed)
    )


def _unshared_fields(before: Table, after: Table, names: Names, after_names: Names) -> tuple[set[int], set[int]]:
    """Return, for each side, the field ids of the columns that the other side does not store as the same column."""
    if names is None and after_names is None:
        return set(), set()
    here, there = _fields(before, names), _fields(after, after_names)
    same = {field for name, field in here.items() if there.get(name) == field}
    return set(here.values()) - same, set(there.values()) - same


def _fields(table: Table, names: Names) -> dict[str, int]:
    """Return column → field id, under the names by which columns are compared."""
    ids = table.field_ids
    return ids if names is None else {names[name]: field for name, field in ids.items() if name in names}


def _read(side: StoredRows | None, other: StoredRows | None, within: IdRange) -> pa.Table:
    if side is not None:
        return side.read(within=within)
    return other.table.schema.empty_table() if other is not None else pa.table({"id": pa.array([], pa.utf8())})


def _renamed(rows: pa.Table, names: Names) -> pa.Table:
    if names is None:
        return rows
    return rows.select([name for name in rows.schema.names if name in names]).rename_columns(
        [names[name] for name in rows.schema.names if name in names]
    )


# -- snapshots ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TablePair:
    """One table in two snapshots; the key is that of the later snapshot if it has the table."""

    key: str
    identity: Identity
    before: PinnedTable | None
    after: PinnedTable | None

    @property
    def moved(self) -> bool:
        """True if the two versions may contain different rows."""
        if self.before is None or self.after is None:
            return True
        return self.before.pin.lance_version != self.after.pin.lance_version


def table_pairs(before: Snapshot, after: Snapshot) -> list[TablePair]:
    """Return the tables of two snapshots, matched by identity, ordered by key."""
    sides = [by_identity(before), by_identity(after)]
    pairs = []
    for identity in {**sides[0], **sides[1]}:
        a, b = sides[0].get(identity), sides[1].get(identity)
        shown = b or a
        assert shown is not None
        pairs.append(TablePair(shown.pin.key, identity, a, b))
    return sorted(pairs, key=lambda pair: pair.key)


def by_identity(snapshot: Snapshot) -> dict[Identity, PinnedTable]:
    """Return the tables of a snapshot by identity."""
    return {(table.pin.table_id, table.pin.incarnation): table for table in snapshot.tables.values()}


class DiffView(Protocol):
    """What is visible of two snapshots."""

    @property
    def pairs(self) -> Sequence[TablePair]:
        """The visible tables, ordered by key; a side on which the type is not visible is absent."""

    @property
    def schema_changed(self) -> bool:
        """True if the visible parts of the schemas differ."""

    def columns(self, before: Snapshot, after: Snapshot) -> Mapping[Identity, Mapping[str, str]]:
        """Return the names of each table's visible columns on the other side, as `Columns` does."""

    def of(self, pair: TablePair) -> PairView:
        """Return what is visible of a table."""


class Sight(Protocol):
    """What a caller may see of the points of a history."""

    def compare(self, before: Snapshot, after: Snapshot) -> DiffView | None:
        """Return what is visible of two snapshots; None if everything is."""

    def rights(self, snapshot: Snapshot) -> str | None:
        """Return a digest of what may be seen of a snapshot; None if everything is."""


def changed_pairs(
    before: Snapshot, after: Snapshot, wanted: Callable[[str], bool], seen: DiffView | None = None
) -> Iterator[TablePair]:
    """Yield the wanted tables of which rows may differ, ordered by key."""
    for pair in table_pairs(before, after) if seen is None else seen.pairs:
        if wanted(pair.key) and (pair.moved or (seen is not None and _shows_others(seen.of(pair)))):
            yield pair


def _shows_others(view: PairView) -> bool:
    """Return True if rows that did not change may be visible on one side alone."""
    return not view.alike or any(len(numbers) for numbers in view.moved_rows())


def diff_pair(
    pair: TablePair, before: Snapshot, after: Snapshot, columns: Columns | None = None, seen: DiffView | None = None
) -> TableDiff:
    """Return the difference of one table between two snapshots."""
    columns = columns if seen is None else seen.columns
    same_names = columns is None or before.schema_hash == after.schema_hash
    names = None if same_names or columns is None else columns(before, after).get(pair.identity)
    return TableDiff(
        pair.key,
        before.open(pair.before) if pair.before is not None else None,
        after.open(pair.after) if pair.after is not None else None,
        names,
        seen=None if seen is None else seen.of(pair),
    )


def diff_snapshots(
    before: Snapshot,
    after: Snapshot,
    columns: Columns | None = None,
    *,
    wanted: Callable[[str], bool] = lambda _: True,
    start: tuple[str, str] | None = None,
    seen: DiffView | None = None,
) -> Iterator[RowChange]:
    """Yield every row that differs, tables by key, rows by id; `wanted` selects tables by key.

    With `start`, rows before this table key and id are not read. With `seen`, only what is visible is compared.
    """
    first, row = start or ("", "")
    try:
        for pair in changed_pairs(before, after, wanted, seen):
            if pair.key >= first:
                diff = diff_pair(pair, before, after, columns, seen)
                for changes in diff.ranges(row if pair.key == first else None):
                    yield from changes.rows()
    except Damaged as error:
        removed = before.find_removed() or after.find_removed() if error.code == "version_reclaimed" else None
        if removed is None:
            raise
        raise removed from error


def _at(rows: pa.Table, positions: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    return to_dicts(rows.take(pa.array(positions, pa.int64())))


def _chunks(column: pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks or [pa.array([], column.type)]
