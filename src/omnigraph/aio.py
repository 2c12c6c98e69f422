"""`Graph` for event loops: the same methods as coroutines.

    graph = await og.aopen("team.omni")
    result = await graph.query("query q() { match { $p: Person } return { $p.name } }")
    async for change in graph.diff("main", "proposal"):
        ...

The engine runs in worker threads (it releases the interpreter where it works), so nothing is written twice: every
method is the one of `Graph`, and what yields there is an asynchronous iterator here.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from typing import Any, Self

from omnigraph.engine.watch import Cancellation
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.versioning.changeset import ChangeSet

_AT_ONCE = 256
"""How many items one trip to a thread brings."""


class AsyncGraph:
    """A graph seen from one branch; what blocks runs in a thread."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.graph.__exit__(None, None, None)

    def __repr__(self) -> str:
        return f"Async{self.graph!r}"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(Graph) if not name.startswith("_"))})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if isinstance(inspect.getattr_static(Graph, name, None), property):
            # A property may read the store, so it is awaited like a method without arguments.
            return lambda: asyncio.to_thread(getattr, self.graph, name)
        found = getattr(self.graph, name)
        return _in_thread(found) if callable(found) else found


def _in_thread(method: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(method) or method.__annotations__.get("return") == ChangeSet.__name__:
        # A page is asked for when it is wanted; of smaller things many come at once.
        at_once = 1 if method.__annotations__.get("return") == "Iterator[Result]" else _AT_ONCE

        @functools.wraps(method)
        def items(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            return _iterate(iter(method(*args, **kwargs)), at_once)

        return items

    stoppable = "cancel" in inspect.signature(method).parameters

    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        if stoppable and kwargs.get("cancel") is None:
            kwargs["cancel"] = Cancellation()
        try:
            found = await asyncio.to_thread(method, *args, **kwargs)
        except asyncio.CancelledError:
            # The thread goes on by itself, so the query in it is stopped as well.
            if stoppable:
                kwargs["cancel"].cancel()
            raise
        if isinstance(found, Graph):
            return AsyncGraph(found)
        return _iterate(found) if isinstance(found, Iterator) else found

    return call


async def _iterate(items: Iterator[Any], at_once: int = _AT_ONCE) -> AsyncIterator[Any]:
    while some := await asyncio.to_thread(lambda: list(islice(items, at_once))):
        for item in some:
            yield item


async def aopen(uri: str, **options: Any) -> AsyncGraph:
    """Open a graph as `open` does, from an event loop."""
    return AsyncGraph(await asyncio.to_thread(open_graph, uri, **options))
