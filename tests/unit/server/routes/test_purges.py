"""Purges over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server.routes import purges
from omnigraph.storage.failpoints import FailpointError, arm
from omnigraph.storage.files import layout
from omnigraph.versioning.upkeep.claim import claimed
from support.guarded_server import READS_MAIN, guarded
from support.server import Reply, ServerUnderTest
from support.store import repository_of
from support.waiting import wait_for

PURGES = """version: 1
groups: {team: [ana]}
rules:
  - id: team-purges
    allow: {actors: {group: team}, actions: [purge]}
"""
WAIT = {"Prefer": "wait"}
BODIES: dict[str, dict[str, Any]] = {
    "/purges": {"type": "Person", "ids": ["ana"], "edges": True, "reason": "request 17"},
    "/purges/preview": {"type": "Person", "ids": ["ana"]},
    "/purges/resume": {},
    "/purges/verify": {"values": ["nowhere stored"]},
    "/purges/redact": {"texts": ["nowhere stored"]},
    "/purges/allow": {"type": "Person", "ids": ["ana"]},
}


def work(server: ServerUnderTest, path: str, **members: Any) -> Reply:
    return server.post(path, {**BODIES[path], **members}, headers=WAIT)


def test_a_purge_is_an_operation(server: ServerUnderTest, graph: og.Graph) -> None:
    accepted = server.post("/purges", BODIES["/purges"])
    assert (accepted.status, accepted.json["state"]) == (202, "running")
    path = accepted.headers["location"]
    wait_for(lambda: bool(server.get(path).json["state"] != "running"), "the end of the purge")
    ended = server.get(path).json
    assert ended["state"] == "done", ended
    assert ended["result"]["rows"]["node:Person"] == 1
    assert ended["result"]["reason"] == "request 17"
    assert '"ana"' not in json.dumps(ended["result"]), "a server keeps no purged ids"
    assert og.open(graph.uri).get("Person", "ana") is None
    assert og.open(graph.uri).purges()[0].summary["digest"] == ended["result"]["digest"]


def test_every_step_of_a_purge(server: ServerUnderTest, graph: og.Graph) -> None:
    assert work(server, "/purges/preview").json["rows"]["node:Person"] == 1
    assert work(server, "/purges/preview", ids=["Nobody"]).json["missing"] == ["Nobody"]
    assert work(server, "/purges/verify", values=["Nobody"]).json["clean"] is True
    before = work(server, "/purges/verify", hex=[b"Person".hex()]).json
    assert before["clean"] is False
    assert before["findings"][0]["value"] == b"Person".hex()
    first = server.post("/purges", BODIES["/purges"], headers={**WAIT, "Idempotency-Key": "once"})
    again = server.post("/purges", BODIES["/purges"], headers={**WAIT, "Idempotency-Key": "once"})
    assert (first.status, again.status) == (200, 200)
    assert again.json["purge_id"] == first.json["purge_id"]
    [record] = server.get("/purges").json["purges"]
    assert (record["state"], record["type"], len(record["digests"])) == ("done", "Person", 1)
    assert server.get("/purges", headers={}).json["purges"][0]["purge_id"] == first.json["purge_id"]
    assert work(server, "/purges/resume").json["purges"] == []
    refused = server.post("/mutate", {"query": 'query q() { insert Person { name: "ana" } }'})
    assert (refused.status, refused.json["reason"]) == (409, "purged_id")
    assert work(server, "/purges/allow").json["allowed"] == 1
    assert work(server, "/purges/allow").json["allowed"] == 0


def test_purges_are_listed_in_parts(server: ServerUnderTest, graph: og.Graph) -> None:
    for name in ("ana", "bo"):
        assert work(server, "/purges", ids=[name]).status == 200
    first = server.get("/purges?limit=1").json
    second = server.get(f"/purges?limit=1&after={first['next']}").json
    assert [len(part["purges"]) for part in (first, second)] == [1, 1]
    assert "next" not in second
    assert first["purges"][0]["purge_id"] < second["purges"][0]["purge_id"]


def test_an_interrupted_purge_is_resumed(server: ServerUnderTest, graph: og.Graph) -> None:
    with arm("purge.switched"), pytest.raises(FailpointError):
        og.open(graph.uri).purge("Person", ["ana"], edges=True, reason="test")
    [done] = work(server, "/purges/resume").json["purges"]
    assert done["rows"]["node:Person"] == 1
    assert server.get("/purges").json["purges"][0]["state"] == "done"


def test_texts_are_redacted(server: ServerUnderTest, graph: og.Graph) -> None:
    graph.mutate('query q() { insert Person { name: "Cy" } }', message="as ana@example.org asked")
    assert work(server, "/purges/redact", texts=["ana@example.org"]).json["commits"] == 1
    assert graph.commits()[0].message == "as ana@example.org asked"
    done = work(server, "/purges/redact", texts=["ana@example.org"], confirm=True).json
    assert (done["confirmed"], done["commits"]) == (True, 1)
    assert server.get("/commits?limit=1").json["commits"][0]["message"] == "as [redacted] asked"


def test_refusals(server: ServerUnderTest, graph: og.Graph) -> None:
    for path, members, status, reason in [
        ("/purges", {"type": "Persn"}, 404, "type_not_found"),
        ("/purges", {"ids": ["Nobody"]}, 404, "not_found"),
        ("/purges", {"edges": False}, 400, "purge_has_edges"),
        ("/purges", {"ids": []}, 400, "bad_purge"),
        ("/purges", {"reason": ""}, 400, "bad_member"),
        ("/purges", {"reason": " "}, 400, "bad_purge"),
        ("/purges", {"why": "x"}, 400, "unknown_member"),
        ("/purges/preview", {"type": "Persn"}, 404, "type_not_found"),
        ("/purges/verify", {"values": ["abc"]}, 400, "bad_purge_value"),
        ("/purges/verify", {"hex": ["xyz"]}, 400, "bad_member"),
        ("/purges/redact", {"texts": ["abc"]}, 400, "bad_purge_value"),
        ("/purges/redact", {"texts": []}, 400, "bad_purge_value"),
    ]:
        reply = work(server, path, **members)
        assert (reply.status, reply.json["reason"]) == (status, reason), (path, members, reply.body)
    assert graph.purges() == []


def test_conflicts(server: ServerUnderTest, graph: og.Graph) -> None:
    key = {**WAIT, "Idempotency-Key": "once"}
    assert server.post("/purges", BODIES["/purges"], headers=key).status == 200
    other = server.post("/purges", {**BODIES["/purges"], "ids": ["bo"]}, headers=key)
    assert (other.status, other.json["reason"]) == (409, "idempotency_key_reused")
    with claimed(repository_of(graph), layout.PURGE_CLAIM) as owned:
        assert owned
        busy = work(server, "/purges", ids=["bo"])
    assert (busy.status, busy.json["reason"]) == (409, "purge_running")
    assert server.post("/purges/resume", {}, headers={**WAIT, "If-Match": '"01A"'}).status == 400
    assert graph.get("Person", "bo") is not None


def test_purges_need_their_action(graph: og.Graph) -> None:
    everything_else = READS_MAIN.replace("actions: [read]", "actions: [read, export, change, maintain]")
    with guarded(graph, everything_else) as server:
        for path in BODIES:
            denied = work(server, path)
            assert (denied.status, denied.json["code"]) == (403, "forbidden"), denied.body
            assert server.request("POST", path, body=b"{}", token="wrong").status == 401
        assert server.get("/purges").status == 403
    assert graph.get("Person", "ana") is not None
    with guarded(graph, PURGES) as server:
        assert [work(server, path).status for path in BODIES] == [200] * len(BODIES)
        assert server.get("/purges").status == 200
    assert graph.get("Person", "ana") is None


def test_a_cancelled_purge_does_not_start(
    server: ServerUnderTest, graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = purges.refuse_if_match

    def cancelled(caller: Any) -> None:
        original(caller)
        caller.cancel.cancel()

    monkeypatch.setattr(purges, "refuse_if_match", cancelled)
    for path in ("/purges", "/purges/resume", "/purges/redact", "/purges/verify", "/purges/preview"):
        accepted = server.post(path, BODIES[path])
        place = accepted.headers["location"]
        wait_for(lambda place=place: bool(server.get(place).json["state"] != "running"), "the end")
        assert server.get(place).json["state"] == "cancelled", path
    assert graph.purges() == []
