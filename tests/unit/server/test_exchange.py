"""One request: forms, tags, preconditions, limits, errors and streams, through a real server."""

from __future__ import annotations

import gzip
import io
import json
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.server.messages import encoding
from support.raw_http import exchange, statuses
from support.server import ServerUnderTest, serving
from support.waiting import wait_for

PEOPLE = "query people() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
ADD = "query add($name: String) { insert Person { name: $name } }"
SLOW = """query slow() {
    match { $a: Person $b: Person $c: Person $a.age < $b.age $b.age < $c.age } return { count($a) as n }
}"""
ALL_PAIRS = "query pairs() { match { $a: Person $b: Person $c: Person $d: Person } return { count($a) as n } }"


def test_a_read_answers_rows_with_commit_and_tag(server: ServerUnderTest, graph: og.Graph) -> None:
    reply = server.post("/query", {"query": PEOPLE})
    assert reply.status == 200
    head = graph.commits(limit=1)[0].id
    assert reply.json["rows"] == [{"p.name": "ana", "p.age": 30}, {"p.name": "bo", "p.age": 41}]
    assert reply.json["graph_commit_id"] == head
    assert reply.headers["omnigraph-commit"] == head
    assert reply.headers["etag"].startswith(f'"{head}.')
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert {part.split(";")[0] for part in reply.headers["server-timing"].split(", ")} >= {"engine", "encode"}


def test_each_form_of_rows(server: ServerUnderTest) -> None:
    def read(accept: str) -> bytes:
        reply = server.post("/read", {"query_source": PEOPLE}, headers={"Accept": accept})
        assert reply.status == 200
        assert reply.headers["content-type"].startswith(accept.split(";", maxsplit=1)[0])
        return reply.body

    assert read("text/csv").decode() == "p.name,p.age\nana,30\nbo,41\n"
    lines = [json.loads(line) for line in read("application/x-ndjson").splitlines()]
    assert [line["kind"] for line in (lines[0], lines[-1])] == ["metadata", "end"]
    table = pa.ipc.open_stream(io.BytesIO(read("application/vnd.apache.arrow.stream;codec=zstd"))).read_all()
    assert table.column("p.name").to_pylist() == ["ana", "bo"]


