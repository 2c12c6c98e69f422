"""`AsyncRemoteGraph`: the methods of `AsyncGraph` over HTTP.

    async with await og.aconnect("https://graph.example.org/graphs/team", token="og_…") as graph:
        result = await graph.query("query q() { match { $p: Person } return { $p.name } }")

A call that is cancelled closes its connection: the server stops a read; a write is published or not, and its
idempotency key settles which.
"""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from omnigraph.blob import CHUNK_BYTES, bounds_within, check_chunk_bytes
from omnigraph.client.call import Call, Calls, Stream
from omnigraph.client.calls.diffs import Difference
from omnigraph.client.calls.remote_calls import RemoteCalls
from omnigraph.client.calls.tables import BlobAddress, GraphExport, export_request
from omnigraph.client.diff_files import DiffFiles
from omnigraph.client.export_file import ExportFile
from omnigraph.client.local_only import not_remote
from omnigraph.client.remote_proposal import AsyncRemoteProposal
from omnigraph.client.transport.async_loop import AsyncLoop
from omnigraph.graph import Graph
from omnigraph.notebook.schema_view import SchemaText
from omnigraph.pipeline.diff import DiffResult
from omnigraph.versioning.compare.diff import RowChange

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.operations.proposals.proposal_info import ProposalInfo
    from omnigraph.pipeline.export import ExportFormat
    from omnigraph.pipeline.runner import Watch
    from omnigraph.versioning.write.repository import At

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


