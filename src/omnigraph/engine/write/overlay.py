"""The uncommitted changes of a write, as an overlay over the committed tables.

Reads see the committed rows, without those that the write deleted or replaced, and the rows of the write. All data
stays in Arrow: an update of a million rows is a few columns, not a million objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine import tuning
from omnigraph.engine.expr.predicates import Test, sql_in
from omnigraph.engine.write.delta import Delta, TableDelta
from omnigraph.engine.write.where import Selection
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.lance.tables import Table
from omnigraph.versioning.model.snapshot import Snapshot


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
            return table.read(wanted, filter=sql_in(column, values))
        rows = table.read(wanted if column in wanted else [*wanted, column])
        return rows.filter(pc.is_in(rows[column], value_set=values)).select(wanted)

    def read(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """Read all rows."""
        return self._snapshot.table(table_key).read(columns)


class TableOverlay:
    """The overlay of one table."""

    def __init__(self, key: str, committed: Table) -> None:
        self.key = key
        self.committed = committed
        self.schema = pa.schema([field.remove_metadata() for field in committed.schema])
        self.rows: pa.Table = self.schema.empty_table()
        self.deleted: pa.Array = pa.array([], pa.utf8())
        self._fresh: list[str] = []
        """Ids added by this write that the committed table does not have."""

    def put(self, rows: pa.Table, *, fresh: bool = False) -> None:
        """Put rows. A row replaces an earlier one with the same id, and undoes its deletion.

        `fresh` asserts that no visible row has one of the ids; ids that were deleted before can still be in the
        committed table.
        """
        if fresh:
            stored = pc.is_in(rows["id"], value_set=self.deleted)
            self._fresh += rows["id"].filter(pc.invert(stored)).to_pylist()
        if len(self.deleted):
            self.deleted = self.deleted.filter(pc.invert(pc.is_in(self.deleted, value_set=one_array(rows["id"]))))
        kept = self.rows.filter(pc.invert(pc.is_in(self.rows["id"], value_set=one_array(rows["id"]))))
        self.rows = pa.concat_tables([kept, rows.select(self.schema.names).cast(self.schema)])

    def delete(self, ids: pa.Array) -> int:
        """Delete rows, including rows of this write; return the number of rows that were not yet deleted."""
        if self.rows.num_rows:
            self.rows = self.rows.filter(pc.invert(pc.is_in(self.rows["id"], value_set=ids)))
        new = ids.filter(pc.invert(pc.is_in(ids, value_set=self.deleted)))
        self.deleted = pa.concat_arrays([self.deleted, new])
        return len(new)

    def matching(self, condition: Selection | Test, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the visible rows that satisfy a condition."""
        selection = Selection((condition,)) if isinstance(condition, Test) else condition
        wanted = [*columns] if columns is not None else self.schema.names
        needed = list(dict.fromkeys([*wanted, *selection.columns, "id"]))
        stored = self._visible(self.committed.read(needed, filter=selection.sql()))
        own = selection.of_all(self.rows).select(wanted)
        return pa.concat_tables([selection.of_stored(stored).select(wanted).cast(own.schema), own])

    def ids_with(self, columns: Sequence[str], values: pa.Array) -> pa.Array:
        """Return the ids of visible rows with one of `values` in one of the columns."""
        if not len(values) or not columns:
            return pa.array([], pa.utf8())
        if len(values) <= tuning.current.in_list_max:
            rows = self.committed.read(["id"], filter=" OR ".join(sql_in(column, values) for column in columns))
        else:
            rows = self.committed.read(["id", *columns])
            hits = [pc.is_in(rows[column], value_set=values) for column in columns]
            rows = rows.filter(reduce(pc.or_, hits))
        own = self.rows.filter(reduce(pc.or_, [pc.is_in(self.rows[column], value_set=values) for column in columns]))
        return pa.concat_arrays([one_array(self._visible(rows)["id"]), one_array(own["id"])])

    def _visible(self, stored: pa.Table) -> pa.Table:
        hidden = pa.concat_arrays([self.deleted, one_array(self.rows["id"])])
        if not len(hidden) or not stored.num_rows:
            return stored
        return stored.filter(pc.invert(pc.is_in(stored["id"], value_set=hidden)))

    @property
    def is_empty(self) -> bool:
        """True if the table has no changes."""
        return not self.rows.num_rows and not len(self.deleted)

    def change(self) -> TableWrite:
        """Return the changes to stage."""
        fresh = pc.is_in(self.rows["id"], value_set=pa.array(self._fresh, pa.utf8()))
        return TableWrite(
            append=self.rows.filter(fresh),
            upsert=self.rows.filter(pc.invert(fresh)),
            delete=self.deleted.to_pylist(),
        )


class WriteOverlay:
    """The overlays of all tables of a write, created on first use."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tables: dict[str, TableOverlay] = {}

    def table(self, key: str) -> TableOverlay:
        """Return the overlay of one table."""
        if key not in self._tables:
            self._tables[key] = TableOverlay(key, self._snapshot.table(key))
        return self._tables[key]

    def changed_tables(self) -> Iterable[TableOverlay]:
        """Return the tables with changes."""
        return [table for table in self._tables.values() if not table.is_empty]

    def delta(self) -> Delta:
        """Return the write as input of the integrity rules."""
        tables = {table.key: TableDelta(table.rows, table.deleted) for table in self.changed_tables()}
        return Delta(tables, CommittedRows(self._snapshot))
