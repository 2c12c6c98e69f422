"""The benchmark of stored queries measures every call on both graphs."""

from __future__ import annotations

from bench import stored_queries


def test_every_call_is_measured(tmp_path):
    graphs = [stored_queries.build(tmp_path, count) for count in (8, 12)]
    figures = stored_queries.measure(graphs, 1)
    assert [len(graph.queries()) for graph in graphs] == [8, 12]
    assert [set(found) for found in figures] == [set(stored_queries.calls(graphs[0]))] * 2
    assert graphs[0].invoke("q7", {"name": "p8"}).to_pylist() == [{"age": 8}]
