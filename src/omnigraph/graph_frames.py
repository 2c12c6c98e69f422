"""Graphs made from tables: `from_frames`, and the load of the tables of a draft."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import OmniGraphError
from omnigraph.graph_open import init
from omnigraph.operations.inference.draft import DraftTable, SchemaDraft
from omnigraph.operations.inference.infer import EdgeInput, infer_tables
from omnigraph.operations.inference.infer import edges as edge_table
from omnigraph.table_format import TableFormat

if TYPE_CHECKING:
    from omnigraph.engine_choice import Rejects
    from omnigraph.graph import Graph
    from omnigraph.operations.load.load_result import LoadResult
    from omnigraph.pipeline.runner import Watch


def from_frames(
    uri: str | os.PathLike[str],
    *,
    edges: Mapping[str, tuple[Any, str, str] | EdgeInput] | None = None,
    schema: str | Path | None = None,
    null: str | Sequence[str] = (),
    delimiter: str | None = None,
    date_format: str | None = None,
    rejects: Rejects = None,
    actor: str | None = None,
    message: str | None = None,
    environ: Mapping[str, str] | None = None,
    **tables: Any,
) -> Graph:
    """Create a graph from tables and load them as one commit.

    Tables are as in `infer_schema`; `edges` has the tables of edges by name, as (data, column, column). Without a
    `schema` the inferred one is used; a draft, or its edited text, is used as it is. Columns whose properties were
    removed from the text, and types that were removed, are left out. `rejects` is as in `Graph.load`.
    """
    given = {**tables, **{name: _edge_input(value) for name, value in (edges or {}).items()}}
    format = TableFormat.of(delimiter, null, date_format)
    environ = os.environ if environ is None else environ
    draft = schema if isinstance(schema, SchemaDraft) and schema.tables else infer_tables(given, format, environ)
    graph = init(uri, draft if schema is None else schema, actor=actor, environ=environ)
    data = {name: value.data if isinstance(value, EdgeInput) else value for name, value in given.items()}
    load_draft(graph, draft, data=data, rejects=rejects, message=message)
    return graph


def load_draft(
    graph: Graph,
    draft: SchemaDraft,
    *,
    data: Mapping[str, Any] | None = None,
    rejects: Rejects = None,
    message: str | None = None,
    watch: Watch | None = None,
) -> LoadResult:
    """Load the tables of a draft as one commit; `data` replaces the tables by name."""
    catalog = graph.catalog()
    loaded: Any = list(draft.graph_files) if draft.graph_files else {}
    columns: dict[str, str | None] = {}
    for table in draft.tables:
        mapped = table.adapted(catalog)
        if mapped is not None:
            if not draft.graph_files:
                loaded[table.type_name] = _data_of(table, data)
            columns |= {f"{table.type_name}:{column}": name for column, name in mapped.items()}
    format = draft.table_format
    try:
        return graph.load(
            loaded,
            mode="append",
            columns=columns,
            skip_null_ends=True,
            null=format.nulls,
            delimiter=format.delimiter,
            date_format=format.date_format,
            format=format.graph_format,
            array_delimiter=format.array_delimiter,
            rejects=rejects,
            message=message,
            watch=watch,
        )
    except OmniGraphError as error:
        if error.hint is None:
            error.hint = f"the graph {graph.uri} was created and is empty; 'rejects' sets wrong rows aside"
        raise


def _data_of(table: DraftTable, data: Mapping[str, Any] | None) -> Any:
    return table.data if data is None or table.name not in data else data[table.name]


def _edge_input(value: tuple[Any, str, str] | EdgeInput) -> EdgeInput:
    return value if isinstance(value, EdgeInput) else edge_table(*value)
