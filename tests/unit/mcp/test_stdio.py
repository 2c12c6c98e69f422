"""`omnigraph mcp` as a process: the official client, a hostile client, cancellation, and the end of the input."""

from __future__ import annotations

import json

from support.mcp_client import StdioProcess, over_stdio, run, structured

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int, name: str, arguments: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def test_the_official_client(graph):
    async def talk() -> None:
        async with over_stdio(graph.uri, "--write", "--as", "zoe") as client:
            assert "change" in {tool.name for tool in (await client.list_tools()).tools}
            assert structured(await client.call_tool("adults", {"age": 18}))["row_count"] == 2
            made = structured(await client.call_tool("change", {"query": 'insert Person { name: "cy" }'}))
            assert made["branch"] == "mcp/zoe/draft"

    run(talk)
    assert graph.get("Person", "cy") is None
    assert graph.commits("mcp/zoe/draft", 1)[0].actor == "zoe"


def test_a_hostile_client(graph):
    """Garbage, huge and wrong arguments, and cancelled calls: the server answers the next call."""
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(300)], mode="merge")
    server = StdioProcess(graph.uri)
    server.send(INITIALIZE)
    assert server.receive()["result"]["protocolVersion"] == "2025-06-18"
    server.send(INITIALIZED)
    for garbage in ("{", "[]", "null", '"text"', "7", '{"jsonrpc":"1.0"}', "\x00\x01", '{"jsonrpc":"2.0","id":{}}'):
        server.send(garbage)
    wrong = [
        call(1, "query", {"query": "x" * 2_000_000}),
        call(2, "query", {"query": "(" * 90_000}),
        call(3, "query", {"query": {"deep": [1]}}),
        call(4, "get", {"type": "Person", "id": "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")}),
        call(5, "query", {"query": "match { $p: Person } return { $p }", "params": {"x": nested(40)}}),
        call(6, "load", {"records": []}),
        call(7, "x" * 100_000, {}),
        call(8, "query", ["not", "an", "object"]),
        {"jsonrpc": "2.0", "id": 9, "method": "nope/nope", "params": {}},
        {"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": {}},
        call(11, "commits", {"limit": -1, "after": "x" * 5_000}),
    ]
    for message in wrong:
        server.send(message)
        answer = server.answer(message["id"])
        assert "error" in answer or answer["result"]["isError"] is True, message["id"]
        assert len(json.dumps(answer)) < 20_000
    server.send(call(20, "query", {"query": LONG}))
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 20}})
    server.send(call(21, "schema", {}))
    assert server.answer(21)["result"]["isError"] is False
    assert server.end() == 0


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


LONG = "match { $a: Person $b: Person $c: Person $a.age * $b.age - $c.age = 77 } return { count($a) as n }"
"""A match of 27 million rows."""


def test_errors_before_the_start_are_printed(tmp_path):
    server = StdioProcess(str(tmp_path / "none.omni"))
    out, err = server.process.communicate(timeout=60)
    assert server.process.returncode == 1
    assert out == ""
    assert "there is no graph" in err
