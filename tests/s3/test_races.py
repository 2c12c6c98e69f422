"""The race suite in short form, on a bucket: without locks between processes every race is a real one."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.versioning.write.recovery import recovery_log
from support.racing import acknowledged, on_many_branches, on_one_branch, race, racing
from support.s3 import S3
from support.store import (
    COUNTER,
    ITEM,
    Worker,
    check_sound,
    check_usable,
    collect,
    new_graph,
    repository_of,
    seeds,
    settle,
)
from support.storm import GRACE_S


@pytest.fixture
def graph(s3: S3) -> Graph:
    return new_graph(s3.new_place(), environ=s3.environ)


def test_processes_write_one_branch(graph, s3, tmp_path):
    on_one_branch(graph, tmp_path, 3, 8, environ=s3.environ)


def test_processes_write_their_own_branches(graph, s3, tmp_path):
    on_many_branches(graph, tmp_path, 3, 8, environ=s3.environ)


def test_no_update_is_lost(graph, s3, tmp_path):
    race(tmp_path, graph.uri, *[{"do": "increments", "count": 6}] * 3, environ=s3.environ)
    counter = graph.snapshot().entity(ITEM, COUNTER)
    assert counter is not None
    assert counter["count"] == 18
    assert len(graph.commits()) == 19


def test_exactly_one_process_creates_a_branch(graph, s3, tmp_path):
    workers = race(tmp_path, graph.uri, *[{"do": "create_branch", "branch": "mine"}] * 3, environ=s3.environ)
    outcomes = sorted(str(line.get("error", "created")) for worker in workers for line in worker.said()[1:])
    assert outcomes == ["branch_exists", "branch_exists", "created"]
    assert graph.branches() == ["main", "mine"]


def test_exactly_one_process_creates_a_graph(s3, tmp_path):
    uri = s3.new_place()
    workers = race(tmp_path, uri, *[{"do": "init"}] * 3, environ=s3.environ)
    lines = [worker.said()[-1] for worker in workers]
    assert sorted(line.get("error", "created") for line in lines) == ["created", "graph_exists", "graph_exists"]
    graph = og.open(uri, environ=s3.environ)
    assert [graph.snapshot().commit_id] == [line["commit"] for line in lines if "commit" in line]
    check_sound(graph, [])
    collect(check_usable(uri, environ=s3.environ))


def test_one_idempotency_key_in_several_processes_is_one_commit(graph, s3, tmp_path):
    workers = race(tmp_path, graph.uri, *[{"do": "idempotent", "key": "request-1"}] * 3, environ=s3.environ)
    assert len({worker.said()[-1]["commit"] for worker in workers}) == 1
    assert len(check_sound(graph, ["once"])) == 2


def test_a_branch_is_deleted_during_writes(graph, s3, tmp_path):
    graph.branch_create("doomed")
    request = {"do": "branch_commits", "branch": "doomed"}
    with racing(tmp_path, graph.uri, request, environ=s3.environ) as (writer,):
        assert writer.wait_for(lambda worker: len(worker.wrote()) >= 3)
        graph.branch_delete("doomed", force=True)
        writer.finish()
    assert writer.errors() == ["branch_not_found"]
    assert graph.branches() == ["main"]


def test_compaction_and_cleanup_during_writes(s3, tmp_path):
    uri = s3.new_place()
    new_graph(uri, 4, age=timedelta(hours=1), environ=s3.environ)
    requests = [{"do": "maintain", "grace_s": GRACE_S, "seconds": 60}, *[{"do": "commits", "count": 8}] * 2]
    with racing(tmp_path, uri, *requests, environ=s3.environ) as (maintenance, *writers):
        keys = acknowledged([worker.finish() for worker in writers])
        assert maintenance.wait_for(lambda worker: len(worker.said()) > 3)
        maintenance.kill()
    assert "Traceback" not in maintenance.trouble(), maintenance.trouble()
    settle(uri, environ=s3.environ)
    check_sound(og.open(uri, environ=s3.environ), {*seeds(4), *keys})
    collect(check_usable(uri, environ=s3.environ))


def test_several_processes_recover_concurrently(graph, s3, tmp_path):
    for number, place in enumerate(["table.promoted=1:kill", "publish.after_commit=kill"]):
        request = {"do": "commits", "name": f"dead{number}", "failpoints": place, "recover": False}
        with Worker(tmp_path, graph.uri, environ=s3.environ, **request) as worker:
            assert worker.end() == -9, worker.trouble()
    race(tmp_path, graph.uri, *[{"do": "recover_now", "recover": False}] * 3, environ=s3.environ)
    operations = [row["operation_id"] for row in recovery_log(repository_of(graph))]
    assert len(operations) == len(set(operations)) == 2
    assert repository_of(graph).objects.list("__recovery") == []
    check_sound(graph, [], in_flight=1)


def test_writers_of_a_process_retry_one_after_the_other(graph):
    manifest = repository_of(graph).manifest
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        waiting.set()
        with manifest.locks.retry_lock():
            order.append("second")

    thread = threading.Thread(target=second)
    with manifest.locks.retry_lock():
        thread.start()
        assert waiting.wait(30)
        thread.join(0.1)
        assert thread.is_alive()
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]