def test_the_request_id_of_the_client_is_echoed(server: ServerUnderTest) -> None:
    assert server.get("/healthz", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert len(server.get("/healthz").headers["x-request-id"]) == 26


def test_a_change_commits_and_repeats_by_its_key(server: ServerUnderTest, graph: og.Graph) -> None:
    headers = {"Idempotency-Key": "k-1"}
    first = server.post("/mutate", {"query": ADD, "params": {"name": "cy"}}, headers=headers)
    again = server.post("/mutate", {"query": ADD, "params": {"name": "cy"}}, headers=headers)
    assert first.status == again.status == 200
    assert first.json["commit"]["graph_commit_id"] == again.json["commit"]["graph_commit_id"]
    assert first.json["query_name"] == again.json["query_name"] == "add"
    assert first.headers["omnigraph-commit"] == first.json["commit"]["graph_commit_id"]
    assert len(graph.query(PEOPLE)) == 3


def test_preconditions_of_a_change(server: ServerUnderTest, graph: og.Graph) -> None:
    head = graph.commits(limit=1)[0].id
    body = {"query": ADD, "params": {"name": "cy"}}
    assert server.post("/change", body, headers={"If-Match": '"01WRONG"'}).status == 412
    assert server.post("/change/if-graph-commit", body).status == 400
    assert server.post("/change", body, headers={"Omnigraph-If-Graph-Commit": head}).status == 400
    assert server.post("/change/if-graph-commit", body, headers={"Omnigraph-If-Graph-Commit": head}).status == 200
    failed = server.post("/change/if-graph-commit", body, headers={"Omnigraph-If-Graph-Commit": head})
    assert failed.status == 412
    assert failed.json["precondition_failure"]["expected"] == head


def test_a_minimum_commit_is_awaited(server: ServerUnderTest, graph: og.Graph) -> None:
    head = graph.commits(limit=1)[0].id
    assert server.post("/query", {"query": PEOPLE}, headers={"Omnigraph-Min-Commit": head}).status == 200
    refused = server.post("/query", {"query": PEOPLE}, headers={"Omnigraph-Min-Commit": "01UNKNOWN"})
    assert refused.status == 503
    assert refused.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "reason"),
    [
        ("GET", "/nowhere", None, {}, 404, "no_such_path"),
        ("GET", "/runs", None, {}, 404, "no_such_path"),
        ("PUT", "/query", None, {}, 405, "method_not_allowed"),
        ("POST", "/query", b"{", {"Content-Type": "application/json"}, 400, None),
        ("POST", "/query", b"{}", {"Content-Type": "text/plain"}, 415, "unsupported_media_type"),
        ("POST", "/query", {"query": "query x( {"}, {}, 400, "parse_error"),
        ("POST", "/query", {"query": PEOPLE}, {"Accept": "image/png"}, 406, "not_acceptable"),
        ("POST", "/query", {"query": PEOPLE, "branch": "none"}, {}, 404, "branch_not_found"),
        ("POST", "/query", {"query": ADD, "params": {"name": "x"}}, {}, 400, None),
        ("POST", "/change", {"query": PEOPLE}, {}, 400, None),
        ("POST", "/query", {"query": "/etc/hosts.gq"}, {}, 400, None),
        ("POST", "/query", b"x" * (1 << 20) + b"x", {"Content-Type": "application/json"}, 413, "body_too_large"),
        ("GET", "/healthz?" + "x" * 9000, None, {}, 414, "url_too_long"),
        ("GET", "/healthz", None, {"Host": "evil.example"}, 403, "foreign_origin"),
        ("GET", "/healthz", None, {"Origin": "https://evil.example"}, 403, "foreign_origin"),
    ],
)
def test_every_error_is_the_error_object(
    server: ServerUnderTest, method: str, path: str, body: Any, headers: dict[str, str], status: int, reason: str | None
) -> None:
    reply = server.request(method, path, body, headers=headers)
    assert reply.status == status, reply.body
    document = reply.json
    assert document["error"]
    assert document["code"]
    assert document["request_id"] == reply.headers["x-request-id"]
    assert reason is None or document["reason"] == reason


def test_an_error_as_problem_details(server: ServerUnderTest) -> None:
    reply = server.get("/nowhere", headers={"Accept": "application/problem+json"})
    assert reply.headers["content-type"] == "application/problem+json"
    assert (reply.json["status"], reply.json["reason"]) == (404, "no_such_path")


