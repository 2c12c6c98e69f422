"""Tables (Arrow, Parquet, CSV, pandas, polars) → records of a type.

Columns are properties; `id` is optional; an edge table names its ends `from` and `to`, or `src` and `dst`. Values
are judged by the rules of JSON, so every way of loading accepts and refuses the same. In CSV every cell is
text: an empty one is null, numbers and booleans are read as such where the property is one, lists and vectors
are JSON.
"""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import count, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.blocks import Columns
from omnigraph.engine.records import LINE_BYTES_MAX, Faults, Part, Records
from omnigraph.errors import InputError, RecordError, TypeNotFound
from omnigraph.names import did_you_mean, listing
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.files import DataFile
from omnigraph.types import PropertyType
from omnigraph.values import DAY_MS, format_date, format_datetime

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_CSV_ROWS = 65_536
_TEXT = PropertyType("String")
_AS_THEY_ARE = frozenset(
    {pa.utf8(), pa.bool_(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(), pa.date32()}
)
"""Arrow types all of whose values, if they are finite, are values of the property stored as such."""
_TICKS = {"s": (1_000, 1), "ms": (1, 1), "us": (1, 1_000), "ns": (1, 1_000_000)}
"""Unit of an Arrow timestamp → how to multiply and divide it to get milliseconds."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some of a table file's parts (row groups, batches), and the number of their first row."""

    parts: tuple[int, ...]
    first: int
    bytes: int


def stretches(file: DataFile, size: int) -> list[Stretch]:
    """A Parquet or Arrow file in stretches of about a size; CSV and compressed files are one."""
    if _ending(file) not in (".parquet", ".arrow", ".feather"):
        return [Stretch((), 1, file.size)]
    found: list[Stretch] = []
    held: list[int] = []
    held_bytes, first, rows = 0, 1, 0
    with _opened(file) as table:
        for part in range(table.count):
            held.append(part)
            held_bytes += table.bytes_of(part)
            rows += table.rows_of(part)
            if held_bytes >= size:
                found.append(Stretch(tuple(held), first, held_bytes))
                held, held_bytes, first = [], 0, rows + 1
    return [*found, Stretch(tuple(held), first, held_bytes)] if held or not found else found


def read_table_file(
    file: DataFile, catalog: Catalog, faults: Faults, stretch: Stretch | None = None
) -> Iterator[tuple[str, Part]]:
    """Table key and records of a Parquet, CSV or Arrow file, all of it or a stretch, in parts that fit memory.

    Its name, up to the first dot, is the type's; of a node and an edge type of one name, `Name.edges.…` is the edge.
    There is a part at least, if an empty one: the table is named.
    """
    is_edge = file.base.partition(".")[2].startswith("edges.")
    type_ = (catalog.find_edge(file.stem) if is_edge else None) or find_type(file.stem, catalog)
    if _ending(file) == ".csv":
        for part in _read_csv(file, type_, faults):
            yield type_.table_key, part
        return
    with _opened(file) as table:
        meanings = _meanings(type_, table.names, file.name)
        first = stretch.first if stretch is not None else 1
        numbers = stretch.parts if stretch is not None else range(table.count)
        for number in numbers:
            rows = table.read(number)
            yield type_.table_key, _read_rows(type_, rows, meanings, first, faults, file.name)
            first += rows.num_rows
        if not numbers:
            yield type_.table_key, Records(type_, file.name)


def read_arrow(
    name: str, data: Any, catalog: Catalog, faults: Faults, *, source: str | None = None, first: int = 1
) -> dict[str, Part]:
    """The records of an Arrow table, or of anything that turns into one; rows are numbered from `first`."""
    type_ = find_type(name, catalog)
    table = _as_arrow(name, data)
    meanings = _meanings(type_, table.column_names, source)
    return {type_.table_key: _read_rows(type_, table, meanings, first, faults, source)}


def _read_rows(
    type_: NodeType | EdgeType,
    table: pa.Table,
    meanings: dict[str, str],
    first: int,
    faults: Faults,
    source: str | None,
) -> Part:
    columns = _direct_columns(type_, table, meanings)
    lines = range(first, first + table.num_rows)
    if columns is not None:
        return Columns(type_, source, lines, columns)
    values = {meaning: _json_values(table[given], _type_of(type_, meaning)) for meaning, given in meanings.items()}
    return _records(type_, values, list(lines), faults, source)


def _direct_columns(
    type_: NodeType | EdgeType, table: pa.Table, meanings: dict[str, str]
) -> dict[str, pa.Array] | None:
    """The columns as they are, if every value fits its property as it is; else None, and values are looked at."""
    fields: dict[str, pa.Array] = {}
    ends = ("src", "dst") if isinstance(type_, EdgeType) else ()
    for name in ("id", *ends, *type_.properties):
        if name not in meanings:
            continue
        column = _direct(table[meanings[name]], _type_of(type_, name))
        if column is None or (name in ends and column.null_count):
            return None
        fields[name] = column
    return fields


def _direct(column: pa.ChunkedArray, wanted: PropertyType) -> pa.Array | None:
    """A column in the type that stores it, if that changes no value; None when it might."""
    given, stored = column.type, arrow_type(wanted)
    array = _whole(column)
    if given == stored:
        plain = given in _AS_THEY_ARE
    elif pa.types.is_large_string(given) or pa.types.is_string_view(given):
        plain, array = stored == pa.utf8(), array.cast(pa.utf8())
    elif wanted.is_integer and not wanted.is_list and pa.types.is_integer(given):
        try:
            return array.cast(stored)
        except pa.ArrowInvalid:
            return None
    elif wanted.scalar == "F32" and not wanted.is_list and given == pa.float64():
        plain, array = True, array.cast(stored, safe=False)
    elif wanted.scalar == "Vector":
        return _direct_vectors(array, wanted)
    else:
        return None
    if not plain or (pa.types.is_floating(stored) and pc.all(pc.is_finite(array)).as_py() is False):
        return None
    return array


def _direct_vectors(array: pa.Array, wanted: PropertyType) -> pa.Array | None:
    """Lists of numbers as vectors: all of the right length, every number there and finite."""
    type_ = array.type
    lists = pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)
    if not lists or not pa.types.is_floating(type_.value_type) or array.null_count:
        return None
    numbers = pc.list_flatten(array).cast(pa.float32(), safe=False)
    lengths = pc.min_max(pc.list_value_length(array))
    right = wanted.dim == lengths["min"].as_py() == lengths["max"].as_py()
    if not right or numbers.null_count or pc.all(pc.is_finite(numbers)).as_py() is False:
        return None
    return pa.FixedSizeListArray.from_arrays(numbers, wanted.dim).cast(arrow_type(wanted))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


