"""Tables, exports and single nodes and edges."""

from __future__ import annotations

import io
import json
import socket
from urllib.parse import quote

import pyarrow as pa

import omnigraph as og
from support.server import ServerUnderTest, serving

NDJSON = {"Accept": "application/x-ndjson"}
CSV = {"Accept": "text/csv"}
HOSTILE = (
    "..",
    "%2e%2e%2f%2e%2e",
    "..%2Fetc%2Fpasswd",
    "a'%20OR%20'1'='1",
    "%00",
    "%ff",
    "x" * 2000,
    "node:Person",
    "%F0%9F%8E%89",
)


def head_of(graph: og.Graph) -> str:
    return graph.commits(limit=1)[0].id


def test_a_table_in_each_form(server: ServerUnderTest, graph: og.Graph) -> None:
    reply = server.get("/tables/Person?columns=name&columns=age")
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert reply.headers["omnigraph-commit"] == head_of(graph)
    table = pa.ipc.open_stream(io.BytesIO(reply.body)).read_all()
    assert sorted(table.to_pylist(), key=str) == [{"name": "ana", "age": 30}, {"name": "bo", "age": 41}]
    assert table.schema.metadata == {b"graph_commit_id": head_of(graph).encode(), b"omnigraph.type": b"Person"}
    lines = server.get("/tables/Knows?columns=src&columns=since", headers=NDJSON).lines
    assert lines[0] == {
        "kind": "metadata",
        "content": "table",
        "type_name": "Knows",
        "graph_commit_id": head_of(graph),
    }
    assert lines[1:] == [
        {"src": "ana", "since": 2020},
        {"kind": "end", "rows": 1, "graph_commit_id": head_of(graph)},
    ]
    rows = server.get("/tables/Person?columns=name&columns=age", headers=CSV).body.decode().splitlines()
    assert rows[0] == "name,age"
    assert sorted(rows[1:]) == ["ana,30", "bo,41"]
    first = graph.commits()[-1].id
    assert len(server.get("/tables/Person", params={"at": first}, headers=NDJSON).lines) == 2


def test_the_rows_of_a_table_can_be_loaded(server: ServerUnderTest, graph: og.Graph) -> None:
    body = server.get("/tables/Person", headers={"Accept": "application/vnd.apache.arrow.stream;codec=lz4"}).body
    media = {"Content-Type": "application/vnd.apache.arrow.stream"}
    reply = server.post("/load/arrow?branch=copy&from=main", body, headers=media)
    assert reply.status == 200, reply.body


def test_wrong_tables_are_refused(server: ServerUnderTest) -> None:
    assert server.get("/tables/Nothing").status == 404
    assert server.get("/tables/Person?columns=nothing").status == 400
    assert server.get("/tables/Person?column=name").status == 400
    assert server.get("/tables/Person?branch=none").status == 404
    assert server.get("/tables/Person", headers={"Accept": "image/png"}).status == 406
    for name in HOSTILE:
        reply = server.get(f"/tables/{name}")
        assert reply.status in (400, 404), (name, reply.body)
    assert server.get("/tables/").status == 404
    assert server.get("/tables/Person/x").status == 404


def test_an_export_can_be_loaded(server: ServerUnderTest, graph: og.Graph) -> None:
    reply = server.post("/export", {})
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert "content-length" not in reply.headers
    assert [line.get("type", line.get("edge")) for line in reply.lines] == ["Knows", "Person", "Person"]
    media = {"Content-Type": "application/x-ndjson"}
    assert server.post("/load/ndjson?mode=overwrite", reply.body, headers=media).status == 200
    assert server.post("/export", {}).body == reply.body
    assert len(server.post("/export", {"type_names": ["Person"]}).lines) == 2
    assert len(server.post("/export", {"table_keys": ["edge:Knows"]}).lines) == 1
    assert server.post("/export", {"type_names": []}).body == b""
    arrow = server.post(
        "/export", {"table_keys": ["node:Person"]}, headers={"Accept": "application/vnd.apache.arrow.stream"}
    )
    assert pa.ipc.open_stream(io.BytesIO(arrow.body)).read_all().num_rows == 2


def test_wrong_exports_fail_before_the_headers(server: ServerUnderTest) -> None:
    for body, status in (
        ({"branch": "none"}, 404),
        ({"type_names": ["Nothing"]}, 404),
        ({"table_keys": ["edge:Person"]}, 404),
        ({"table_keys": ["../x"]}, 404),
        ({"type_names": "Person"}, 400),
        ({"type_names": [1]}, 400),
        ({"at": ""}, 400),
    ):
        reply = server.post("/export", body)
        assert reply.status == status, (body, reply.body)
    arrow = {"Accept": "application/vnd.apache.arrow.stream"}
    assert server.post("/export", {}, headers=arrow).status == 400
    assert server.post("/export", {"table_keys": ["x:Person"]}, headers=arrow).status == 404


