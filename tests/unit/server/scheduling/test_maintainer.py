"""Maintenance in the background of a real server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server.scheduling.maintainer import ACTOR, MESSAGE
from omnigraph.storage.failpoints import arm
from omnigraph.storage.files import layout
from support.server import ServerUnderTest, serving
from support.waiting import wait_for

SCHEMA = "node Item {\n  name: String @key\n  size: I64 @index\n}\nnode Other { name: String @key }"
FAST = {"maintain.enabled": True, "maintain.every_s": 1.0, "maintain.rows_min": 5, "maintain.fragments_min": 4}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g.omni", SCHEMA, sync=False)


def add(graph: og.Graph, first: int, count: int) -> None:
    names = range(first, first + count)
    graph.load([{"type": "Item", "data": {"name": f"i{name}", "size": name}} for name in names], mode="append")


def uncovered(graph: og.Graph) -> int:
    return max(table.uncovered_rows for table in graph._maintenance.coverage("main"))


def maintenance_commits(graph: og.Graph) -> list[Any]:
    return [commit for commit in graph.commits() if commit.actor == ACTOR]


def listed(server: ServerUnderTest) -> list[Any]:
    return [one for one in server.get("/operations").json["operations"] if one["kind"] == "maintain"]


def on_loop(server: ServerUnderTest, work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine of the maintainer in the loop of its server."""
    asyncio.run_coroutine_threadsafe(work, server.loop).result(30)


def test_new_rows_are_indexed_in_the_background(graph: og.Graph) -> None:
    add(graph, 0, 20)
    assert uncovered(graph) == 20
    with serving(graph.uri, flags=FAST) as server:
        wait_for(lambda: uncovered(graph) == 0, "the indexes")
        wait_for(lambda: len(listed(server)) == 1 and listed(server)[0]["state"] == "done", "the end of the operation")
        operation = listed(server)[0]
        assert (operation["actor_id"], operation["branch"], operation["graph_id"]) == (ACTOR, "main", "default")
        assert [table["table_key"] for table in operation["result"]["tables"]] == ["node:Item"]
        commit = maintenance_commits(graph)[0]
        assert (commit.kind, commit.message) == ("optimize", MESSAGE)
        assert commit.metadata["request_id"] == operation["id"]
        add(graph, 20, 4)
        on_loop(server, server.app.server.maintainer.inspect_all())
        assert len(maintenance_commits(graph)) == 1, "below the threshold"
        add(graph, 24, 4)
        wait_for(lambda: len(maintenance_commits(graph)) == 2, "the next maintenance")
        assert uncovered(graph) == 0
    assert not (Path(graph.uri) / layout.MAINTENANCE_CLAIM).exists()
    assert graph.verify(deep=True) == []
    assert len(graph.to_arrow("Item")) == 28


def test_it_is_off_by_default(graph: og.Graph) -> None:
    add(graph, 0, 20)
    with serving(graph.uri, flags={"maintain.every_s": 1.0, "maintain.rows_min": 1}) as server:
        assert server.app.server.holder.current.settings.maintain.enabled is False
        assert uncovered(graph) == 20


def test_many_fragments_are_compacted(graph: og.Graph) -> None:
    for number in range(5):
        add(graph, number, 1)
    graph.ensure_indices()
    with serving(graph.uri, flags={**FAST, "maintain.rows_min": 1000}):
        wait_for(lambda: graph._maintenance.coverage("main")[0].fragments == 1, "the compaction")


def test_two_servers_do_the_work_once(graph: og.Graph) -> None:
    add(graph, 0, 20)
    with serving(graph.uri, flags=FAST) as one, serving(graph.uri, flags=FAST) as two:
        wait_for(lambda: uncovered(graph) == 0, "the indexes")
        for server in (one, two):
            on_loop(server, server.app.server.maintainer.inspect_all())
        assert len(maintenance_commits(graph)) == 1


def test_nothing_starts_while_another_process_has_the_claim(graph: og.Graph) -> None:
    add(graph, 0, 20)
    with serving(graph.uri, flags={**FAST, "maintain.enabled": False}) as server:
        maintainer = server.app.server.maintainer
        with graph._maintenance.claimed() as is_mine, graph._maintenance.claimed() as is_mine_too:
            assert (is_mine, is_mine_too) == (True, False)
            on_loop(server, maintainer.inspect_all())
            assert listed(server) == []
        on_loop(server, maintainer.inspect_all())
        assert uncovered(graph) == 0


