"""The document that the widget and saved files show: nodes, edges and a table as JSON.

`web/src/shown/document.ts` describes the same document. Node types are listed in their order in the schema, which gives
each its colour. Limits keep a file small; what was left out is named in `notice`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import singledispatch
from itertools import islice
from typing import Any

import pyarrow as pa

from omnigraph.engine.result.result import Result, batch_values
from omnigraph.errors import InputError
from omnigraph.notebook.change_view import describe
from omnigraph.notebook.result_view import dots_of, label_of, lines_of
from omnigraph.notebook.schema_view import SchemaText
from omnigraph.schema.check import compile_schema
from omnigraph.versioning.compare.changeset import ChangeSet
from omnigraph.wire.json_values import row_value

Document = dict[str, Any]
NODES_MAX = 10_000
BYTES_MAX = 20_000_000
CHANGES_MAX = 300
_BATCH_ROWS = 2_000
_ROWS_SHARE = 0.8
"""The part of the bytes of a document that its table can take."""


def document(
    title: str,
    nodes: Sequence[Mapping[str, Any]] = (),
    edges: Sequence[Mapping[str, Any]] = (),
    table: Mapping[str, Any] | None = None,
    notices: Iterable[str] = (),
    types: Sequence[str] | None = None,
) -> Document:
    """Return a document; without `types`, types are listed in the order of their nodes."""
    said = [notice for notice in notices if notice]
    return {
        "version": 1,
        "title": title,
        "types": list(types if types is not None else dict.fromkeys(node["type"] for node in nodes)),
        "nodes": list(nodes),
        "edges": list(edges),
        "table": table,
        "notice": " ".join(said) or None,
        "asks": [],
    }


@singledispatch
def document_of(shown: object, rows_max: int | None = None) -> Document:  # noqa: ARG001 - of the registered functions
    """Return the document of a result, a difference or a schema; `rows_max` limits the rows of its table."""
    raise InputError(f"{type(shown).__name__} cannot be shown: a result, a difference or a schema is needed")


@document_of.register
def _(shown: Result, rows_max: int | None = None) -> Document:
    columns, taken = _first_rows(shown, rows_max)
    nodes, edges, cut = _picture(shown, columns)
    rows = [list(row) for row in zip(*columns, strict=True)]
    table = {"columns": column_kinds(shown), "rows": rows, "total": len(shown)}
    notices = (
        f"The picture has the first {NODES_MAX:,} nodes." if cut else "",
        f"The table has the first {taken:,} of {len(shown):,} rows." if taken < len(shown) and not rows_max else "",
    )
    return document(shown.query_name or "result", nodes, edges, table, notices)


def _first_rows(shown: Result, rows_max: int | None) -> tuple[list[list[Any]], int]:
    """Return the first rows column by column, within the limits of a document, and their number."""
    columns: list[list[Any]] = [[] for _ in shown.columns]
    taken, size = 0, 0
    for batch in shown.batches(min(rows_max or _BATCH_ROWS, _BATCH_ROWS)):
        values = batch_values(batch)
        size += len(json.dumps(values, ensure_ascii=False).encode())
        if taken and size > BYTES_MAX * _ROWS_SHARE:
            break
        for column, more in zip(columns, values, strict=True):
            column.extend(more)
        taken += batch.num_rows
        if rows_max is not None and taken >= rows_max:
            break
    if rows_max is not None:
        columns, taken = [column[:rows_max] for column in columns], min(taken, rows_max)
    return columns, taken


def _picture(shown: Result, columns: list[list[Any]]) -> tuple[list[Any], list[Any], bool]:
    """Return the nodes and edges of the rows, and whether some nodes were left out."""
    at: dict[str, int] = {}
    nodes: list[dict[str, Any]] = []
    cut = False
    if len(shown.shape.types) == len(columns):
        for dot, value in dots_of(shown.shape, columns):
            if dot.key in at:
                continue
            if len(nodes) == NODES_MAX:
                cut = True
                break
            at[dot.key] = len(nodes)
            data = {name: item for name, item in value.items() if name not in ("id", "type")}
            nodes.append({"type": dot.kind, "id": str(value["id"]), "label": dot.label, "data": data})
    lines = dict.fromkeys(lines_of(shown.shape, columns)) if nodes else {}
    edges = [
        {"from": at[line.source], "to": at[line.target], "label": line.label}
        for line in lines
        if line.source in at and line.target in at
    ]
    return nodes, edges, cut


def column_kinds(shown: Result) -> list[dict[str, Any]]:
    """Return the name, kind and node type of each column, as the page has them."""
    kinds = [column.kind for column in shown.shape.columns] or ["value"] * len(shown.columns)
    types = [column.type for column in shown.shape.columns] or [""] * len(shown.columns)
    return [
        {
            "name": field.name,
            "kind": "node" if kind == "node" else _kind_of(field.type),
            "type": type_ if kind == "node" else None,
        }
        for field, kind, type_ in zip(shown.schema, kinds, types, strict=True)
    ]


_KINDS = (
    (pa.types.is_boolean, "bool"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_decimal, "number"),
    (pa.types.is_date32, "date"),
    (pa.types.is_date64, "datetime"),
    (pa.types.is_timestamp, "datetime"),
    (pa.types.is_fixed_size_list, "vector"),
    (pa.types.is_list, "list"),
    (pa.types.is_large_list, "list"),
    (pa.types.is_struct, "struct"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
)


def _kind_of(type_: pa.DataType) -> str:
    return next((kind for test, kind in _KINDS if test(type_)), "text")


@document_of.register
def _(shown: ChangeSet, rows_max: int | None = None) -> Document:
    graph = shown.as_graph(CHANGES_MAX)
    at: dict[tuple[str, str], int] = {}
    nodes: list[dict[str, Any]] = []
    for node in graph.nodes:
        at[node.type, node.id] = len(nodes)
        data = {name: row_value(value) for name, value in node.row.items() if name != "id"}
        nodes.append(_node(node.type, node.id, label_of({**node.row, "id": node.id}), data, node.op or "same"))
    edges = []
    for edge in graph.edges:
        for end in (edge.source, edge.target):
            if end not in at:
                # The edge changed and its end is neither changed nor in the ring.
                at[end] = len(nodes)
                nodes.append(_node(end[0], end[1], end[1], {}, "same"))
        ends = {"from": at[edge.source], "to": at[edge.target]}
        edges.append({**ends, "label": edge.type, "op": edge.op or "same"})
    limit = rows_max if rows_max is not None else NODES_MAX
    changes = list(islice(shown, limit + 1))
    rows = [[change.op, change.table_key, str(change.id), describe(change)] for change in changes[:limit]]
    total = sum(sum(ops.values()) for ops in graph.summary.tables.values())
    columns = [{"name": name, "kind": "text", "type": None} for name in ("op", "table", "id", "values")]
    notices = (
        f"The picture has the first {CHANGES_MAX} changes." if graph.changes_omitted else "",
        f"The table has the first {limit:,} changes." if len(changes) > limit else "",
        *(f"Schema: {step}." for step in shown.schema_steps),
    )
    return document(shown.title, nodes, edges, {"columns": columns, "rows": rows, "total": total}, notices)


def _node(type_: str, id_: str, label: str, data: Mapping[str, Any], op: str) -> dict[str, Any]:
    return {"type": type_, "id": id_, "label": label, "data": data, "op": op}


@document_of.register
def _(shown: SchemaText, rows_max: int | None = None) -> Document:
    catalog = compile_schema(str(shown))
    at = {name: number for number, name in enumerate(catalog.nodes)}
    nodes = [
        {"type": "node type", "id": name, "label": name, "data": dict(_properties(catalog.nodes[name]))} for name in at
    ]
    edges = [
        {"from": at[edge.from_type], "to": at[edge.to_type], "label": name} for name, edge in catalog.edges.items()
    ]
    types = {**catalog.nodes, **catalog.edges}
    rows = [[name, *each] for name, type_ in types.items() for each in _properties(type_)]
    columns = [{"name": name, "kind": "text", "type": None} for name in ("type", "property", "values")]
    return document("schema", nodes, edges, {"columns": columns, "rows": rows[:rows_max], "total": len(rows)})


def _properties(type_: Any) -> Iterator[tuple[str, str]]:
    for name, declared in type_.properties.items():
        yield name, str(declared.type)