def test_a_closed_stream_leaves_no_slot(graph: og.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": f"{n:06}-{'x' * 200}"}} for n in range(60_000)], mode="append")
    with serving(graph.uri) as server:
        for request in (
            "GET /tables/Person HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n",
            "POST /export HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        ):
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
                connection.sendall(request.encode())
                assert b"200 OK" in connection.recv(4096)
            assert server.becomes_idle()


def test_the_policy_requires_export(guarded: ServerUnderTest, graph: og.Graph) -> None:
    graph.branch_create("draft")
    graph.load([{"type": "Person", "data": {"name": "cy"}}], mode="merge", branch="draft")
    guest = {"token": "guest-token"}
    assert guarded.get("/tables/Person", **guest).status == 403
    assert guarded.get("/tables/Person?branch=draft", **guest).status == 200
    assert guarded.get("/tables/Person?branch=draft&at=main", **guest).status == 403
    assert guarded.post("/export", {}, **guest).status == 403
    assert guarded.post("/export", {"branch": "draft"}, **guest).status == 200
    assert guarded.post("/export", {"branch": "draft", "at": head_of(graph)}, **guest).status == 403
    assert guarded.post("/export", {}).status == 200
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ana": "t"})}
    with serving(graph.uri, environ=tokens, token="t") as reading:
        assert reading.get("/snapshot").status == 200
        assert reading.post("/export", {}).status == 403


def test_one_node_and_one_edge(server: ServerUnderTest, graph: og.Graph) -> None:
    reply = server.get("/entities/Person/ana")
    assert reply.status == 200
    assert reply.json == {
        "type": "Person",
        "id": "ana",
        "data": {"name": "ana", "age": 30, "photo": None},
        "graph_commit_id": head_of(graph),
    }
    assert server.get("/entities/Person/ana", headers={"If-None-Match": reply.headers["etag"]}).status == 304
    id = graph.to_arrow("Knows").column("id")[0].as_py()
    assert server.get(f"/entities/Knows/{quote(id, safe='')}").json["data"]["dst"] == "bo"
    graph.load([{"type": "Person", "data": {"name": "a/b c?", "age": 2**60}}], mode="merge")
    assert server.get("/entities/Person/a%2Fb%20c%3F").json["data"]["age"] == str(2**60)
    first = graph.commits()[-1].id
    missing = server.get("/entities/Person/ana", params={"at": first})
    assert (missing.status, missing.json["reason"]) == (404, "entity_not_found")


def test_the_history_in_pages(server: ServerUnderTest, graph: og.Graph) -> None:
    for age in range(31, 36):
        graph.load([{"type": "Person", "data": {"name": "ana", "age": age}}], mode="merge")
    whole = server.get("/entities/Person/ana/history").json
    assert [change["op"] for change in whole["changes"]] == ["update"] * 5 + ["insert"]
    assert "next" not in whole
    found, after = [], None
    for _ in range(3):
        page = server.get(
            "/entities/Person/ana/history", params={"limit": 2, **({"after": after} if after else {})}
        ).json
        found += page["changes"]
        after = page.get("next")
    assert found == whole["changes"]
    assert after is None
    blame = server.get("/entities/Person/ana/blame").json["properties"]
    assert {each["property"]: each["value"] for each in blame} == {"name": "ana", "age": 35, "photo": None}
    for path in ("/entities/Person/none/history", "/entities/Person/none/blame", "/entities/Nothing/ana/history"):
        assert server.get(path).status == 404
    for query in ("limit=0", "limit=1001", "limit=x", "after=01UNKNOWN", "unknown=1"):
        assert server.get(f"/entities/Person/ana/history?{query}").status in (400, 404), query


def test_hostile_names_of_entities(server: ServerUnderTest) -> None:
    for name in HOSTILE:
        for path in (f"/entities/{name}/ana", f"/entities/Person/{name}", f"/entities/Person/{name}/history"):
            reply = server.get(path)
            assert reply.status in (400, 404), (path, reply.body)
    assert server.get("/entities/Person").status == 404
    assert server.get("/entities/Person/").status == 404


def test_entities_obey_the_policy(guarded: ServerUnderTest) -> None:
    for path in ("/entities/Person/ana", "/entities/Person/ana/history", "/entities/Person/ana/blame"):
        assert guarded.get(path, token="guest-token").status == 403
        assert guarded.get(path).status == 200
