"""Stored rows of a snapshot as an actor sees them, for reads that run no query: lookups, tables, exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checkpoint
from omnigraph.engine import tuning
from omnigraph.engine.cache.id_index import find_all, find_visible
from omnigraph.engine.cache.table_cache import DataCache, Mask, Numbers, TableData
from omnigraph.engine.cache.visibility import EndTable, EntityRows, StoredTable, VisibleTable, base_of, hides_rows
from omnigraph.engine.exec.context import NO_LIMITS, ExecutionContext
from omnigraph.engine.exec.filled_batches import filled_batches
from omnigraph.engine.exec.row_audit import audit_images, audit_rows
from omnigraph.query.visibility import Visibility
from omnigraph.schema.catalog import Catalog
from omnigraph.versioning.model.snapshot import Snapshot

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


class View:
    """The visible rows and values of a snapshot."""

    def __init__(self, catalog: Catalog, snapshot: Snapshot, cache: DataCache, visibility: Visibility) -> None:
        self.catalog = catalog
        """The visible types and properties."""
        self._snapshot = snapshot
        self._context = ExecutionContext(catalog, snapshot, cache, NO_LIMITS, visibility=visibility)
        self._is_audited = visibility.audit is not None

    def count(self, key: str) -> int:
        """Return the number of visible rows of a table."""
        data = self._context.type_table(key)
        seen = data.visible
        return data.row_count if seen is None else int(np.count_nonzero(seen))

    @property
    def context(self) -> ExecutionContext:
        """The visible tables and adjacencies."""
        return self._context

    def find(self, key: str, id_: str) -> int | None:
        """Return the row number of an id; None if the row does not exist or is not visible."""
        return find_visible(self._context.type_table(key), id_)

    def sees_value(self, key: str, row: int, name: str) -> bool:
        """Return whether a value of a visible row is visible."""
        data = self._context.type_table(key)
        return not isinstance(data, VisibleTable) or data.sees_value(name, row)

    def row_of(self, key: str, id_: str, columns: Sequence[str]) -> pa.Table | None:
        """Return a row as a table of one row; None if it does not exist or is not visible."""
        row = self.find(key, id_)
        if row is None:
            return None
        table = self._snapshot.table(key)
        blobs = table.blobs.intersection(columns)
        audit_rows(self._context, key, np.array([row]))
        found = table.rows_of([id_], columns) if blobs else table.take(columns, [row])
        return _visible(self._context.type_table(key), found, np.array([row]))

    def rows_at(self, key: str, columns: Sequence[str], numbers: Numbers) -> pa.Table:
        """Return the visible ones of some rows, in the order of their numbers; no column is a Blob."""
        data = self._context.type_table(key)
        self._audit(key, data, numbers)
        return _visible(data, self._snapshot.table(key).take(columns, pa.array(numbers)), numbers)

    def read(self, key: str, columns: Sequence[str]) -> pa.Table:
        """Return all visible rows of a table."""
        rows, data = self._snapshot.table(key).read(columns), self._context.type_table(key)
        self._audit(key, data, np.arange(rows.num_rows))
        return _visible(data, rows, np.arange(rows.num_rows))

    def _audit(self, key: str, data: StoredTable, numbers: Numbers) -> None:
        """Judge a sample of those of some rows that are visible once more, if the visibility requires it."""
        if self._is_audited:
            audit_rows(self._context, key, numbers[data.sees(numbers)] if isinstance(data, VisibleTable) else numbers)

    def schema(self, key: str, columns: Sequence[str]) -> pa.Schema:
        """Return the columns of `batches`; masked ones are nullable."""
        stored, data = self._snapshot.table(key).schema, self._context.type_table(key)
        return pa.schema([_field(data, stored.field(name)) for name in columns])

    def batches(self, key: str, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield all visible rows of a table in row order, in batches whose sizes do not depend on hidden rows."""
        table, data = self._snapshot.table(key), self._context.type_table(key)
        found = self._shown_batches(key, table.stream(columns, batch_rows))
        if not isinstance(data, VisibleTable):
            return found
        return filled_batches(found, table.stream_rows(columns, batch_rows), tuning.current.batch_bytes)

    def _shown_batches(self, key: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is visible of consecutive batches of a table."""
        data, start = self._context.type_table(key), 0
        for batch in batches:
            checkpoint()
            numbers = np.arange(start, start + batch.num_rows)
            start += batch.num_rows
            self._audit(key, data, numbers)
            yield _visible(data, batch, numbers)

    def by_id(self, key: str, columns: Sequence[str], batch_rows: int) -> Iterator[pa.Table]:
        """Yield all visible rows of a table without Blobs in the order of their ids, in batches."""
        table, data = self._snapshot.table(key), self._context.type_table(key)
        seen = data.visible
        numbers = np.arange(table.row_count) if seen is None else np.flatnonzero(seen)
        ids = one_array(table.read(["id"])["id"]).take(pa.array(numbers))
        ordered = numbers[pc.array_sort_indices(ids).to_numpy()]
        for begin in range(0, len(ordered), batch_rows):
            checkpoint()
            some = ordered[begin : begin + batch_rows]
            self._audit(key, data, some)
            yield _visible(data, table.take(columns, pa.array(some)), some)

    # -- images of rows --------------------------------------------------------------------------

    def rule_digest(self, key: str) -> str:
        """Identify the rules of a table; equal rules judge a stored row alike, the ends of edges aside."""
        data = self._context.type_table(key)
        return data.rule_digest if isinstance(data, VisibleTable) else ""

    def hides_rows(self, key: str) -> bool:
        """Return True if rows of a table can be hidden."""
        return hides_rows(self._context.type_table(key))

    def judged_columns(self, key: str) -> list[str]:
        """Return the columns that decide which rows of a table are visible."""
        data = self._context.type_table(key)
        return data.judged_columns if isinstance(data, VisibleTable) else ["id"]

    def sees(self, key: str, rows: pa.Table) -> Mask:
        """Return which of some stored rows, with the columns that decide, are visible."""
        data = self._context.type_table(key)
        if not isinstance(data, VisibleTable) or not rows.num_rows:
            return np.ones(rows.num_rows, bool)
        seen = np.ones(rows.num_rows, bool) if data.own is None else data.own.holds_in(rows)
        for column, table in zip(("src", "dst"), () if data.ends is None else data.ends[1:], strict=False):
            if not isinstance(table, TableData):
                visible = _visible_ids(table, one_array(pc.unique(rows[column])))
                seen = seen & pc.is_in(one_array(rows[column]), value_set=visible).to_numpy(zero_copy_only=False)
        return seen

    def shown(self, key: str, rows: pa.Table) -> pa.Table:
        """Return what is visible of complete stored rows."""
        data = self._context.type_table(key)
        if not isinstance(data, VisibleTable):
            return rows
        visible = rows.filter(pa.array(self.sees(key, rows)))
        shown = data.masked_in(visible)
        if self._is_audited:
            audit_images(self._context, key, visible, shown)
        return shown

    def edges_at(self, key: str, sources: pa.Array, targets: pa.Array) -> Numbers:
        """Return the numbers of the edges whose source or target is one of some visible nodes."""
        data = self._context.type_table(key)
        if not isinstance(data, VisibleTable) or data.ends is None:
            return np.zeros(0, np.int64)
        ends, *tables = data.ends
        at = np.zeros(data.row_count, bool)
        for of_edge, table, ids in zip(ends(), tables, (sources, targets), strict=True):
            if len(ids):
                chosen = np.zeros(table.row_count, bool)
                chosen[_numbers_of(table, ids)] = True
                at |= chosen[of_edge]
        return np.flatnonzero(at)


def _numbers_of(data: EndTable, ids: pa.Array) -> Numbers:
    """Return the rows of ids that exist, or the entities of keys."""
    if not isinstance(data, TableData | VisibleTable):
        return data.numbers_of(ids)
    found = find_all(base_of(data), ids.to_pylist())
    assert found is not None, "an edge ends at nodes that exist"
    return found


def _visible_ids(data: VisibleTable | EntityRows, ids: pa.Array) -> pa.Array:
    """Return the ids of some nodes that are visible."""
    return ids.filter(pa.array(data.sees(_numbers_of(data, ids))))


def _field(data: StoredTable, field: pa.Field) -> pa.Field:
    guarded = isinstance(data, VisibleTable) and data.is_guarded(field.name)
    return field.with_nullable(True) if guarded else field


def _visible(data: StoredTable, rows: Rows, numbers: Numbers) -> Rows:
    """Return the visible rows of some, with masked values as nulls."""
    if not isinstance(data, VisibleTable):
        return rows
    for at, name in enumerate(rows.schema.names):
        if data.is_guarded(name):
            column = data.masked(name, rows.column(at), numbers)
            rows = rows.set_column(at, _field(data, rows.schema.field(at)), column)
    return rows if not data.hides_rows else rows.filter(pa.array(data.sees(numbers)))
