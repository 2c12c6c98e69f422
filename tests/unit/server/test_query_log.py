"""The query log of a real server."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from support.server import ServerUnderTest

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


def test_a_read(server: ServerUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "omnigraph")
    reply = server.post("/query", {"query": NAMED, "params": {"name": "ana"}})
    fields = logged(caplog, "query")
    assert (fields["query"], fields["params"], fields["rows"]) == (None, "name", 1)
    assert (fields["request_id"], fields["commit"]) == (reply.headers["x-request-id"], reply.json["graph_commit_id"])
    assert {"engine_ms", "encode_ms"} <= set(fields)
    assert "ana" not in map(str, fields.values())
    assert logged(caplog, "request")["route"] == "/query"


def test_a_change(server: ServerUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "omnigraph")
    reply = server.post("/mutate", {"query": ADD, "name": "add", "params": {"name": "canary-7"}})
    assert reply.status == 200
    fields = logged(caplog, "query")
    assert (fields["query"], fields["params"]) == ("add", "name")
    assert fields["commit"] == reply.headers["omnigraph-commit"]
    assert "canary" not in caplog.text


def test_a_query_that_does_not_run_has_no_line(server: ServerUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "omnigraph")
    assert server.post("/query", {"query": "query x( {"}).status == 400
    assert logged(caplog, "request")["status"] == 400
    assert not [record for record in caplog.records if record.msg == "query"]
