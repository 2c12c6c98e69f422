"""Tables (Arrow, Parquet, CSV, pandas, polars) → records of one type.

Columns are properties; `id` is optional; an edge table names its ends `from` and `to`, or `src` and `dst`. Values
follow the rules of JSON, so all formats accept the same values. In CSV every cell is text: an empty cell without quotes
is null, numbers and booleans are parsed for properties of these types, lists and vectors are JSON.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import fixed_width, one_array
from omnigraph.checkpoints import checked
from omnigraph.engine import tuning
from omnigraph.engine.ingest.arrow_input import ArrowInput, column_names, input_table
from omnigraph.engine.ingest.csv_text import DELIMITERS, Cells, CsvReader
from omnigraph.engine.ingest.parquet_input import decoded_bytes, open_parquet, read_batches
from omnigraph.engine.ingest.records import EndTypes, Faults, RecordColumns, Records, RecordSet, end_id, end_types
from omnigraph.errors import InputError, RecordError, TypeNotFound, ValueFormatError
from omnigraph.scalar_types.columns import holds_values_of, number_type
from omnigraph.scalar_types.dates import DAY_MS, format_date, format_datetime
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.files.input_files import DataFile
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.types import PropertyType

_WHOLE_FLOAT = re.compile(r"-?[0-9]{1,30}\.0{1,30}")
_NO_NAME = re.compile(r"[^0-9a-z]+")
_TEXT = PropertyType("String")
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
    table.
    """
    is_edge = file.base.partition(".")[2].startswith("edges.")
    type_ = (catalog.find_edge(file.stem) if is_edge else None) or find_type(file.stem, catalog, file.name)
    if _ending(file) == ".csv":
        for part in _read_csv(file, type_, catalog, faults):
            yield type_.table_key, part
        return
    with _opened(file) as table:
        columns_of = _columns_of(type_, table.names, file.name)
        ends = end_types(type_, catalog)
        integers = _integer_columns(type_, ends)
        first = split.first if split is not None else 1
        numbers = split.parts if split is not None else range(table.count)
        for number in numbers:
            for batch in checked(table.batches(number)):
                rows = input_table(type_.name, batch, file.name, integers)
                yield type_.table_key, _read_rows(type_, rows, columns_of, first, faults, file.name, ends)
                first += batch.num_rows
        if not numbers:
            yield type_.table_key, Records(type_, file.name)


def read_arrow(
    name: str, data: Any, catalog: Catalog, faults: Faults, *, source: str | None = None, first: int = 1
) -> dict[str, RecordSet]:
    """Return the records of an Arrow table, or of an object that converts to one, numbered from `first`."""
    type_ = find_type(name, catalog)
    ends = end_types(type_, catalog)
    rows = input_table(name, data, source, _integer_columns(type_, ends))
    columns_of = _columns_of(type_, rows.table.column_names, source)
    return {type_.table_key: _read_rows(type_, rows, columns_of, first, faults, source, ends)}


def table_of(name: str, data: Any, catalog: Catalog | None) -> ArrowInput:
    """Return Arrow data or a DataFrame as a table; with a catalog, integral floats of pandas become integers."""
    if catalog is None:
        return input_table(name, data, None, frozenset())
    type_ = find_type(name, catalog)
    return input_table(name, data, None, _integer_columns(type_, end_types(type_, catalog)))


def _integer_columns(type_: NodeType | EdgeType, ends: EndTypes) -> frozenset[str]:
    """Return the names of the columns that contain integers."""
    found = {name for name, property_ in type_.properties.items() if property_.type.is_integer}
    words = {"src": ("src", "from"), "dst": ("dst", "to")}
    found.update(word for end, key in ends.items() if key.is_integer for word in words[end])
    return frozenset(name for name in found if name not in type_.properties or not type_.properties[name].type.is_list)


def _read_rows(
    type_: NodeType | EdgeType,
    rows: ArrowInput,
    columns_of: dict[str, str],
    first: int,
    faults: Faults,
    source: str | None,
    ends: EndTypes,
) -> RecordSet:
    table = rows.table
    columns = _direct_columns(type_, table, columns_of, ends) if not rows.values else None
    lines = range(first, first + table.num_rows)
    if columns is not None:
        return RecordColumns(type_, source, lines, columns)
    values = {
        property_name: rows.values[given]
        if given in rows.values
        else _json_values(table[given], ends.get(property_name) or _type_of(type_, property_name))
        for property_name, given in columns_of.items()
    }
    records = _records(type_, values, list(lines), faults, source, ends)
    records.size = sum(map(_value_bytes, table.columns))
    return records


