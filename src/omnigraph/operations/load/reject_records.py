"""Original records of rejects, for repair and another load.

A JSONL line is returned as its JSON value, or as text if it is not valid JSON. A row of a table becomes a JSONL record.
A CSV row with too many or too few cells is a list of its cells.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pyarrow as pa

from omnigraph.engine.ingest.record_reader import iterate_lines
from omnigraph.engine.ingest.records import RecordColumns, Records, RecordSet
from omnigraph.operations.export import records_of
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType


def line_records(text: bytes, wanted: Collection[int], first: int = 1) -> dict[int, Any]:
    """Line number → record, for some lines of a JSONL text whose first line has number `first`."""
    return {number: _line(line) for number, line in enumerate(iterate_lines(text), first) if number in wanted}


def _line(line: bytes) -> Any:
    text = line.decode("utf-8", "replace").strip()
    try:
        return json.loads(text, object_pairs_hook=_members)
    except (ValueError, RecursionError):
        return text


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is given twice")
    return found


def part_records(parts: Iterable[RecordSet], wanted: Collection[int]) -> dict[int, Any]:
    """Row number → record, for some rows of a table."""
    found: dict[int, Any] = {}
    for part in parts:
        rows = [row for row, line in enumerate(part.lines) if line in wanted]
        made = _of_columns(part, rows) if isinstance(part, RecordColumns) else _of_records(part, rows)
        found.update(zip((int(part.lines[row]) for row in rows), made, strict=True))
    return found


def _of_records(part: Records, rows: list[int]) -> Iterator[dict[str, Any]]:
    for row in rows:
        record: dict[str, Any] = {"edge" if part.type.kind == "edge" else "type": part.type.name}
        if isinstance(part.type, EdgeType):
            record |= {"from": part.src[row], "to": part.dst[row]}
        yield {**record, "data": dict(part.data[row])}


def _of_columns(part: RecordColumns, rows: list[int]) -> Iterator[dict[str, Any]]:
    chosen = pa.array(rows, pa.int64())
    schema = pa.schema([column.with_nullable(True) for column in table_schema(part.type)])
    columns = {
        column.name: part.fields[column.name].take(chosen)
        if column.name in part.fields
        else pa.nulls(len(rows), column.type)
        for column in schema
    }
    for record in records_of(part.type, pa.table(columns, schema=schema)):
        data = {name: value for name, value in record["data"].items() if name in part.fields}
        yield {**record, "data": data}
