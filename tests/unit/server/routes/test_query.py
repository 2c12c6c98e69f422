"""Plans, profiles and lint reports of queries."""

from __future__ import annotations

from typing import Any

import omnigraph as og
from support.server import ServerUnderTest

OLDER = "query older() { match { $p: Person $p.age > 35 } return { $p.name } limit 5 }"
PAIRS = "query pairs() { match { $a: Person $b: Person } return { $a.name, $b.name } }"
ADD = "query add($name: String) { insert Person { name: $name } }"


def test_explain_returns_a_plan_and_its_hash(server: ServerUnderTest) -> None:
    reply = server.post("/explain", {"query": OLDER})
    assert reply.status == 200
    assert "Person" in reply.json["text"]
    other = server.post("/explain", {"query": OLDER.replace("35", "36").replace("limit 5", "limit 6")})
    assert other.json["plan_hash"] == reply.json["plan_hash"]
    assert server.post("/explain", {"query": ADD}).json["plan_hash"] != reply.json["plan_hash"]


def test_profile_runs_the_query(server: ServerUnderTest) -> None:
    plan = server.post("/explain", {"query": OLDER}).json
    reply = server.post("/profile", {"query": OLDER, "limits": {"rows": 1000, "timeout_ms": 5000}})
    assert reply.status == 200
    assert reply.json["plan_hash"] == plan["plan_hash"]
    assert "ms" in reply.json["text"]
    assert server.post("/profile", {"query": ADD, "params": {"name": "x"}}).status == 400
    assert server.post("/profile", {"query": PAIRS, "limits": {"rows": 1}}).status == 413


def test_the_server_hands_no_query_over_to_spark(server: ServerUnderTest) -> None:
    reply = server.post("/query", {"query": PAIRS, "limits": {"bytes": 1}})
    assert reply.status == 413
    assert b"park" not in reply.body


def test_a_point_of_the_past(server: ServerUnderTest, graph: og.Graph) -> None:
    first = graph.commits()[-1].id
    assert server.post("/explain", {"query": OLDER, "snapshot": first}).status == 200
    assert server.post("/query", {"query": OLDER, "at": "1"}).json["row_count"] == 0
    assert server.post("/query", {"query": OLDER, "at": "main"}).json["row_count"] == 1


def test_lint_reports_every_query(server: ServerUnderTest, graph: og.Graph) -> None:
    wrong = OLDER.replace("older", "wrong").replace("$p.age", "$p.height")
    reply = server.post("/lint", {"query": f"{OLDER}\n{wrong}"})
    assert reply.status == 200
    assert (reply.json["status"], reply.json["errors"]) == ("error", 1)
    assert [result["status"] for result in reply.json["results"]] == ["ok", "error"]
    assert reply.json["schema_source"] == {"kind": "graph", "uri": graph.uri}
    assert server.post("/lint", {"query": "query x( {"}).json["findings"][0]["code"] == "Q000"


WRONG: list[Any] = [
    {},
    {"query": 1},
    {"query": "/etc/hosts.gq"},
    {"query": OLDER, "unknown": 1},
    {"query": OLDER, "branch": ""},
    {"query": OLDER, "query_source": ADD},
]


def test_wrong_input_is_refused(server: ServerUnderTest) -> None:
    for path in ("/explain", "/profile", "/lint"):
        for body in WRONG:
            reply = server.post(path, body)
            if path == "/lint" and reply.status == 200:
                assert reply.json["status"] == "error"
            else:
                assert reply.status == 400, (path, body, reply.body)


def test_the_policy_judges_the_branch(guarded: ServerUnderTest) -> None:
    for path in ("/explain", "/profile", "/lint"):
        assert guarded.post(path, {"query": OLDER}, token="guest-token").status == 403
        assert guarded.post(path, {"query": OLDER}).status == 200