def _value_bytes(column: pa.ChunkedArray) -> int:
    """Return the approximate size of the Python values of a column."""
    type_ = column.type
    while pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        type_ = type_.value_type
    width = fixed_width(type_)
    values = 0 if width is None else int(column.nbytes) // max(width, 1)
    return int(column.nbytes) + _VALUE_BYTES * max(values, len(column))


def _direct_columns(
    type_: NodeType | EdgeType, table: pa.Table, columns_of: dict[str, str], ends: EndTypes
) -> dict[str, pa.Array] | None:
    """Return the columns without conversion if every value fits its property; None if values must be converted."""
    fields: dict[str, pa.Array] = {}
    for name in ("id", *ends, *type_.properties):
        if name not in columns_of:
            continue
        given = table[columns_of[name]]
        if name in ends and ends[name].is_integer and pa.types.is_integer(given.type):
            key = _direct(given, ends[name])
            column = None if key is None else key.cast(pa.utf8())
        else:
            column = _direct(given, _type_of(type_, name))
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
            self.names = column_names(self._file.schema_arrow, file.name)
            self.count: int = self._file.num_row_groups
        else:
            self._file = pa.ipc.open_file(file.open())
            self.names = column_names(self._file.schema, file.name)
            self.count = self._file.num_record_batches

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


def _ending(file: DataFile) -> str:
    return "." + file.base.lower().removesuffix(".gz").rpartition(".")[2]


def _read_csv(file: DataFile, type_: NodeType | EdgeType, catalog: Catalog, faults: Faults) -> Iterator[Records]:
    source = file.name
    ends = end_types(type_, catalog)
    try:
        with file.open_text() as raw:
            stream = gzip.GzipFile(fileobj=raw) if file.base.lower().endswith(".gz") else raw
            reader = CsvReader(cast(IO[bytes], stream), source, file.delimiter)
            if reader.header is None:
                raise InputError(
                    f"'{source}' is empty", code="unreadable_file", hint="its first line names the columns"
                )
            if file.delimiter is None and reader.delimiter != ",":
                faults.note(f"{source}: the delimiter is a {DELIMITERS[reader.delimiter]}")
            header = _without_index(reader.header, source, faults)
            columns_of = _columns_of(type_, [name for name in header if name is not None], source)
            sources = [
                (
                    property_name,
                    header.index(given),
                    ends.get(property_name) or _type_of(type_, property_name),
                    property_name in ends,
                )
                for property_name, given in columns_of.items()
            ]
            rows = _csv_rows(reader, len(header), type_, faults)
            for number in checked(count()):
                chunk = list(_next_batch(rows))
                if not chunk and number:
                    return
                columns = {
                    property_name: [(_end_value if is_end else _cell_value)(row[at], kind) for _, row in chunk]
                    for property_name, at, kind, is_end in sources
                }
                records = _records(type_, columns, [line for line, _ in chunk], faults, source, ends)
                records.size = sum(len(cell) for _, cells in chunk for cell in cells if cell is not None)
                yield records
    except (EOFError, zlib.error, OSError) as error:
        raise InputError(f"'{source}' cannot be read: {_reason(error)}", code="unreadable_file") from None


def _without_index(header: list[str], source: str, faults: Faults) -> list[str | None]:
    """Return the header without an unnamed first column, which pandas writes for the index of a DataFrame."""
    if len(header) > 1 and header[0] == "":
        faults.note(f"{source}: the first column has no name and is ignored")
        return [None, *header[1:]]
    return list(header)


def _next_batch(rows: Iterator[tuple[int, Cells]]) -> Iterator[tuple[int, Cells]]:
    """Yield the rows of one batch."""
    size = 0
    for number, (line, cells) in enumerate(rows, 1):
        yield line, cells
        size += sum(len(cell) for cell in cells if cell is not None)
        if number >= tuning.current.csv_batch_rows or size >= tuning.current.csv_batch_chars:
            return


def _csv_rows(reader: CsvReader, width: int, type_: NodeType | EdgeType, faults: Faults) -> Iterator[tuple[int, Cells]]:
    """Yield each row with the right number of cells, with the number of its first line."""
    for line, row in reader:
        if len(row) == width:
            yield line, row
        else:
            message = f"a row has {width} cells, this one has {len(row)}"
            error = RecordError(message, source=reader.source, line=line, type_name=type_.name, rule="csv")
            error.record = list(row)
            faults.add(error)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _records(
    type_: NodeType | EdgeType,
    columns: dict[str, list[Any]],
    lines: list[int],
    faults: Faults,
    source: str | None,
    ends: EndTypes,
) -> Records:
    records = Records(type_, source)
    given = [(columns.pop(end), word, ends[end]) for end, word in (("src", "from"), ("dst", "to")) if end in ends]
    names = list(columns)
    rows = zip(*columns.values(), strict=True) if columns else iter([()] * len(lines))
    for position, (line, row) in enumerate(zip(lines, rows, strict=True)):
        try:
            ids = [end_id(values[position], key, type_, word) for values, word, key in given]
        except ValueFormatError as error:
            wrong = RecordError(error.message, source=source, line=line, type_name=type_.name, rule="endpoint")
            ends_given = {word: values[position] for values, word, _ in given}
            wrong.record = {"edge": type_.name, **ends_given, "data": dict(zip(names, row, strict=True))}
            faults.add(wrong)
            continue
        records.lines.append(line)
        records.data.append(dict(zip(names, row, strict=True)))
        if given:
            records.src.append(ids[0])
            records.dst.append(ids[1])
    return records


