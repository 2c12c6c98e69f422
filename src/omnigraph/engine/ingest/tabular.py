"""Tables (Arrow, Parquet, CSV, pandas, polars) → records of one type.

Columns are properties; `id` is optional; an edge table names its ends `from` and `to`, or `src` and `dst`. Values
follow the rules of JSON, so all formats accept the same values. In CSV every cell is text: an empty cell without quotes
is null, numbers and booleans are parsed for properties of these types, lists and vectors are JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import fixed_width, one_array
from omnigraph.checkpoints import checked
from omnigraph.engine.graph_files.graph_file import graph_file_columns, graph_format_of, read_graph_file
from omnigraph.engine.ingest.arrow_input import ArrowInput, column_names, input_table
from omnigraph.engine.ingest.csv_table import csv_columns, read_csv
from omnigraph.engine.ingest.parquet_input import decoded_bytes, open_parquet, read_batches
from omnigraph.engine.ingest.records import EndTypes, Faults, RecordColumns, Records, RecordSet, end_types
from omnigraph.engine.ingest.table_columns import columns_of, find_type, table_records, type_of
from omnigraph.errors import InputError
from omnigraph.scalar_types.columns import holds_values_of, number_type
from omnigraph.scalar_types.dates import DAY_MS, format_date, format_datetime
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.files.input_files import DataFile
from omnigraph.table_format import PLAIN, TableFormat
from omnigraph.types import PropertyType

_AS_THEY_ARE = frozenset(
    {pa.utf8(), pa.bool_(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(), pa.date32()}
)
"""Arrow types that need no conversion: every finite value is a valid stored value."""
_TICKS = {"s": (1_000, 1), "ms": (1, 1), "us": (1, 1_000), "ns": (1, 1_000_000)}
"""Unit of an Arrow timestamp → (factor, divisor) to milliseconds."""
_VALUE_BYTES = 32
"""Size of a number as a Python object in a list."""


@dataclass(frozen=True, slots=True)
class TableSplit:
    """A split of a table file: some row groups or record batches, and the number of their first row."""

    parts: tuple[int, ...]
    first: int
    bytes: int


def table_splits(file: DataFile, size: int) -> list[TableSplit]:
    """Split a Parquet or Arrow file into parts of about a size; CSV and compressed files are one part."""
    if _ending(file) not in (".parquet", ".arrow", ".feather"):
        return [TableSplit((), 1, file.size)]
    found: list[TableSplit] = []
    held: list[int] = []
    held_bytes, first, rows = 0, 1, 0
    with _opened(file) as table:
        for part in range(table.count):
            held.append(part)
            held_bytes += table.bytes_of(part)
            rows += table.rows_of(part)
            if held_bytes >= size:
                found.append(TableSplit(tuple(held), first, held_bytes))
                held, held_bytes, first = [], 0, rows + 1
    return [*found, TableSplit(tuple(held), first, held_bytes)] if held or not found else found


def table_bytes(file: DataFile) -> int:
    """Return the approximate size of the decoded file; compressed text is not decoded."""
    if _ending(file) != ".parquet":
        return file.size
    with _opened(file) as table:
        return max(file.size, table.decoded_bytes())


def read_table_file(
    file: DataFile, catalog: Catalog, faults: Faults, split: TableSplit | None = None
) -> Iterator[tuple[str, RecordSet]]:
    """Yield (table key, records) of a Parquet, CSV or Arrow file, or of a part of it, in batches that fit in memory.

    The name of the file, up to the first dot, is the type. If a node and an edge type have the same name,
    `Name.edges.…` is the edge type. At least one batch is returned, even if it is empty, because the file names the
    table. A file with several types (`graph_files`) is read whole.
    """
    if graph_format_of(file) is not None:
        yield from read_graph_file(file, catalog, faults)
        return
    type_ = _type_of_file(file, catalog)
    if is_csv(file):
        for records in read_csv(file, type_, catalog, faults):
            yield type_.table_key, records
        return
    with _opened(file) as table:
        found = columns_of(type_, table.names, file.name, file.format)
        ends = end_types(type_, catalog)
        integers = _integer_columns(type_, ends, file.format)
        first = split.first if split is not None else 1
        numbers = split.parts if split is not None else range(table.count)
        for number in numbers:
            for batch in checked(table.batches(number)):
                rows = input_table(type_.name, batch, file.name, integers)
                part = _TablePart(type_, rows, found, first, file.name, ends)
                yield type_.table_key, _read_rows(part, faults, skip_null_ends=file.format.skip_null_ends)
                first += batch.num_rows
        if not numbers:
            yield type_.table_key, Records(type_, file.name)


def _type_of_file(file: DataFile, catalog: Catalog) -> NodeType | EdgeType:
    if file.type_name is not None:
        return find_type(file.type_name, catalog)
    is_edge = file.base.partition(".")[2].startswith("edges.")
    return (catalog.find_edge(file.stem) if is_edge else None) or find_type(file.stem, catalog, file.name)


def file_columns(file: DataFile) -> list[str]:
    """Return the names of the columns of a table file."""
    if graph_format_of(file) is not None:
        return graph_file_columns(file)
    if is_csv(file):
        return csv_columns(file)
    with _opened(file) as table:
        return list(table.names)


def file_batches(file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet or Arrow file; at least one batch, even if it is empty."""
    with _opened(file) as table:
        for part in checked(range(table.count)):
            yield from table.batches(part)
        if not table.count:
            yield from table.schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]


