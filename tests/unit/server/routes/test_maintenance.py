"""Maintenance over HTTP: it continues after the answer, as an operation."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import Cancelled
from omnigraph.server.routes import maintenance
from omnigraph.server.scheduling.operations import Operation
from support.guarded_server import READS_MAIN, guarded
from support.server import Reply, ServerUnderTest, serving
from support.waiting import wait_for


def outcome(server: ServerUnderTest, accepted: Reply) -> Any:
    """Wait for the end of an operation."""
    assert accepted.status == 202, accepted.body
    path = accepted.headers["location"]
    wait_for(lambda: bool(server.get(path).json["state"] != "running"), "the end of the operation")
    return server.get(path).json


def is_idle(server: ServerUnderTest) -> bool:
    parts = server.app.server
    return not (parts.execution.lanes["slow"].running or parts.execution.in_flight_writes or parts.admission.actors)


@pytest.mark.parametrize(
    ("work", "body", "members"),
    [
        ("optimize", {}, {"branch": "main"}),
        ("indices", {"branch": "main"}, {"branch": "main"}),
        ("cleanup", {"keep": 1}, {"confirmed": False, "tables": [], "keep_versions": 1}),
        ("recover", {}, {"settled": []}),
        ("verify", {"deep": True}, {"sound": True, "problems": []}),
        ("embed", {}, {"embedded_rows": 0, "commit": None}),
    ],
)
def test_each_kind_of_work_ends_with_its_statistics(
    server: ServerUnderTest, work: str, body: dict[str, Any], members: dict[str, Any]
) -> None:
    accepted = server.post(f"/maintenance/{work}", body)
    assert accepted.json["state"] == "running"
    assert accepted.headers["location"] == f"/operations/{accepted.json['id']}"
    ended = outcome(server, accepted)
    assert ended["state"] == "done", ended
    assert {name: ended["result"][name] for name in members} == members
    assert ended["finished_at"] >= ended["started_at"]
    wait_for(lambda: is_idle(server), "the release of the slots")


def test_a_client_can_wait_for_the_end(server: ServerUnderTest) -> None:
    reply = server.post("/maintenance/verify", {}, headers={"Prefer": "respond-async, wait=600"})
    assert (reply.status, reply.headers["preference-applied"]) == (200, "wait")
    assert reply.json["sound"] is True
    failed = server.post("/maintenance/embed", {"types": ["Absent"]}, headers={"Prefer": "wait"})
    assert (failed.status, failed.json["reason"]) == (404, "type_not_found")
    wait_for(lambda: is_idle(server), "the release of the slots")


def test_invalid_work_is_refused_before_it_starts(server: ServerUnderTest) -> None:
    for work, body, headers, status in [
        ("cleanup", {}, {}, 400),
        ("cleanup", {"older_than": "999999999w"}, {}, 400),
        ("cleanup", {"keep": -1}, {}, 400),
        ("cleanup", {"keep": 1}, {"If-Match": '"01A"'}, 400),
        ("optimize", {"branch": "none"}, {}, 404),
        ("optimize", {"branch": "../main"}, {}, 404),
        ("optimize", {"brunch": "main"}, {}, 400),
        ("optimize", {}, {"If-Match": '"01WRONG"'}, 412),
        ("defragment", {}, {}, 404),
    ]:
        reply = server.post(f"/maintenance/{work}", body, headers=headers)
        assert reply.status == status, (work, body, reply.body)
    assert server.get("/operations").json["operations"] == []


def test_the_id_of_an_operation_is_escaped_and_unique(server: ServerUnderTest) -> None:
    headers = {"X-Request-Id": "a/../b?c=1#d"}
    paths = set()
    for _ in range(2):
        accepted = server.post("/maintenance/recover", headers=headers)
        assert outcome(server, accepted)["state"] == "done"
        paths.add(accepted.headers["location"])
    assert len(paths) == 2
    assert all(path.startswith("/operations/a%2F..%2Fb%3Fc%3D1%23d") for path in paths)


def test_a_failure_is_the_error_of_the_operation(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret details")

    monkeypatch.setattr(og.Graph, "recover", fail)
    ended = outcome(server, server.post("/maintenance/recover"))
    assert (ended["state"], ended["error"]["reason"]) == ("failed", "internal_error")
    assert "secret" not in str(ended)
    wait_for(lambda: is_idle(server), "the release of the slots")


def test_work_counts_as_a_write_and_can_be_cancelled(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    started: list[Operation] = []

    def verify(graph: og.Graph, **_: object) -> None:
        begun.set()
        wait_for(lambda: any(operation.cancel.cancelled for operation in started), "the cancellation")
        raise Cancelled("the verification was cancelled")

    monkeypatch.setattr(og.Graph, "verify", verify)
    accepted = server.post("/maintenance/verify")
    path = accepted.headers["location"]
    started.append(server.app.server.operations.get(accepted.json["id"], None, all_actors=True))
    assert begun.wait(30)
    execution = server.app.server.execution
    assert (execution.in_flight_writes, execution.lanes["slow"].running) == (1, 1)
    assert server.request("DELETE", path).status == 200
    ended = outcome(server, accepted)
    assert (ended["state"], ended["error"]["reason"]) == ("cancelled", "cancelled")
    wait_for(lambda: is_idle(server), "the release of the slots")
    assert server.request("DELETE", path).json["state"] == "cancelled"


def test_work_that_is_cancelled_before_it_starts_writes_nothing(
    server: ServerUnderTest, graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = graph.snapshot().commit_id
    original = maintenance.expect_head

    def cancelled(caller: Any, branch: str) -> None:
        original(caller, branch)
        caller.cancel.cancel()

    monkeypatch.setattr(maintenance, "expect_head", cancelled)
    ended = outcome(server, server.post("/maintenance/optimize"))
    assert ended["state"] == "cancelled"
    assert graph.snapshot().commit_id == head


def test_a_cancelled_verification_is_not_a_problem_of_the_graph(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = og.Graph.verify

    def verify(graph: og.Graph, **options: Any) -> Any:
        for operation in server.app.server.operations.list(None, all_actors=True):
            operation.cancel.cancel()
        return original(graph, **options)

    monkeypatch.setattr(og.Graph, "verify", verify)
    ended = outcome(server, server.post("/maintenance/verify"))
    assert (ended["state"], "result" in ended) == ("cancelled", False), ended


def test_a_shutdown_waits_for_work_in_the_background(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def recover(_: og.Graph) -> list[Any]:
        begun.set()
        wait_for(lambda: server.app.server.is_draining, "the shutdown")
        for _ in range(30):
            assert server.code is None
            time.sleep(0.01)
        ended.set()
        return []

    monkeypatch.setattr(og.Graph, "recover", recover)
    with serving(graph.uri) as server:
        server.post("/maintenance/recover")
        assert begun.wait(30)
    assert ended.is_set()


def test_maintenance_needs_its_action(graph: og.Graph) -> None:
    maintainer = READS_MAIN.replace("actions: [read]", "actions: [maintain]")
    with guarded(graph, READS_MAIN) as server:
        for work in ("optimize", "indices", "cleanup", "recover", "verify", "embed"):
            assert server.post(f"/maintenance/{work}", {"keep": 1} if work == "cleanup" else {}).status == 403
    with guarded(graph, maintainer) as server:
        assert outcome(server, server.post("/maintenance/optimize"))["state"] == "done"
        assert server.post("/maintenance/optimize", {"branch": "draft"}).status == 403
