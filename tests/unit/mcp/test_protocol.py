"""The official client over both transports with every protocol version the SDK knows: every tool, resources, prompts,
errors. The long form has all versions on stdio, where each is a process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

import omnigraph as og
from omnigraph.engine.exec.context import Limits
from omnigraph.mcp.session import McpSettings, Session
from support.mcp_client import VERSIONS, in_memory, over_http, over_stdio, run, structured
from support.server import serving

CALLS = {
    "schema": {},
    "get": {"type": "Person", "id": "ana"},
    "query": {"query": "match { $p: Person } return { $p.name } order { $p.name }"},
    "explain_error": {"code": "T7"},
    "history": {"type": "Person", "id": "ana"},
    "diff": {"from": "1", "to": "main"},
    "branches": {},
    "commits": {},
    "adults": {"age": 1},
    "all_people": {},
    "branch": {"topic": "t"},
    "change": {"query": 'upsert Person { name: "cy" }'},
    "load": {"records": [{"type": "Person", "data": {"name": "di"}}]},
    "add_person": {"name": "eve"},
    "search": {"text": "ships"},
    "neighbors": {"type": "Person", "id": "ana"},
    "propose": {"title": "more people"},
    "proposal_status": {},
}
OTHERS = {"comment"}
"""Tools whose arguments depend on the answers of others."""


def matrix(*short: str) -> list[object]:
    """Return transports and versions; `short` are the versions on stdio in the short form."""
    stdio = {version: [] if version in short else [pytest.mark.long] for version in VERSIONS}
    return [
        *(pytest.param("http", version, id=f"http-{version}") for version in VERSIONS),
        *(pytest.param("stdio", version, id=f"stdio-{version}", marks=marks) for version, marks in stdio.items()),
    ]


@asynccontextmanager
async def connected(graph: og.Graph, transport: str, version: str, *, write: bool) -> AsyncIterator[Client]:
    """Yield a client that speaks one protocol version with a server on a socket, or with a process."""
    if transport == "stdio":
        async with over_stdio(graph.uri, *(["--write"] * write), version=version) as client:
            yield client
        return
    with serving(graph.uri, flags={"mcp.write": write}) as server:
        async with over_http(f"{server.url}/mcp", version=version) as client:
            yield client


@pytest.mark.parametrize(("transport", "version"), matrix(VERSIONS[0], VERSIONS[-1]))
def test_every_tool_in_every_version(graph, transport, version):
    async def talk() -> None:
        async with connected(graph, transport, version, write=True) as client:
            assert client.protocol_version == version
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == set(CALLS) | OTHERS
            assert tools["query"].annotations.read_only_hint is True
            assert tools["change"].annotations.destructive_hint is True
            for name, arguments in CALLS.items():
                assert structured(await client.call_tool(name, arguments)), name
            proposal = structured(await client.call_tool("proposal_status", {}))["proposals"][0]["id"]
            assert structured(await client.call_tool("comment", {"id": proposal, "text": "looks right"}))
            failed = await client.call_tool("query", {"query": "match { $p: Persn } return { $p.name }"})
            assert failed.is_error
            assert failed.structured_content["corrected"].startswith("match { $p: Person }")

    run(talk)


@pytest.mark.parametrize(("transport", "version"), matrix(VERSIONS[-1]))
def test_resources_prompts_and_completion(graph, transport, version):
    async def talk() -> None:
        async with connected(graph, transport, version, write=False) as client:
            assert client.protocol_version == version
            for resource in (await client.list_resources()).resources:
                (content,) = (await client.read_resource(resource.uri)).contents
                assert content.text
            (template,) = (await client.list_resource_templates()).resource_templates
            assert template.uri_template == "omnigraph://schema/{type}"
            names = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert names == ["explore", "write_query"]
            prompt = await client.get_prompt("write_query", {"question": "Who?"})
            assert "Who?" in prompt.messages[0].content.text
            for call in (
                client.call_tool("nope", {}),
                client.call_tool("change", {"query": "x"}),
                client.read_resource("omnigraph://nope"),
                client.read_resource("omnigraph://schema/Nope"),
                client.get_prompt("nope"),
                client.get_prompt("write_query", {}),
            ):
                with pytest.raises(MCPError) as caught:
                    await call
                assert caught.value.code == -32602

    run(talk)


def test_an_unexpected_failure_tells_nothing(graph, monkeypatch, caplog):
    session = Session.of(graph, McpSettings(), Limits())

    def fail(*_: object) -> None:
        raise RuntimeError("-".join(("secret", "detail")))

    monkeypatch.setattr(type(graph), "catalog", fail)

    async def talk() -> None:
        async with in_memory(session) as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("schema", {})
            assert "secret" not in str(caught.value)
            assert caught.value.code == -32603

    run(talk)
    assert "RuntimeError" in caplog.text
    assert "secret-detail" not in caplog.text
