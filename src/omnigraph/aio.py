"""`AsyncGraph`: the methods of `Graph` as coroutines.

    async with await og.aopen("team.omni") as graph:
        result = await graph.query("query q() { match { $p: Person } return { $p.name } }")
        async for change in graph.diff("main", "proposal"):
            ...

Methods run in a thread pool that belongs to the opened graph. If a call is cancelled, so is its work: a read ends at
its next checkpoint, and a write either stops before its publish or completes. A write that stops raises
`WriteCancelled`, and nothing is written. A published write returns its result despite the cancellation.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, cast

from omnigraph.aio_proposals import AsyncProposal
from omnigraph.blob import CHUNK_BYTES, Blob
from omnigraph.cancellation import cancelled_by
from omnigraph.engine.exec.cancellation import Cancellation, Watch, watching
from omnigraph.errors import Cancelled, InputError, OmniGraphError
from omnigraph.graph import Graph
from omnigraph.graph_open import PolicySource
from omnigraph.graph_open import open as open_graph
from omnigraph.graph_proposals import Proposal
from omnigraph.http_address import is_server_url
from omnigraph.notebook.schema_view import SchemaText
from omnigraph.operations.authorization.access import Access
from omnigraph.operations.graph_context import Place
from omnigraph.versioning.model.ids import new_ulid, system_clock
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.write.idempotency import GeneratedKey

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_BATCH_ITEMS = 256
"""Items that one call in a thread fetches from an iterator."""

_THREADS = min(32, (os.cpu_count() or 1) + 4)


class WriteCancelled(asyncio.CancelledError):
    """A write was cancelled.

    `settled` is True if the write has stopped and nothing was written. It is False if the call was cancelled again
    while it waited for that, or if the answer of a server was lost; the write may then still be published. It is safe
    to repeat the write with `idempotency_key` (`job_id` of a load) in both cases. `cleanup` and `recover` have no key;
    they are safe to repeat.
    """

    def __init__(self, method: str, idempotency_key: str | None, *, settled: bool) -> None:
        outcome = "nothing was written" if settled else "its outcome is not known"
        super().__init__(f"'{method}' was cancelled; {outcome}")
        self.idempotency_key = idempotency_key
        self.settled = settled


# -- threads -----------------------------------------------------------------------------------------


class _Pool:
    """The threads of an opened graph, shared by all its handles."""

    def __init__(self, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="omnigraph")
        self._closed = False

    def submit(self, cancellation: Cancellation, call: Callable[[], T]) -> Future[T]:
        """Run a call in a thread, where the cancellation can stop it."""
        if self._closed:
            raise InputError("the graph was closed", code="graph_closed", hint="open it again with aopen")
        context = contextvars.copy_context()
        return self._executor.submit(lambda: context.run(_run, cancellation, call))

    async def close(self) -> None:
        """Wait for running calls and end the threads."""
        self._closed = True
        await asyncio.to_thread(self._executor.shutdown)


def _run(cancellation: Cancellation, call: Callable[[], T]) -> T:
    with watching(Watch(cancellation=cancellation)), cancelled_by(cancellation):
        return call()


async def _await_read(pool: _Pool, call: Callable[[], T], cancellation: Cancellation | None = None) -> T:
    """Return the result of a read; if the caller is cancelled, so is the read."""
    cancellation = cancellation or Cancellation()
    try:
        return await asyncio.wrap_future(pool.submit(cancellation, call))
    except asyncio.CancelledError:
        cancellation.cancel()
        raise


async def _await_write(pool: _Pool, name: str, call: Callable[[], T], key: str | None) -> T:
    """Return the result of a write; if the caller is cancelled, cancel the write and wait until it has ended."""
    cancellation = Cancellation()
    work = pool.submit(cancellation, call)
    outcome = asyncio.wrap_future(work)
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError:
        cancellation.cancel()
        if work.cancel():
            raise WriteCancelled(name, key, settled=True) from None
    try:
        await asyncio.wait([outcome])
    except asyncio.CancelledError:
        raise WriteCancelled(name, key, settled=False) from None
    try:
        return outcome.result()
    except Cancelled:
        raise WriteCancelled(name, key, settled=True) from None


async def _iterate(pool: _Pool, items: Iterator[T], batch: int) -> AsyncIterator[T]:
    """Yield the items of an iterator, fetched in batches by a thread."""
    cancellation = Cancellation()
    while fetched := await _await_read(pool, lambda: list(islice(items, batch)), cancellation):
        for item in fetched:
            yield item


def _generate(call: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Yield the items of a call that is made when the first item is fetched."""
    yield from call()