class _TableFile:
    """A file that is a table in parts."""

    def __init__(self, file: DataFile) -> None:
        self._parquet = file.base.lower().endswith(".parquet")
        if self._parquet:
            import pyarrow.parquet as pq  # noqa: PLC0415 (only who loads Parquet pays for it)

            # Not `read_table`: that takes a folder named `x=1` for a column.
            self._file = pq.ParquetFile(file.open())
            self.names: list[str] = self._file.schema_arrow.names
            self.count: int = self._file.num_row_groups
        else:
            self._file = pa.ipc.open_file(file.open())
            self.names = self._file.schema.names
            self.count = self._file.num_record_batches

    def read(self, part: int) -> pa.Table:
        """The rows of a part."""
        if self._parquet:
            return self._file.read_row_group(part)
        return pa.Table.from_batches([self._file.get_batch(part)])

    def rows_of(self, part: int) -> int:
        """How many rows a part has."""
        return int(self._file.metadata.row_group(part).num_rows) if self._parquet else self.read(part).num_rows

    def bytes_of(self, part: int) -> int:
        """How large a part is."""
        return int(self._file.metadata.row_group(part).total_byte_size) if self._parquet else self.read(part).nbytes


@contextmanager
def _opened(file: DataFile) -> Iterator[_TableFile]:
    try:
        yield _TableFile(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"'{file.name}' cannot be read: {str(error).splitlines()[0]}", code="unreadable_file"
        ) from None


