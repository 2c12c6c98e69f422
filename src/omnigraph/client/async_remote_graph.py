"""`AsyncRemoteGraph`: the methods of `AsyncGraph` over HTTP.

    async with await og.aconnect("https://graph.example.org/graphs/team", token="og_…") as graph:
        result = await graph.query("query q() { match { $p: Person } return { $p.name } }")

A call that is cancelled closes its connection: the server stops a read; a write is published or not, and its
idempotency key settles which.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from omnigraph.client.call import Call, Stream
from omnigraph.client.calls.remote_calls import RemoteCalls
from omnigraph.client.transport.async_loop import AsyncLoop

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


# Each function takes a method of `RemoteCalls` and returns the method of `AsyncRemoteGraph` with the same parameters.


def _run(
    method: Callable[Concatenate[RemoteCalls, P], Call[R]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], Coroutine[Any, Any, R]]:
    """Make a coroutine of a call."""

    @functools.wraps(method)
    async def run(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._loop.run(method(self._calls, *args, **kwargs))

    return run


def _iterate(
    method: Callable[Concatenate[RemoteCalls, P], Call[Stream[T]]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], AsyncIterator[T]]:
    """Make an asynchronous iterator of a call that returns a stream; the first item sends the request."""

    @functools.wraps(method)
    async def iterate(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        stream = await self._loop.run(method(self._calls, *args, **kwargs))
        async for item in self._loop.iterate(stream):
            yield item

    return iterate


class AsyncRemoteGraph:
    """A graph of a server, bound to one branch, with the methods of `AsyncGraph`.

    One event loop uses a graph. Handles made by `on` share its connections.
    """

    def __init__(self, loop: AsyncLoop, calls: RemoteCalls) -> None:
        self._loop = loop
        self._calls = calls

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, which handles made by `on` share."""
        await self._loop.close()

    def __repr__(self) -> str:
        return f"AsyncRemoteGraph({self._calls.url!r}, branch={self.branch!r})"

    @property
    def branch(self) -> str:
        """The branch of this handle."""
        return self._calls.branch

    @property
    def actor(self) -> str | None:
        """The actor of the token; None if the server requires no token."""
        return self._calls.actor

    async def uri(self) -> str:
        """Return the address of the graph."""
        return self._calls.url

    async def on(self, branch: str) -> AsyncRemoteGraph:
        """Return a handle of the same graph bound to another branch; it shares the connections."""
        return AsyncRemoteGraph(self._loop, await self._loop.run(self._calls.on(branch)))

    query = _run(RemoteCalls.query)