def _local(
    method: Callable[Concatenate[Graph, P], R],
) -> Callable[Concatenate[AsyncRemoteGraph, P], Coroutine[Any, Any, R]]:
    """Make a coroutine that refuses the call: only an embedded graph has the method."""

    @functools.wraps(method)
    async def refuse(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: ARG001
        raise not_remote(method.__name__)

    return refuse


def _iterate(
    method: Callable[Concatenate[RemoteCalls, P], Stream[T]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], AsyncIterator[T]]:
    """Make an asynchronous iterator of a stream; the first item sends the request."""

    @functools.wraps(method)
    async def iterate(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        async with aclosing(self._loop.iterate(method(self._calls, *args, **kwargs))) as items:
            async for item in items:
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


def _written(
    method: Callable[Concatenate[RemoteCalls, P], Call[DiffFiles]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], Coroutine[Any, Any, DiffResult]]:
    """Make a coroutine that writes the changes of a diff to files."""

    @functools.wraps(method)
    async def write(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> DiffResult:
        with await self._loop.run(method(self._calls, *args, **kwargs)) as files:
            async with aclosing(self._loop.iterate(files.changes)) as changes:
                async for change in changes:
                    files.add(change)
            return files.finish()

    return write


def _each(
    method: Callable[Concatenate[RemoteCalls, P], Calls[T]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], AsyncIterator[T]]:
    """Make an asynchronous iterator of a sequence of calls; each call is made when its item is fetched."""

    @functools.wraps(method)
    async def each(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        calls = method(self._calls, *args, **kwargs)
        call = next(calls, None)
        while call is not None:
            item = await self._loop.run(call)
            yield item
            try:
                call = calls.send(item)
            except StopIteration:
                return

    return each


def _blob(
    method: Callable[Concatenate[RemoteCalls, P], Call[BlobAddress]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], Coroutine[Any, Any, AsyncRemoteBlob]]:
    """Make a coroutine that returns an `AsyncRemoteBlob`, whose ranges are requests."""

    @functools.wraps(method)
    async def open_blob(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncRemoteBlob:
        return AsyncRemoteBlob(self._loop, await self._loop.run(method(self._calls, *args, **kwargs)))

    return open_blob


def _proposal(
    method: Callable[Concatenate[RemoteCalls, P], Call[ProposalInfo]],
) -> Callable[Concatenate[AsyncRemoteGraph, P], Coroutine[Any, Any, AsyncRemoteProposal]]:
    """Make a coroutine that returns an `AsyncRemoteProposal`."""

    @functools.wraps(method)
    async def run(self: AsyncRemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncRemoteProposal:
        found = await self._loop.run(method(self._calls, *args, **kwargs))
        return AsyncRemoteProposal(self._loop, self._calls, found)

    return run


class AsyncRemoteBlob:
    """The bytes of a Blob property, with the attributes and methods of `AsyncBlob`."""

    def __init__(self, loop: AsyncLoop, address: BlobAddress) -> None:
        self._loop = loop
        self._address = address
        self.size = address.size
        self.etag = address.etag
        self.commit_id = address.commit_id

    def __repr__(self) -> str:
        return f"AsyncRemoteBlob(size={self.size}, etag={self.etag!r})"

    async def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Return `length` bytes from `offset`, by default all; fewer at the end, none beyond it."""
        start, stop = bounds_within(offset, length, self.size)
        return await self._loop.run(self._address.range(start, stop - start)) if stop > start else b""

    async def stream(
        self, chunk_bytes: int = CHUNK_BYTES, *, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Return an asynchronous iterator of the bytes of a range, by default of all, in chunks of `chunk_bytes`."""
        check_chunk_bytes(chunk_bytes)
        start, stop = bounds_within(offset, length, self.size)
        for position in range(start, stop, chunk_bytes):
            yield await self._loop.run(self._address.range(position, min(chunk_bytes, stop - position)))


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
    pages = _each(RemoteCalls.pages)
    explain = _run(RemoteCalls.explain)
    profile = _run(RemoteCalls.profile)
    lint = _run(RemoteCalls.lint)
    complete = _run(RemoteCalls.complete)
    hover = _run(RemoteCalls.hover)
    analyze = _run(RemoteCalls.analyze)

    mutate = _run(RemoteCalls.mutate)
    unify = _run(RemoteCalls.unify)
    load = _run(RemoteCalls.load)
    ingest = _run(RemoteCalls.ingest)
    embed = _run(RemoteCalls.embed)

    queries = _run(RemoteCalls.queries)
    validate_queries = _run(RemoteCalls.validate_queries)
    store_query = _run(RemoteCalls.store_query)
    delete_query = _run(RemoteCalls.delete_query)
    invoke = _run(RemoteCalls.invoke)

    propose = _proposal(RemoteCalls.propose)
    proposals = _run(RemoteCalls.proposals)
    proposal = _proposal(RemoteCalls.proposal)
    proposal_events = _run(RemoteCalls.proposal_events)

    search = _run(RemoteCalls.search)
    neighbors = _run(RemoteCalls.neighbors)
    degrees = _run(RemoteCalls.degrees)
    projection = _run(RemoteCalls.projection)

    get = _run(RemoteCalls.get)
    entity_at = _run(RemoteCalls.entity_at)
    blob = _blob(RemoteCalls.blob)
    to_arrow = _run(RemoteCalls.to_arrow)
    to_batches = _iterate(RemoteCalls.to_batches)
    to_networkx = _run(RemoteCalls.to_networkx)
    to_rustworkx = _run(RemoteCalls.to_rustworkx)
    to_sparse = _run(RemoteCalls.to_sparse)
    to_pyg = _run(RemoteCalls.to_pyg)

    async def export(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        types: Sequence[str] | None = None,
        branch: str | None = None,
        at: At = None,
        format: ExportFormat = "jsonl",
        partitioned: bool = False,
        engine: str = "auto",
        spark: Any = None,
        watch: Watch | None = None,  # noqa: ARG002 (the progress of Spark)
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[dict[str, Any]] | int:
        """Return an iterator of the records of a snapshot, or write them to a JSONL file and return their number.

        Arguments are as in `Graph.export`. The files are written here, not on the server.
        """
        request = export_request(out, types, format, partitioned, engine, spark)
        point = (branch, at, cancel, timeout)
        if request is None:
            return self._loop.iterate(self._calls.export_stream(types, *point))
        if isinstance(request, GraphExport):
            catalog, commit = await self._loop.run(self._calls.export_point(branch, at))
            with request.writer(catalog) as writer:
                for stream in self._calls.graph_streams(writer, commit, cancel, timeout):
                    async for record in self._loop.iterate(stream):
                        writer.add(record)
            return writer.row_count
        if request.format != "jsonl":
            return await self._loop.run(self._calls.export_files(request, *point, os.environ))
        with ExportFile(request.out) as file:
            async for chunk in self._loop.iterate(self._calls.export_lines(types, *point)):
                file.write(chunk)
        return file.records

    to_spark = _local(Graph.to_spark)
    show = _local(Graph.show)
    resolve = _local(Graph.resolve)
    sql = _local(Graph.sql)
    duckdb = _local(Graph.duckdb)
    with_access = _local(Graph.with_access)
    with_metadata = _local(Graph.with_metadata)

    snapshot = _run(RemoteCalls.snapshot)
    catalog = _run(RemoteCalls.catalog)
    plan_schema = _run(RemoteCalls.plan_schema)
    apply_schema = _run(RemoteCalls.apply_schema)

    branches = _run(RemoteCalls.branches)
    branch_status = _run(RemoteCalls.branch_status)
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
    diff_summary = _run(RemoteCalls.diff_summary)
    diff_graph = _run(RemoteCalls.diff_graph)
    export_diff = _written(RemoteCalls.export_diff)
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
    purge = _run(RemoteCalls.purge)
    purge_allow = _run(RemoteCalls.purge_allow)
    purge_preview = _run(RemoteCalls.purge_preview)
    purge_redact = _run(RemoteCalls.purge_redact)
    purge_resume = _run(RemoteCalls.purge_resume)
    purge_verify = _run(RemoteCalls.purge_verify)
    purges = _run(RemoteCalls.purges)
