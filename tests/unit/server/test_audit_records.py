"""Audit records of a real server: which requests are recorded, before their answer, and what a failing disk does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.server.audit import AuditRecord, read, verify
from support.audit_entries import full_disk
from support.server import ServerUnderTest, serving

ADD = "query add($name: String) { insert Person { name: $name } }"
PEOPLE = "query people() { match { $p: Person } return { $p.name } }"
TOKEN = "canary-token-of-ana"


def records(folder: Path) -> list[AuditRecord]:
    return list(read(folder))


@pytest.fixture
def audited(graph: og.Graph, tmp_path: Path) -> Iterator[ServerUnderTest]:
    """A server with the token of one actor, who may only read, and a required audit log."""
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ana": TOKEN})}
    flags = {"audit.dir": str(tmp_path / "audit"), "audit.required": True}
    with serving(graph.uri, environ=environ, flags=flags, token=TOKEN) as running:
        yield running


def test_denials_are_recorded_before_the_answer(audited: ServerUnderTest, tmp_path: Path) -> None:
    refused = audited.post("/query", {"query": PEOPLE}, headers={"Authorization": "Bearer canary-wrong"})
    denied = audited.post("/mutate", {"query": ADD, "params": {"name": "canary-value"}})
    assert (refused.status, denied.status) == (401, 403)
    first, second = records(tmp_path / "audit")
    assert (first.action, first.decision, first.actor, first.status) == ("authenticate", "deny", None, 401)
    assert (second.action, second.decision, second.actor, second.branch) == ("change", "deny", "ana", "main")
    assert (second.route, second.request_id) == ("POST /mutate", denied.headers["x-request-id"])
    assert audited.post("/query", {"query": PEOPLE}).status == 200
    assert len(records(tmp_path / "audit")) == 2
    assert all(b"canary" not in path.read_bytes() for path in (tmp_path / "audit").iterdir())


def test_writes_and_reads_are_recorded(graph: og.Graph, tmp_path: Path) -> None:
    with serving(graph.uri, flags={"audit.dir": str(tmp_path / "audit"), "audit.reads": "all"}) as server:
        changed = server.post("/mutate", {"query": ADD, "params": {"name": "cy"}})
        server.post("/query", {"query": PEOPLE}, headers={"X-Request-Id": 'a"b'})
    write, found = records(tmp_path / "audit")
    assert (write.action, write.decision, write.commit) == ("change", "allow", changed.headers["omnigraph-commit"])
    assert (found.route, found.rows, found.status) == ("POST /query", 3, 200)
    assert verify(tmp_path / "audit").problems == []


def test_a_failing_audit_disk_stops_writes_before_they_run(graph: og.Graph, tmp_path: Path) -> None:
    flags = {"audit.dir": str(tmp_path / "audit"), "audit.required": True}
    with serving(graph.uri, flags=flags) as server:
        assert server.post("/mutate", {"query": ADD, "params": {"name": "cy"}}).status == 200
        (path,) = (tmp_path / "audit").glob("*.jsonl")
        audit = server.holder.current.audit
        assert audit is not None
        before = len(graph.commits())
        with full_disk(path.stat().st_size + 10):
            with pytest.raises(og.errors.StorageError):
                audit.record(records(tmp_path / "audit")[0])
            refused = server.post("/mutate", {"query": ADD, "params": {"name": "di"}})
        assert (refused.status, refused.json["reason"]) == (503, "audit_unavailable")
        assert str(tmp_path) not in refused.body.decode()
        assert len(graph.commits()) == before
        assert server.post("/mutate", {"query": ADD, "params": {"name": "di"}}).status == 200
    assert [record.action for record in records(tmp_path / "audit")] == ["change", "audit_resume", "change"]
