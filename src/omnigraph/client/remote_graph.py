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

from omnigraph.client.call import Call, Calls, Stream
from omnigraph.client.calls.diffs import Difference
from omnigraph.client.calls.remote_calls import RemoteCalls
from omnigraph.client.transport.sync_loop import SyncLoop
from omnigraph.notebook.schema_view import SchemaText
from omnigraph.versioning.compare.changeset import ChangeSet

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
    method: Callable[Concatenate[RemoteCalls, P], Stream[T]],
) -> Callable[Concatenate[RemoteGraph, P], Iterator[T]]:
    """Make a method of a stream; the method sends the request and returns an iterator."""

    @functools.wraps(method)
    def iterate(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._loop.iterate(method(self._calls, *args, **kwargs))

    return iterate


def _items(
    method: Callable[Concatenate[RemoteCalls, P], Calls[list[T]]],
) -> Callable[Concatenate[RemoteGraph, P], Iterator[T]]:
    """Make a method of a sequence of pages; the method fetches the first page and returns an iterator of the items."""

    @functools.wraps(method)
    def items(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        pages = method(self._calls, *args, **kwargs)
        return _following(self._loop, pages, self._loop.run(next(pages)))

    return items


def _following(loop: SyncLoop, pages: Calls[list[T]], first: list[T]) -> Iterator[T]:
    page = first
    while True:
        yield from page
        try:
            call = pages.send(page)
        except StopIteration:
            return
        page = loop.run(call)


def _change_set(
    method: Callable[Concatenate[RemoteCalls, P], Call[Difference]],
) -> Callable[Concatenate[RemoteGraph, P], ChangeSet]:
    """Make a method that returns a change set; each iteration requests the changes again."""

    @functools.wraps(method)
    def diff(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> ChangeSet:
        return self._loop.run(method(self._calls, *args, **kwargs)).change_set(self._loop.iterate)

    return diff


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

    @property
    def newest_version(self) -> int:
        """The newest manifest version; every write to any branch increases it."""
        return self._loop.run(self._calls.newest_version())

    @property
    def schema(self) -> SchemaText:
        """The text of the schema, as it was applied."""
        return self._loop.run(self._calls.schema())

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
    diff = _change_set(RemoteCalls.diff)
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