# -- methods -----------------------------------------------------------------------------------------
#
# Each function takes a method of `Graph` and returns the method of `AsyncGraph` with the same parameters.


def _read(
    method: Callable[Concatenate[Graph, P], R],
) -> Callable[Concatenate[AsyncGraph, P], Coroutine[Any, Any, R]]:
    """Make a coroutine of a method that reads; its parameter `cancel`, if any, also stops the call."""
    takes_cancel = "cancel" in inspect.signature(method).parameters

    @functools.wraps(method)
    async def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> R:
        cancellation = kwargs.get("cancel")
        if not isinstance(cancellation, Cancellation):
            cancellation = Cancellation()
        if takes_cancel:
            kwargs["cancel"] = cancellation
        return await _await_read(self._pool, lambda: method(self.graph, *args, **kwargs), cancellation)

    return call


def _write(
    method: Callable[Concatenate[Graph, P], R], key_parameter: Literal["idempotency_key", "job_id"] | None = None
) -> Callable[Concatenate[AsyncGraph, P], Coroutine[Any, Any, R]]:
    """Make a coroutine of a method that writes; an absent idempotency key is generated."""

    @functools.wraps(method)
    async def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = None
        if key_parameter is not None:
            if kwargs.get(key_parameter) is None:
                kwargs[key_parameter] = GeneratedKey(f"call-{new_ulid(system_clock())}")
            key = str(kwargs[key_parameter])
        try:
            return await _await_write(self._pool, method.__name__, lambda: method(self.graph, *args, **kwargs), key)
        except OmniGraphError as error:
            error.idempotency_key = key
            raise

    return call


def _items(
    method: Callable[Concatenate[Graph, P], Iterable[T]], batch: int = _BATCH_ITEMS
) -> Callable[Concatenate[AsyncGraph, P], AsyncIterator[T]]:
    """Make an asynchronous iterator of a method; the method is called when the first item is fetched."""

    @functools.wraps(method)
    def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return _iterate(self._pool, _generate(lambda: method(self.graph, *args, **kwargs)), batch)

    return call


def _iterator(
    method: Callable[Concatenate[Graph, P], Iterator[T]],
) -> Callable[Concatenate[AsyncGraph, P], Coroutine[Any, Any, AsyncIterator[T]]]:
    """Make a coroutine of a method that returns an iterator; the coroutine returns an asynchronous one."""

    @functools.wraps(method)
    async def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        items = await _await_read(self._pool, lambda: method(self.graph, *args, **kwargs))
        return _iterate(self._pool, items, _BATCH_ITEMS)

    return call


def _blob(
    method: Callable[Concatenate[Graph, P], Blob],
) -> Callable[Concatenate[AsyncGraph, P], Coroutine[Any, Any, AsyncBlob]]:
    """Make a coroutine of a method that returns a `Blob`; the coroutine returns an `AsyncBlob`."""

    @functools.wraps(method)
    async def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncBlob:
        return AsyncBlob(await _await_read(self._pool, lambda: method(self.graph, *args, **kwargs)), self._pool)

    return call


def _iterator_or_count(
    method: Callable[Concatenate[Graph, P], Iterator[T] | int],
) -> Callable[Concatenate[AsyncGraph, P], Coroutine[Any, Any, AsyncIterator[T] | int]]:
    """Make a coroutine of `export`, which returns an iterator or a number."""

    @functools.wraps(method)
    async def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T] | int:
        found = await _await_read(self._pool, lambda: method(self.graph, *args, **kwargs))
        return found if isinstance(found, int) else _iterate(self._pool, found, _BATCH_ITEMS)

    return call


@dataclass(frozen=True)
class _ProposalThreads:
    """The threads of an opened graph, for its proposals."""

    pool: _Pool

    async def read(self, call: Callable[[], T]) -> T:
        return await _await_read(self.pool, call)

    async def write(self, name: str, call: Callable[[], T]) -> T:
        return await _await_write(self.pool, name, call, None)

    def items(self, call: Callable[[], Iterable[T]]) -> AsyncIterator[T]:
        return _iterate(self.pool, _generate(call), _BATCH_ITEMS)


def _proposal(
    method: Callable[Concatenate[AsyncGraph, P], Coroutine[Any, Any, Proposal]],
) -> Callable[Concatenate[AsyncGraph, P], Coroutine[Any, Any, AsyncProposal]]:
    """Make a coroutine that returns an `AsyncProposal`."""

    @functools.wraps(method)
    async def call(self: AsyncGraph, /, *args: P.args, **kwargs: P.kwargs) -> AsyncProposal:
        return AsyncProposal(await method(self, *args, **kwargs), _ProposalThreads(self._pool))

    return call