def _cell_value(text: str | None, type_: PropertyType) -> Any:
    """Convert a cell to a JSON value. A cell that cannot be converted stays text and is refused later with its line."""
    if text is None:
        return None
    if type_.is_list or type_.scalar == "Vector":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return type_.kind.from_cell(text)


def _end_value(text: str | None, key: PropertyType) -> str | None:
    """Return the id in a cell; an integer key may be written as a float, as pandas does if a value is missing."""
    if text is not None and key.is_integer and _WHOLE_FLOAT.fullmatch(text):
        return text.partition(".")[0]
    return text


def find_type(name: str, catalog: Catalog, file: str | None = None) -> NodeType | EdgeType:
    """Return the node or edge type with a name, which may come from a file name."""
    found = catalog.nodes.get(name) or catalog.find_edge(name)
    if found is None:
        known = [*catalog.nodes, *catalog.edges]
        hint = did_you_mean(name, known) or f"the types are {listing(known)}"
        if file is None:
            raise TypeNotFound(f"there is no node or edge type '{name}'", hint=hint)
        raise TypeNotFound(
            f"'{file}': there is no node or edge type '{name}'",
            hint=f"the name of a table file, up to the first dot, is the type; rename the file: {hint}",
        )
    return found


def _columns_of(type_: NodeType | EdgeType, given: list[str], source: str | None) -> dict[str, str]:
    """Return property (and `id`, `src`, `dst`) → the column that contains it."""
    found: dict[str, str] = {}
    ends = {"from": "src", "to": "dst", "src": "src", "dst": "dst"} if isinstance(type_, EdgeType) else {}
    known = {"id": "id", **ends, **{name: name for name in type_.properties}}
    normalized = _unique_normalized(known)
    for name in given:
        property_name = known.get(name) or normalized.get(_normalized(name))
        if property_name is None:
            raise RecordError(
                f"{type_.kind} type '{type_.name}' has no property '{name}'",
                source=source,
                type_name=type_.name,
                property_name=name,
                rule="unknown_property",
                hint=_column_hint(type_, name, given, known),
            )
        if property_name in found:
            message = f"columns '{found[property_name]}' and '{name}' have the same meaning"
            raise RecordError(message, source=source, type_name=type_.name, rule="columns")
        found[property_name] = name
    for end, word in (("src", "from"), ("dst", "to")) if ends else ():
        if end not in found:
            message = f"edge {type_.name}: there is no column '{word}'"
            raise RecordError(message, source=source, type_name=type_.name, rule="endpoint", hint=_ENDS_HINT)
    return found


_ENDS_HINT = "the ends of an edge are the columns 'from' and 'to': rename the columns"


def _column_hint(type_: NodeType | EdgeType, name: str, given: list[str], known: Mapping[str, str]) -> str:
    """Return the hint for a column that is not a property."""
    meant = did_you_mean(name, type_.properties)
    if meant is not None:
        return meant
    if isinstance(type_, EdgeType):
        found = {known[column] for column in given if column in known}
        if not {"src", "dst"} <= found:
            return _ENDS_HINT
    properties = f"the properties are {listing(type_.properties)}; " if type_.properties else ""
    return f"{properties}remove the column, or add the property to the schema"


def _normalized(name: str) -> str:
    """Normalize a column name to the form of a property name: `Sepal Length (cm)` is `sepal_length_cm`."""
    return _NO_NAME.sub("_", name.lower()).strip("_")


def _unique_normalized(known: dict[str, str]) -> dict[str, str]:
    """Return normalized name → property, for names that are unique when normalized."""
    folds = Counter(map(_normalized, known))
    return {_normalized(name): property_name for name, property_name in known.items() if folds[_normalized(name)] == 1}


def _type_of(type_: NodeType | EdgeType, property_name: str) -> PropertyType:
    return type_.properties[property_name].type if property_name in type_.properties else _TEXT


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