def property_columns(file: DataFile, catalog: Catalog) -> dict[str, str]:
    """Return property (and `id`, `src`, `dst`) → the column of a table file that contains it.

    Empty for a file with several types.
    """
    if graph_format_of(file) is not None:
        return {}
    return columns_of(_type_of_file(file, catalog), file_columns(file), file.name, file.format)


def read_arrow(
    name: str,
    data: Any,
    catalog: Catalog,
    faults: Faults,
    *,
    source: str | None = None,
    first: int = 1,
    format: TableFormat = PLAIN,
) -> dict[str, RecordSet]:
    """Return the records of an Arrow table, or of an object that converts to one, numbered from `first`."""
    type_ = find_type(name, catalog)
    ends = end_types(type_, catalog)
    rows = input_table(name, data, source, _integer_columns(type_, ends, format))
    found = columns_of(type_, rows.table.column_names, source, format)
    part = _TablePart(type_, rows, found, first, source, ends)
    return {type_.table_key: _read_rows(part, faults, skip_null_ends=format.skip_null_ends)}


def table_of(name: str, data: Any, catalog: Catalog | None, format: TableFormat = PLAIN) -> ArrowInput:
    """Return Arrow data or a DataFrame as a table; with a catalog, integral floats of pandas become integers."""
    if catalog is None:
        return input_table(name, data, None, frozenset())
    type_ = find_type(name, catalog)
    return input_table(name, data, None, _integer_columns(type_, end_types(type_, catalog), format))


def _integer_columns(type_: NodeType | EdgeType, ends: EndTypes, format: TableFormat) -> frozenset[str]:
    """Return the names of the columns that contain integers."""
    found = {name for name, property_ in type_.properties.items() if property_.type.is_integer}
    words = {"src": ("src", "from"), "dst": ("dst", "to")}
    found.update(word for end, key in ends.items() if key.is_integer for word in words[end])
    prefix = f"{type_.name}:"
    return frozenset(found | {column.removeprefix(prefix) for column, name in format.columns if name in found})


@dataclass(frozen=True)
class _TablePart:
    """Rows of a table, numbered from `first`."""

    type: NodeType | EdgeType
    rows: ArrowInput
    columns: Mapping[str, str]
    """Property → column."""
    first: int
    source: str | None
    ends: EndTypes


def _read_rows(part: _TablePart, faults: Faults, *, skip_null_ends: bool) -> RecordSet:
    type_, rows, ends = part.type, part.rows, part.ends
    lines: Sequence[int] = range(part.first, part.first + rows.table.num_rows)
    if skip_null_ends and ends:
        rows, lines = _with_ends(part, lines)
    table = rows.table
    columns = _direct_columns(type_, table, part.columns, ends) if not rows.values else None
    if columns is not None:
        return RecordColumns(type_, part.source, lines, columns)
    values = {
        property_name: rows.values[given]
        if given in rows.values
        else _json_values(table[given], ends.get(property_name) or type_of(type_, property_name))
        for property_name, given in part.columns.items()
    }
    records = table_records(type_, values, list(lines), faults, part.source, ends)
    records.size = sum(map(_value_bytes, table.columns))
    return records