class AsyncBlob:
    """The bytes of a Blob property, with the attributes and methods of `Blob` except `open`; reads run in threads."""

    def __init__(self, blob: Blob, pool: _Pool) -> None:
        self._blob = blob
        self._pool = pool
        self.size = blob.size
        self.etag = blob.etag
        self.commit_id = blob.commit_id

    def __repr__(self) -> str:
        return f"Async{self._blob!r}"

    async def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Return `length` bytes from `offset`, by default all; fewer at the end, none beyond it."""
        return await _await_read(self._pool, lambda: self._blob.read(offset, length))

    def stream(
        self, chunk_bytes: int = CHUNK_BYTES, *, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[bytes]:
        """Return an asynchronous iterator of the bytes of a range, by default of all, in chunks of `chunk_bytes`."""
        return _iterate(self._pool, self._blob.stream(chunk_bytes, offset=offset, length=length), 1)


class AsyncGraph:
    """A graph bound to one branch, with the methods of `Graph`; they run in threads.

    Methods and properties of `Graph` are awaited: `await graph.query(…)`, `await graph.schema()`. `pages`, `diff`,
    `to_batches` and `changes_baseline` return asynchronous iterators without `await`. `idempotency_key` of a write, and
    `job_id` of `load` and `ingest`, are generated if absent. A failed call has its key as `error.idempotency_key`.
    """

    def __init__(self, graph: Graph, *, threads: int = _THREADS, _pool: _Pool | None = None) -> None:
        self.graph = graph
        self._pool = _pool or _Pool(threads)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait for running calls and end the threads of the graph, which handles made by `on` share."""
        self.graph.__exit__(None, None, None)
        await self._pool.close()

    def __repr__(self) -> str:
        return f"Async{self.graph!r}"

    @property
    def branch(self) -> str:
        """The branch of this handle."""
        return self.graph.branch

    @property
    def actor(self) -> str | None:
        """The actor of this handle."""
        return self.graph.actor

    # A property of `Graph` may read the store, so it is awaited like a method.

    async def uri(self) -> str:
        """Return the location of the graph."""
        return await _await_read(self._pool, lambda: self.graph.uri)

    async def newest_version(self) -> int:
        """Return the newest manifest version; every write to any branch increases it."""
        return await _await_read(self._pool, lambda: self.graph.newest_version)

    async def schema(self) -> SchemaText:
        """Return the text of the schema, as it was applied."""
        return await _await_read(self._pool, lambda: self.graph.schema)

    async def on(self, branch: str) -> AsyncGraph:
        """Return a handle of the same graph bound to another branch; it uses the same threads."""
        return AsyncGraph(await _await_read(self._pool, lambda: self.graph.on(branch)), _pool=self._pool)

    async def with_access(self, access: Access) -> AsyncGraph:
        """Return a handle that acts as the actor of an access and does only what it allows; it shares the threads."""
        return AsyncGraph(self.graph.with_access(access), _pool=self._pool)

    async def with_metadata(self, metadata: Mapping[str, Any]) -> AsyncGraph:
        """Return a handle of the same graph that adds entries to the metadata of every commit."""
        return AsyncGraph(self.graph.with_metadata(metadata), _pool=self._pool)

    snapshot = _read(Graph.snapshot)
    catalog = _read(Graph.catalog)
    plan_schema = _read(Graph.plan_schema)
    apply_schema = _write(Graph.apply_schema, "idempotency_key")

    query = _read(Graph.query)
    pages = _items(Graph.pages, batch=1)
    explain = _read(Graph.explain)
    profile = _read(Graph.profile)
    lint = _read(Graph.lint)
    show = _read(Graph.show)
    resolve = _read(Graph.resolve)
    sql = _read(Graph.sql)
    duckdb = _read(Graph.duckdb)
    complete = _read(Graph.complete)
    hover = _read(Graph.hover)
    analyze = _write(Graph.analyze, "idempotency_key")

    mutate = _write(Graph.mutate, "idempotency_key")
    unify = _write(Graph.unify, "idempotency_key")
    load = _write(Graph.load, "job_id")
    ingest = _write(Graph.ingest, "job_id")
    embed = _write(Graph.embed, "idempotency_key")

    queries = _read(Graph.queries)
    validate_queries = _read(Graph.validate_queries)
    store_query = _write(Graph.store_query, "idempotency_key")
    delete_query = _write(Graph.delete_query, "idempotency_key")
    invoke = _write(Graph.invoke, "idempotency_key")

    search = _read(Graph.search)
    neighbors = _read(Graph.neighbors)
    degrees = _read(Graph.degrees)
    projection = _read(Graph.projection)
    propose = _proposal(_write(Graph.propose, "idempotency_key"))
    proposals = _read(Graph.proposals)
    proposal = _proposal(_read(Graph.proposal))
    proposal_events = _read(Graph.proposal_events)

    export = _iterator_or_count(Graph.export)
    get = _read(Graph.get)
    blob = _blob(Graph.blob)
    entity_at = _read(Graph.entity_at)
    to_arrow = _read(Graph.to_arrow)
    to_batches = _items(Graph.to_batches, batch=1)
    to_spark = _read(Graph.to_spark)
    to_networkx = _read(Graph.to_networkx)
    to_rustworkx = _read(Graph.to_rustworkx)
    to_sparse = _read(Graph.to_sparse)
    to_pyg = _read(Graph.to_pyg)

    branches = _read(Graph.branches)
    branch_status = _read(Graph.branch_status)
    branch_create = _write(Graph.branch_create, "idempotency_key")
    head = _read(Graph.head)
    branch_update = _write(Graph.branch_update, "idempotency_key")
    branch_delete = _write(Graph.branch_delete, "idempotency_key")
    merge = _write(Graph.merge, "idempotency_key")
    merge_preview = _read(Graph.merge_preview)
    revert = _write(Graph.revert, "idempotency_key")
    revert_preview = _read(Graph.revert_preview)
    tag_create = _write(Graph.tag_create, "idempotency_key")
    tags = _read(Graph.tags)
    tag_delete = _write(Graph.tag_delete, "idempotency_key")

    commits = _read(Graph.commits)
    commit = _read(Graph.commit)
    diff = _items(Graph.diff)
    diff_summary = _read(Graph.diff_summary)
    diff_graph = _read(Graph.diff_graph)
    export_diff = _read(Graph.export_diff)
    commit_changes = _read(Graph.commit_changes)
    changes = _read(Graph.changes)
    changes_baseline = _items(Graph.changes_baseline)
    history = _iterator(Graph.history)
    blame = _read(Graph.blame)

    ensure_indices = _write(Graph.ensure_indices, "idempotency_key")
    optimize = _write(Graph.optimize, "idempotency_key")
    cleanup = _write(Graph.cleanup)
    recover = _write(Graph.recover)
    verify = _read(Graph.verify)
    purge = _write(Graph.purge, "idempotency_key")
    purge_resume = _write(Graph.purge_resume)
    purge_allow = _write(Graph.purge_allow)
    purge_redact = _write(Graph.purge_redact)
    purge_preview = _read(Graph.purge_preview)
    purge_verify = _read(Graph.purge_verify)
    purges = _read(Graph.purges)


