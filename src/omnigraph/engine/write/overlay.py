"""The uncommitted changes of a write, as an overlay over the committed tables.

Reads see the committed rows, without those that the write deleted or replaced, and the rows of the write. All data
stays in Arrow: an update of a million rows is a few columns, not a million objects.

An overlay can lie on another one: the changes of writes that are published together with this one, and before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import concatenate, one_array
from omnigraph.engine import tuning
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.expr.predicates import Test, sql_in
from omnigraph.engine.write.delta import Delta, DeltaGuard, TableDelta
from omnigraph.engine.write.where import IdList, Selection
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.lance.tables import Table
from omnigraph.versioning.model.snapshot import Snapshot

_LAST_WRITE = "_row_last_updated_at_version"
_UNCOMMITTED = 2**62
_KNOWN_IDS_MAX = 1_024
"""Ids of rows that are put together, up to which they are also kept in a set."""
_TAKEN_SHARE = 8
"""Rows are read by their numbers if they are at most this part of a table, and by a scan otherwise."""


class CommittedRows:
    """Committed rows of one snapshot, read on demand."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def table(self, table_key: str) -> Table:
        """Return a committed table."""
        return self._snapshot.table(table_key)

    def ids_among(self, table_key: str, ids: pa.Array) -> pa.Array:
        """Return the ids that exist."""
        return one_array(self.rows_among(table_key, "id", ids, ["id"])["id"])

    def rows_with_ids(self, table_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Read `id` and some columns of the rows with these ids. Only ids are read of other rows."""
        table = self._snapshot.table(table_key)
        wanted = list(dict.fromkeys(["id", *columns]))
        if len(ids) <= tuning.current.in_list_max:
            return self.rows_among(table_key, "id", ids, wanted)
        rows = self.rows_among(table_key, "id", ids, ["id", "_rowid"])
        return table.take_rows(rows["_rowid"].to_pylist(), wanted)

    def rows_among(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Read the rows whose `column` is one of `values`, which have the type of the column."""
        table = self._snapshot.table(table_key)
        wanted = [*columns]
        if not len(values):
            return table.schema.empty_table().select(wanted)
        if len(values) <= tuning.current.in_list_max:
            if pa.types.is_string(values.type):
                return table.rows_with(column, values.drop_null().to_pylist(), wanted)
            return table.read(wanted, filter=sql_in(column, values))
        rows = table.read(wanted if column in wanted else [*wanted, column])
        return rows.filter(pc.is_in(rows[column], value_set=values)).select(wanted)

    def read(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """Read all rows."""
        return self._snapshot.table(table_key).read(columns)


class _CommittedAndPending:
    """The rows of a snapshot with the changes of an overlay, for the integrity rules of the next write."""

    def __init__(self, snapshot: Snapshot, pending: WriteOverlay) -> None:
        self._committed = CommittedRows(snapshot)
        self._pending = pending

    def rows_among(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Read the rows whose `column` is one of `values`, which have the type of the column."""
        wanted = _with_id(columns)
        rows = self._committed.rows_among(table_key, column, values, wanted)
        pending = self._pending.table(table_key)
        own = pending.rows
        return pending.added_to(rows, own.filter(pc.is_in(own[column], value_set=values))).select([*columns])

    def read(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """Read all rows."""
        pending = self._pending.table(table_key)
        return pending.added_to(self._committed.read(table_key, _with_id(columns)), pending.rows).select([*columns])


def _that_pass(rows: pa.Table, tests: Sequence[Test | IdList]) -> pa.Table:
    """Return the rows that pass some tests of their columns."""
    for test in tests if rows.num_rows else ():
        rows = rows.filter(test.mask(rows[test.column]))
    return rows


def _with_id(columns: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(["id", *columns]))


class TableOverlay:
    """The overlay of one table; `below` is the overlay on which it lies, if any."""

    def __init__(self, key: str, committed: Table, below: TableOverlay | None = None) -> None:
        self.key = key
        self.committed = committed
        self._below = below
        self.schema = committed.schema
        self.deleted: pa.Array = pa.nulls(0, pa.utf8())
        self._parts: list[pa.Table] = []
        """The rows of the write, in parts; ids are distinct."""
        self._ids: set[str] | None = set()
        """The ids of the rows; None after many rows were put at once."""
        self._fresh: list[str] = []
        """Ids added by this write that the committed table does not have."""

    @property
    def rows(self) -> pa.Table:
        """The rows of the write."""
        if len(self._parts) != 1:
            self._parts = [pa.concat_tables(self._parts) if self._parts else self.schema.empty_table()]
        return self._parts[0]

    def put(self, rows: pa.Table, *, fresh: bool = False) -> None:
        """Put rows. A row replaces an earlier one with the same id, and undoes its deletion.

        `fresh` asserts that no visible row has one of the ids; ids that were deleted before can still be in the
        committed table.
        """
        ids = one_array(rows["id"])
        if fresh:
            new = ids.filter(pc.invert(pc.is_in(ids, value_set=self.deleted))) if len(self.deleted) else ids
            self._fresh += new.to_pylist()
        if len(self.deleted):
            self.deleted = self.deleted.filter(pc.invert(pc.is_in(self.deleted, value_set=ids)))
        self._remove(ids)
        if self._ids is not None:
            self._ids = self._ids.union(ids.to_pylist()) if len(ids) <= _KNOWN_IDS_MAX else None
        self._parts.append(_with_schema(rows, self.schema))

    def _remove(self, ids: pa.Array) -> None:
        """Remove rows of this write."""
        known = self._ids
        if not self._parts or (known is not None and len(ids) <= _KNOWN_IDS_MAX and known.isdisjoint(ids.to_pylist())):
            return
        rows = self.rows
        if rows.num_rows:
            self._parts = [rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))]

    def delete(self, ids: pa.Array) -> int:
        """Delete rows, including rows of this write; return the number of rows that were not yet deleted."""
        if not len(ids):
            return 0
        self._remove(ids)
        new = ids.filter(pc.invert(pc.is_in(ids, value_set=self.deleted))) if len(self.deleted) else ids
        self.deleted = concatenate([self.deleted, new])
        return len(new)

    def by_id(self, id_: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the visible row with an id, or an empty table."""
        wanted = [*columns] if columns is not None else self.schema.names
        if self._ids is None or id_ in self._ids:
            own = self.rows.filter(pc.equal(self.rows["id"], id_)).select(wanted)
            if own.num_rows:
                return own
        if self._is_deleted(id_):
            return self._none(wanted)
        if self._below is not None:
            return self._below.by_id(id_, wanted)
        # An existence test changes nothing; other rows are changed by the statement.
        if wanted == ["id"]:
            return self.committed.rows_with("id", [id_], wanted)
        return self.committed.locate(["id"], [id_], wanted)

    def matching(self, condition: Selection | Test, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the visible rows that satisfy a condition."""
        selection = Selection((condition,)) if isinstance(condition, Test) else condition
        wanted = [*columns] if columns is not None else self.schema.names
        needed = list(dict.fromkeys([*wanted, *selection.columns, "id"]))
        id_ = selection.id()
        if id_ is not None and self._ids is not None and id_ not in self._ids:
            # The rows of the write do not matter: one lookup finds the row.
            if self._is_deleted(id_):
                return self._none(wanted)
            if self._below is not None:
                return self._below.matching(selection, wanted)
            return selection.of_stored(self._stored(selection, needed)).select(wanted)
        if self._below is not None:
            stored = self._visible(self._below.matching(selection, needed)).select(wanted)
        else:
            stored = selection.of_stored(self._visible(self._stored(selection, needed))).select(wanted)
        if not self._parts:
            return stored
        own = selection.of_all(self.rows).select(wanted)
        return pa.concat_tables([_with_schema(stored, own.schema), own])

    def _is_deleted(self, id_: str) -> bool:
        return bool(len(self.deleted)) and pc.index(self.deleted, id_).as_py() >= 0

    def _none(self, columns: Sequence[str]) -> pa.Table:
        return self.schema.empty_table().select([*columns])

    def _stored(self, selection: Selection, columns: Sequence[str]) -> pa.Table:
        """Return the committed rows that satisfy the tests of a condition."""
        if selection.is_never_true:
            return self._none(columns)
        lookup = selection.lookup()
        tests = selection.tests_after(lookup)
        if lookup is not None:
            tested = list(dict.fromkeys([*columns, *(test.column for test in tests)]))
            rows = _that_pass(self.committed.locate([lookup.column], lookup.values, tested), tests)
            return rows if len(tested) == len(columns) else rows.select([*columns])
        if not tests:
            return self.committed.read(columns, filter=selection.sql())
        # Long lists are compared with the values of their columns; the other columns are read of the rows that pass.
        tested = list(dict.fromkeys(test.column for test in tests))
        found = _that_pass(self.committed.read([*tested, "_rowid"], filter=selection.sql()), tests)
        if found.num_rows * _TAKEN_SHARE <= self.committed.row_count:
            return self.committed.take_rows(found["_rowid"].to_pylist(), columns)
        rows = self.committed.read([*columns, "_rowid"], filter=selection.sql())
        ids, passing = rows["_rowid"], one_array(found["_rowid"])
        return rows.filter(interruptible(lambda: pc.is_in(ids, value_set=passing), len(ids))).select([*columns])

    def with_ids(self, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Return the visible rows with some ids."""
        wanted = _with_id(columns)
        if self._below is not None:
            stored = self._below.with_ids(ids, wanted)
        elif len(ids) <= tuning.current.in_list_max:
            stored = self.committed.rows_with("id", ids.to_pylist(), wanted)
        else:
            found = self.committed.read(["id", "_rowid"])
            found = found.filter(pc.is_in(found["id"], value_set=ids))
            stored = self.committed.take_rows(found["_rowid"].to_pylist(), wanted)
        return self.added_to(stored, self.rows.filter(pc.is_in(self.rows["id"], value_set=ids))).select([*columns])

    def ids_with(self, columns: Sequence[str], values: pa.Array) -> pa.Array:
        """Return the ids of visible rows with one of `values` in one of the columns."""
        if not len(values) or not columns:
            return pa.nulls(0, pa.utf8())
        if self._below is not None:
            rows = pa.table({"id": self._below.ids_with(columns, values)})
        elif len(values) <= tuning.current.in_list_max:
            rows = self.committed.locate(columns, values.to_pylist(), ["id"])
        else:
            rows = self.committed.read(["id", *columns])
            hits = [pc.is_in(rows[column], value_set=values) for column in columns]
            rows = rows.filter(reduce(pc.or_, hits))
        stored = one_array(self._visible(rows)["id"])
        if not self._parts:
            return stored
        own = self.rows.filter(reduce(pc.or_, [pc.is_in(self.rows[column], value_set=values) for column in columns]))
        return concatenate([stored, one_array(own["id"])])

    def last_writes(self, ids: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return for each id the version in which its row was last written; rows of uncommitted writes are newest."""
        columns = ["id", _LAST_WRITE]
        if len(ids) <= tuning.current.in_list_max:
            known = self.committed.read(columns, filter=sql_in("id", ids))
        else:
            known = self.committed.read(columns)
        places = pc.index_in(ids, value_set=one_array(known["id"]))
        versions = one_array(known[_LAST_WRITE]).take(places).cast(pa.int64(), safe=False)
        found: np.ndarray[Any, np.dtype[np.int64]] = pc.fill_null(versions, 0).to_numpy().copy()
        level: TableOverlay | None = self
        while level is not None:
            found[np.asarray(pc.is_in(ids, value_set=one_array(level.rows["id"])))] = _UNCOMMITTED
            level = level._below
        return found

    def _visible(self, stored: pa.Table) -> pa.Table:
        if not stored.num_rows or self.is_empty:
            return stored
        hidden = concatenate([self.deleted, one_array(self.rows["id"])])
        return stored.filter(pc.invert(pc.is_in(stored["id"], value_set=hidden)))

    def added_to(self, stored: pa.Table, own: pa.Table) -> pa.Table:
        """Return stored rows that the write left unchanged, and some rows of the write, with the same columns."""
        visible = self._visible(stored)
        if not own.num_rows:
            return visible
        return pa.concat_tables([visible, own.select(visible.column_names).cast(visible.schema)])

    def absorb(self, other: TableOverlay) -> None:
        """Add the changes of an overlay that lies on this one."""
        self.delete(other.deleted)
        rows = other.rows
        if rows.num_rows:
            fresh = set(other._fresh)
            is_fresh = [id_ in fresh for id_ in rows["id"].to_pylist()]
            if all(is_fresh) or not any(is_fresh):
                self.put(rows, fresh=all(is_fresh))
            else:
                mask = pa.array(is_fresh)
                self.put(rows.filter(mask), fresh=True)
                self.put(rows.filter(pc.invert(mask)))

    def touched_ids(self) -> list[str]:
        """Return the ids of rows that are put or deleted, except rows that were both added and deleted."""
        fresh = set(self._fresh)
        put: list[str] = self.rows["id"].to_pylist()
        return put + [id_ for id_ in self.deleted.to_pylist() if id_ not in fresh]

    @property
    def added_rows(self) -> int:
        """The number of rows that the write adds to the table; negative if it removes more."""
        fresh = set(self._fresh)
        added = sum(id_ in fresh for id_ in self.rows["id"].to_pylist())
        return added - sum(id_ not in fresh for id_ in self.deleted.to_pylist())

    @property
    def is_empty(self) -> bool:
        """True if the table has no changes."""
        return not len(self.deleted) and not any(part.num_rows for part in self._parts)

    def change(self) -> TableWrite:
        """Return the changes to stage."""
        rows = self.rows
        deleted = self.deleted.to_pylist()
        if not self._fresh:
            return TableWrite(upsert=rows, delete=deleted)
        if len(self._fresh) == rows.num_rows == 1 and rows["id"][0].as_py() == self._fresh[0]:
            return TableWrite(append=rows, delete=deleted)
        fresh = pc.is_in(rows["id"], value_set=pa.array(self._fresh, pa.utf8()))
        return TableWrite(append=rows.filter(fresh), upsert=rows.filter(pc.invert(fresh)), delete=deleted)


def _with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns and types of a schema."""
    return rows if rows.schema.equals(schema, check_metadata=True) else rows.select(schema.names).cast(schema)


class WriteOverlay:
    """The overlays of all tables of a write, created on first use; `below` is the overlay on which it lies, if any."""

    def __init__(self, snapshot: Snapshot, below: WriteOverlay | None = None) -> None:
        self.snapshot = self._snapshot = snapshot
        self._below = below
        self._tables: dict[str, TableOverlay] = {}

    def table(self, key: str) -> TableOverlay:
        """Return the overlay of one table."""
        if key not in self._tables:
            below = self._below._tables.get(key) if self._below is not None else None
            self._tables[key] = TableOverlay(key, self._snapshot.table(key), below)
        return self._tables[key]

    def changed_tables(self) -> Iterable[TableOverlay]:
        """Return the tables with changes."""
        return [table for table in self._tables.values() if not table.is_empty]

    def delta(self, *, cascaded: bool = False, guard: DeltaGuard | None = None) -> Delta:
        """Return the write as input of the integrity rules; `cascaded` and `guard` are as in `Delta`."""
        tables = {table.key: TableDelta(table.rows, table.deleted) for table in self.changed_tables()}
        below = self._below
        committed = CommittedRows(self._snapshot) if below is None else _CommittedAndPending(self._snapshot, below)
        return Delta(tables, committed, cascaded=cascaded, guard=guard)

    def op_counts(self) -> dict[str, dict[str, int]]:
        """Return the numbers of rows that are inserted, updated and deleted, by table."""
        committed = CommittedRows(self._snapshot)
        counts: dict[str, dict[str, int]] = {}
        for table in self.changed_tables():
            put = one_array(table.rows["id"])
            updated = len(committed.ids_among(table.key, put))
            deleted = len(committed.ids_among(table.key, one_array(table.deleted)))
            counts[table.key] = {"insert": len(put) - updated, "update": updated, "delete": deleted}
        return counts

    # -- writes that are published together ------------------------------------------------------

    def changes(self) -> dict[str, TableWrite]:
        """Return the changes of each table."""
        return {table.key: table.change() for table in self.changed_tables()}

    def absorb(self, other: WriteOverlay) -> None:
        """Add the changes of an overlay that lies on this one."""
        for table in other.changed_tables():
            self.table(table.key).absorb(table)

    def touched(self) -> Mapping[str, Sequence[str]]:
        """Return the ids of the changed rows of each table; a table without an effective change is left out."""
        found = {table.key: table.touched_ids() for table in self.changed_tables()}
        return {key: ids for key, ids in found.items() if ids}

    def added_rows(self) -> Mapping[str, int]:
        """Return the number of rows that the write adds to each table."""
        return {table.key: table.added_rows for table in self.changed_tables()}

    def size_bytes(self) -> int:
        """Return the size of the written rows in memory."""
        return sum(table.rows.nbytes for table in self.changed_tables())
