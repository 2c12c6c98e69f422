"""Tags over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import omnigraph as og
from support.guarded_server import READS_MAIN, guarded
from support.server import ServerUnderTest


def test_a_tag_is_created_listed_and_deleted(server: ServerUnderTest, graph: og.Graph) -> None:
    head, first = graph.snapshot().commit_id, graph.commits()[-1].id
    created = server.post("/tags", {"name": "v1", "message": "first"})
    assert (created.status, created.json["graph_commit_id"], created.json["message"]) == (200, head, "first")
    assert server.post("/tags", {"name": "v0", "at": first}).json["graph_commit_id"] == first
    assert [tag["name"] for tag in server.get("/tags").json["tags"]] == ["v0", "v1"]
    page = server.get("/tags", params={"limit": 1}).json
    assert page["next"] == "v0"
    assert [tag["name"] for tag in server.get("/tags", params={"after": "v0"}).json["tags"]] == ["v1"]
    assert server.request("DELETE", "/tags/v1").json["name"] == "v1"
    gone = server.request("DELETE", "/tags/v1")
    assert (gone.status, gone.json["reason"]) == (404, "tag_not_found")


def test_keys_and_preconditions_of_tags(server: ServerUnderTest, graph: og.Graph) -> None:
    head = graph.snapshot().commit_id
    assert server.post("/tags", {"name": "v1"}, headers={"If-Match": '"01WRONG"'}).status == 412
    keyed = {"Idempotency-Key": "t-1", "If-Match": f'"{head}"'}
    first, again = (server.post("/tags", {"name": "v1"}, headers=keyed) for _ in range(2))
    assert first.status == again.status == 200, again.body
    assert server.post("/tags", {"name": "v1"}).status == 409
    assert server.request("DELETE", "/tags/v1", headers={"If-Match": '"01WRONG"'}).status == 412
    keyed = {"Idempotency-Key": "t-2", "If-Match": f'"{head}"'}
    assert [server.request("DELETE", "/tags/v1", headers=keyed).status for _ in range(2)] == [200, 200]


def test_hostile_names_name_no_tag(server: ServerUnderTest, graph: og.Graph) -> None:
    for name in ("..", "../v1", "a\r\nX-Evil: 1", "\x00", " ", "a" * 300):
        assert server.post("/tags", {"name": name}).status == 400, name
        reply = server.request("DELETE", f"/tags/{quote(name, safe='')}")
        assert reply.status in (400, 404), name
        assert "x-evil" not in reply.headers
    assert server.post("/tags", {"name": "x", "at": "nowhere"}).status == 404
    assert server.post("/tags", {"name": "x", "when": "now"}).status == 400
    assert graph.tags() == []


def test_tags_are_judged_with_the_branch_of_their_commit(graph: og.Graph) -> None:
    graph.branch_create("draft")
    graph.load([{"type": "Person", "data": {"name": "cy"}}], mode="merge", branch="draft")
    graph.tag_create("hidden", "draft")
    policy = READS_MAIN.replace("actions: [read]", "actions: [tag_create, tag_delete]")
    with guarded(graph, policy) as server:
        assert server.post("/tags", {"name": "v1"}).status == 200
        assert server.post("/tags", {"name": "v2", "at": "draft"}).status == 403
        assert server.request("DELETE", "/tags/hidden").status == 403
        assert server.request("DELETE", "/tags/v1").status == 200
        assert server.get("/tags").status == 403
