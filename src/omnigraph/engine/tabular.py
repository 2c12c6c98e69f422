"""Tables (Arrow, Parquet, CSV, pandas, polars) → records of a type.

Columns are properties; `id` is optional; an edge table names its ends `from` and `to`, or `src` and `dst`. Values
are judged by the rules of JSON, so every way of loading accepts and refuses the same. In CSV every cell is
text: an empty one is null, numbers and booleans are read as such where the property is one, lists and vectors
are JSON.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.engine.records import Faults, Records
from omnigraph.errors import InputError, RecordError, TypeNotFound
from omnigraph.names import did_you_mean, listing
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.types import PropertyType

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_CSV_HEADER_LINES = 1


def read_table_file(path: Path, catalog: Catalog, faults: Faults) -> dict[str, Records]:
    """The records of a Parquet, CSV or Arrow file; its name, without the ending, is the type's."""
    try:
        if path.suffix.lower() == ".csv":
            return _read_csv(path, catalog, faults)
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq  # noqa: PLC0415 (only who loads Parquet pays for it)

            table = pq.read_table(path)
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
    columns = {given: _json_values(table[given]) for given in table.column_names}
    return _records(type_, columns, table.num_rows, faults, source, first_line=1)


def _read_csv(path: Path, catalog: Catalog, faults: Faults) -> dict[str, Records]:
    import pyarrow.csv as csv  # noqa: PLC0415

    type_ = _type(path.stem, catalog)
    header = csv.open_csv(path).schema.names
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.utf8()), strings_can_be_null=True, null_values=[""]
    )
    table = csv.read_csv(path, convert_options=options)
    columns: dict[str, list[Any]] = {}
    for given in table.column_names:
        property_ = type_.properties.get(given)
        cells = table[given].to_pylist()
        columns[given] = cells if property_ is None else [_cell(text, property_.type) for text in cells]
    return _records(type_, columns, table.num_rows, faults, str(path), first_line=1 + _CSV_HEADER_LINES)


def _records(
    type_: NodeType | EdgeType,
    columns: dict[str, list[Any]],
    count: int,
    faults: Faults,
    source: str | None,
    *,
    first_line: int,
) -> dict[str, Records]:
    meanings = _meanings(type_, list(columns))
    records = Records(type_, source)
    values = {meaning: columns[given] for meaning, given in meanings.items() if meaning not in ("src", "dst")}
    rows = (
        [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)] if values else [{}] * count
    )
    sources = columns[meanings["src"]] if isinstance(type_, EdgeType) else [""] * count
    targets = columns[meanings["dst"]] if isinstance(type_, EdgeType) else [""] * count
    for position, (row, src, dst) in enumerate(zip(rows, sources, targets, strict=True)):
        line = first_line + position
        if type(src) is not str or type(dst) is not str:
            end = "from" if type(src) is not str else "to"
            message = f"edge {type_.name}: '{end}' must be the id of a node, a string"
            faults.add(RecordError(message, source=source, line=line, type_name=type_.name, rule="endpoint"))
            continue
        records.lines.append(line)
        records.data.append(row)
        if isinstance(type_, EdgeType):
            records.src.append(src)
            records.dst.append(dst)
    return {type_.table_key: records}


def _cell(text: str | None, type_: PropertyType) -> Any:
    """A cell as the JSON value it stands for; what is none stays text, and is refused later with its line."""
    if text is None or type_.is_text:
        return text
    try:
        if type_.is_list or type_.scalar == "Vector":
            return json.loads(text)
        if type_.is_integer:
            return int(text) if _INTEGER.fullmatch(text) else text
        if type_.is_float:
            return float(text)
    except ValueError:
        return text
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
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    raise InputError(
        f"'{name}': cannot load a {type(data).__name__}", hint="give an Arrow table, or a pandas or polars frame"
    )


def _meanings(type_: NodeType | EdgeType, given: list[str]) -> dict[str, str]:
    """Property (and `id`, `src`, `dst`) → the column that holds it."""
    found: dict[str, str] = {}
    ends = {"from": "src", "to": "dst", "src": "src", "dst": "dst"} if isinstance(type_, EdgeType) else {}
    for name in given:
        meaning = ends.get(name, name)
        if meaning not in type_.properties and meaning != "id" and name not in ends:
            raise RecordError(
                f"{type_.kind} type '{type_.name}' has no property '{name}'",
                type_name=type_.name,
                property_name=name,
                rule="unknown_property",
                hint=did_you_mean(name, type_.properties),
            )
        if meaning in found:
            raise RecordError(f"columns '{found[meaning]}' and '{name}' mean the same", type_name=type_.name)
        found[meaning] = name
    for end, word in (("src", "from"), ("dst", "to")) if ends else ():
        if end not in found:
            raise RecordError(f"edge {type_.name}: there is no column '{word}'", type_name=type_.name)
    return found


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    """The values as JSON would have given them: dates and times as their numbers, bytes as base64."""
    type_ = column.type
    if pa.types.is_date32(type_):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_date64(type_):
        return list(column.cast(pa.int64()).to_pylist())
    if pa.types.is_timestamp(type_):
        return list(column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).to_pylist())
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return [None if v is None else "base64:" + base64.b64encode(v).decode() for v in column.to_pylist()]
    return list(column.to_pylist())