def test_a_time_limit_is_413_with_the_resource(server: ServerUnderTest, graph: og.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": f"p{n}"}} for n in range(2000)], mode="merge")
    reply = server.post("/query", {"query": ALL_PAIRS}, headers={"Omnigraph-Timeout-Ms": "1"})
    assert reply.status == 413, reply.body
    assert reply.json["resource_limit"]["resource"] in ("time", "rows", "bytes")


def test_a_compressed_answer_and_a_compressed_body(server: ServerUnderTest, graph: og.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": f"p{n}"}} for n in range(2000)], mode="merge")
    body = gzip.compress(json.dumps({"query": PEOPLE}).encode())
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", "Accept-Encoding": "gzip"}
    reply = server.post("/query", body, headers=headers)
    assert reply.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(reply.body))["row_count"] == 2002
    bomb = gzip.compress(b" " * (64 << 20))
    assert server.post("/query", bomb, headers=headers).status == 413


def test_tokens_are_required_and_name_the_actor(graph: og.Graph, tmp_path: Path) -> None:
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ana": "secret-1"})}
    with serving(graph.uri, environ=environ) as server:
        for headers in ({}, {"Authorization": "Basic x"}, {"Authorization": "Bearer wrong"}):
            refused = server.post("/query", {"query": PEOPLE}, headers=headers)
            assert refused.status == 401
            assert refused.headers["www-authenticate"] == "Bearer"
        assert server.post("/query", {"query": PEOPLE}, token="secret-1").status == 200
        denied = server.post("/change", {"query": ADD, "params": {"name": "x"}}, token="secret-1")
        assert denied.status == 403
        assert "policy.file" in denied.json["hint"]
        assert server.get("/healthz").status == 200


SLOW_FLAGS = {
    "limits.rows_max": 50_000_000_000,
    "limits.query_bytes": "1000 GiB",
    "limits.reads": 1,
    "limits.queue_s": 600,
}


def begin(server: ServerUnderTest, path: str, body: Any, *headers: str) -> socket.socket:
    """Send a request and return its connection; the answer is not awaited."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}", *headers]
    if not any(line.startswith("Content-Type") for line in headers):
        lines.append("Content-Type: application/json")
    client = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    client.sendall("\r\n".join([*lines, "", ""]).encode() + data)
    return client


@pytest.fixture
def busy(graph: og.Graph) -> Iterator[ServerUnderTest]:
    """A server whose only slot for reads is taken until the end of the test; the client then disconnects."""
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(3000)], mode="merge")
    with serving(graph.uri, flags=SLOW_FLAGS) as server:
        with begin(server, "/query", {"query": SLOW}):
            wait_for(lambda: server.app.server.execution.in_flight_reads == 1)
            yield server
        wait_for(lambda: server.app.server.execution.lanes["reads"].running == 0)
        assert server.app.server.admission.actors == 0


def test_a_disconnect_cancels_the_query_and_frees_its_slot(busy: ServerUnderTest) -> None:
    assert busy.app.server.execution.in_flight_reads == 1  # and `busy` checks that it ends


def test_a_disconnect_is_noticed_with_another_request_behind(graph: og.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(3000)], mode="merge")
    with serving(graph.uri, flags=SLOW_FLAGS) as server:
        execution = server.app.server.execution
        with begin(server, "/query", {"query": SLOW}) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_for(lambda: execution.in_flight_reads == 1)
        wait_for(lambda: execution.in_flight_reads == 0)


def test_a_read_whose_client_disconnects_leaves_the_queue(busy: ServerUnderTest) -> None:
    lane = busy.app.server.execution.lanes["reads"]
    with begin(busy, "/query", {"query": PEOPLE}):
        wait_for(lambda: lane.waiting == 1)
    wait_for(lambda: lane.waiting == 0)
    assert lane.running == 1


def test_writes_do_not_wait_for_long_reads(busy: ServerUnderTest, graph: og.Graph) -> None:
    line = b'{"type": "Person", "data": {"name": "new"}}\n'
    head = graph.commits(limit=1)[0].id
    headers = {"Content-Type": "application/x-ndjson", "Omnigraph-Min-Commit": head}
    reply = busy.post("/load/ndjson", line, params={"mode": "append"}, headers=headers)
    assert reply.status == 200, reply.body
    assert busy.app.server.execution.in_flight_reads == 1


def test_the_file_of_a_body_is_removed_after_the_load(
    server: ServerUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bodies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    for line, status in ((b'{"type": "Person", "data": {"name": "cy"}}\n', 200), (b"{}\n", 400)):
        headers = {"Content-Type": "application/x-ndjson"}
        assert server.post("/load/ndjson", line, params={"mode": "append"}, headers=headers).status == status
    assert list(folder.iterdir()) == []


def test_a_refusal_before_the_body_closes_the_connection_of_a_waiting_client(server: ServerUnderTest) -> None:
    head = "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    for path, length, status in (("/query", 10**9, 413), ("/nothing", 10, 404)):
        sent = f"{head.format(path)}Content-Length: {length}\r\n\r\n".encode()
        answer = exchange(server.port, sent)
        assert statuses(answer) == [status]
        assert b"connection: close" in answer


def test_the_tag_names_the_form_and_the_coding(server: ServerUnderTest) -> None:
    tags = {
        server.get("/commits", headers=headers).headers["etag"]
        for headers in ({}, {"Accept-Encoding": "gzip"}, {"Accept": "application/x-ndjson"})
    }
    assert len(tags) == 3
    assert "Accept-Encoding" in server.get("/commits").headers["vary"]


def test_a_tag_names_the_commit_of_the_answer(
    server: ServerUnderTest, graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = encoding.is_not_modified

    def compare_and_move(*arguments: Any) -> Any:
        found = compare(*arguments)
        graph.load([{"type": "Person", "data": {"name": "late"}}], mode="merge")
        return found

    monkeypatch.setattr("omnigraph.server.exchange.is_not_modified", compare_and_move)
    reply = server.get("/snapshot")
    assert reply.headers["etag"].startswith(f'"{reply.headers["omnigraph-commit"]}.')