def _with_ends(part: _TablePart, lines: Sequence[int]) -> tuple[ArrowInput, Sequence[int]]:
    """Return the rows that have both ends, and their lines."""
    rows, kept = part.rows, np.ones(part.rows.table.num_rows, bool)
    for end in part.ends:
        given = part.columns[end]
        if given in rows.values:
            kept &= np.array([value is not None for value in rows.values[given]], bool)
        else:
            kept &= rows.table[given].is_valid().to_numpy()
    if kept.all():
        return rows, lines
    values = {
        name: [value for value, keep in zip(column, kept, strict=True) if keep] for name, column in rows.values.items()
    }
    table = rows.table.cast(pa.schema([field.with_type(_without_views(field.type)) for field in rows.table.schema]))
    return ArrowInput(table.filter(pa.array(kept)), values), (np.flatnonzero(kept) + part.first).tolist()


def _without_views(type_: pa.DataType) -> pa.DataType:
    """Return the type with plain texts in place of views, which Arrow cannot filter."""
    if pa.types.is_string_view(type_):
        return pa.large_utf8()
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.large_list(_without_views(type_.value_type))
    return type_


def _value_bytes(column: pa.ChunkedArray) -> int:
    """Return the approximate size of the Python values of a column."""
    type_ = column.type
    while pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        type_ = type_.value_type
    width = fixed_width(type_)
    values = 0 if width is None else int(column.nbytes) // max(width, 1)
    return int(column.nbytes) + _VALUE_BYTES * max(values, len(column))


def _direct_columns(
    type_: NodeType | EdgeType, table: pa.Table, columns: Mapping[str, str], ends: EndTypes
) -> dict[str, pa.Array] | None:
    """Return the columns without conversion if every value fits its property; None if values must be converted."""
    fields: dict[str, pa.Array] = {}
    for name in ("id", *ends, *type_.properties):
        if name not in columns:
            continue
        given = table[columns[name]]
        if name in ends and ends[name].is_integer and pa.types.is_integer(given.type):
            key = _direct(given, ends[name])
            column = None if key is None else key.cast(pa.utf8())
        else:
            column = _direct(given, type_of(type_, name))
        if column is None or (name in ends and column.null_count):
            return None
        fields[name] = column
    return fields


def _direct(column: pa.ChunkedArray, wanted: PropertyType) -> pa.Array | None:
    """Cast a column to its stored type if no value changes; None if one might."""
    given, stored = column.type, arrow_type(wanted)
    array = one_array(column)
    if wanted.scalar == "Vector" and not wanted.is_list:
        return _direct_vectors(array, wanted)
    if wanted.scalar in ("Date", "DateTime") and not wanted.is_list:
        return _direct_dates(array, wanted)
    if given == stored:
        plain = given in _AS_THEY_ARE
    elif pa.types.is_large_string(given) or pa.types.is_string_view(given):
        plain, array = stored == pa.utf8(), array.cast(pa.utf8())
    elif wanted.is_integer and not wanted.is_list and pa.types.is_integer(given):
        try:
            return array.cast(stored)
        except pa.ArrowInvalid:
            return None
    elif stored == pa.float32() and given == pa.float64():
        plain, array = True, array.cast(stored, safe=False)
    else:
        return None
    if not plain or (pa.types.is_floating(stored) and pc.all(pc.is_finite(array)).as_py() is False):
        return None
    return array if holds_values_of(wanted.kind, array) else None


def _direct_vectors(array: pa.Array, wanted: PropertyType) -> pa.Array | None:
    """Return lists of numbers as vectors; None unless all have the right length and every number is finite."""
    type_ = array.type
    lists = pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)
    if not lists or not pa.types.is_floating(type_.value_type):
        return None
    numbers = pc.list_flatten(array).cast(pa.float32(), safe=False)
    lengths = pc.min_max(pc.list_value_length(array))
    right = wanted.dim == lengths["min"].as_py() == lengths["max"].as_py()
    if not right or numbers.null_count or pc.all(pc.is_finite(numbers)).as_py() is False:
        return None
    absent = None
    if array.null_count:
        absent = pc.is_null(array)
        padded = np.zeros((len(array), wanted.dim or 0), np.float32)
        padded[~absent.to_numpy(zero_copy_only=False)] = numbers.to_numpy().reshape(-1, wanted.dim or 0)
        numbers = pa.array(padded.ravel())
    return pa.FixedSizeListArray.from_arrays(numbers, wanted.dim, mask=absent).cast(arrow_type(wanted))


