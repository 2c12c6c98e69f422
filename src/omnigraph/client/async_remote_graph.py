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

from omnigraph.client.call import Call, Calls, Stream
from omnigraph.client.calls.diffs import Difference
from omnigraph.client.calls.remote_calls import RemoteCalls
from omnigraph.client.transport.async_loop import AsyncLoop
from omnigraph.notebook.schema_view import SchemaText
from omnigraph.versioning.compare.diff import RowChange

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
    method: Callable[Concatenate[RemoteCalls, P], Stream[T]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], AsyncIterator[T]]:
    """Make an asynchronous iterator of a stream; the first item sends the request."""

    @functools.wraps(method)
    async def iterate(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        async for item in self._loop.iterate(method(self._calls, *args, **kwargs)):
            yield item

    return iterate


def _items(
    method: Callable[Concatenate[RemoteCalls, P], Calls[list[T]]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], Coroutine[Any, Any, AsyncIterator[T]]]:
    """Make a coroutine of a sequence of pages; it fetches the first page and returns an asynchronous iterator."""

    @functools.wraps(method)
    async def items(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        pages = method(self._calls, *args, **kwargs)
        return _following(self._loop, pages, await self._loop.run(next(pages)))

    return items


async def _following(loop: AsyncLoop, pages: Calls[list[T]], first: list[T]) -> AsyncIterator[T]:
    page = first
    while True:
        for item in page:
            yield item
        try:
            call = pages.send(page)
        except StopIteration:
            return
        page = await loop.run(call)


def _changes(
    method: Callable[Concatenate[RemoteCalls, P], Call[Difference]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], AsyncIterator[RowChange]]:
    """Make an asynchronous iterator of the changes of a diff; the first item sends the request."""

    @functools.wraps(method)
    async def diff(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[RowChange]:
        found = (await self._loop.run(method(self._calls, *args, **kwargs))).changes
        if isinstance(found, Stream):
            async for change in self._loop.iterate(found):
                yield change
        else:
            for change in found:
                yield change

    return diff


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

    async def newest_version(self) -> int:
        """Return the newest manifest version; every write to any branch increases it."""
        return await self._loop.run(self._calls.newest_version())

    async def schema(self) -> SchemaText:
        """Return the text of the schema, as it was applied."""
        return await self._loop.run(self._calls.schema())

    query = _run(RemoteCalls.query)

    snapshot = _run(RemoteCalls.snapshot)
    catalog = _run(RemoteCalls.catalog)
    plan_schema = _run(RemoteCalls.plan_schema)
    apply_schema = _run(RemoteCalls.apply_schema)

    branches = _run(RemoteCalls.branches)
    branch_create = _run(RemoteCalls.branch_create)
    head = _run(RemoteCalls.head)
    branch_update = _run(RemoteCalls.branch_update)
    branch_delete = _run(RemoteCalls.branch_delete)
    merge = _run(RemoteCalls.merge)
    merge_preview = _run(RemoteCalls.merge_preview)
    revert = _run(RemoteCalls.revert)
    revert_preview = _run(RemoteCalls.revert_preview)
    tag_create = _run(RemoteCalls.tag_create)
    tags = _run(RemoteCalls.tags)
    tag_delete = _run(RemoteCalls.tag_delete)

    commits = _run(RemoteCalls.commits)
    commit = _run(RemoteCalls.commit)
    diff = _changes(RemoteCalls.diff)
    commit_changes = _run(RemoteCalls.commit_changes)
    changes = _run(RemoteCalls.changes)
    changes_baseline = _iterate(RemoteCalls.changes_baseline)
    history = _items(RemoteCalls.history)
    blame = _run(RemoteCalls.blame)

    ensure_indices = _run(RemoteCalls.ensure_indices)
    optimize = _run(RemoteCalls.optimize)
    cleanup = _run(RemoteCalls.cleanup)
    recover = _run(RemoteCalls.recover)
    verify = _run(RemoteCalls.verify)
