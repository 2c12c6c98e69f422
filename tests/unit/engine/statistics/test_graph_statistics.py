"""Statistics of a snapshot: computed once, merged for added rows, kept for small changes."""

from __future__ import annotations

import pytest

from omnigraph.engine.statistics import graph_statistics
from omnigraph.engine.statistics.column_statistics import ColumnStatistics
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  n: I64? }
node Q { name: String @key }
edge E: P -> P { w: I64? }
"""


@pytest.fixture
def graph(tmp_path):
    nodes = [node("P", name=f"p{at:03}", n=at % 10) for at in range(100)]
    edges = [edge("E", "p000", f"p{at:03}", w=at) for at in range(1, 41)]
    return new_graph(tmp_path, SCHEMA, *nodes, node("Q", name="q"), *edges)


def statistics(graph) -> GraphStatistics:
    context, snapshot = graph._context, graph.snapshot()
    return GraphStatistics(context.catalogs.of(snapshot), snapshot, context.cache)


def test_counts_columns_and_degrees(graph):
    found = statistics(graph)
    assert (found.nodes("P"), found.nodes("P|Q"), found.edges(("E",))) == (100, 101, 40)
    assert found.node_column("P", "n").distinct == 10
    assert found.edge_column("E", "w").high == 40
    assert found.node_column("P|Q", "name").rows == 101
    out, back = found.degrees("E", "source"), found.degrees("E", "target")
    assert (out.mean, out.largest, out.biased, out.linked) == (0.4, 40, 40, 0.01)
    assert (back.mean, back.largest, back.biased, back.linked) == (0.4, 1, 1, 0.4)
    assert out.skew == 100


def test_added_rows_are_merged(graph, monkeypatch):
    statistics(graph).node_column("P", "n")
    graph.load([node("P", name=f"x{at:03}", n=50) for at in range(20)], mode="append")
    summarised = []
    build = ColumnStatistics.of

    def recorded(column, rows=None):
        summarised.append(len(column))
        return build(column, rows)

    monkeypatch.setattr(graph_statistics.ColumnStatistics, "of", recorded)
    found = statistics(graph).node_column("P", "n")
    assert (found.rows, found.high, found.distinct) == (120, 50, 11)
    assert summarised == [20]


def test_small_change_keeps_the_summary(graph):
    before = statistics(graph).node_column("P", "n")
    graph.mutate('query q() { update P set { n: 99 } where name = "p001" }')
    assert statistics(graph).node_column("P", "n") is before


def test_empty_tables(tmp_path):
    found = statistics(new_graph(tmp_path, SCHEMA))
    assert (found.nodes("P"), found.edges(("E",)), found.degrees("E", "source").skew) == (0, 0, 1)
    assert found.node_column("P", "n").share_equal(1) == 0
