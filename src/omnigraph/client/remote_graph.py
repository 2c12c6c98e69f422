"""`RemoteGraph`: the methods of `Graph` over HTTP.

    with og.connect("https://graph.example.org/graphs/team", token="og_…") as graph:
        result = graph.query("query q() { match { $p: Person } return { $p.name } }")

Results and errors are those of `Graph`. A write carries an idempotency key, so that it is repeated after a lost answer
without being applied twice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, Self, TypeVar

from omnigraph.client.call import Call, Stream
from omnigraph.client.calls.remote_calls import RemoteCalls
from omnigraph.client.transport.sync_loop import SyncLoop

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


# Each function takes a method of `RemoteCalls` and returns the method of `RemoteGraph` with the same parameters.


def _run(method: Callable[Concatenate[RemoteCalls, P], Call[R]]) -> Callable[Concatenate[RemoteGraph, P], R]:
    """Make a method of a call."""

    @functools.wraps(method)
    def run(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._loop.run(method(self._calls, *args, **kwargs))

    return run


def _iterate(
    method: Callable[Concatenate[RemoteCalls, P], Call[Stream[T]]],
) -> Callable[Concatenate[RemoteGraph, P], Iterator[T]]:
    """Make a method of a call that returns a stream; the method sends the request and returns an iterator."""

    @functools.wraps(method)
    def iterate(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._loop.iterate(self._loop.run(method(self._calls, *args, **kwargs)))

    return iterate


class RemoteGraph:
    """A graph of a server, bound to one branch, with the methods of `Graph`.

    Several threads can use a graph. Handles made by `on` share its connections.
    """

    def __init__(self, loop: SyncLoop, calls: RemoteCalls) -> None:
        self._loop = loop
        self._calls = calls

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, which handles made by `on` share."""
        self._loop.close()

    def __repr__(self) -> str:
        return f"RemoteGraph({self.uri!r}, branch={self.branch!r})"

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return self._calls.url

    @property
    def branch(self) -> str:
        """The branch of this handle."""
        return self._calls.branch

    @property
    def actor(self) -> str | None:
        """The actor of the token; None if the server requires no token."""
        return self._calls.actor

    def on(self, branch: str) -> RemoteGraph:
        """Return a handle of the same graph bound to another branch; it shares the connections."""
        return RemoteGraph(self._loop, self._loop.run(self._calls.on(branch)))

    query = _run(RemoteCalls.query)
