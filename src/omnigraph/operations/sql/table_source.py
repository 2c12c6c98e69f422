"""Tables and query results as Arrow datasets.

DuckDB asks a dataset for columns and a filter, so a scan reads what a statement uses. A filter on columns of `_PUSHED`
types goes to Lance, which uses its indexes. Lance cannot take a filter on the others, and must not see one under rules
for rows: values are masked first. Those filters are applied to the batches of the scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from omnigraph.engine.exec.view import View
from omnigraph.versioning.compare.rows import with_instants
from omnigraph.versioning.model.snapshot import Snapshot

_PUSHED = frozenset({pa.utf8(), pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32()})
"""Stored types whose filters Lance evaluates."""
_REFUSED_ITEMS = frozenset({pa.date64(), pa.uint32(), pa.uint64()})
"""Item types of lists with which Lance takes no expression, whichever columns it names."""
_BATCH_ROWS = 65_536

Batches = Iterator[pa.RecordBatch]
ReadBatches = Callable[[list[str], pc.Expression | None], Batches]
"""(columns, filter) → the rows that pass the filter, with these columns in stored types."""


class Failures(list[BaseException]):
    """Errors that ended a scan. DuckDB reports them as its own, without their class."""


class TableSource(pads.Dataset):  # type: ignore[misc]
    """Rows that DuckDB scans by columns and filter. DateTime columns are timestamps in UTC."""

    def __init__(self, stored: pa.Schema, read: ReadBatches, failures: Failures) -> None:
        self._schema = pa.schema([field.with_type(with_instants(field.type)) for field in stored])
        self._read = read
        self._failures = failures

    @property
    def schema(self) -> pa.Schema:
        """The columns, as DuckDB sees them."""
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: Any) -> Scan:
        """Return a scan of some columns of the rows that pass a filter."""
        names = self._schema.names if columns is None else list(columns)
        schema = pa.schema([self._schema.field(name) for name in names])
        return Scan(schema, lambda: self._rows(schema, filter))

    def _rows(self, schema: pa.Schema, filter: pc.Expression | None) -> Batches:
        try:
            for batch in self._read(schema.names, filter):
                yield batch.cast(schema) if batch.schema != schema else batch
        except GeneratorExit:  # DuckDB reads no more rows, because of an error of its own or of enough rows
            raise
        except BaseException as error:
            self._failures.append(error)
            raise


class Scan:
    """One scan of a source."""

    def __init__(self, schema: pa.Schema, rows: Callable[[], Batches]) -> None:
        self.projected_schema = schema
        self._rows = rows

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._rows())


def table_reader(snapshot: Snapshot, view: View | None, key: str, stored: pa.Schema) -> ReadBatches:
    """Return the function that reads the visible rows of a table."""

    def read(columns: list[str], filter: pc.Expression | None) -> Batches:
        if view is None and (filter is None or _takes(stored, filter)):
            return snapshot.table(key).stream(columns, _BATCH_ROWS, filter=filter)
        names = [name for name in stored.names if name in columns or name in _words(filter)]
        rows = snapshot.table(key).stream(names) if view is None else view.batches(key, names, _BATCH_ROWS)
        return filtered(rows, columns, filter)

    return read


def filtered(rows: Batches, columns: list[str], filter: pc.Expression | None) -> Batches:
    """Yield columns of the rows that pass a filter on the columns as DuckDB sees them."""
    for batch in rows:
        seen = pa.schema([field.with_type(with_instants(field.type)) for field in batch.schema])
        table = pa.Table.from_batches([batch]).cast(seen)
        if filter is not None:
            table = table.filter(filter)
        yield from table.select(columns).to_batches()


def _words(filter: pc.Expression | None) -> str:
    """The text of a filter, which contains the names of its columns."""
    return "" if filter is None else str(filter)


def _takes(stored: pa.Schema, filter: pc.Expression) -> bool:
    """Return True if Lance can evaluate a filter: each column that it may name has a type of `_PUSHED`."""
    if any(pa.types.is_list(field.type) and field.type.value_type in _REFUSED_ITEMS for field in stored):
        return False
    text = _words(filter)
    return all(field.type in _PUSHED for field in stored if field.name in text)
