"""Branches and merges over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import omnigraph as og
from support.guarded_server import READS_MAIN, guarded
from support.server import Reply, ServerUnderTest, serving

ADD = "query add($name: String) { insert Person { name: $name } }"
WRITERS = """version: 1
groups: {team: [ana]}
protected_branches: [main]
rules:
  - id: reads
    allow: {actors: {group: team}, actions: [read], branch_scope: any}
  - id: drafts
    allow: {actors: {group: team}, actions: [branch_create, branch_merge], target_branch_scope: unprotected}
  - id: merges
    allow: {actors: {group: team}, actions: [branch_merge], target_branch_scope: protected}
"""


def add(graph: og.Graph, name: str, branch: str) -> None:
    graph.mutate(ADD, params={"name": name}, branch=branch)


def delete(server: ServerUnderTest, path: str, **headers: str) -> Reply:
    return server.request("DELETE", path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_a_branch_is_created_read_changed_and_deleted(server: ServerUnderTest, graph: og.Graph) -> None:
    head = graph.snapshot().commit_id
    body = {"name": "draft", "description": "try", "expires_in": "7d"}
    created = server.post("/branches", body)
    assert created.status == 200, created.body
    assert created.json == {
        "uri": graph.uri, "from": "main", "name": "draft", "actor_id": None, "graph_commit_id": head,
    }  # fmt: skip
    assert created.headers["omnigraph-commit"] == head
    assert server.get("/branches").json == {"branches": ["draft", "main"]}
    shown = server.get("/branches/draft").json
    assert (shown["name"], shown["head"]["graph_commit_id"], shown["description"]) == ("draft", head, "try")
    assert shown["expires_at"] > shown["head"]["created_at"]
    changed = server.request("PATCH", "/branches/draft", {"description": "kept", "expires_at": "never"})
    assert (changed.json["description"], changed.json["expires_at"]) == ("kept", None)
    assert delete(server, "/branches/draft").json == {"uri": graph.uri, "name": "draft", "actor_id": None}
    assert server.get("/branches/draft").status == 404


def test_branches_are_listed_in_pages_and_compared(server: ServerUnderTest, graph: og.Graph) -> None:
    for name in ("a", "b"):
        graph.branch_create(name)
    add(graph, "cy", "a")
    add(graph, "di", "main")
    page = server.get("/branches", params={"limit": 2}).json
    assert page == {"branches": ["a", "b"], "next": "b"}
    assert server.get("/branches", params={"after": "b"}).json == {"branches": ["main"]}
    compared = server.get("/branches/a", params={"compare": "main"}).json["compared"]
    assert compared == {"name": "main", "ahead": 1, "behind": 1}
    assert server.get("/branches/a?compare=none").status == 404


def test_a_creation_takes_a_point_a_key_and_a_precondition(server: ServerUnderTest, graph: og.Graph) -> None:
    first = graph.commits()[-1].id
    head = graph.snapshot().commit_id
    assert server.post("/branches", {"name": "old", "at": first}).json["graph_commit_id"] == first
    assert server.post("/branches", {"name": "x"}, headers={"If-Match": '"01WRONG"'}).status == 412
    keyed = {"Idempotency-Key": "b-1", "If-Match": f'"{head}"'}
    created = server.post("/branches", {"name": "x"}, headers=keyed)
    add(graph, "cy", "main")
    again = server.post("/branches", {"name": "x"}, headers=keyed)
    assert created.status == again.status == 200, again.body
    assert created.json == again.json
    exists = server.post("/branches", {"name": "x"})
    assert (exists.status, exists.json["reason"]) == (409, "branch_exists")


def test_an_unmerged_branch_needs_force(server: ServerUnderTest, graph: og.Graph) -> None:
    graph.branch_create("draft")
    add(graph, "cy", "draft")
    assert delete(server, "/branches/draft").status == 409
    assert delete(server, "/branches/draft?force=true", If_Match='"01WRONG"').status == 412
    assert delete(server, "/branches/draft?force=perhaps").status == 400
    assert delete(server, "/branches/draft?force=true", Idempotency_Key="d-1").status == 200
    assert delete(server, "/branches/draft?force=true", Idempotency_Key="d-1").status == 200
    assert delete(server, "/branches/draft?force=true").status == 404
    assert delete(server, "/branches/main?force=true").status in (400, 409)


def test_names_of_branches_are_one_encoded_segment(server: ServerUnderTest, graph: og.Graph) -> None:
    for name in ("merge", "review/may", "über", "preview"):
        assert server.post("/branches", {"name": name}).status == 200, name
        path = f"/branches/{quote(name, safe='')}"
        assert server.get(path).json["name"] == name
        assert delete(server, path).status == 200
    assert graph.branches() == ["main"]


def test_hostile_names_name_no_branch(server: ServerUnderTest, graph: og.Graph) -> None:
    hostile = ["..", "../main", "a\r\nX-Evil: 1", "\x00", "__head", "%", " ", "a" * 300, "main/../main", "\u202e"]
    for name in hostile:
        created = server.post("/branches", {"name": name})
        assert created.status == 400, (name, created.body)
        path = f"/branches/{quote(name, safe='')}"
        for reply in (server.get(path), delete(server, path), server.request("PATCH", path, {"description": "x"})):
            assert reply.status in (400, 404), (name, reply.body)
            assert "x-evil" not in reply.headers
    assert server.get("/branches/%FF").status == 400
    assert server.get("/branches/a/b").status == 404
    for body in ({}, {"name": 1}, {"name": "x", "expires_in": "soon"}, {"name": "x", "expires_in": "999999999w"}):
        assert server.post("/branches", body).status == 400, body
    assert server.request("PATCH", "/branches/main", {"expires_at": "someday"}).status == 400
    assert server.request("PATCH", "/branches/main", {"colour": "red"}).status == 400
    assert graph.branches() == ["main"]


def test_a_merge_is_planned_and_made_once(server: ServerUnderTest, graph: og.Graph) -> None:
    graph.branch_create("draft")
    add(graph, "cy", "draft")
    add(graph, "di", "main")
    plan = server.post("/branches/merge/preview", {"source": "draft"}).json
    assert (plan["target"], plan["outcome"], plan["conflicts"]) == ("main", "merged", [])
    assert server.post("/branches/merge", {"source": "draft"}, headers={"If-Match": '"01WRONG"'}).status == 412
    keyed = {"Idempotency-Key": "m-1"}
    body = {"source": "draft", "message": "take it", "delete_branch": True}
    merged, again = (server.post("/branches/merge", body, headers=keyed) for _ in range(2))
    assert merged.status == again.status == 200, again.body
    assert merged.json["commit"]["message"] == "take it"
    assert (merged.json["outcome"], merged.json["branch_deleted"]) == ("merged", True)
    assert merged.json["commit_id"] == again.json["commit_id"] == merged.headers["omnigraph-commit"]
    assert graph.branches() == ["main"]


def test_conflicts_of_a_merge_are_all_reported(server: ServerUnderTest, graph: og.Graph) -> None:
    graph.branch_create("draft")
    for branch, age in (("draft", 1), ("main", 2)):
        graph.load([{"type": "Person", "data": {"name": "ana", "age": age}}], mode="merge", branch=branch)
    refused = server.post("/branches/merge", {"source": "draft"})
    assert refused.status == 409
    (conflict,) = refused.json["merge_conflicts"]
    assert conflict["kind"] == "divergent_update"
    assert len(server.post("/branches/merge/preview", {"source": "draft"}).json["conflicts"]) == 1
    assert server.post("/branches/merge", {"source": "draft", "resolve": "theirs"}).status == 200
    assert server.post("/branches/merge", {"source": "none"}).status == 404
    assert server.post("/branches/merge", {"source": "draft", "resolve": "mine"}).status == 400


def test_a_branch_that_cannot_be_deleted_does_not_fail_the_merge(server: ServerUnderTest, graph: og.Graph) -> None:
    add(graph, "cy", "main")
    graph.branch_create("draft")
    merged = server.post("/branches/merge", {"source": "main", "target": "draft", "delete_branch": True})
    assert merged.status == 200, merged.body
    assert merged.json["branch_deleted"] is False
    assert merged.json["branch_delete_error"]


def test_each_action_is_judged_with_its_branches(graph: og.Graph) -> None:
    graph.branch_create("draft")
    with guarded(graph, WRITERS) as server:
        assert server.post("/branches", {"name": "mine"}).status == 200
        assert server.get("/branches/mine").json["owner"] == "ana"
        assert server.post("/branches/merge", {"source": "draft"}).status == 200
        denied = server.post("/branches/merge", {"source": "draft", "delete_branch": True})
        assert denied.status == 403
        assert delete(server, "/branches/mine").status == 403
        assert server.request("PATCH", "/branches/main", {"description": "x"}).status == 403
    with guarded(graph, READS_MAIN) as server:
        assert server.get("/branches/main").status == 200
        assert server.get("/branches").status == 403
        assert server.get("/branches/draft").status == 403
        assert server.get("/branches/main?compare=draft").status == 403
        assert server.post("/branches/merge/preview", {"source": "draft"}).status == 403
        assert server.post("/branches", {"name": "x"}).status == 403


def test_only_the_client_limits_the_time_of_a_merge_and_a_revert(graph: og.Graph) -> None:
    graph.branch_create("a")
    add(graph, "cy", "a")
    add(graph, "di", "main")
    with serving(graph.uri, flags={"limits.query_s": 0.0001}) as server:
        limited = server.post("/branches/merge", {"source": "a"}, headers={"Omnigraph-Timeout-Ms": "1"})
        assert (limited.status, limited.json["reason"]) == (413, "timeout")
        merged = server.post("/branches/merge", {"source": "a"})
        assert merged.status == 200, merged.body
        reverted = server.post(f"/commits/{merged.json['commit']['graph_commit_id']}/revert")
        assert reverted.status == 200, reverted.body
