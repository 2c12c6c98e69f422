"""Queries stopped by a time limit, another thread or Ctrl-C leave no state behind."""

from __future__ import annotations

import _thread
import asyncio
import threading
import time
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.aio import AsyncGraph
from omnigraph.engine import tuning
from omnigraph.engine.exec import cancellation
from omnigraph.engine.exec.node_scan import NodeScanner
from omnigraph.engine.result.result import Result
from omnigraph.engine.search import vector_scan
from omnigraph.errors import Cancelled, LimitReached, OmniGraphError, QueryTimeout
from omnigraph.graph_queries import GraphQueries
from omnigraph.operations.requests import ReadRequest
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  text: String?  vec: Vector(2)? }
edge Knows: P -> P
"""
NAMES = "query q() { match { $p: P } return { $p.name } order { $p.name } }"
QUERIES = {
    "scan": NAMES,
    "hop": "query q() { match { $a: P $a knows $b } return { $b.name } }",
    "far hop": "query q() { match { $a: P $a knows{1,4} $b } return { $b.name } }",
    "count": "query q() { match { $a: P $a knows $b $b knows $c } return { count($c) as n } }",
    "not": "query q() { match { $a: P not { $a knows $b } } return { $a.name } }",
    "words": 'query q() { match { $p: P search($p.text, "red") } return { $p.name } }',
    "near": "query q() { match { $p: P } return { $p.name } order { nearest($p.vec, [1, 0]) } limit 3 }",
    "both": "query q() { match { $p: P } return { $p.name } "
    'order { rrf(nearest($p.vec, [1, 0]), bm25($p.text, "red")) } limit 3 }',
}


@pytest.fixture
def graph(tmp_path):
    people = [node("P", name=f"p{at}", text="red" if at % 2 else "blue", vec=[at, 1]) for at in range(30)]
    knows = [edge("Knows", f"p{at}", f"p{(at * 7 + 1) % 30}") for at in range(30)]
    return new_graph(tmp_path, SCHEMA, *people, *knows)


def stop_at(monkeypatch: pytest.MonkeyPatch, nth: int, act: Any) -> list[int]:
    """Call a function at the nth checkpoint of a query; the returned list contains the number of checkpoints."""
    seen = [0]
    check = cancellation.Watch.check

    def counting(self: cancellation.Watch) -> None:
        seen[0] += 1
        if seen[0] == nth:
            act()
        check(self)

    monkeypatch.setattr(cancellation.Watch, "check", counting)
    return seen


@pytest.mark.parametrize("name", QUERIES)
def test_query_can_be_cancelled_at_every_checkpoint(graph, monkeypatch, name):
    fresh = og.open(graph.uri, sync=False, environ={})
    expected = sorted(map(str, graph.query(QUERIES[name]).to_rows()))
    with monkeypatch.context() as patch:
        total = stop_at(patch, -1, None)
        fresh.query(QUERIES[name])
    assert total[0] >= 2
    for nth in range(1, total[0] + 1):
        reader = og.open(graph.uri, sync=False, environ={})
        stop = og.Cancellation()
        with monkeypatch.context() as patch:
            stop_at(patch, nth, stop.cancel)
            with pytest.raises(Cancelled) as caught:
                reader.query(QUERIES[name], cancel=stop)
        assert caught.value.code == "cancelled"
        assert sorted(map(str, reader.query(QUERIES[name]).to_rows())) == expected, "the handle remains usable"


def test_cancelled_token_stops_a_query_before_it_starts(graph):
    stop = og.Cancellation()
    stop.cancel()
    with pytest.raises(Cancelled):
        graph.query(NAMES, cancel=stop)
    assert len(graph.query(NAMES, cancel=og.Cancellation())) == 30


def test_timeout_raises_its_own_error_code(graph):
    with pytest.raises(QueryTimeout, match=r"the query took longer than 0 s") as caught:
        graph.query(NAMES, timeout=0)
    assert caught.value.code == "timeout"
    assert isinstance(caught.value, LimitReached)
    assert (caught.value.resource, caught.value.limit) == ("time", 0)
    assert caught.value.actual is not None
    assert len(graph.query(NAMES, timeout=600)) == 30
    with pytest.raises(QueryTimeout):
        graph.profile(NAMES, timeout=0)


def slow(monkeypatch: pytest.MonkeyPatch, started: threading.Event) -> None:
    """A scan that runs until it is cancelled, or for a minute."""

    def scan(self: NodeScanner, *_: Any) -> Any:
        started.set()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            cancellation.checkpoint()
            time.sleep(0.001)
        raise AssertionError("the query was not stopped")

    monkeypatch.setattr(NodeScanner, "rows", scan)


def test_cancellation_from_another_thread(graph, monkeypatch):
    started, stop, ended = threading.Event(), og.Cancellation(), []

    def ask() -> None:
        try:
            graph.query(NAMES, cancel=stop)
        except OmniGraphError as error:
            ended.append(error.code)

    with monkeypatch.context() as patch:
        slow(patch, started)
        thread = threading.Thread(target=ask)
        thread.start()
        assert started.wait(30)
        stop.cancel()
        thread.join(30)
        assert ended == ["cancelled"]
        with pytest.raises(QueryTimeout):
            graph.query(NAMES, timeout=0.05)
    assert len(graph.query(NAMES)) == 30


def test_cancelled_task_stops_the_query_in_its_thread(graph, monkeypatch):
    started, ended = threading.Event(), threading.Event()
    read = GraphQueries.read

    def noticed(self: GraphQueries, request: ReadRequest) -> Result:
        try:
            return read(self, request)
        except Cancelled:
            ended.set()
            raise

    monkeypatch.setattr(GraphQueries, "read", noticed)
    slow(monkeypatch, started)

    async def main() -> None:
        task = asyncio.create_task(AsyncGraph(graph).query(NAMES))
        assert await asyncio.to_thread(started.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended.wait(30)


@pytest.mark.parametrize("name", ["hop", "words", "near"])
def test_ctrl_c_leaves_the_graph_usable(graph, monkeypatch, name):
    expected = sorted(map(str, og.open(graph.uri, sync=False, environ={}).query(QUERIES[name]).to_rows()))
    for nth in range(1, 6):
        small = tuning.replaced(vector_disk_bytes_min=0, postings_disk_rows_min=0, adjacency_disk_edges_min=0)
        with small, monkeypatch.context() as patch:
            reader = og.open(graph.uri, sync=False, environ={})
            seen = stop_at(patch, nth, _thread.interrupt_main)
            try:
                reader.query(QUERIES[name])
                time.sleep(0.01)  # the signal is handled here at the latest
            except KeyboardInterrupt:
                pass
            assert seen[0] >= 1
        assert sorted(map(str, reader.query(QUERIES[name]).to_rows())) == expected
        assert reader.mutate(f'query q() {{ insert P {{ name: "x{nth}" }} }}').affected_nodes == 1
        reader.mutate(f'query q() {{ delete P where name = "x{nth}" }}')
        assert reader.verify() == []


def test_checkpoints_outside_a_query_do_nothing():
    cancellation.checkpoint()
    cancellation.add_note("no query records this")
    made = vector_scan._memory_block([], 2)
    assert np.array_equal(made.norms, [])
