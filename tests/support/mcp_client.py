"""The official MCP client: in memory, over stdio and over HTTP, with every protocol version."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from unittest.mock import patch

import httpx2
import mcp.client.session
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS

from omnigraph.mcp.endpoint import Endpoint
from omnigraph.mcp.serve import make_server
from omnigraph.mcp.session import Session

VERSIONS = KNOWN_PROTOCOL_VERSIONS
T = TypeVar("T")


@asynccontextmanager
async def offering(version: str) -> AsyncIterator[str]:
    """Yield the mode of a client that speaks one protocol version; a client offers its newest handshake by default."""
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        yield version
        return
    with patch.object(mcp.client.session, "LATEST_HANDSHAKE_VERSION", version):
        yield "legacy"


@asynccontextmanager
async def in_memory(session: Session, version: str = VERSIONS[-1]) -> AsyncIterator[Client]:
    """A client of a server in this process."""

    async def run(work: Callable[[Endpoint], T]) -> T:
        return work(Endpoint(session))

    async with offering(version) as mode, Client(make_server(run), mode=mode) as client:
        yield client


@asynccontextmanager
async def over_http(url: str, token: str | None = None, version: str = VERSIONS[-1]) -> AsyncIterator[Client]:
    """A client of the route `/mcp` of a server."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        offering(version) as mode,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(*arguments: str, version: str = VERSIONS[-1], **environ: str) -> AsyncIterator[Client]:
    """A client of `omnigraph mcp ARGUMENTS`."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "omnigraph", "mcp", *arguments], env={**os.environ, **environ}
    )
    async with offering(version) as mode, Client(stdio_client(parameters), mode=mode) as client:
        yield client


class StdioProcess:
    """A process `omnigraph mcp ARGUMENTS`, with lines in and out."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "omnigraph", "mcp", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def send(self, message: object) -> None:
        """Send a message, or a text as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """Return the next message."""
        return json.loads(self.receive_line())

    def receive_line(self) -> str:
        """Return the next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def answer(self, number: int) -> Any:
        """The answer with an id; others are skipped."""
        for _ in range(1_000):
            message = self.receive()
            if message.get("id") == number:
                return message
        raise AssertionError("no answer")

    def end(self) -> int:
        """Close the input and return the exit code."""
        self.process.communicate(timeout=60)
        return self.process.returncode


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine function."""

    async def main() -> T:
        return await work()

    return asyncio.run(main())


def structured(result: Any) -> Any:
    """The structured part of the answer of a tool; fails the test if the call failed."""
    assert not result.is_error, result.content[0].text
    return result.structured_content
