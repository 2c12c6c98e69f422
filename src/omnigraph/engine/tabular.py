"""Tables (Arrow, Parquet, CSV, pandas, polars) → records of a type.

Columns are properties; `id` is optional; an edge table names its ends `from` and `to`, or `src` and `dst`. Values
are judged by the rules of JSON, so every way of loading accepts and refuses the same. In CSV every cell is
text: an empty one is null, numbers and booleans are read as such where the property is one, lists and vectors
are JSON.
"""

from __future__ import annotations

import base64
import csv
import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.records import LINE_BYTES_MAX, Faults, Records
from omnigraph.errors import InputError, RecordError, TypeNotFound
from omnigraph.names import did_you_mean, listing
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.types import PropertyType
from omnigraph.values import DAY_MS, format_date, format_datetime

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_TEXT = PropertyType("String")
_TICKS = {"s": (1_000, 1), "ms": (1, 1), "us": (1, 1_000), "ns": (1, 1_000_000)}
"""Unit of an Arrow timestamp → how to multiply and divide it to get milliseconds."""


def read_table_file(path: Path, catalog: Catalog, faults: Faults) -> dict[str, Records]:
    """The records of a Parquet, CSV or Arrow file; its name, without the ending, is the type's."""
    try:
        if path.suffix.lower() == ".csv":
            return _read_csv(path, catalog, faults)
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq  # noqa: PLC0415 (only who loads Parquet pays for it)

            # Not `read_table`: that takes a folder named `x=1` for a column.
            table = pq.ParquetFile(path).read()
        else:
            with pa.memory_map(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"'{path}' cannot be read: {str(error).splitlines()[0]}", code="unreadable_file") from None
    return read_arrow(path.stem, table, catalog, faults, source=str(path))


def read_arrow(
    name: str, data: Any, catalog: Catalog, faults: Faults, *, source: str | None = None
) -> dict[str, Records]:
    """The records of an Arrow table, or of anything that turns into one; rows are numbered from 1."""
    type_ = _type(name, catalog)
    table = _as_arrow(name, data)
    meanings = _meanings(type_, table.column_names, source)
    columns = {meaning: _json_values(table[given], _type_of(type_, meaning)) for meaning, given in meanings.items()}
    return _records(type_, columns, list(range(1, table.num_rows + 1)), faults, source)


def _read_csv(path: Path, catalog: Catalog, faults: Faults) -> dict[str, Records]:
    type_ = _type(path.stem, catalog)
    source = str(path)
    # The limit is the process's, and by itself too low for a vector or a Blob.
    csv.field_size_limit(max(csv.field_size_limit(), LINE_BYTES_MAX))
    lines: list[int] = []
    rows: list[list[str]] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                raise InputError(f"'{path}' is empty", code="unreadable_file", hint="its first line names the columns")
            meanings = _meanings(type_, header, source)
            before = reader.line_num
            for row in reader:
                line, before = before + 1, reader.line_num
                if row and len(row) != len(header):
                    message = f"a row has {len(header)} cells, this one has {len(row)}"
                    faults.add(RecordError(message, source=source, line=line, type_name=type_.name, rule="csv"))
                elif row:
                    lines.append(line)
                    rows.append(row)
        except csv.Error as error:
            message = f"not valid CSV: {error}"
            raise RecordError(message, source=source, line=reader.line_num, type_name=type_.name, rule="csv") from None
        except UnicodeDecodeError as error:
            raise InputError(f"'{path}' cannot be read: {error}", code="unreadable_file") from None
    columns: dict[str, list[Any]] = {}
    for meaning, given in meanings.items():
        place, property_type = header.index(given), _type_of(type_, meaning)
        columns[meaning] = [_cell(row[place], property_type) for row in rows]
    return _records(type_, columns, lines, faults, source)


def _records(
    type_: NodeType | EdgeType, columns: dict[str, list[Any]], lines: list[int], faults: Faults, source: str | None
) -> dict[str, Records]:
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
    return {type_.table_key: records}


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


def _type(name: str, catalog: Catalog) -> NodeType | EdgeType:
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
