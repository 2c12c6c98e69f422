"""Records, rows and errors in comparable form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from omnigraph.errors import OmniGraphError
from support.graph_machine.commits import ModelCommit
from support.graph_machine.values import base64_of
from support.graph_model import (
    AnyType,
    EdgeType,
    NodeType,
    Refusal,
    Row,
    Tables,
)


def fits(error: OmniGraphError, refusal: Refusal) -> bool:
    return error.code == refusal.code and all(word in f"{error.message} {error}" for word in refusal.words)


def record_of(type_: AnyType, id_: str, row: Row) -> dict[str, Any]:
    data = {"id": id_} | {name: row[name] for name in sorted(type_.props)}
    if isinstance(type_, EdgeType):
        return {"edge": type_.name, "from": row["src"], "to": row["dst"], "data": data}
    return {"type": type_.name, "data": data}


def expected_records(commit: ModelCommit) -> Iterator[dict[str, Any]]:
    for type_ in sorted(commit.schema.types(), key=lambda type_: type_.table):
        rows = commit.tables[type_.table]
        for id_ in sorted(rows):
            yield record_of(type_, id_, rows[id_])


def sorted_lines(records: Any) -> list[str]:
    return [json.dumps(record) for record in records]


def rows_of(records: Sequence[Any], node: NodeType) -> list[Row]:
    return [record["data"] for record in records if record.get("type") == node.name]


def tables_of(records: Any) -> Tables:
    tables: Tables = {}
    for record in records:
        row = dict(record["data"])
        id_ = row.pop("id", "")
        if "edge" in record:
            row |= {"src": record["from"], "dst": record["to"]}
        tables.setdefault(f"node:{record['type']}" if "type" in record else f"edge:{record['edge']}", {})[id_] = row
    return tables


def with_id(id_: str, row: Row | None) -> Row | None:
    return None if row is None else {"id": id_, **row}


def plain(row: Row | None) -> str | None:
    """A row in normal form: dates as numbers, bytes as text, sorted names."""
    if row is None:
        return None
    return json.dumps({name: plain_value(row[name]) for name in sorted(row)})


def plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return base64_of(value) if isinstance(value, bytes) else value


def is_of_type(record: Mapping[str, Any], type_: AnyType) -> bool:
    return ("edge" in record) == isinstance(type_, EdgeType)
