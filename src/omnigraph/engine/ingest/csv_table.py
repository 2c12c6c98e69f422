"""CSV files → records of one type. A cell is text and is converted for the type of its property."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from typing import IO, Any, cast

from omnigraph.checkpoints import checked
from omnigraph.engine import tuning
from omnigraph.engine.ingest.csv_text import Cells, CsvReader
from omnigraph.engine.ingest.records import EndTypes, Faults, Records, end_types
from omnigraph.engine.ingest.table_columns import columns_of, table_records, type_of
from omnigraph.errors import InputError, RecordError
from omnigraph.scalar_types.describe import UnmatchedDate
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.files.input_files import DataFile
from omnigraph.table_format import DELIMITERS, TableFormat
from omnigraph.types import PropertyType

_WHOLE_FLOAT = re.compile(r"-?[0-9]{1,30}\.0{1,30}")

Convert = Callable[[str | None], Any]
"""Converts a cell to a JSON value. A cell that cannot be converted stays text and is refused later with its line."""


def read_csv(file: DataFile, type_: NodeType | EdgeType, catalog: Catalog, faults: Faults) -> Iterator[Records]:
    """Yield the records of a CSV file in batches; at least one batch, even if it is empty."""
    ends = end_types(type_, catalog)
    with open_csv(file, faults) as (reader, header):
        found = columns_of(type_, [name for name in header if name is not None], file.name, file.format)
        places = {property_name: header.index(given) for property_name, given in found.items()}
        cells = _converters(type_, places, ends, file.format)
        required = [places[end] for end in ends] if file.format.skip_null_ends else []
        rows = csv_rows(reader, len(header), type_.name, faults)
        for number in checked(count()):
            chunk, size = _next_batch(rows)
            if not chunk and number:
                return
            if required:
                chunk = [(line, row) for line, row in chunk if not any(row[at] is None for at in required)]
            columns = {name: convert([row[at] for _, row in chunk]) for name, at, convert in cells}
            records = table_records(type_, columns, [line for line, _ in chunk], faults, file.name, ends)
            records.size = size
            yield records


def csv_columns(file: DataFile) -> list[str]:
    """Return the names of the columns of a CSV file."""
    with open_csv(file, Faults()) as (_, header):
        return [name for name in header if name is not None]


@contextmanager
def open_csv(file: DataFile, faults: Faults) -> Iterator[tuple[CsvReader, list[str | None]]]:
    """Open a CSV file; yields the reader and the header, with None for a column that is ignored."""
    source, format = file.name, file.format
    delimiter = format.delimiter or file_delimiter(file)
    with open_csv_text(file) as stream:
        reader = CsvReader(stream, source, delimiter, format.nulls)
        if reader.header is None:
            raise InputError(f"'{source}' is empty", code="unreadable_file", hint="its first line names the columns")
        if delimiter is None and reader.delimiter != ",":
            faults.note(f"{source}: the delimiter is a {DELIMITERS[reader.delimiter]}")
        yield reader, _without_index(reader.header, source, faults)


def file_delimiter(file: DataFile) -> str | None:
    """Return the delimiter that the name of a file implies; None if the header decides."""
    return "\t" if file.base.lower().removesuffix(".gz").endswith(".tsv") else None


@contextmanager
def open_csv_text(file: DataFile) -> Iterator[IO[bytes]]:
    """Open the text of a CSV file, which may be compressed; errors of reading name the file."""
    try:
        with file.open_text() as raw:
            yield cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if file.base.lower().endswith(".gz") else raw
    except (EOFError, zlib.error, OSError) as error:
        raise InputError(f"'{file.name}' cannot be read: {_reason(error)}", code="unreadable_file") from None


def _converters(
    type_: NodeType | EdgeType, places: dict[str, int], ends: EndTypes, format: TableFormat
) -> list[tuple[str, int, Callable[[Cells], list[Any]]]]:
    """Return the name, the place and the conversion of each column."""
    found: list[tuple[str, int, Callable[[Cells], list[Any]]]] = []
    for name, at in places.items():
        if name in ends:
            found.append((name, at, partial(_distinct, convert=partial(end_value, key=ends[name]))))
            continue
        kind = type_of(type_, name)
        apply = _each if kind.is_list or kind.scalar == "Vector" else _distinct
        found.append((name, at, partial(apply, convert=cell_reader(kind, format))))
    return found


def _without_index(header: list[str], source: str, faults: Faults) -> list[str | None]:
    """Return the header without an unnamed first column, which pandas writes for the index of a DataFrame."""
    if len(header) > 1 and header[0] == "":
        faults.note(f"{source}: the first column has no name and is ignored")
        return [None, *header[1:]]
    return list(header)


def _each(cells: Cells, convert: Convert) -> list[Any]:
    """Convert every cell, so that records do not share lists."""
    return [convert(cell) for cell in cells]


def _distinct(cells: Cells, convert: Convert) -> list[Any]:
    """Convert every distinct cell once."""
    known = {cell: convert(cell) for cell in set(cells)}
    return [known[cell] for cell in cells]


def _next_batch(rows: Iterator[tuple[int, Cells]]) -> tuple[list[tuple[int, Cells]], int]:
    """Return the rows of one batch and the number of their characters."""
    batch: list[tuple[int, Cells]] = []
    size = 0
    for line, cells in rows:
        batch.append((line, cells))
        size += sum(len(cell) for cell in cells if cell is not None)
        if len(batch) >= tuning.current.csv_batch_rows or size >= tuning.current.csv_batch_chars:
            break
    return batch, size


def csv_rows(reader: CsvReader, width: int, type_name: str | None, faults: Faults) -> Iterator[tuple[int, Cells]]:
    """Yield each row with the right number of cells, with the number of its first line."""
    for line, row in reader:
        if len(row) == width:
            yield line, row
        else:
            message = f"a row has {width} cells, this one has {len(row)}"
            error = RecordError(message, source=reader.source, line=line, type_name=type_name, rule="csv")
            error.record = list(row)
            faults.add(error)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def cell_reader(type_: PropertyType, format: TableFormat) -> Convert:
    """Return the conversion of the cells of a property."""
    if format.date_format is not None and type_.scalar in ("Date", "DateTime") and not type_.is_list:
        return partial(_dated_value, is_date=type_.scalar == "Date", format=format.date_format)
    return partial(_cell_value, type_=type_)


def _cell_value(text: str | None, type_: PropertyType) -> Any:
    if text is None:
        return None
    if type_.is_list or type_.scalar == "Vector":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return type_.kind.from_cell(text)


def _dated_value(text: str | None, *, is_date: bool, format: str) -> Any:
    """Convert a date in a form of the user to ISO 8601."""
    if text is None:
        return None
    try:
        moment = datetime.strptime(text, format)
    except ValueError:
        return UnmatchedDate(text, format)
    return moment.date().isoformat() if is_date else moment.isoformat()


def end_value(text: str | None, key: PropertyType) -> str | None:
    """Return the id in a cell; an integer key may be written as a float, as pandas does if a value is missing."""
    if text is not None and key.is_integer and _WHOLE_FLOAT.fullmatch(text):
        return text.partition(".")[0]
    return text
