"""The caches of all graphs of a process have one bound."""

from __future__ import annotations

import time
from pathlib import Path

import omnigraph as og
from omnigraph.graph_handle import cache_of
from omnigraph.server.engine_caches import caches_of
from support.server import WAIT_S, serving

PEOPLE = "query people() { match { $p: Person } return { $p.name } }"
BOUND = 1500


def test_the_caches_of_a_process_have_one_bound(graph: og.Graph, tmp_path: Path) -> None:
    other = og.init(tmp_path / "other.omni", "node Person { name: String @key }")
    other.load([{"type": "Person", "data": {"name": "cy"}}], mode="merge")
    with serving(graph.uri, other.uri, flags={"cache_bytes": BOUND}) as server:
        for graph_id in ("people", "other"):
            assert server.post(f"/graphs/{graph_id}/query", {"query": PEOPLE}).status == 200
        caches = caches_of(server.holder.current.graphs.values())
        assert len(caches) == 2
        deadline = time.monotonic() + WAIT_S
        while sum(cache.bytes for cache in caches) > BOUND:
            assert time.monotonic() < deadline, "the caches did not shrink"
            time.sleep(0.01)
        assert server.post("/graphs/people/query", {"query": PEOPLE}).json["row_count"] == 2


def test_a_cache_shrinks_by_its_oldest_entries_and_grows_again(graph: og.Graph) -> None:
    graph.query(PEOPLE)
    cache = cache_of(graph)
    assert cache.bytes > 0
    cache.shrink(0)
    assert (cache.bytes, cache.entry_count) == (0, 0)
    assert len(graph.query(PEOPLE)) == 2
    assert cache.bytes > 0
