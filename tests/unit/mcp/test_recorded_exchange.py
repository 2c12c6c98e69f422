"""The exchanges in docs/guides/mcp.md, replayed over stdio and HTTP. `OMNIGRAPH_UPDATE_GOLDEN=1` records them again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from support.mcp_client import StdioProcess
from support.server import serving
from support.sessions import with_signs

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "mcp.md"


def block(text: str, kind: str) -> str:
    found = re.search(rf"(?s)```{kind} [^\n]*file=people\.{kind}\n(.*?)```", text)
    assert found is not None, kind
    return found[1]


def make_graph(folder: Path, text: str) -> og.Graph:
    """Return the graph of the page."""
    graph = og.init(folder / "people.omni", block(text, "pg"))
    records = [json.loads(line) for line in re.search(r"(?s)```jsonl[^\n]*\n(.*?)```", text)[1].splitlines()]
    graph.load(records, mode="merge")
    graph.store_query(block(text, "gq"))
    return graph


def over_stdio(graph: og.Graph, sent: list[str]) -> Iterator[str]:
    """Send messages to a process; yield them and its answers."""
    server = StdioProcess(graph.uri)
    for line in sent:
        server.send(line)
        yield f"> {line}"
        if "id" in json.loads(line):
            yield f"< {server.receive_line()}"
    assert server.end() == 0


def over_http(graph: og.Graph, sent: list[str]) -> Iterator[str]:
    """Send each message as a request to a server; yield them, and the status and body of each answer."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": "2025-06-18"}
    with serving(graph.uri, flags={"mcp.write": True}) as server:
        for line in sent:
            reply = server.post("/mcp", line.encode(), headers=headers)
            yield f"> {line}"
            yield f"< {reply.status} {reply.body.decode()}".rstrip()


@pytest.mark.parametrize(("kind", "play"), [("mcp", over_stdio), ("mcp-http", over_http)])
def test_the_exchange_is_current(tmp_path, kind, play):
    text = PAGE.read_text(encoding="utf-8")
    exchange = re.compile(rf"(?s)(```{kind}\n)(.*?)(```)")
    recorded = exchange.search(text)
    assert recorded is not None
    sent = [line[2:] for line in recorded[2].splitlines() if line.startswith("> ")]
    now = "\n".join(play(make_graph(tmp_path, text), sent)) + "\n"
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        if with_signs(now) != with_signs(recorded[2]):
            PAGE.write_text(exchange.sub(lambda match: match[1] + now + match[3], text), encoding="utf-8")
        return
    assert with_signs(recorded[2]) == with_signs(now)
