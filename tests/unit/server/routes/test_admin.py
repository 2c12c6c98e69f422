"""Administration over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import omnigraph as og
from support.guarded_server import READS_MAIN, SERVER_ADMIN, guarded
from support.server import ServerUnderTest, serving

BO = "token-of-bo"
ADMINS = """version: 1
groups: {team: [ana]}
protected_branches: [main]
rules:
  - id: team-reads
    allow: {actors: {group: team}, actions: [read]}
  - id: team-edits-drafts
    allow: {actors: {group: team}, actions: [change], branch_scope: unprotected}
  - id: team-administers
    allow: {actors: {group: team}, actions: [admin]}
"""


def test_a_server_of_one_graph_has_no_list(server: ServerUnderTest) -> None:
    reply = server.get("/graphs")
    assert (reply.status, reply.json["code"]) == (405, "method_not_allowed")


def test_graphs_are_listed_with_their_state(graph: og.Graph) -> None:
    folder = Path(graph.uri).parent
    (folder / "server.yaml").write_text(SERVER_ADMIN.replace("[ana]", "[default]"), encoding="utf-8")
    config = folder / "omnigraph.yaml"
    config.write_text(
        f"graphs: {{people: {{uri: {graph.uri}}}, lost: {{uri: {folder / 'lost.omni'}}}}}\n"
        "server: {policy: {file: server.yaml}}\n",
        encoding="utf-8",
    )
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKEN": "secret-of-default"}
    with serving(config=config, environ=environ, token="secret-of-default") as server:
        assert server.get("/graphs").json == {"graphs": [{"graph_id": "people", "uri": graph.uri}]}
        lost, people = server.get("/graphs?include=all").json["graphs"]
        assert people["availability"] == {"state": "ready", "read_ready": True, "write_ready": True}
        assert (lost["graph_id"], lost["availability"]["state"]) == ("lost", "quarantined")
        assert server.get("/graphs?include=some").status == 400
        states = {each["graph_id"]: each["state"] for each in server.get("/status").json["graphs"]}
        assert states == {"people": "ready", "lost": "quarantined"}


def test_the_list_of_graphs_is_denied_without_a_server_policy(graph: og.Graph, tmp_path: Path) -> None:
    second = og.init(tmp_path / "second.omni", "node A { name: String @key }", sync=False)
    with serving(graph.uri, second.uri) as server:
        assert server.get("/graphs").status == 403
        assert [each["graph_id"] for each in server.get("/me").json["graphs"]] == ["people", "second"]


def test_me_lists_what_is_allowed(graph: og.Graph) -> None:
    graph.branch_create("draft")
    with guarded(graph, ADMINS, SERVER_ADMIN) as server:
        me = server.get("/me").json
        assert (me["actor_id"], me["groups"]) == ("ana", ["operators", "team"])
        assert me["actions"] == ["graph_list", "audit_read", "admin"]
        (people,) = me["graphs"]
        assert people["actions"] == ["admin"]
        allowed = {each["branch"]: each["actions"] for each in people["branches"]}
        assert allowed == {"main": ["read"], "draft": ["read", "change"]}
        (one,) = server.get("/me?branch=new").json["graphs"][0]["branches"]
        assert one == {"branch": "new", "actions": ["read", "change"]}
        stranger = server.get("/me", token=BO).json
        assert (stranger["actor_id"], stranger["graphs"], stranger["actions"]) == ("bo", [], [])
        assert server.get("/me", headers={"Authorization": "Bearer wrong"}).status == 401
        assert server.get("/me?branch=%20").status == 400


def test_the_status_of_a_process(graph: og.Graph) -> None:
    with guarded(graph, READS_MAIN, SERVER_ADMIN) as server:
        status = server.get("/status").json
        assert (status["mode"], status["draining"]) == ("policy", False)
        assert set(status["digests"]) == {"config", "policy", "tokens"}
        assert {"name": "slow", "running": 0, "queued": 0, "limit": 2} in status["lanes"]
        assert [operation["kind"] for operation in status["operations"]] == ["getStatus"]
        assert status["graphs"][0]["graph_commit_id"] == graph.snapshot().commit_id
        (table,) = [each for each in status["graphs"][0]["tables"] if each["table_key"] == "node:Person"]
        assert table["rows"] == graph.snapshot().tables["node:Person"].pin.row_count
        assert table["fragments"] >= 1
        assert server.get("/status", token=BO).status == 403


def test_the_plan_of_a_query_that_ran_is_found_by_its_hash(graph: og.Graph) -> None:
    with guarded(graph, ADMINS, SERVER_ADMIN) as server:
        assert (
            server.post("/query", {"query": "query names() { match { $p: Person } return { $p.name } }"}).status == 200
        )
        (listed,) = [plan for plan in server.get("/status").json["plans"] if plan["query"] == "names"]
        found = server.get(f"/plans/{listed['plan_hash']}").json
        assert found["plan_hash"] == listed["plan_hash"]
        assert [child["op"] for child in found["plan"]["children"]] == ["scan", "return"]
        unknown = server.get("/plans/0123456789abcdef")
        assert (unknown.status, unknown.json["reason"]) == (404, "no_such_plan")
        assert server.get(f"/plans/{listed['plan_hash']}", token=BO).status == 403


def test_me_names_the_end_of_the_token(graph: og.Graph, tmp_path: Path) -> None:
    entry = {"actor": "ana", "token": "og_0123456789abcdef", "not_after": "2100-01-01T00:00:00Z"}
    (tmp_path / "tokens.json").write_text(json.dumps({"tokens": [entry]}), encoding="utf-8")
    flags = {"auth.tokens.file": str(tmp_path / "tokens.json")}
    with serving(graph.uri, flags=flags, token="og_0123456789abcdef") as server:
        assert server.get("/me").json["token_expires_at"] == 4_102_444_800_000_000


def test_the_audit_log_is_read_with_filters_and_a_cursor(graph: og.Graph, tmp_path: Path) -> None:
    with guarded(graph, READS_MAIN, SERVER_ADMIN, f"  audit: {{dir: {tmp_path / 'audit'}}}") as server:
        for _ in range(3):
            assert server.post("/change", {"query": 'query q() { insert Person { name: "x" } }'}).status == 403
        lines = server.get("/audit", params={"decision": "deny", "actor": "ana", "action": "change"}).lines
        assert (lines[0]["content"], lines[-1]["kind"], lines[-1]["rows"]) == ("audit", "end", 3)
        assert {line["route"] for line in lines[1:-1]} == {"POST /change"}
        document = {"Accept": "application/json"}
        first = server.get("/audit?limit=2&decision=deny", headers=document).json
        rest = server.get("/audit", params={"after": first["next"], "decision": "deny"}, headers=document).json
        assert (len(first["records"]), len(rest["records"])) == (2, 1)
        assert server.get("/audit?since=2100-01-01").lines[-1]["rows"] == 0
        for query in ("since=yesterday", "after=..%2Fx", "decision=maybe", "limit=0", "who=ana"):
            assert server.get(f"/audit?{query}").status == 400, query
        assert server.get("/audit", token=BO).status == 403


def test_a_server_without_an_audit_log_says_so(graph: og.Graph) -> None:
    with guarded(graph, READS_MAIN, SERVER_ADMIN) as server:
        reply = server.get("/audit")
        assert (reply.status, reply.json["reason"]) == (404, "no_audit_log")


def test_the_policy_in_force_is_explained_and_tested(graph: og.Graph) -> None:
    with guarded(graph, ADMINS) as server:
        request = {"actor": "ana", "action": "change", "branch": "main"}
        explained = server.post("/policy/explain", request).json
        assert (explained["decision"], explained["matched_rule"]) == ("deny", None)
        assert {each["rule"]: each["why"] for each in explained["considered"]}["team-edits-drafts"] == "scope"
        cases = [{**request, "id": "main", "expect": "deny"}, {**request, "id": "wrong", "expect": "allow"}]
        report = server.post("/policy/test", {"cases": cases}).json
        assert (report["passed"], report["failed"]) == (1, 1)
        for path, body in [
            ("/policy/explain", {**request, "action": "fly"}),
            ("/policy/explain", {**request, "branch": " "}),
            ("/policy/explain", {"actor": "ana"}),
            ("/policy/test", {"cases": []}),
            ("/policy/test", {"cases": [{**request, "id": "x", "expect": "perhaps"}]}),
        ]:
            assert server.post(path, body).status == 400, body
        for path, body in (("/policy/explain", request), ("/policy/test", {"cases": cases})):
            assert server.post(path, body, token=BO).status == 403


def test_every_caller_sees_the_decisions_on_itself(graph: og.Graph) -> None:
    with guarded(graph, ADMINS) as server:
        own = server.post("/policy/explain", {"action": "change", "branch": "main"}, token=BO).json
        assert (own["actor"], own["decision"], own["considered"]) == ("bo", "deny", [])
        assert own["reasons"]
        named = server.post("/policy/explain", {"actor": "bo", "action": "read", "branch": "main"}, token=BO)
        assert named.status == 403
        assert server.post("/policy/explain", {"action": "fly"}, token=BO).status == 400


def test_a_graph_without_a_policy_has_nothing_to_explain(server: ServerUnderTest) -> None:
    reply = server.post("/policy/explain", {"actor": "ana", "action": "read"})
    assert (reply.status, reply.json["reason"]) == (400, "no_policy")


def test_a_reload_applies_a_valid_policy_and_keeps_the_old_one_otherwise(graph: og.Graph) -> None:
    policy = Path(graph.uri).with_name("policy.yaml")
    with guarded(graph, READS_MAIN, SERVER_ADMIN) as server:

        def reload() -> tuple[int, Any]:
            reply = server.post("/admin/reload")
            return reply.status, reply.json

        assert server.get("/commits", token=BO).status == 403
        policy.write_text(READS_MAIN.replace("[ana]", "[ana, bo]"), encoding="utf-8")
        status, report = reload()
        assert (status, report["changed"]) == (200, ["policies"])
        assert server.get("/commits", token=BO).status == 200
        policy.write_text("version: 7", encoding="utf-8")
        status, report = reload()
        assert (status, report["reason"]) == (409, "reload_failed")
        assert server.get("/commits", token=BO).status == 200
        assert server.post("/admin/reload", token=BO).status == 403
