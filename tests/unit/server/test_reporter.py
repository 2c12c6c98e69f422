"""The log lines and the statistics of the requests of a real server."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

import omnigraph as og
from support.server import ServerUnderTest, serving

NAMED = "query named($name: String) { match { $p: Person { name: $name } } return { $p.age } }"
ADD = "query add($name: String) { insert Person { name: $name } }"


def logged(caplog: pytest.LogCaptureFixture, event: str) -> dict[str, Any]:
    """Return the fields of the only line of an event; it is written after the answer."""
    for _ in range(1000):
        found = [record.fields for record in caplog.records if record.msg == event and hasattr(record, "fields")]
        if found:
            (fields,) = found
            return fields
        time.sleep(0.01)
    raise AssertionError(f"no line of {event}")


def plan_of(server: ServerUnderTest, query: str) -> str:
    plan_hash: str = server.post("/explain", {"query": query}).json["plan_hash"]
    return plan_hash


def test_a_read(server: ServerUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "omnigraph")
    plan_of(server, NAMED)
    caplog.clear()
    reply = server.post("/query", {"query": NAMED, "params": {"name": "ana"}})
    fields = logged(caplog, "query")
    assert (fields["query"], fields["params"], fields["rows"]) == ("named", "name", 1)
    assert (fields["plan_hash"], fields["bytes"]) == (plan_of(server, NAMED), len(reply.body))
    assert (fields["request_id"], fields["commit"]) == (reply.headers["x-request-id"], reply.json["graph_commit_id"])
    assert {"engine_ms", "encode_ms", "compile_ms", "run_ms", "total_ms"} <= set(fields)
    assert (fields["plan_cache"], fields["table_cache"]) == ("hit", "miss")
    assert "ana" not in map(str, fields.values())
    requests = [record.fields for record in caplog.records if record.msg == "request"]
    assert requests[-1]["route"] == "/query"


def test_a_change(server: ServerUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "omnigraph")
    reply = server.post("/mutate", {"query": ADD, "name": "add", "params": {"name": "canary-7"}})
    assert reply.status == 200
    fields = logged(caplog, "query")
    assert (fields["query"], fields["params"]) == ("add", "name")
    assert {"compile_ms", "run_ms", "stage_ms", "publish_ms"} <= set(fields)
    assert fields["commit"] == reply.headers["omnigraph-commit"]
    assert "canary" not in caplog.text


def test_a_query_that_does_not_run_has_no_line(server: ServerUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "omnigraph")
    assert server.post("/query", {"query": "query x( {"}).status == 400
    assert logged(caplog, "request")["status"] == 400
    assert not [record for record in caplog.records if record.msg == "query"]


def test_a_stream_counts_its_bytes(server: ServerUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "omnigraph")
    headers = {"Accept": "application/x-ndjson"}
    reply = server.post("/query", {"query": NAMED, "params": {"name": "ana"}}, headers=headers)
    assert logged(caplog, "query")["bytes"] == len(reply.body)


def test_a_decision_is_logged(server: ServerUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "omnigraph")
    server.get("/branches")
    assert logged(caplog, "decision")["action"] == "read"


def test_a_slow_query_is_logged_with_its_profile(graph: og.Graph, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "omnigraph")
    with serving(graph.uri, flags={"slow_ms": 0, "slow_profile": True}) as server:
        reply = server.post("/query", {"query": NAMED, "params": {"name": "canary-8"}})
        slow = logged(caplog, "slow_query")
        profile = logged(caplog, "slow_profile")
        assert server.post("/mutate", {"query": ADD, "params": {"name": "dora"}}).status == 200
    assert slow["request_id"] == profile["request_id"] == reply.headers["x-request-id"]
    assert slow["plan_hash"] == profile["plan_hash"]
    assert "rows" in profile["profile"]
    assert "canary" not in caplog.text


def test_a_query_over_its_limit_is_logged_as_slow(graph: og.Graph, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "omnigraph")
    with serving(graph.uri, flags={"slow_ms": 0}) as server:
        cross = "query cross() { match { $a: Person $b: Person $c: Person } return { count($a) as n } }"
        assert server.post("/query", {"query": cross, "limits": {"rows": 1}}).status != 200
        assert logged(caplog, "slow_query")["rows"] is None


def test_the_statistics_sum_queries_by_plan(server: ServerUnderTest) -> None:
    for name in ("ana", "bo", "ana"):
        server.post("/query", {"query": NAMED, "params": {"name": name}})
    for _ in range(1000):
        found = server.app.server.reporter.statistics.top(20)
        if found and found[0].count == 3:
            break
        time.sleep(0.01)
    (plan,) = found
    assert (plan.graph, plan.query, plan.count, plan.rows) == ("default", "named", 3, 3)
    assert plan.seconds >= plan.max_s > 0
