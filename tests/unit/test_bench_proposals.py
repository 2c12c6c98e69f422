"""The benchmark of proposals measures every call on both graphs."""

from __future__ import annotations

from bench import proposals


def test_every_call_is_measured(tmp_path):
    graphs = [proposals.build(tmp_path, opened, closed) for opened, closed in ((2, 1), (3, 2))]
    figures = proposals.measure(graphs, 1)
    assert [len(graph.proposals()) for graph in graphs] == [2, 3]
    assert [len(graph.proposals("closed")) for graph in graphs] == [1, 2]
    assert [set(found) for found in figures] == [set(proposals.calls(graphs[0]))] * 2
