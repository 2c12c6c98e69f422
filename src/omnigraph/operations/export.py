"""Export of a snapshot as records that load back to the same graph.

Tables are in ascending order of their keys, rows in order of ids, and all properties are present. Dates and 64-bit
integers are numbers, vectors are arrays, and blobs are base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checkpoint
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.exec.view import View
from omnigraph.errors import TypeNotFound
from omnigraph.scalar_types.columns import stored_values
from omnigraph.schema.catalog import SYSTEM_FIELDS, Catalog, EdgeType, NodeType
from omnigraph.storage.lance.tables import Table
from omnigraph.storage.lance.version_diff import IdRange, StoredRows, all_rows
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.model.snapshot import Snapshot

_BYTES_MAX = 32 * 1024**2
"""Stored size of the rows that an export holds in memory; their decoded size is a small multiple."""
_ROWS_MIN = 1_024
_BLOB_ROWS = 16
"""Rows with Blob values that are converted at a time."""
_ROWS_MAX = 524_288
_STREAM_ROWS = 8_192
"""Rows that an export in stored order holds in memory."""
_SAMPLE_STEP = 64
"""One in this many ids decides the ranges of ids that a large table is read in."""


def export_records(
    snapshot: Snapshot, catalog: Catalog, types: Sequence[str] | None = None, view: View | None = None
) -> Iterator[dict[str, Any]]:
    """The records of a snapshot, or those that are visible. `types` selects types by name; a name of both kinds selects
    both.
    """
    return chain.from_iterable(export_rows(snapshot, type_, view) for type_ in chosen_types(catalog, types))


def chosen_types(catalog: Catalog, types: Sequence[str] | None) -> list[NodeType | EdgeType]:
    """The types with these names or table keys, or all types. Raises `TypeNotFound` for an unknown name."""
    tables = list(catalog.tables())
    names, keys = {type_.name for type_ in tables}, {type_.table_key for type_ in tables}
    for name in types or ():
        if name not in names and name not in keys:
            raise TypeNotFound(f"there is no node or edge type '{name}'", hint=did_you_mean(name, names))
    return [type_ for type_ in tables if types is None or type_.name in types or type_.table_key in types]


def export_lines(
    snapshot: Snapshot, catalog: Catalog, types: Sequence[str] | None = None, view: View | None = None
) -> Iterator[str]:
    """The records as JSONL lines."""
    records = export_records(snapshot, catalog, types, view)
    return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)


def export_rows(snapshot: Snapshot, type_: NodeType | EdgeType, view: View | None = None) -> Iterator[dict[str, Any]]:
    """The records of one type in order of ids. A large table is read in ranges of ids, which fit in memory."""
    table = snapshot.table(type_.table_key)
    rows_max = _rows_at_once(table)
    if view is not None:
        yield from _visible_records(type_, table, view, rows_max)
        return
    large = table.stored_bytes > _BYTES_MAX or table.has_long_values
    if table.row_count <= rows_max and not table.blobs and large:
        yield from _records_by_number(type_, table)
        return
    if table.row_count <= rows_max:
        yield from records_of(type_, interruptible(lambda: table.read().sort_by("id"), table.row_count))
        return
    stored = all_rows(table)
    sample = stored.sample_ids(_SAMPLE_STEP)
    bounds = sample.take(pc.array_sort_indices(sample)[:: max(1, rows_max // _SAMPLE_STEP)][1:]).unique().to_pylist()
    for low, high in zip([None, *bounds], [*bounds, None], strict=True):
        yield from records_of(type_, interruptible(partial(_sorted_rows, stored, IdRange(low, high))))


def stream_rows(snapshot: Snapshot, type_: NodeType | EdgeType, view: View | None = None) -> Iterator[dict[str, Any]]:
    """The records of one type in stored order, a few mebibytes of rows at a time."""
    table = snapshot.table(type_.table_key)
    names = [*SYSTEM_FIELDS[type_.kind], *type_.properties]
    rows_max = min(_rows_at_once(table), _STREAM_ROWS)
    batches = table.stream(names, rows_max) if view is None else view.batches(type_.table_key, names, rows_max)
    for batch in batches:
        checkpoint()
        yield from records_of(type_, pa.Table.from_batches([batch]))


def _visible_records(type_: NodeType | EdgeType, table: Table, view: View, rows_max: int) -> Iterator[dict[str, Any]]:
    """The visible records of one type in order of ids."""
    names = [*SYSTEM_FIELDS[type_.kind], *type_.properties]
    if table.row_count <= rows_max or type_.blobs:
        rows = view.read(type_.table_key, names)
        yield from records_of(type_, interruptible(lambda: rows.sort_by("id"), rows.num_rows))
        return
    for rows in view.by_id(type_.table_key, names, min(rows_max, table.batch_rows(names))):
        yield from records_of(type_, rows)


def _records_by_number(type_: NodeType | EdgeType, table: Table) -> Iterator[dict[str, Any]]:
    """The records of a table with few large rows in order of ids, read a few rows at a time."""
    order = pc.array_sort_indices(one_array(table.read(["id"])["id"]))
    at_once = table.batch_rows(table.schema.names)
    for start in range(0, len(order), at_once):
        checkpoint()
        yield from records_of(type_, table.take(table.schema.names, order.slice(start, at_once)))


def _sorted_rows(stored: StoredRows, within: IdRange) -> pa.Table:
    return stored.read(within=within).sort_by("id")


def _rows_at_once(table: Table) -> int:
    """Return the number of rows of a table that are held in memory, from the size of its files.

    The values of Blob columns are stored in other files.
    """
    if table.blobs:
        return _ROWS_MIN
    width = 1 + table.stored_bytes // max(1, table.row_count)
    return min(_ROWS_MAX, max(_ROWS_MIN, _BYTES_MAX // width))


def records_of(type_: NodeType | EdgeType, table: pa.Table) -> Iterator[dict[str, Any]]:
    """Convert rows of a table to records."""
    names = ["id", *type_.properties]
    for batch in table.to_batches(max_chunksize=_BLOB_ROWS if type_.blobs else 8192):
        columns = [_values(batch.column(name)) for name in names]
        if type_.kind == "edge":
            ends = (batch.column("src").to_pylist(), batch.column("dst").to_pylist())
            for src, dst, *row in zip(*ends, *columns, strict=True):
                yield {"edge": type_.name, "from": src, "to": dst, "data": dict(zip(names, row, strict=True))}
        else:
            for values in zip(*columns, strict=True):
                yield {"type": type_.name, "data": dict(zip(names, values, strict=True))}


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_large_binary(column.type):
        return [None if v is None else "base64:" + base64.b64encode(v).decode() for v in column.to_pylist()]
    return stored_values(column)
