"""Real processes write one graph concurrently: nothing is lost, duplicated or partially visible.

Every worker prints what was acknowledged to it; afterwards history, rows and this output must agree.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph as og
from omnigraph.errors import GraphExists
from omnigraph.graph import Graph
from omnigraph.storage.failpoints import NAMES, arm
from omnigraph.versioning.write.recovery import recovery_log
from support.racing import acknowledged, on_many_branches, on_one_branch, race, racing
from support.store import (
    COUNTER,
    ITEM,
    LINK,
    SCHEMA,
    Worker,
    add_pair,
    check_sound,
    check_usable,
    collect,
    increment,
    new_graph,
    repository_of,
    seeds,
    settle,
)
from support.storm import GRACE_S


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path / "graph")


def test_processes_write_one_branch(graph, tmp_path):
    on_one_branch(graph, tmp_path, 4, 15)


def test_processes_write_their_own_branches(graph, tmp_path):
    on_many_branches(graph, tmp_path, 4, 15)


@pytest.mark.long
@pytest.mark.parametrize("where", [on_one_branch, on_many_branches])
def test_many_processes_long(graph, tmp_path, where, record_property):
    took = where(graph, tmp_path, 8, 200, timeout_s=900)
    figures = f"{where.__name__}: 8 processes, 1600 commits, {took:.1f} s, {1600 / took:.1f} commits/s"
    record_property("figures", figures)
    print(figures)  # noqa: T201 (shown with -s)


def test_no_update_is_lost(graph, tmp_path):
    race(tmp_path, graph.uri, *[{"do": "increments", "count": 10}] * 4)
    counter = graph.snapshot().entity(ITEM, COUNTER)
    assert counter is not None
    assert counter["count"] == 40
    assert len(graph.commits()) == 41
    assert graph.verify() == []


def test_exactly_one_process_creates_a_branch(graph, tmp_path):
    workers = race(tmp_path, graph.uri, *[{"do": "create_branch", "branch": "mine"}] * 3)
    outcomes = sorted(str(line.get("error", "created")) for worker in workers for line in worker.said()[1:])
    assert outcomes == ["branch_exists", "branch_exists", "created"]
    assert graph.branches() == ["main", "mine"]
    check_sound(graph, [], branch="mine")


def test_exactly_one_process_creates_a_graph(tmp_path):
    root = tmp_path / "graph"
    workers = race(tmp_path, str(root), *[{"do": "init"}] * 3)
    lines = [worker.said()[-1] for worker in workers]
    assert sorted(line.get("error", "created") for line in lines) == ["created", "graph_exists", "graph_exists"]
    graph = og.open(root)
    assert [graph.snapshot().commit_id] == [line["commit"] for line in lines if "commit" in line]
    check_sound(graph, [])
    collect(check_usable(root))


@pytest.mark.parametrize("step", ["init.claimed", "init.tables_created", "init.before_manifest", "manifest written"])
def test_a_creator_that_is_overtaken_replaces_nothing(tmp_path, monkeypatch, step):
    root = tmp_path / "graph"
    overtaken: list[bool] = []

    def overtake() -> None:
        if not overtaken:
            overtaken.append(True)
            new_graph(root, 1)

    original = lance.fragment.write_fragments

    def write_fragments(*arguments: Any, **settings: Any) -> Any:
        written = original(*arguments, **settings)
        overtake()
        return written

    with ExitStack() as stack:
        if step in NAMES:
            stack.enter_context(arm(step, overtake))
        else:
            monkeypatch.setattr(lance.fragment, "write_fragments", write_fragments)
        with pytest.raises(GraphExists):
            og.init(root, SCHEMA)
    assert len(check_sound(og.open(root), seeds(1))) == 2
    collect(check_usable(root))


def test_one_idempotency_key_in_several_processes_is_one_commit(graph, tmp_path):
    workers = race(tmp_path, graph.uri, *[{"do": "idempotent", "key": "request-1"}] * 3)
    assert len({worker.said()[-1]["commit"] for worker in workers}) == 1
    assert len(check_sound(graph, ["once"])) == 2


def test_a_branch_is_deleted_during_writes(graph, tmp_path):
    graph.branch_create("doomed")
    with racing(tmp_path, graph.uri, {"do": "branch_commits", "branch": "doomed"}) as (writer,):
        assert writer.wait_for(lambda worker: len(worker.wrote()) >= 5)
        graph.branch_delete("doomed", force=True)
        writer.finish()
    assert writer.errors() == ["branch_not_found"]
    assert graph.branches() == ["main"]
    assert graph.commit(writer.said()[-2]["commit"]).branch == "doomed", "its commits stay readable"
    graph.branch_create("doomed")
    assert len(check_sound(graph, [], branch="doomed")) == 1, "a new branch of that name is empty"
    collect(check_usable(graph.uri))


def test_branches_are_created_and_deleted_during_writes(graph, tmp_path):
    def create_and_delete(number: int) -> None:
        for turn in range(5):
            graph.branch_create(f"short/{number}/{turn}")
            add_pair(repository_of(graph), f"mine-{number}-{turn}", branch=f"short/{number}/{turn}")
            if turn % 2:
                graph.branch_delete(f"short/{number}/{turn}", force=True)

    with racing(tmp_path, graph.uri, *[{"do": "commits", "count": 10}] * 2) as workers:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(create_and_delete, range(2)))
        keys = acknowledged([worker.finish() for worker in workers])
    check_sound(graph, keys)
    assert graph.branches() == ["main", *(f"short/{number}/{turn}" for number in range(2) for turn in (0, 2, 4))]


def test_compaction_and_cleanup_during_writes(tmp_path):
    root = tmp_path / "graph"
    graph = new_graph(root, 6, age=timedelta(hours=1))
    # One process continues while the others finish: there is always something to compact.
    requests = [{"do": "maintain", "grace_s": GRACE_S, "seconds": 60}, *[{"do": "commits", "count": 15}] * 2]
    with racing(tmp_path, str(root), *requests) as (maintenance, *writers):
        keys = acknowledged([worker.finish() for worker in writers])
        assert maintenance.wait_for(lambda worker: len(worker.said()) > 3)
        maintenance.kill()
    assert "Traceback" not in maintenance.trouble(), maintenance.trouble()
    assert sum(line.get("cleaned", 0) for line in maintenance.said()), "old versions went"
    assert any(line.get("optimized") for line in maintenance.said()), "tables were compacted"
    settle(root)
    check_sound(graph, {*seeds(6), *keys})
    collect(check_usable(root))


def test_versions_are_removed_during_writes(graph, tmp_path):
    add_pair(repository_of(graph), "first")
    requests = [*[{"do": "litter", "seconds": 60}] * 2, *[{"do": "commits", "count": 12}] * 2]
    with racing(tmp_path, graph.uri, *requests) as (*litterers, one, two):
        keys = acknowledged([one.finish(), two.finish()])
        for litterer in litterers:
            assert litterer.wait_for(lambda worker: len(worker.said()) > 3), litterer.trouble()
    check_sound(graph, ["first", *keys])
    collect(check_usable(graph.uri))


def test_readers_see_whole_commits(graph, tmp_path):
    with racing(tmp_path, graph.uri, *[{"do": "commits", "count": 15}] * 2) as workers:
        seen = -1
        reads = 0
        while any(worker.process.poll() is None for worker in workers):
            snapshot = og.open(graph.uri, read_only=True).snapshot() if reads % 5 == 0 else graph.snapshot()
            items, links = (sorted(snapshot.table(key).read(["id"])["id"].to_pylist()) for key in (ITEM, LINK))
            assert items == links
            assert len(items) >= seen, "nobody reads backwards"
            seen = len(items)
            reads += 1
        keys = acknowledged([worker.finish() for worker in workers])
    assert reads > 5
    check_sound(graph, keys)


def test_threads_share_one_graph(graph):
    repository = repository_of(graph)
    add_pair(repository, "first")

    def work(number: int) -> list[str]:
        keys = []
        for turn in range(8):
            keys.append(f"thread-{number}-{turn}")
            add_pair(repository, keys[-1])
            increment(repository)
            snapshot = graph.snapshot()
            assert snapshot.tables[ITEM].pin.row_count - snapshot.tables[LINK].pin.row_count in (0, 1)
        return keys

    with ThreadPoolExecutor(4) as pool:
        keys = [key for done in pool.map(work, range(4)) for key in done]
    commits = check_sound(graph, ["first", *keys])
    assert len(commits) == 2 + 2 * len(keys)
    counter = graph.snapshot().entity(ITEM, COUNTER)
    assert counter is not None
    assert counter["count"] == len(keys)


def test_several_processes_recover_concurrently(graph, tmp_path):
    places = ["table.promoted=1:kill", "publish.before_commit=kill", "publish.after_commit=kill", "intent.written=kill"]
    for number, place in enumerate(places):
        request = {"do": "commits", "name": f"dead{number}", "failpoints": place, "recover": False}
        with Worker(tmp_path, graph.uri, **request) as worker:
            assert worker.end() == -9, worker.trouble()
    race(tmp_path, graph.uri, *[{"do": "recover_now", "recover": False}] * 4)
    operations = [row["operation_id"] for row in recovery_log(repository_of(graph))]
    assert len(operations) == len(set(operations)) == len(places)
    assert repository_of(graph).objects.list("__recovery") == []
    check_sound(graph, [], in_flight=1)
    collect(check_usable(graph.uri))
