"""The route `/mcp`: the official client, tokens, policy, audit, limits and settings."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from support.guarded_server import READS_MAIN, guarded
from support.mcp_client import over_http, over_stdio, run, structured
from support.server import Reply, ServerUnderTest, serving

PEOPLE = "match { $p: Person } return { $p.name } order { $p.name }"
POLICY = """version: 2
groups: { staff: [ana], guests: [bo] }
rules:
  - id: staff
    allow: { actors: { group: staff }, actions: [read, invoke_query, branch_create, change, proposal_create] }
  - id: guests
    allow: { actors: { group: guests }, actions: [read] }
"""
BO = "token-of-bo"


@pytest.fixture
def server(graph: og.Graph) -> Iterator[ServerUnderTest]:
    with serving(graph.uri, flags={"mcp.write": True}) as running:
        yield running


@pytest.fixture
def secured(graph: og.Graph) -> Iterator[ServerUnderTest]:
    with guarded(graph, POLICY, extra="  mcp: {write: true}\n  audit: {dir: audit}") as running:
        yield running


def send(server: ServerUnderTest, method: str, params: Any = None, **options: Any) -> Reply:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return server.post("/mcp", message, **options)


def call(server: ServerUnderTest, name: str, arguments: Any = None, **options: Any) -> Any:
    reply = send(server, "tools/call", {"name": name, "arguments": arguments or {}}, **options)
    assert reply.status == 200, reply.body
    return reply.json


def test_the_official_client(server):
    async def talk() -> None:
        async with over_http(f"{server.url}/mcp") as client:
            assert structured(await client.call_tool("query", {"query": PEOPLE}))["row_count"] == 2
            assert structured(await client.call_tool("adults", {"age": 35}))["rows"] == [{"name": "bo", "age": 41}]
            made = structured(await client.call_tool("change", {"query": 'upsert Person { name: "cy" }'}))
            assert made["branch"] == "mcp/anonymous/draft"
            assert (await client.read_resource("omnigraph://guide")).contents[0].text.startswith("# The query")

    run(talk)


def test_paths_of_named_graphs(server):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert server.post("/graphs/default/mcp", message).status == 200
    assert server.post("/graphs/other/mcp", message).status == 404
    assert server.get("/mcp").status == 405
    assert server.request("DELETE", "/mcp").status == 405


def test_notifications_have_no_answer(server):
    reply = server.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (reply.status, reply.body) == (202, b"")


def test_a_write_is_a_write(server, graph):
    """A call of a tool that writes takes an idempotency key, and its answer names its commit."""
    arguments = {"query": 'insert Person { name: "cy" }'}
    options = {"headers": {"Idempotency-Key": "k1"}}
    first = send(server, "tools/call", {"name": "change", "arguments": arguments}, **options)
    again = send(server, "tools/call", {"name": "change", "arguments": arguments}, **options)
    made = first.json["result"]["structuredContent"]["commit"]
    assert again.json["result"]["structuredContent"]["commit"] == made == first.headers["omnigraph-commit"]
    assert graph.commit(made).metadata["request_id"] == first.headers["x-request-id"]
    moved = send(server, "tools/call", {"name": "add_person", "arguments": {"name": "di"}}, headers={"If-Match": '"x"'})
    assert moved.json["result"]["structuredContent"]["reason"] == "precondition_failed"


def test_tokens_and_policy(secured, graph):
    assert send(secured, "tools/list", headers={"Authorization": "Bearer wrong"}).status == 401
    names = {tool["name"] for tool in send(secured, "tools/list").json["result"]["tools"]}
    guest = {tool["name"] for tool in send(secured, "tools/list", token=BO).json["result"]["tools"]}
    assert {"change", "load", "branch", "propose", "adults", "add_person"} <= names
    assert "comment" not in names
    assert not {"change", "load", "branch", "propose", "adults", "add_person"} & guest
    made = call(secured, "change", {"query": 'insert Person { name: "cy" }'})["result"]["structuredContent"]
    assert made["branch"] == "mcp/ana/draft"
    assert graph.commit(made["commit"]).actor == "ana"
    unknown = call(secured, "nope", token=BO)["error"]
    for name in ("change", "adults", "add_person", "hidden"):
        denied = call(secured, name, {"query": "x"}, token=BO)["error"]
        assert (denied["code"], denied["message"]) == (-32602, unknown["message"].replace("nope", name))


def test_the_audit_log_has_writes_and_denials(secured):
    written = send(secured, "tools/call", {"name": "change", "arguments": {"query": 'insert Person { name: "c" }'}})
    denied = send(secured, "tools/call", {"name": "change", "arguments": {"query": "x"}}, token=BO)
    read = send(secured, "tools/call", {"name": "query", "arguments": {"query": PEOPLE}})
    folder = Path(secured.holder.current.find_graph(None).uri).parent / "audit"
    lines = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    records = {line["request_id"]: line for line in lines if "request_id" in line}
    record = records[written.headers["x-request-id"]]
    assert (record["actor"], record["decision"], record["action"]) == ("ana", "allow", "change")
    assert record["commit"] == written.headers["omnigraph-commit"]
    record = records[denied.headers["x-request-id"]]
    assert (record["actor"], record["decision"], record["action"]) == ("bo", "deny", "change")
    assert read.headers["x-request-id"] not in records


def test_an_actor_without_read_is_refused(graph):
    policy = POLICY.replace("guests: [bo]", "guests: [cy]")
    with guarded(graph, policy) as running:
        assert send(running, "tools/list", token=BO).status == 403


def test_settings(graph):
    with serving(graph.uri) as running:
        names = {tool["name"] for tool in send(running, "tools/list").json["result"]["tools"]}
        assert "change" not in names
        assert call(running, "change", {"query": "x"})["error"]["code"] == -32602
    with serving(graph.uri, flags={"mcp.adhoc": False, "mcp.result_tokens": 1_000}) as running:
        names = {tool["name"] for tool in send(running, "tools/list").json["result"]["tools"]}
        assert "query" not in names
        assert "adults" in names
    with serving(graph.uri, flags={"mcp.enabled": False}) as running:
        reply = send(running, "tools/list")
        assert (reply.status, reply.json["reason"]) == (404, "no_such_path")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"null",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"1.0","method":"ping"}',
        b'{"jsonrpc":"2.0","method":7}',
    ],
)
def test_bodies_that_are_no_messages(server, body):
    reply = server.post("/mcp", body, headers={"Content-Type": "application/json"})
    assert reply.status == 400
    assert reply.json["code"] == "bad_request"


def test_a_hostile_client(server):
    for arguments in (
        {"query": "(" * 90_000},
        {"query": {"x": 1}},
        {"query": PEOPLE, "params": {"x": [[[[]]]]}, "nope": 1},
        {"query": PEOPLE, "limit": 10**12},
        {"query": PEOPLE, "after": "x" * 4_000},
        {"query": "\ud83d" * 10},
    ):
        reply = send(server, "tools/call", {"name": "query", "arguments": arguments})
        assert reply.status in (200, 400), reply.body
        if reply.status == 200:
            assert "error" in reply.json or reply.json["result"]["isError"]
    assert send(server, "tools/call", {"name": "query", "arguments": [1]}).json["error"]["code"] == -32602
    assert send(server, "tools/call", {"name": ["query"]}).json["error"]["code"] == -32602
    assert send(server, "nope/nope").json["error"]["code"] == -32601
    big = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x" * 2_000_000}}
    assert server.post("/mcp", big).status == 413
    for version in ("1999-01-01", "zzz"):
        reply = send(server, "tools/list", headers={"MCP-Protocol-Version": version})
        assert reply.status == 400
        assert reply.json["error"]["code"] < 0
    assert send(server, "ping").json["result"] == {}
    assert server.becomes_idle()


def test_without_the_sdk(server, monkeypatch):
    monkeypatch.delitem(sys.modules, "omnigraph.mcp.serve", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    reply = send(server, "tools/list")
    assert (reply.status, reply.json["reason"]) == (501, "missing_package")
    assert reply.json["hint"] == "pip install 'omnigraph[mcp]'"


def test_stdio_on_a_graph_of_a_server(secured, graph):
    """`omnigraph mcp` with the address of a server: its token and its policy decide."""

    async def talk(token: str) -> tuple[set[str], Any]:
        async with over_stdio(secured.url, "--write", OMNIGRAPH_BEARER_TOKEN=token) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            rows = structured(await client.call_tool("query", {"query": PEOPLE}))["rows"]
            assert structured(await client.call_tool("neighbors", {"type": "Person", "id": "ana"}))["neighbors"]
            assert structured(await client.call_tool("search", {"text": "ships"}))["hits"]
            assert structured(await client.call_tool("history", {"type": "Person", "id": "ana"}))["changes"]
            assert structured(await client.call_tool("diff", {"from": "1", "to": "main"}))["changes"]
            assert "Person(name String key" in (await client.read_resource("omnigraph://schema")).contents[0].text
            failed = await client.call_tool("query", {"query": "match { $p: Persn } return { $p.name }"})
            assert failed.structured_content["corrected"] == "match { $p: Person } return { $p.name }"
            if "change" in names:
                made = structured(await client.call_tool("change", {"query": 'insert Person { name: "cy" }'}))
                assert made["branch"] == "mcp/ana/draft"
                assert structured(await client.call_tool("adults", {"age": 18}))["row_count"] == 2
                proposed = structured(await client.call_tool("propose", {"title": "Add cy"}))
                status = structured(await client.call_tool("proposal_status", {"id": proposed["id"]}))
                assert (status["source"], status["target"]) == ("mcp/ana/draft", "main")
                assert structured(await client.call_tool("proposal_status", {}))["proposals"][0]["id"] == proposed["id"]
            return names, rows

    mine, rows = run(lambda: talk("token-of-ana"))
    assert {"change", "load", "adults", "add_person"} <= mine
    assert rows == [{"p.name": "ana"}, {"p.name": "bo"}]
    assert graph.get("Person", "cy", branch="mcp/ana/draft") is not None
    guest, _ = run(lambda: talk(BO))
    assert not {"change", "load", "adults", "add_person"} & guest


def test_a_disconnect_cancels_the_call(server, graph):
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(400)], mode="merge")
    query = "match { $a: Person $b: Person $c: Person $a.age * $b.age - $c.age = 77 } return { count($a) as n }"
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "query", "arguments": {"query": query}}}
    )
    lines = ["POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall("\r\n".join([*lines, "", body]).encode())
        for _ in range(500):
            if server.app.server.execution.in_flight_reads:
                break
            time.sleep(0.01)
    assert server.becomes_idle()
    assert send(server, "ping").status == 200


def test_branches_that_the_caller_may_not_read(graph):
    """A right to read one branch does not include the list of branches."""
    graph.branch_create("secret-plans")
    with guarded(graph, READS_MAIN) as running:
        found = call(running, "branches")["result"]
        assert found["structuredContent"]["code"] == "forbidden"
        text = send(running, "resources/read", {"uri": "omnigraph://branches"}).body.decode()
        assert "secret-plans" not in text + json.dumps(found)
        denied = call(running, "query", {"query": PEOPLE, "branch": "secret-plans"})["result"]
        assert denied["isError"]
        assert denied["structuredContent"]["code"] == "forbidden"
