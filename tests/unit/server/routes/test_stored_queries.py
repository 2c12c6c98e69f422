"""Stored queries over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

import omnigraph as og
from support.guarded_server import guarded
from support.server import ServerUnderTest

NAMES = """query names($least: I64?, $tags: [String]?) @description("All people.") @timeout_ms(5000) {
    match { $p: Person } return { $p.name as name } order { $p.name }
}"""
ADD = "query add($name: String) { insert Person { name: $name } as $p return { $p.name as name } }"
BO = "token-of-bo"
POLICY = """version: 2
groups: { staff: [ana], readers: [bo] }
rules:
  - id: staff
    allow: { actors: { group: staff }, role: owner }
  - id: readers
    allow: { actors: { group: readers }, actions: [invoke_query], queries: ["open_*"] }
"""


def store(server: ServerUnderTest, *texts: str, **more: object) -> dict[str, object]:
    reply = server.post("/queries", {"source": "\n".join(texts), **more})
    assert reply.status == 200, reply.body
    found: dict[str, object] = reply.json
    return found


def test_lists_and_rows_are_cached_by_their_tag(server: ServerUnderTest, graph: og.Graph) -> None:
    store(server, NAMES, ADD)
    for path in ("/queries", "/queries/names", "/queries/names/rows"):
        first = server.get(path)
        assert first.status == 200, first.body
        known = {"If-None-Match": first.headers["etag"]}
        assert server.get(path, headers=known).status == 304, path
        assert server.get(path, headers=known, params={"branch": "main"}).status == 200, "another request"
        graph.mutate('insert Person { name: "zed" }') if path.endswith("rows") else store(
            server, "// new\n" + ADD.replace("add", f"add{len(path)}")
        )
        assert server.get(path, headers=known).status == 200, path


def test_rows_of_a_stored_read_by_address(server: ServerUnderTest, graph: og.Graph) -> None:
    text = """query some($name: String, $least: I64?, $tags: [String]?) {
        match { $p: Person $p.name = $name } return { $p.name as name, $least as least, $tags as tags }
    }"""
    store(server, text, ADD)
    graph.mutate('insert Person { name: "29" }')
    rows = server.get("/queries/some/rows", params={"name": "29", "least": "3", "tags": ["x", "2"]}).json["rows"]
    assert rows == [{"name": "29", "least": 3, "tags": ["x", "2"]}]
    rows = server.get("/queries/some/rows", params={"name": "29", "tags": '["y"]'}).json["rows"]
    assert rows == [{"name": "29", "least": None, "tags": ["y"]}]
    graph.mutate('delete Person where name = "29"')
    earlier = graph.commits()[1].id
    assert server.get("/queries/some/rows", params={"name": "29"}).json["rows"] == []
    assert len(server.get("/queries/some/rows", params={"name": "29", "at": earlier}).json["rows"]) == 1
    wrong = [
        server.get("/queries/some/rows"),
        server.get("/queries/some/rows", params={"name": ["a", "b"]}),
        server.get("/queries/some/rows", params={"name": "a", "least": "many"}),
        server.get("/queries/add/rows", params={"name": "new"}),
    ]
    assert [reply.status for reply in wrong] == [400] * len(wrong), [reply.body for reply in wrong]
    assert server.get("/queries/none/rows").status == 404
    assert graph.get("Person", "new") is None


def test_stored_queries_are_validated(server: ServerUnderTest, graph: og.Graph) -> None:
    store(server, NAMES)
    assert server.post("/queries/validate", {}).json == {"ok": True, "breakages": [], "warnings": [], "queries": 1}
    found = server.post("/queries/validate", {"schema_source": "node Robot { name: String @key }"}).json
    assert (found["ok"], [each["query"] for each in found["breakages"]]) == (False, ["names"])
    assert server.post("/queries/validate", {"schema_source": "node {"}).status == 400
    refused = server.post("/queries", {"source": NAMES.replace("names", "validate")})
    assert (refused.status, refused.json["reason"]) == (400, "reserved_query_name")
    assert len(graph.commits()) == 3


def test_a_tag_ends_with_the_rights(graph: og.Graph) -> None:
    graph.store_query(NAMES.replace("names", "open_names"), NAMES, actor="ana")
    with guarded(graph, POLICY) as server:
        path = "/queries/open_names/rows"
        assert server.get(path, token=BO).status == 403, "the query runs with the rights of the caller"
        graph.store_query(NAMES.replace("names", "open_names").replace("@desc", "@definer @desc"), actor="ana")
        first = server.get(path, token=BO)
        assert first.status == 200, first.body
        known = {"If-None-Match": first.headers["etag"]}
        assert server.get(path, token=BO, headers=known).status == 304
        assert server.get(path, headers=known).status == 200, "another caller"
        assert server.get("/queries/names/rows", token=BO, headers=known).status == 404


def test_a_revert_needs_the_rights_to_its_difference(graph: og.Graph) -> None:
    policy = POLICY.replace('actions: [invoke_query], queries: ["open_*"]', "actions: [read, change, invoke_query]")
    graph.store_query(NAMES.replace("names", "open_names").replace("@desc", "@definer @desc"), actor="ana")
    withdrawn = graph.delete_query("open_names").commit_id
    graph.apply_schema(graph.schema + "\nnode City { name: String @key }\n")
    migrated = graph.head().commit_id
    with guarded(graph, policy) as server:
        for commit, right in ((withdrawn, "query_store"), (migrated, "schema_apply")):
            reply = server.post(f"/commits/{commit}/revert", {}, token=BO)
            assert (reply.status, right in reply.json["error"]) == (403, True), reply.body
        assert graph.head().commit_id == migrated
        for commit in (withdrawn, migrated):
            assert server.post(f"/commits/{commit}/revert", {}).status == 200


def test_queries_are_stored_listed_shown_and_deleted(server: ServerUnderTest, graph: og.Graph) -> None:
    made = store(server, NAMES, ADD, message="first")
    assert (made["stored"], made["deleted"], made["unchanged"]) == (["add", "names"], [], [])
    assert graph.commits()[0].message == "first"
    listed = server.get("/queries").json["queries"]
    assert [query["name"] for query in listed] == ["add", "names"]
    assert "source" not in listed[0]
    names = listed[1]
    assert (names["mutation"], names["description"], names["timeout_ms"]) == (False, "All people.", 5000)
    assert names["params"] == [
        {"name": "least", "type": "I64?", "kind": "bigint", "nullable": True},
        {"name": "tags", "type": "[String]?", "kind": "list", "item_kind": "string", "nullable": True},
    ]
    assert server.get("/queries/names").json["source"] == NAMES
    unknown = server.get("/queries/none")
    assert (unknown.status, unknown.json["reason"]) == (404, "query_not_found")
    changed = server.request("PUT", "/queries/names", {"source": NAMES.replace("All", "Some")})
    assert changed.json["stored"] == ["names"]
    wrong = server.request("PUT", "/queries/names", {"source": ADD})
    assert (wrong.status, wrong.json["reason"]) == (400, "bad_member")
    assert server.request("DELETE", "/queries/add").json["deleted"] == ["add"]
    assert server.request("DELETE", "/queries/add").status == 404
    assert server.request("DELETE", "/queries", params={"name": ["names"]}).json["deleted"] == ["names"]
    assert server.get("/queries").json == {"queries": []}
    first = made["commit"]["graph_commit_id"]  # type: ignore[index]
    assert len(server.get("/queries", params={"at": first}).json["queries"]) == 2


def test_a_stored_read_answers_like_a_query(server: ServerUnderTest) -> None:
    store(server, NAMES)
    body = {"query": NAMES, "name": "names"}
    for accept in ("application/json", "application/x-ndjson", "text/csv"):
        called = server.post("/queries/names", {}, headers={"Accept": accept})
        asked = server.post("/query", body, headers={"Accept": accept})
        assert called.status == 200, called.body
        if accept == "application/json":
            assert {**called.json, "elapsed_ms": 0} == {**asked.json, "elapsed_ms": 0}
        else:
            assert called.body == asked.body
    arrow = server.post("/queries/names", {}, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert pa.ipc.open_stream(arrow.body).read_all().column_names == ["name"]
    assert server.request("POST", "/queries/names").status == 200, "the body is optional"
    page = server.post("/queries/names", {"page": 1}).json
    assert server.post("/queries/names", {"page": 1, "after": page["next"]}).status == 200


def test_a_stored_mutation_answers_like_a_change(server: ServerUnderTest, graph: og.Graph) -> None:
    store(server, ADD)
    head = graph.head().commit_id
    reply = server.post("/queries/add", {"params": {"name": "new"}, "message": "m"})
    assert (reply.status, reply.json["affected_nodes"], reply.json["rows"]) == (200, 1, [{"name": "new"}])
    assert reply.headers["omnigraph-commit"] == graph.head().commit_id == reply.json["commit"]["graph_commit_id"]
    assert "request_id" in graph.commits()[0].metadata
    stale = server.post("/queries/add", {"params": {"name": "x"}}, headers={"If-Match": f'"{head}"'})
    assert stale.status == 412
    twin = {"Omnigraph-If-Graph-Commit": graph.head().commit_id}
    assert server.post("/queries/add/if-graph-commit", {"params": {"name": "x"}}, headers=twin).status == 200
    assert server.post("/queries/add/if-graph-commit", {"params": {"name": "y"}}, headers=twin).status == 412
    assert server.post("/queries/add/if-graph-commit", {"params": {"name": "y"}}).status == 400
    key = {"Idempotency-Key": "k"}
    first, again = (server.post("/queries/add", {"params": {"name": "k"}}, headers=key) for _ in range(2))
    assert first.json["commit"] == again.json["commit"]


def test_calls_that_do_not_fit_are_refused(server: ServerUnderTest, graph: og.Graph) -> None:
    store(server, NAMES, ADD)
    head = graph.head().commit_id
    wrong = server.post("/queries/add", {"params": {"name": "x"}, "expect_mutation": False})
    assert (wrong.status, wrong.json["reason"]) == (400, "wrong_kind_of_query")
    assert server.post("/queries/names", {"expect_mutation": True}).json["reason"] == "wrong_kind_of_query"
    for more in ({"snapshot": head}, {"at": head}, {"page": 1}):
        reply = server.post("/queries/add", {"params": {"name": "x"}, **more})
        assert (reply.status, reply.json["reason"]) == (400, "bad_input"), more
    assert server.post("/queries/names", {"parms": {}}).json["reason"] == "unknown_member"
    assert server.post("/queries/none", {}).json["reason"] == "query_not_found"
    assert server.post("/queries", {"source": "query q() { match { $x: None } return { $x } }"}).status == 400
    assert graph.head().commit_id == head


def test_a_schema_and_a_merge_that_break_a_query_are_refused(server: ServerUnderTest, graph: og.Graph) -> None:
    store(server, ADD)
    schema = str(graph.schema) + "\nnode Extra { name: String @key }\n"
    store(server, "query extra() { match { $p: Person } return { $p.name } }", branch="main")
    assert server.post("/schema/apply", {"schema_source": schema}).status == 200
    store(server, "query extra() { match { $x: Extra } return { $x.name } }")
    body = {"schema_source": str(graph.schema).replace("node Extra { name: String @key }", ""), "allow_data_loss": True}
    refused = server.post("/schema/apply", body)
    assert (refused.status, refused.json["reason"]) == (400, "breaks_stored_queries")
    assert "'extra'" in refused.json["error"]
    assert server.post("/schema/apply", {**body, "allow_query_breakage": True}).status == 200


def test_a_denied_query_answers_like_an_unknown_one(graph: og.Graph, tmp_path: Path) -> None:
    definer = NAMES.replace("names(", "open_names(").replace("@desc", "@definer @desc")
    with guarded(graph, POLICY, extra="  audit: {dir: audit}") as server:
        store(server, NAMES, definer)
        own = {"X-Request-Id": "r"}
        denied = server.post("/queries/names", {}, token="token-of-bo", headers=own)
        assert server.request("DELETE", "/queries/names").status == 200
        unknown = server.post("/queries/names", {}, token="token-of-bo", headers=own)
        assert denied.status == unknown.status == 404
        assert denied.body == unknown.body
        assert denied.headers.keys() == unknown.headers.keys()
        assert server.post("/query", {"query": NAMES}, token="token-of-bo").status == 403
        assert server.post("/queries", {"source": ADD}, token="token-of-bo").status == 403
        assert server.get("/queries", token="token-of-bo").status == 403
        called = server.post("/queries/open_names", {}, token="token-of-bo")
        assert called.status == 200, called.body
        add = "query open_add($name: String) @definer { insert Person { name: $name } }"
        store(server, add)
        assert server.post("/queries/open_add", {"params": {"name": "new"}}, token="token-of-bo").status == 200
    lines = [line for file in tmp_path.rglob("audit/**/*.jsonl") for line in file.read_text().splitlines()]
    records = [json.loads(line) for line in lines]
    calls = [record for record in records if record["route"] == "POST /queries/{name}"]
    assert [(record["actor"], record["decision"], record["definer"]) for record in calls] == [
        ("bo", "deny", None),
        ("bo", "deny", None),
        ("bo", "allow", "ana"),
    ]
