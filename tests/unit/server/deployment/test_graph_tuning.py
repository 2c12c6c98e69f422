"""Settings of opened graphs: one bound for all caches, turns at building, and the age of reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.graph_handle import cache_of, set_staleness
from omnigraph.server.deployment.graph_tuning import caches_of, staleness_ms
from omnigraph.server.deployment.graphs import ServedGraph
from omnigraph.server.deployment.settings import default_settings
from support.server import serving
from support.store import repository_of
from support.waiting import wait_for

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
        wait_for(lambda: sum(cache.bytes for cache in caches) <= BOUND, "the smaller caches")
        assert server.post("/graphs/people/query", {"query": PEOPLE}).json["row_count"] == 2


def test_a_cache_shrinks_by_its_oldest_entries_and_grows_again(graph: og.Graph) -> None:
    graph.query(PEOPLE)
    cache = cache_of(graph)
    assert cache.bytes > 0
    cache.shrink(0)
    assert (cache.bytes, cache.entry_count) == (0, 0)
    assert len(graph.query(PEOPLE)) == 2
    assert cache.bytes > 0


def test_a_read_may_use_an_earlier_look_and_sees_own_writes(graph: og.Graph) -> None:
    with serving(graph.uri, flags={"read_staleness_ms": 3_600_000}) as server:

        def count(**headers: str) -> int:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            found: int = server.post("/query", {"query": PEOPLE}, headers=given).json["row_count"]
            return found

        assert count() == 2
        graph.load([{"type": "Person", "data": {"name": "cy"}}], mode="merge")
        assert count() == 2, "a commit of another process may be missing"
        body = {"query": 'query add() { insert Person { name: "di" } }'}
        assert server.post("/mutate", body).status == 200
        assert count() == 4, "the write of this process is based on the newest commit and seen"
        graph.load([{"type": "Person", "data": {"name": "ed"}}], mode="merge")
        assert count(Omnigraph_Min_Commit=graph.commits(limit=1)[0].id) == 5
        graph.branch_create("other")
        assert server.post("/query", {"query": PEOPLE, "branch": "other"}).json["row_count"] == 5


def test_a_look_counts_from_its_end(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = og.open(graph.uri)
    set_staleness(reader, 3600)
    manifest = repository_of(reader).manifest
    real = manifest.refresh
    during: list[int] = []

    def refresh(known: Any) -> Any:
        monkeypatch.setattr(manifest, "refresh", real)
        # Another thread reads while the first one looks.
        during.append(len(reader.query(PEOPLE)))
        return real(known)

    monkeypatch.setattr(manifest, "refresh", refresh)
    graph.load([{"type": "Person", "data": {"name": "cy"}}], mode="merge")
    assert len(reader.query(PEOPLE)) == 3
    assert during == [3]


def test_the_default_age_of_reads(graph: og.Graph) -> None:
    local, remote = ServedGraph("a", graph.uri, graph), ServedGraph("b", "s3://bucket/b", None)
    settings = default_settings()
    assert (staleness_ms(local, settings), staleness_ms(remote, settings)) == (0, 100)
    assert staleness_ms(remote, default_settings(read_staleness_ms=0)) == 0
    assert staleness_ms(local, default_settings(read_staleness_ms=7)) == 7
    with serving(graph.uri) as server:
        assert server.post("/query", {"query": PEOPLE}).json["row_count"] == 2
        graph.load([{"type": "Person", "data": {"name": "cy"}}], mode="merge")
        assert server.post("/query", {"query": PEOPLE}).json["row_count"] == 3