def _ending(file: DataFile) -> str:
    return "." + file.base.lower().removesuffix(".gz").rpartition(".")[2]


def _read_csv(file: DataFile, type_: NodeType | EdgeType, faults: Faults) -> Iterator[Records]:
    source = file.name
    # The limit is the process's, and by itself too low for a vector or a Blob.
    csv.field_size_limit(max(csv.field_size_limit(), LINE_BYTES_MAX))
    try:
        with _opened_text(file) as text:
            reader = csv.reader(text, strict=True)
            try:
                header = next(reader, None)
                if header is None:
                    raise InputError(
                        f"'{source}' is empty", code="unreadable_file", hint="its first line names the columns"
                    )
                meanings = _meanings(type_, header, source)
                places = [
                    (meaning, header.index(given), _type_of(type_, meaning)) for meaning, given in meanings.items()
                ]
                rows = _csv_rows(reader, len(header), type_, faults, source)
                for number in count():
                    chunk = list(islice(rows, _CSV_ROWS))
                    if not chunk and number:
                        return
                    columns = {meaning: [_cell(row[at], kind) for _, row in chunk] for meaning, at, kind in places}
                    yield _records(type_, columns, [line for line, _ in chunk], faults, source)
            except csv.Error as error:
                message = f"not valid CSV: {error}"
                raise RecordError(
                    message, source=source, line=reader.line_num, type_name=type_.name, rule="csv"
                ) from None
    except (UnicodeDecodeError, EOFError, zlib.error, OSError) as error:
        raise InputError(f"'{source}' cannot be read: {error}", code="unreadable_file") from None


