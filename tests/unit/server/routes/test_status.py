"""The status of a process: running and waiting work, costly plans, caches, graphs, reloads; and cancellation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import omnigraph as og
from support.guarded_server import READS_MAIN, SERVER_ADMIN, guarded
from support.server import Reply, ServerUnderTest, serving
from support.serving import WAIT_S
from support.waiting import wait_for

NAMED = "query named($name: String) { match { $p: Person { name: $name } } return { $p.age } }"
SLOW = """query slow() {
    match { $a: Person $b: Person $c: Person $a.age < $b.age $b.age < $c.age } return { count($a) as n }
}"""
BUSY = {
    "limits.rows_max": 10**13,
    "limits.query_bytes": "1000 TiB",
    "limits.query_s": 300,
    "limits.reads": 1,
    "limits.queue_s": 600,
}


@contextmanager
def asked(server: ServerUnderTest, query: str) -> Iterator[list[Reply]]:
    """Send a query in a thread; the list holds its reply after the block."""
    replies: list[Reply] = []
    thread = threading.Thread(target=lambda: replies.append(server.post("/query", {"query": query})))
    thread.start()
    yield replies
    thread.join(WAIT_S)
    assert not thread.is_alive()


def operations(server: ServerUnderTest) -> dict[str, Any]:
    listed = server.get("/status").json["operations"]
    return {operation["state"]: operation for operation in listed if operation["kind"] == "query"}


def test_running_and_waiting_work_can_be_seen_and_cancelled(graph: og.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(9000)], mode="merge")
    with serving(graph.uri, flags=BUSY) as server:
        with asked(server, SLOW) as running:
            wait_for(lambda: "plan_hash" in operations(server).get("running", {}), "the running query")
            with asked(server, SLOW) as waiting:
                wait_for(lambda: "queued" in operations(server), "the waiting query")
                found = operations(server)
                lanes = {lane["name"]: lane for lane in server.get("/status").json["lanes"]}
                assert (lanes["reads"]["running"], lanes["reads"]["queued"]) == (1, 1)
                assert found["running"]["query"] == "slow"
                assert found["running"]["plan_hash"] == server.app.server.operations.running[0].observer.plan_hash
                assert found["running"]["lane"] == found["queued"]["lane"] == "reads"
                assert found["running"]["age_s"] >= 0
                assert found["running"]["rows"] >= 0
                assert "plan_hash" not in found["queued"]
                cancelled = server.request("DELETE", f"/operations/{found['queued']['id']}")
                assert cancelled.json["state"] == "queued"
            assert (waiting[0].status, waiting[0].json["reason"]) == (409, "cancelled")
            assert set(operations(server)) == {"running"}
            assert server.request("DELETE", f"/operations/{found['running']['id']}").status == 200
        assert (running[0].status, running[0].json["reason"]) == (409, "cancelled")
        assert operations(server) == {}
        assert server.becomes_idle()


def test_the_plans_that_took_the_most_time_are_listed(server: ServerUnderTest) -> None:
    for name in ("ana", "bo", "none"):
        server.post("/query", {"query": NAMED, "params": {"name": name}})
    (plan,) = server.get("/status").json["plans"]
    assert (plan["query"], plan["count"], plan["rows"], plan["graph_id"]) == ("named", 3, 2, "default")
    assert plan["plan_hash"] == server.post("/explain", {"query": NAMED}).json["plan_hash"]
    assert plan["total_ms"] >= plan["max_ms"] > 0


def test_graphs_caches_and_memory(server: ServerUnderTest, graph: og.Graph) -> None:
    server.post("/query", {"query": NAMED, "params": {"name": "ana"}})
    graph.branch_create("draft")
    status = server.get("/status").json
    (found,) = status["graphs"]
    assert (found["state"], found["branches"], found["graph_commit_id"]) == ("ready", 2, graph.snapshot().commit_id)
    assert found["fragments"] >= 2
    assert found["uncovered_rows"] >= 0
    assert "last_maintenance_at" not in found
    tables, plans = found["caches"]
    assert (tables["kind"], plans["kind"]) == ("tables", "plans")
    assert tables["bytes"] > 0
    assert plans["misses"] >= 1
    assert status["memory"]["used_bytes"] > 0
    assert (status["workers"], status["connections"] >= 1, status["requests"] >= 1) == (1, True, True)
    graph.optimize()
    assert server.get("/status").json["graphs"][0]["last_maintenance_at"] == graph.commits(limit=1)[0].created_us


def test_the_last_reload_and_the_refusals(graph: og.Graph) -> None:
    with guarded(graph, READS_MAIN, SERVER_ADMIN) as server:
        assert "last_reload" not in server.get("/status").json
        assert server.post("/admin/reload").status == 200
        status = server.get("/status").json
        assert (status["last_reload"]["ok"], status["last_reload"]["reason"]) == (True, "POST /admin/reload")
        assert status["rejected"] == {}
        assert server.get("/status", token="token-of-bo").status == 403