async def aopen(
    uri: str | os.PathLike[str],
    *,
    threads: int = _THREADS,
    branch: str = MAIN,
    actor: str | None = None,
    read_only: bool = False,
    sync: bool = True,
    blob_sources: Sequence[Place] = (),
    memory: int | str | None = None,
    environ: Mapping[str, str] | None = None,
    policy: PolicySource = None,
    approximate: bool = False,
) -> AsyncGraph:
    """Open a graph as `open` does; at most `threads` calls run at a time.

    An `http://` or `https://` address connects to a server as `aconnect` does; the `AsyncRemoteGraph` that is returned
    has the methods of `AsyncGraph`.
    """
    if isinstance(uri, str) and is_server_url(uri):
        from omnigraph.client.connect import aopen_remote  # noqa: PLC0415 (only for the graph of a server)

        local = {
            "read_only": read_only,
            "blob_sources": tuple(blob_sources),
            "memory": memory,
            "policy": policy,
            "approximate": approximate,
        }
        return cast(AsyncGraph, await aopen_remote(uri, branch=branch, actor=actor, environ=environ, local=local))
    pool = _Pool(threads)

    def open_in_thread() -> Graph:
        return open_graph(
            uri,
            branch=branch,
            actor=actor,
            read_only=read_only,
            sync=sync,
            blob_sources=blob_sources,
            memory=memory,
            environ=environ,
            policy=policy,
            approximate=approximate,
        )

    try:
        graph = await _await_read(pool, open_in_thread)
    except BaseException:
        await pool.close()
        raise
    return AsyncGraph(graph, _pool=pool)
