"""`infer_schema`: a schema proposed for tables, as a text to read.

Each table is a node type, or an edge type if it is given with its two ends (`edges`). Columns of node tables that hold
keys of a table are proposed as edge types between the two. The rules are fixed and listed in docs/guides/infer.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.errors import InputError
from omnigraph.operations.inference.arrow_types import arrow_column_type, text_counts
from omnigraph.operations.inference.cell_types import cell_type
from omnigraph.operations.inference.draft import DraftTable, SchemaDraft
from omnigraph.operations.inference.draft_text import UNIQUE_PAIRS, block, header, null_words, property_lines
from omnigraph.operations.inference.graph_files import graph_inputs, infer_graph
from omnigraph.operations.inference.keys import TypedTable, choose_keys
from omnigraph.operations.inference.names import property_names, type_name
from omnigraph.operations.inference.references import (
    DraftEdge,
    Keys,
    keys_of,
    proposed_edges,
    resolve_ends,
    unkeyed_note,
)
from omnigraph.operations.inference.table_files import tables_by_file
from omnigraph.operations.inference.table_sample import ROWS_MAX, TableSample, read_sample
from omnigraph.suggestions import listing
from omnigraph.table_format import ARRAY_DELIMITER, TableFormat


@dataclass(frozen=True)
class EdgeInput:
    """A table of edges: its data, the columns of its ends, and the tables that the ends refer to."""

    data: Any
    src: str
    dst: str
    from_: str | None = None
    to: str | None = None


def edges(data: Any, src: str, dst: str, *, from_: str | None = None, to: str | None = None) -> EdgeInput:
    """Return a table of edges for `infer_schema` and `from_frames`: its data and the columns of its two ends.

    `from_` and `to` name the tables that the ends refer to; by default they are found by their values.
    """
    return EdgeInput(data, src, dst, from_, to)


def infer_schema(
    *files: str | os.PathLike[str],
    null: str | Sequence[str] = (),
    delimiter: str | None = None,
    date_format: str | None = None,
    array_delimiter: str = ARRAY_DELIMITER,
    rows: int = ROWS_MAX,
    environ: Mapping[str, str] | None = None,
    **tables: Any,
) -> SchemaDraft:
    """Return a schema for tables, as a text with the reasons as comments; nothing is written.

    A table is a pandas or polars frame, Arrow data, or the path or pattern of its CSV, Parquet or Arrow files; its name
    is that of the argument. A file in `files` is a table with the name of the file. A table of edges is given by
    `edges`. `null`, `delimiter` and `date_format` are as in `Graph.load`. The first `rows` rows of a table are read.
    `neo4j:DIR` is a folder of Neo4j admin CSV, and `graphml:FILE` or `FILE.graphml` is a GraphML file: they have nodes
    and edges of several types, are read whole and are given alone. `array_delimiter` is as in `Graph.load`.
    """
    format = TableFormat.of(delimiter, null, date_format, array_delimiter=array_delimiter)
    environ = os.environ if environ is None else environ
    graph = graph_inputs(files)
    if graph is not None:
        if tables:
            raise InputError("files with several types and tables are not inferred together", hint="infer one of them")
        return infer_graph(graph[1], graph[0], format, environ)
    return infer_tables({**tables_by_file(files, environ), **tables}, format, environ, rows)


def infer_tables(
    tables: Mapping[str, Any], format: TableFormat, environ: Mapping[str, str], rows: int = ROWS_MAX
) -> SchemaDraft:
    """Return a schema for tables by name; a table is data, or an `EdgeInput`."""
    if not tables:
        raise InputError("no table was given", hint="write infer_schema(people=frame) or infer_schema('people.csv')")
    if rows < 1:
        raise InputError(f"'rows' must be at least 1 (got {rows})")
    _check_names(tables)
    typed = {name: _typed(name, given, format, environ, rows) for name, given in tables.items()}
    nodes = [table for name, table in typed.items() if not isinstance(tables[name], EdgeInput)]
    ends = {name: (given.src, given.dst) for name, given in tables.items() if isinstance(given, EdgeInput)}
    choose_keys(nodes, typed.values(), ends)
    keys = keys_of(nodes)
    declared = [
        _declared_edge(typed[name], given, keys) for name, given in tables.items() if isinstance(given, EdgeInput)
    ]
    proposed = proposed_edges(nodes, keys, {table.type_name for table in typed.values()})
    text = _text(list(typed.values()), nodes, [*declared, *proposed], keys)
    data = {name: given.data if isinstance(given, EdgeInput) else given for name, given in tables.items()}
    loaded = [*map(_node_table, nodes), *(edge.table_to_load() for edge in (*declared, *proposed))]
    return SchemaDraft(text, tuple(replace(one, data=data[one.name]) for one in loaded), format)


def _check_names(tables: Mapping[str, Any]) -> None:
    seen: dict[str, str] = {}
    for name in tables:
        made = type_name(name)
        if made.lower() in seen:
            raise InputError(
                f"the tables '{seen[made.lower()]}' and '{name}' would both be the type '{made}'",
                hint="give the tables different names",
            )
        seen[made.lower()] = name


def _typed(name: str, given: Any, format: TableFormat, environ: Mapping[str, str], rows: int) -> TypedTable:
    data = given.data if isinstance(given, EdgeInput) else given
    sample = read_sample(name, data, environ, format, rows)
    if not sample.table.column_names:
        raise InputError(f"'{sample.label}' has no columns", hint="give a table with named columns")
    if isinstance(given, EdgeInput):
        _check_ends(sample, given, name)
    types = {
        column: cell_type(text_counts(sample.table[column]), format)
        if sample.is_text
        else arrow_column_type(sample.table[column])
        for column in sample.table.column_names
    }
    owner = type_name(name)
    ends = (given.src, given.dst) if isinstance(given, EdgeInput) else ()
    own = [column for column in types if column not in ends]
    properties = property_names(own, name, is_edge=isinstance(given, EdgeInput))
    return TypedTable(name, owner, sample, format, types, properties)


def _check_ends(sample: TableSample, given: EdgeInput, name: str) -> None:
    for column in (given.src, given.dst):
        if column not in sample.table.column_names:
            raise InputError(
                f"'{name}' has no column '{column}' for an end of its edges",
                hint=f"the columns are {listing(sample.table.column_names)}",
            )
    if given.src == given.dst:
        raise InputError(f"'{name}': the two ends of an edge are different columns, not both '{given.src}'")


def _declared_edge(table: TypedTable, given: EdgeInput, keys: Keys) -> DraftEdge:
    ends = resolve_ends(table, (given.src, given.dst), (given.from_, given.to), keys)
    return DraftEdge(table.type_name, table, (given.src, given.dst), ends, is_own_table=True)


def _node_table(table: TypedTable) -> DraftTable:
    columns = {
        column: None if found.type is None else table.properties[column] for column, found in table.columns.items()
    }
    return DraftTable(table.name, table.type_name, columns)


def _text(tables: Sequence[TypedTable], nodes: Sequence[TypedTable], edges: Sequence[DraftEdge], keys: Keys) -> str:
    head = [*header([table.sample for table in tables]), *null_words(tables)]
    blocks = ["\n".join(head) + "\n"]
    for table in nodes:
        note = "" if table.key is not None else unkeyed_note(table, keys)
        blocks.append(block(f"node {table.type_name}", note, property_lines(table)))
    for edge in edges:
        lines = property_lines(edge.table, edge.columns) if edge.is_own_table else []
        if not lines and edge.has_distinct_pairs:
            lines = [(UNIQUE_PAIRS, "")]
        blocks.append(block(edge.head, edge.reason, lines))
    return "\n".join(blocks)
