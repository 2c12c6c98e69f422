"""Nodes and relationships of Neo4j admin CSV for the inference of a schema."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.engine.graph_files.neo4j_files import open_rows
from omnigraph.engine.graph_files.neo4j_header import Column
from omnigraph.engine.graph_files.neo4j_rows import edges_of, nodes_of
from omnigraph.engine.graph_files.scanned import Declared, ScannedEdge, ScannedNode
from omnigraph.engine.ingest.csv_table import csv_rows
from omnigraph.engine.ingest.records import Faults
from omnigraph.storage.files.input_files import DataFile

_TYPES = {
    "string": "String",
    "char": "String",
    "boolean": "Bool",
    "byte": "I32",
    "short": "I32",
    "int": "I32",
    "long": "I64",
    "float": "F32",
    "double": "F64",
    "date": "Date",
    "datetime": "DateTime",
    "localdatetime": "DateTime",
}


def neo4j_items(file: DataFile) -> Iterator[ScannedNode | ScannedEdge]:
    """Yield the nodes or the relationships of a data file."""
    with open_rows(file) as (reader, header):
        declared = {column.name: _declared(column) for _, column in header.properties}
        rows = csv_rows(reader, len(header.columns), None, Faults(collect=True))
        if header.is_edges:
            for edge in edges_of(file, header, rows):
                values = [name for name, text in edge.values if text is not None]
                yield ScannedEdge(edge.spaces, edge.ends, edge.relationship, values, declared)
            return
        column = header.column("ID")
        space = "" if column is None else column.space
        id_type = "String" if column is None else _TYPES.get(column.type, "String")
        for node in nodes_of(file, header, rows):
            values = [name for name, text in node.values if text is not None]
            yield ScannedNode(space, node.id, node.labels, values, declared, node.id_name or "", id_type)


def _declared(column: Column) -> Declared:
    scalar = _TYPES.get(column.type)
    reason = f"'{column.text.strip()}'"
    if scalar is None:
        reason += f"; values of the type {column.type} are texts"
    return Declared(f"[{scalar or 'String'}]" if column.is_list else scalar or "String", reason)