def _csv_rows(
    reader: Any, width: int, type_: NodeType | EdgeType, faults: Faults, source: str
) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its first line; a row may span lines."""
    before = reader.line_num
    for row in reader:
        line, before = before + 1, reader.line_num
        if row and len(row) != width:
            message = f"a row has {width} cells, this one has {len(row)}"
            faults.add(RecordError(message, source=source, line=line, type_name=type_.name, rule="csv"))
        elif row:
            yield line, row


def _opened_text(file: DataFile) -> TextIOWrapper:
    data: Any = file.open_text()
    if file.base.lower().endswith(".gz"):
        data = gzip.GzipFile(fileobj=data)
    return TextIOWrapper(data, encoding="utf-8-sig", newline="")


def _records(
    type_: NodeType | EdgeType, columns: dict[str, list[Any]], lines: list[int], faults: Faults, source: str | None
) -> Records:
    records = Records(type_, source)
    ends = [columns.pop(end) for end in ("src", "dst")] if isinstance(type_, EdgeType) else []
    names = list(columns)
    rows = zip(*columns.values(), strict=True) if columns else iter([()] * len(lines))
    for position, (line, row) in enumerate(zip(lines, rows, strict=True)):
        for end, word in zip(ends, ("from", "to"), strict=False):
            if type(end[position]) is not str:
                message = f"edge {type_.name}: '{word}' must be the id of a node, a string"
                faults.add(RecordError(message, source=source, line=line, type_name=type_.name, rule="endpoint"))
                break
        else:
            records.lines.append(line)
            records.data.append(dict(zip(names, row, strict=True)))
            if ends:
                records.src.append(ends[0][position])
                records.dst.append(ends[1][position])
    return records


def _cell(text: str, type_: PropertyType) -> Any:
    """A cell as the JSON value it stands for; what is none stays text, and is refused later with its line."""
    if text == "":
        return None
    if type_.is_list or type_.scalar == "Vector":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    if type_.is_integer:
        return int(text) if _INTEGER.fullmatch(text) else text
    if type_.is_float:
        return float(text) if _NUMBER.fullmatch(text) else text
    if type_.scalar == "Bool":
        return {"true": True, "false": False}.get(text, text)
    return text


def find_type(name: str, catalog: Catalog) -> NodeType | EdgeType:
    """The node or edge type of a name."""
    found = catalog.nodes.get(name) or catalog.find_edge(name)
    if found is None:
        known = [*catalog.nodes, *catalog.edges]
        hint = did_you_mean(name, known) or f"the types are {listing(known)}"
        raise TypeNotFound(f"there is no node or edge type '{name}'", hint=hint)
    return found


def _as_arrow(name: str, data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise InputError(
        f"'{name}': cannot load a {type(data).__name__}", hint="give an Arrow table, or a pandas or polars frame"
    )


def _meanings(type_: NodeType | EdgeType, given: list[str], source: str | None) -> dict[str, str]:
    """Property (and `id`, `src`, `dst`) → the column that holds it."""
    found: dict[str, str] = {}
    ends = {"from": "src", "to": "dst", "src": "src", "dst": "dst"} if isinstance(type_, EdgeType) else {}
    for name in given:
        meaning = ends.get(name, name)
        if meaning not in type_.properties and meaning != "id" and name not in ends:
            raise RecordError(
                f"{type_.kind} type '{type_.name}' has no property '{name}'",
                source=source,
                type_name=type_.name,
                property_name=name,
                rule="unknown_property",
                hint=did_you_mean(name, type_.properties),
            )
        if meaning in found:
            message = f"columns '{found[meaning]}' and '{name}' mean the same"
            raise RecordError(message, source=source, type_name=type_.name, rule="columns")
        found[meaning] = name
    for end, word in (("src", "from"), ("dst", "to")) if ends else ():
        if end not in found:
            message = f"edge {type_.name}: there is no column '{word}'"
            raise RecordError(message, source=source, type_name=type_.name, rule="endpoint")
    return found


def _type_of(type_: NodeType | EdgeType, meaning: str) -> PropertyType:
    return type_.properties[meaning].type if meaning in type_.properties else _TEXT


def _json_values(column: pa.ChunkedArray, wanted: PropertyType) -> list[Any]:
    """The values as JSON would have given them to a property of the wanted type."""
    type_ = column.type
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return _moments(column, wanted)
    if wanted.scalar == "Blob":
        encoded = (("base64:" + base64.b64encode(v).decode()) if type(v) is bytes else v for v in column.to_pylist())
        return list(encoded)
    if wanted.is_list and (pa.types.is_list(type_) or pa.types.is_large_list(type_)):
        items = iter(_json_values(pc.list_flatten(column), wanted.item))
        lengths = pc.list_value_length(column).to_pylist()
        return [None if length is None else list(islice(items, length)) for length in lengths]
    return list(column.to_pylist())


def _moments(column: pa.ChunkedArray, wanted: PropertyType) -> list[Any]:
    """Dates and times in the form the wanted type takes: days or milliseconds; for any other type as text."""
    type_ = column.type
    times, by = (DAY_MS, 1) if pa.types.is_date32(type_) else _TICKS[type_.unit if hasattr(type_, "unit") else "ms"]
    numbers = column.cast(pa.int32() if pa.types.is_date32(type_) else pa.int64()).to_pylist()
    moments = [None if number is None else number * times // by for number in numbers]
    if wanted.scalar == "DateTime":
        return moments
    if wanted.scalar == "Date":
        return [None if moment is None else moment // DAY_MS for moment in moments]
    if pa.types.is_date32(type_):
        return [None if moment is None else format_date(moment // DAY_MS) for moment in moments]
    return [None if moment is None else format_datetime(moment) for moment in moments]
