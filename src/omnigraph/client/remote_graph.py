"""`RemoteGraph`: the methods of `Graph` over HTTP.

    with og.connect("https://graph.example.org/graphs/team", token="og_…") as graph:
        result = graph.query("query q() { match { $p: Person } return { $p.name } }")

Results and errors are those of `Graph`. A write carries an idempotency key, so that it is repeated after a lost answer
without being applied twice.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import pyarrow as pa

from omnigraph.blob import Blob
from omnigraph.client.call import Call, Calls, Stream
from omnigraph.client.calls.diffs import Difference
from omnigraph.client.calls.remote_calls import RemoteCalls
from omnigraph.client.calls.tables import BatchDecoder, BlobAddress, GraphExport, export_request
from omnigraph.client.diff_files import DiffFiles
from omnigraph.client.export_file import ExportFile
from omnigraph.client.local_only import not_remote
from omnigraph.client.remote_proposal import RemoteProposal
from omnigraph.client.transport.sync_loop import SyncLoop
from omnigraph.graph import Graph
from omnigraph.notebook.schema_view import SchemaText
from omnigraph.pipeline.diff import DiffResult
from omnigraph.versioning.compare.changeset import ChangeSet

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.operations.proposals.proposal_info import ProposalInfo
    from omnigraph.pipeline.export import ExportFormat
    from omnigraph.pipeline.runner import Watch
    from omnigraph.versioning.write.repository import At

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


def _local(method: Callable[Concatenate[Graph, P], R]) -> Callable[Concatenate[RemoteGraph, P], R]:
    """Make a method that refuses the call: only an embedded graph has it."""

    @functools.wraps(method)
    def refuse(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: ARG001 (as in `Graph`)
        raise not_remote(method.__name__)

    return refuse


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


def _written(
    method: Callable[Concatenate[RemoteCalls, P], Call[DiffFiles]],
) -> Callable[Concatenate[RemoteGraph, P], DiffResult]:
    """Make a method that writes the changes of a diff to files."""

    @functools.wraps(method)
    def write(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> DiffResult:
        with self._loop.run(method(self._calls, *args, **kwargs)) as files:
            for change in self._loop.iterate(files.changes):
                files.add(change)
            return files.finish()

    return write


def _each(
    method: Callable[Concatenate[RemoteCalls, P], Calls[T]],
) -> Callable[Concatenate[RemoteGraph, P], Iterator[T]]:
    """Make an iterator of a sequence of calls; each call is made when its item is fetched."""

    @functools.wraps(method)
    def each(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        calls = method(self._calls, *args, **kwargs)
        try:
            call = next(calls)
            while True:
                item = self._loop.run(call)
                yield item
                call = calls.send(item)
        except StopIteration:
            return

    return each


def _reader(
    method: Callable[Concatenate[RemoteCalls, P], Stream[pa.RecordBatch]],
) -> Callable[Concatenate[RemoteGraph, P], pa.RecordBatchReader]:
    """Make a method that returns a reader of batches; the method waits for the schema."""

    @functools.wraps(method)
    def read(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> pa.RecordBatchReader:
        stream = method(self._calls, *args, **kwargs)
        decoder = stream.decoder()
        assert isinstance(decoder, BatchDecoder)
        chunks = self._loop.send(stream.request).chunks()
        first: list[pa.RecordBatch] = []
        while decoder.schema is None:
            chunk = next(chunks, None)
            if chunk is None:
                decoder.finish()
            first += decoder.feed(chunk or b"")
        return pa.RecordBatchReader.from_batches(decoder.schema, _batches(first, chunks, decoder))

    return read


def _batches(first: list[pa.RecordBatch], chunks: Iterator[bytes], decoder: BatchDecoder) -> Iterator[pa.RecordBatch]:
    yield from first
    for chunk in chunks:
        yield from decoder.feed(chunk)
    decoder.finish()


def _blob(
    method: Callable[Concatenate[RemoteCalls, P], Call[BlobAddress]],
) -> Callable[Concatenate[RemoteGraph, P], Blob]:
    """Make a method that returns a `Blob`, whose ranges are requests."""

    @functools.wraps(method)
    def open_blob(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> Blob:
        found = self._loop.run(method(self._calls, *args, **kwargs))

        def read_range(offset: int, length: int) -> bytes:
            return self._loop.run(found.range(offset, length))

        return Blob(read_range, size=found.size, etag=found.etag, commit_id=found.commit_id)

    return open_blob


def _proposal(
    method: Callable[Concatenate[RemoteCalls, P], Call[ProposalInfo]],
) -> Callable[Concatenate[RemoteGraph, P], RemoteProposal]:
    """Make a method that returns a `RemoteProposal`."""

    @functools.wraps(method)
    def run(self: RemoteGraph, /, *args: P.args, **kwargs: P.kwargs) -> RemoteProposal:
        return RemoteProposal(self._loop, self._calls, self._loop.run(method(self._calls, *args, **kwargs)))

    return run


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
    to_batches = _reader(RemoteCalls.to_batches)
    to_networkx = _run(RemoteCalls.to_networkx)
    to_rustworkx = _run(RemoteCalls.to_rustworkx)
    to_sparse = _run(RemoteCalls.to_sparse)
    to_pyg = _run(RemoteCalls.to_pyg)

    def export(
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
    ) -> Iterator[dict[str, Any]] | int:
        """Return an iterator of the records of a snapshot, or write them to a JSONL file and return their number.

        Arguments are as in `Graph.export`. The files are written here, not on the server.
        """
        request = export_request(out, types, format, partitioned, engine, spark)
        point = (branch, at, cancel, timeout)
        if request is None:
            return self._loop.iterate(self._calls.export_stream(types, *point))
        if isinstance(request, GraphExport):
            catalog, commit = self._loop.run(self._calls.export_point(branch, at))
            with request.writer(catalog) as writer:
                for stream in self._calls.graph_streams(writer, commit, cancel, timeout):
                    for record in self._loop.iterate(stream):
                        writer.add(record)
            return writer.row_count
        if request.format != "jsonl":
            return self._loop.run(self._calls.export_files(request, *point, os.environ))
        with ExportFile(request.out) as file:
            for chunk in self._loop.iterate(self._calls.export_lines(types, *point)):
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
    diff = _change_set(RemoteCalls.diff)
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


def has_sent_write(graph: RemoteGraph) -> bool:
    """Return True if a write was sent over the connections of a graph, whether or not its answer arrived."""
    return graph._loop.session.write_sent
