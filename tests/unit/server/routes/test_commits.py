"""Commits over HTTP: list, one commit, its changes, and its revert."""

from __future__ import annotations

from datetime import timedelta

import omnigraph as og
from omnigraph.versioning.upkeep.maintenance import cleanup
from omnigraph.versioning.write.repository import Repository
from support.guarded_server import READS_MAIN, guarded
from support.server import ServerUnderTest, serving

ADD = "query add($name: String) { insert Person { name: $name } }"
HOSTILE = [("limit=0", 400), ("limit=9000", 413), ("page_token=x", 400), ("kind=both", 400), ("depth=1", 400)]
PATH_TRICKS = ["..%2F..%2Fetc%2Fpasswd", "%00", "a%0D%0AX-Evil:%201", "manifest:..", "%2e%2e"]


def add(graph: og.Graph, name: str, branch: str | None = None) -> str:
    commit = graph.mutate(ADD, params={"name": name}, branch=branch, message=f"add {name}").commit_id
    assert commit is not None
    return commit


def test_commits_are_listed_newest_first_and_in_pages(server: ServerUnderTest, graph: og.Graph) -> None:
    ids = [commit.id for commit in graph.commits()]
    whole = server.get("/commits")
    assert [commit["graph_commit_id"] for commit in whole.json["commits"]] == ids
    assert "next" not in whole.json
    assert whole.headers["omnigraph-commit"] == ids[0]
    first = server.get("/commits", params={"limit": 1}).json
    assert first["next"] == ids[0]
    for name in ("after", "before"):
        rest = server.get("/commits", params={name: first["next"]}).json
        assert [commit["graph_commit_id"] for commit in rest["commits"]] == ids[1:]


def test_commits_are_filtered(server: ServerUnderTest, graph: og.Graph) -> None:
    assert server.get("/commits", params={"actor": "nobody"}).json["commits"] == []
    kinds = {commit.kind for commit in graph.commits()}
    shown = [server.get("/commits", params={"kind": kind}).json["commits"] for kind in kinds]
    assert sum(map(len, shown)) == len(graph.commits())


def test_commits_are_selected_by_type_text_and_time(server: ServerUnderTest, graph: og.Graph) -> None:
    made = add(graph, "Dan")

    def selected(**params: str) -> list[str]:
        return [commit["graph_commit_id"] for commit in server.get("/commits", params=params).json["commits"]]

    assert selected(text="ADD dan") == [made]
    assert selected(text="add nobody") == []
    assert made in selected(type="Person")
    assert selected(type="NoSuchType") == []
    everything = selected()
    assert selected(since="2000-01-01", until="2100-01-01T00:00:00Z") == everything
    assert selected(until="2000-01-01") == selected(since="2100-01-01") == []
    first = server.get("/commits", params={"type": "Person", "limit": 1}).json
    rest = server.get("/commits", params={"type": "Person", "after": first["next"]}).json
    assert [each["graph_commit_id"] for each in first["commits"] + rest["commits"]] == selected(type="Person")
    assert server.get("/commits", params={"since": "yesterday"}).json["code"] == "bad_request"


def test_commits_as_json_lines(server: ServerUnderTest, graph: og.Graph) -> None:
    reply = server.get("/commits", params={"limit": 1}, headers={"Accept": "application/x-ndjson"})
    first, commit, last = reply.lines
    head = graph.commits(limit=1)[0].id
    assert (first["kind"], first["content"], first["branch"]) == ("metadata", "commits", "main")
    assert commit["graph_commit_id"] == head
    assert (last["kind"], last["rows"], last["next"], last["graph_commit_id"]) == ("end", 1, head, head)


def test_a_known_list_and_a_known_commit_are_not_sent_again(server: ServerUnderTest, graph: og.Graph) -> None:
    head = graph.commits(limit=1)[0].id
    for path in ("/commits", f"/commits/{head}"):
        for accept in ("application/json", "*/*"):
            tag = server.get(path, headers={"Accept": accept}).headers["etag"]
            assert server.get(path, headers={"If-None-Match": tag, "Accept": accept}).status == 304
    tag = server.get("/commits", headers={"Accept": "application/x-ndjson"}).headers["etag"]
    add(graph, "cy")
    assert server.get("/commits", headers={"If-None-Match": tag}).status == 200


def test_a_commit_is_found_by_its_id_and_other_points(server: ServerUnderTest, graph: og.Graph) -> None:
    head = graph.commits(limit=1)[0]
    for point in (head.id, "main", str(head.manifest_version)):
        found = server.get(f"/commits/{point}")
        assert (found.status, found.json["graph_commit_id"]) == (200, head.id)
    assert found.json["message"] == "first people"


