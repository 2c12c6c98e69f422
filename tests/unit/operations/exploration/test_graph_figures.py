"""Figures of a graph: heads, branches, tables and the last maintenance; they are kept until a commit."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og
from omnigraph.graph_handle import context_of
from omnigraph.operations.exploration.graph_figures import FiguresCache

SCHEMA = "node Person { name: String @key city: String? @index }\nedge Knows: Person -> Person"


def test_the_figures_of_a_graph(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", SCHEMA, sync=False)
    cache, context = FiguresCache(), context_of(graph)
    empty = cache.of(context)
    assert (empty.branches, empty.maintained_us, empty.fragments) == (1, None, 0)
    for name in ("ana", "bo"):
        graph.load([{"type": "Person", "data": {"name": name, "city": "x"}}], mode="append")
    graph.branch_create("try")
    figures = cache.of(context)
    tables = {table.table_key: table for table in figures.tables}
    assert (figures.head, figures.branches) == (graph.snapshot().commit_id, 2)
    assert (tables["node:Person"].rows, tables["node:Person"].fragments) == (2, 2)
    assert figures.uncovered_rows == 2
    assert cache.of(context) is figures
    graph.optimize()
    maintained = cache.of(context)
    assert (maintained.fragments, maintained.uncovered_rows) == (1, 0)
    assert maintained.maintained_us is not None
    assert {table.table_key: table for table in maintained.tables}["edge:Knows"] is tables["edge:Knows"]