def test_the_claim_of_a_dead_process_is_removed(graph: og.Graph) -> None:
    file = Path(graph.uri) / layout.MAINTENANCE_CLAIM
    for left in (b"{}", b"not json", b"[]", b'{"lease_s": 0}'):
        file.write_bytes(left)
        is_alive = left != b'{"lease_s": 0}'
        assert graph._maintenance.is_claimed is is_alive
        with graph._maintenance.claimed() as is_mine:
            assert is_mine is not is_alive


def test_requests_come_first(graph: og.Graph) -> None:
    add(graph, 0, 20)
    with serving(graph.uri, flags={**FAST, "maintain.enabled": False}) as server:
        parts = server.app.server
        for name in ("reads", "writes", "exports", "slow"):
            lane = parts.execution.lanes[name]  # type: ignore[index]
            before, lane.running = lane.running, lane.slots
            on_loop(server, parts.maintainer.inspect_all())
            lane.running = before
        parts.memory.high_since = 1.0
        assert parts.maintainer.is_busy
        parts.memory.high_since = None
        assert listed(server) == []
        on_loop(server, parts.maintainer.inspect_all())
        assert uncovered(graph) == 0


def test_a_failure_is_listed_logged_and_not_repeated_at_once(graph: og.Graph, caplog: pytest.LogCaptureFixture) -> None:
    add(graph, 0, 20)
    with serving(graph.uri, flags={**FAST, "maintain.enabled": False}) as server, caplog.at_level(logging.WARNING):
        maintainer = server.app.server.maintainer
        with arm("optimize.before_publish"):
            on_loop(server, maintainer.inspect_all())
            on_loop(server, maintainer.inspect_all())
        assert [operation["state"] for operation in listed(server)] == ["failed"]
        assert "maintenance failed, next try in 2 s" in caplog.text
        assert server.becomes_idle()
        maintainer._records["default"].not_before = 0.0
        on_loop(server, maintainer.inspect_all())
        assert uncovered(graph) == 0


def test_a_table_that_cannot_be_improved_is_left_alone(tmp_path: Path) -> None:
    """The codes of vectors are no index of the table: rows without a vector are no reason to optimize it."""
    graph = og.init(tmp_path / "v.omni", "node Doc {\n  name: String @key\n  v: Vector(2)? @index\n}", sync=False)
    graph.load([{"type": "Doc", "data": {"name": f"{number}"}} for number in range(5_000)], mode="append")
    graph.ensure_indices()
    with serving(graph.uri, flags={**FAST, "maintain.enabled": False}) as server:
        for _ in range(3):
            on_loop(server, server.app.server.maintainer.inspect_all())
        assert listed(server) == []


def test_read_only_graphs_are_left_alone(graph: og.Graph, tmp_path: Path) -> None:
    add(graph, 0, 20)
    config = tmp_path / "omnigraph.yaml"
    config.write_text(f"graphs:\n  g: {{ uri: {graph.uri}, read_only: true }}\nserver: {{ graphs: [g] }}\n")
    with serving(config=config, flags=FAST) as server:
        on_loop(server, server.app.server.maintainer.inspect_all())
        assert listed(server) == []


def test_a_shutdown_stops_the_work(graph: og.Graph) -> None:
    """The operation is cancelled between two tables, and nothing is published."""
    add(graph, 0, 20)
    graph.load([{"type": "Other", "data": {"name": f"o{number}"}} for number in range(20)], mode="append")
    graph = og.open(graph.uri, environ={"OMNIGRAPH_MAINTENANCE_CONCURRENCY": "1"})
    reached: list[ServerUnderTest] = []

    def drain() -> None:
        if not reached:
            reached.append(server)
            server.holder.phase = "draining"
            wait_for(lambda: any(one.cancel.cancelled for one in server.app.server.operations.running), "the stop")

    environ = {"OMNIGRAPH_MAINTENANCE_CONCURRENCY": "1"}
    with serving(graph.uri, flags={**FAST, "maintain.enabled": False}, environ=environ) as server:
        with arm("optimize.compacted", drain):
            on_loop(server, server.app.server.maintainer.inspect_all())
        assert reached
        operations = server.app.server.operations.list(None, all_actors=True)
        assert [operation.state for operation in operations] == ["cancelled"]
    assert maintenance_commits(graph) == []