def _direct_dates(array: pa.Array, wanted: PropertyType) -> pa.Array | None:
    """Return dates and times as a column of the wanted type; None if a value is out of range."""
    type_ = array.type
    if not (pa.types.is_date(type_) or pa.types.is_timestamp(type_)):
        return None
    times, by = _ticks(type_)
    by = by * DAY_MS if wanted.scalar == "Date" else by
    numbers = array.cast(pa.int32() if pa.types.is_date32(type_) else pa.int64()).cast(pa.int64())
    stored = arrow_type(wanted)
    try:
        numbers = pc.multiply_checked(numbers, times) if times > 1 else numbers
        if by > 1:
            floors = pc.fill_null(numbers, 0).to_numpy() // by
            numbers = pa.array(floors, mask=numbers.is_null().to_numpy(zero_copy_only=False))
        column = numbers.cast(number_type(stored)).cast(stored)
    except pa.ArrowInvalid:
        return None
    return column if holds_values_of(wanted.kind, column) else None


def _ticks(type_: pa.DataType) -> tuple[int, int]:
    """Return the factor and the divisor that convert the numbers of dates or timestamps to milliseconds."""
    return (DAY_MS, 1) if pa.types.is_date32(type_) else _TICKS[type_.unit if hasattr(type_, "unit") else "ms"]


class _TableFile:
    """A file that is a table in row groups or record batches."""

    def __init__(self, file: DataFile) -> None:
        self._parquet = file.base.lower().endswith(".parquet")
        if self._parquet:
            self._file = open_parquet(file.open(), file.name)
            self.schema: pa.Schema = self._file.schema_arrow
            self.count: int = self._file.num_row_groups
        else:
            self._file = pa.ipc.open_file(file.open())
            self.schema = self._file.schema
            self.count = self._file.num_record_batches
        self.names = column_names(self.schema, file.name)

    def batches(self, part: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part; a row group of Parquet is decoded batch by batch."""
        if self._parquet:
            yield from read_batches(self._file, part)
        else:
            yield self._file.get_batch(part)

    def decoded_bytes(self) -> int:
        """Return a lower bound of the decoded size of a Parquet file."""
        return decoded_bytes(self._file)

    def rows_of(self, part: int) -> int:
        """Return the number of rows of a part."""
        if self._parquet:
            return int(self._file.metadata.row_group(part).num_rows)
        return int(self._file.get_batch(part).num_rows)

    def bytes_of(self, part: int) -> int:
        """Return the size of a part in bytes."""
        if self._parquet:
            return int(self._file.metadata.row_group(part).total_byte_size)
        return int(self._file.get_batch(part).nbytes)


@contextmanager
def _opened(file: DataFile) -> Iterator[_TableFile]:
    try:
        yield _TableFile(file)
    except UnicodeDecodeError:
        raise InputError(f"'{file.name}': a column name is not valid UTF-8", code="unreadable_file") from None
    except (pa.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"'{file.name}' cannot be read: {reason}", code="unreadable_file") from None


def is_csv(file: DataFile) -> bool:
    """Return True if a file is CSV or TSV by its name."""
    return _ending(file) in (".csv", ".tsv")


def _ending(file: DataFile) -> str:
    return "." + file.base.lower().removesuffix(".gz").rpartition(".")[2]


def _json_values(column: pa.ChunkedArray, wanted: PropertyType) -> list[Any]:
    """Return the values in the form that JSON would have for a property of the wanted type."""
    type_ = column.type
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return _timestamps(column, wanted)
    if wanted.scalar == "Blob":
        encoded = (("base64:" + base64.b64encode(v).decode()) if type(v) is bytes else v for v in column.to_pylist())
        return list(encoded)
    if wanted.is_list and (pa.types.is_list(type_) or pa.types.is_large_list(type_)):
        items = iter(_json_values(pc.list_flatten(column), wanted.item))
        lengths = pc.list_value_length(column).to_pylist()
        return [None if length is None else list(islice(items, length)) for length in lengths]
    return list(column.to_pylist())


def _timestamps(column: pa.ChunkedArray, wanted: PropertyType) -> list[Any]:
    """Convert dates and times to days or milliseconds for the wanted type; to text for any other type."""
    type_ = column.type
    times, by = _ticks(type_)
    numbers = column.cast(pa.int32() if pa.types.is_date32(type_) else pa.int64()).to_pylist()
    timestamps = [None if number is None else number * times // by for number in numbers]
    if wanted.scalar == "DateTime":
        return timestamps
    if wanted.scalar == "Date":
        return [None if timestamp is None else timestamp // DAY_MS for timestamp in timestamps]
    if pa.types.is_date32(type_):
        return [None if timestamp is None else format_date(timestamp // DAY_MS) for timestamp in timestamps]
    return [None if timestamp is None else format_datetime(timestamp) for timestamp in timestamps]