def test_the_changes_of_a_commit_have_images_and_pages(server: ServerUnderTest, graph: og.Graph) -> None:
    head = graph.commits(limit=1)[0].id
    reply = server.get(f"/commits/{head}/changes", params={"limit": 2}).json
    assert reply["cause"]["graph_commit_id"] == head
    assert [(change["kind"], change["op"]) for change in reply["changes"]] == [("node", "insert")] * 2
    assert reply["changes"][0]["after"]["properties"]["name"] == "ana"
    assert "before" not in reply["changes"][0]
    rest = server.get(f"/commits/{head}/changes", params={"page_token": reply["next_page_token"]}).json
    assert [change["after"]["endpoints"] for change in rest["changes"]] == [{"from": "ana", "to": "bo"}]
    assert "next_page_token" not in rest
    edges = server.get(f"/commits/{head}/changes?kind=edge&op=insert&op=update").json
    assert [change["type"]["name"] for change in edges["changes"]] == ["Knows"]


def test_a_commit_without_row_changes_is_refused_with_its_reason(server: ServerUnderTest, graph: og.Graph) -> None:
    first = graph.commits()[-1].id
    refused = server.get(f"/commits/{first}/changes")
    assert refused.status == 409
    assert refused.json["change_diff_refusal"]["reason"] == "parentless_commit"


def test_hostile_parameters_of_changes(server: ServerUnderTest, graph: og.Graph) -> None:
    for query, status in HOSTILE:
        reply = server.get(f"/commits/{graph.commits(limit=1)[0].id}/changes?{query}")
        assert reply.status == status, reply.body
        if "page_token" in query:
            assert reply.json["error"].startswith("change cursor rejected: ")


def test_path_tricks_name_no_commit(server: ServerUnderTest) -> None:
    for trick in PATH_TRICKS:
        for suffix in ("", "/changes"):
            reply = server.get(f"/commits/{trick}{suffix}")
            assert reply.status in (400, 404), trick
            assert "x-evil" not in reply.headers
    assert server.get("/commits?limit=1&after=nowhere").status == 400


def test_a_revert_is_planned_and_made_once(server: ServerUnderTest, graph: og.Graph) -> None:
    commit = add(graph, "cy")
    plan = server.post(f"/commits/{commit}/revert/preview").json
    assert (plan["reverted_commit_id"], plan["conflicts"]) == (commit, [])
    assert plan["tables"]["node:Person"]["deleted"] == 1
    assert server.post(f"/commits/{commit}/revert", headers={"If-Match": '"01WRONG"'}).status == 412
    keyed = {"Idempotency-Key": "r-1"}
    first = server.post(f"/commits/{commit}/revert", {"message": "undo"}, headers=keyed)
    again = server.post(f"/commits/{commit}/revert", {"message": "undo"}, headers=keyed)
    assert first.status == again.status == 200, first.body
    assert first.json == again.json
    assert first.json["commit"]["message"] == "undo"
    assert first.headers["omnigraph-commit"] == graph.commits(limit=1)[0].id
    assert graph.get("Person", "cy") is None


def test_a_conflicting_revert_names_the_conflicts(server: ServerUnderTest, graph: og.Graph) -> None:
    commit = add(graph, "cy")
    graph.load([{"type": "Person", "data": {"name": "cy", "age": 5}}], mode="merge")
    refused = server.post(f"/commits/{commit}/revert")
    assert refused.status == 409
    assert refused.json["merge_conflicts"]
    assert server.post(f"/commits/{commit}/revert", {"resolve": "theirs"}).status == 200


def test_a_denied_commit_does_not_differ_from_an_unknown_one(graph: og.Graph) -> None:
    graph.branch_create("secret")
    hidden = add(graph, "spy", "secret")
    unknown = hidden[:-4] + "ZZZZ"
    with guarded(graph, READS_MAIN) as server:
        bodies = []
        for commit in (hidden, unknown):
            reply = server.get(f"/commits/{commit}/changes", headers={"X-Request-Id": "same"})
            assert reply.status == 404
            bodies.append(reply.body.replace(commit.encode(), b"ID"))
        assert bodies[0] == bodies[1]
        assert server.get(f"/commits/{hidden}").status == 403
        assert server.get("/commits").status == 200
        assert server.get("/commits", params={"branch": "secret"}).status == 403
        assert server.post(f"/commits/{graph.commits(limit=1)[0].id}/revert").status == 403


def test_a_commit_whose_data_a_cleanup_removed_is_gone(graph: og.Graph) -> None:
    old = add(graph, "cy")
    add(graph, "di")
    cleanup(Repository.open(graph.uri), keep=1, confirm=True, grace=timedelta(seconds=-3600))
    with serving(graph.uri) as server:
        gone = server.get(f"/commits/{old}/changes")
        assert (gone.status, gone.json["code"]) == (410, "not_found"), gone.body
        assert server.get("/diff", params={"from": old}).status == 410
