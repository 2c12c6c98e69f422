"""Rows of Neo4j admin CSV → records of the types of a schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from omnigraph.checkpoints import paced
from omnigraph.engine.graph_files.neo4j_files import base_words, open_rows, read_header
from omnigraph.engine.graph_files.neo4j_header import Header
from omnigraph.engine.graph_files.node_index import NodeFormat, index_of
from omnigraph.engine.graph_files.record_collector import EdgeInput, NodeInput, RecordCollector
from omnigraph.engine.graph_files.type_names import TypeNames
from omnigraph.engine.ingest.csv_table import Convert, cell_reader, csv_rows
from omnigraph.engine.ingest.csv_text import Cells
from omnigraph.engine.ingest.records import Faults, Records
from omnigraph.engine.ingest.table_columns import ColumnFinder
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.storage.files.input_files import DataFile
from omnigraph.table_format import TableFormat
from omnigraph.types import PropertyType


def read_neo4j(file: DataFile, catalog: Catalog, faults: Faults) -> Iterator[tuple[str, Records]]:
    """Yield (table key, records) of a data file in batches."""
    index = index_of(file, catalog, NODES)
    collector = RecordCollector(catalog, faults, file.name, file.format, reader_of(file.format), index)
    with open_rows(file) as (reader, header):
        rows = csv_rows(reader, len(header.columns), None, faults)
        if header.is_edges:
            for edge in paced(edges_of(file, header, rows)):
                collector.add_edge(edge)
                yield from collector.full()
        else:
            for node in paced(nodes_of(file, header, rows)):
                collector.add_node(node)
                yield from collector.full()
    yield from collector.rest()


def iterate_nodes(file: DataFile, names: TypeNames) -> Iterator[tuple[str, NodeInput]]:  # noqa: ARG001
    """Yield the nodes of a file with their id space, without errors about rows."""
    with open_rows(file) as (reader, header):
        if header.is_edges:
            return
        column = header.column("ID")
        space = "" if column is None else column.space
        for node in paced(nodes_of(file, header, csv_rows(reader, len(header.columns), None, Faults(collect=True)))):
            yield space, node


def _has_keys(file: DataFile, node: NodeType) -> bool:
    """Return True if the id column of a file is the key of a type, or stands for a key that no column has."""
    header = read_header(file)
    column = header.column("ID")
    if column is None or len(node.key) != 1:
        return False
    finder = ColumnFinder(node, file.format)
    named = {_find(finder, one.name) for _, one in header.properties}
    if column.name and column.name != "id":
        return _find(finder, column.name) == node.key[0]
    return node.key[0] not in named


def _find(finder: ColumnFinder, column: str) -> str | None:
    try:
        return finder.find(column)
    except KeyError:
        return None


def nodes_of(file: DataFile, header: Header, rows: Iterator[tuple[int, Cells]]) -> Iterator[NodeInput]:
    """Yield the nodes of rows."""
    id_at, label_at, properties = header.find("ID"), header.find("LABEL"), header.properties
    id_name = header.columns[id_at].name if id_at is not None else None
    implied = default_labels(file) if label_at is None else []
    for line, row in rows:
        labels = row[label_at] if label_at is not None else None
        yield NodeInput(
            line,
            implied if labels is None else split_labels(labels, file.format.array_delimiter),
            None if id_at is None else row[id_at],
            [(column.name, row[at]) for at, column in properties],
            id_name,
        )


def edges_of(file: DataFile, header: Header, rows: Iterator[tuple[int, Cells]]) -> Iterator[EdgeInput]:
    """Yield the edges of rows."""
    start, end = header.find("START_ID"), header.find("END_ID")
    assert start is not None, "the header has both"
    assert end is not None, "the header has both"
    type_at, properties = header.find("TYPE"), header.properties
    spaces = (header.columns[start].space, header.columns[end].space)
    implied = default_labels(file)[0] if type_at is None else None
    for line, row in rows:
        name = row[type_at] if type_at is not None else None
        values = [(column.name, row[at]) for at, column in properties]
        yield EdgeInput(line, implied if name is None else name, (row[start], row[end]), values, spaces)


def default_labels(file: DataFile) -> list[str]:
    """Return the label of rows without a column for it: the type of the file, or the last word of its name."""
    return [file.type_name or base_words(file)[-1]]


def split_labels(text: str, delimiter: str) -> list[str]:
    """Return the labels of a cell."""
    return list(dict.fromkeys(label.strip() for label in text.split(delimiter) if label.strip()))


def reader_of(format: TableFormat) -> partial[Convert]:
    """Return the function that gives the conversion of the cells of a property."""
    return partial(_reader, format=format)


def _reader(type_: PropertyType, format: TableFormat) -> Convert:
    if type_.is_list or type_.scalar == "Vector":
        item = PropertyType("F32") if type_.scalar == "Vector" else type_.item
        return partial(_list_value, convert=cell_reader(item, format), delimiter=format.array_delimiter)
    return cell_reader(type_, format)


def _list_value(text: str | None, *, convert: Convert, delimiter: str) -> Any:
    """Return the items of a cell, which are separated by the delimiter of arrays, or JSON."""
    if text is None:
        return None
    items: Sequence[Any] = text.split(delimiter) if text else []
    if text.startswith("["):
        with suppress(ValueError, RecursionError):
            items = json.loads(text)
        if not isinstance(items, list):
            return text
    return [convert(item) if isinstance(item, str) else item for item in items]


NODES = NodeFormat(iterate_nodes, reader_of, _has_keys)
"""The nodes of Neo4j admin CSV."""
