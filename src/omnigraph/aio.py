"""`Graph` for event loops: the same methods as coroutines.

    async with await og.aopen("team.omni") as graph:
        result = await graph.query("query q() { match { $p: Person } return { $p.name } }")
        async for change in graph.diff("main", "proposal"):
            ...

Methods run in threads of the graph's own pool, which ends with the graph. Cancelling a call stops the work: a read
ends at its next checkpoint. A write is settled first. Either it stops before its publish, nothing is written and the
call raises `WriteCancelled`; or it was published already, and the call returns its result in spite of the cancellation.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Self

from omnigraph.cancellation import cancelled_by
from omnigraph.engine.exec.cancellation import Cancellation, Watch, watching
from omnigraph.errors import Cancelled, InputError, OmniGraphError
from omnigraph.graph import Graph
from omnigraph.graph_open import open as open_graph
from omnigraph.versioning.compare.changeset import ChangeSet
from omnigraph.versioning.model.ids import new_ulid, system_clock
from omnigraph.versioning.write.transaction import GeneratedKey

_AT_ONCE = 256
"""How many items one trip to a thread brings."""

_THREADS = min(32, (os.cpu_count() or 1) + 4)

_KEYS = {"mutate": "idempotency_key", "load": "job_id", "ingest": "job_id"}
"""Method → its parameter for an idempotency key."""

_WRITES = frozenset(
    {
        *_KEYS,
        *("apply_schema", "analyze", "embed", "merge", "revert"),
        *("branch_create", "branch_delete", "tag_create", "tag_delete"),
        *("ensure_indices", "optimize", "cleanup", "recover"),
    }
)


class WriteCancelled(asyncio.CancelledError):
    """A write was cancelled.

    `settled` is True if the write has stopped and nothing was written. It is False only if the call was cancelled a
    second time while it waited for that; the write may then still be published. Repeating it with `idempotency_key`
    (`job_id` of a load) is safe in both cases.
    """

    def __init__(self, method: str, idempotency_key: str | None, *, settled: bool) -> None:
        outcome = "nothing was written" if settled else "its outcome is not known"
        super().__init__(f"'{method}' was cancelled; {outcome}")
        self.idempotency_key = idempotency_key
        self.settled = settled


class _Pool:
    """The threads of an opened graph; every handle of it uses the same ones."""

    def __init__(self, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="omnigraph")
        self._closed = False

    def submit(self, cancellation: Cancellation, call: Callable[[], Any]) -> Future[Any]:
        """Run a call in a thread, where the cancellation can stop it."""
        if self._closed:
            raise InputError("the graph was closed", code="graph_closed", hint="open it again with aopen")
        context = contextvars.copy_context()
        return self._executor.submit(context.run, _run, cancellation, call)

    async def close(self) -> None:
        """End the threads when their work is done."""
        self._closed = True
        await asyncio.to_thread(self._executor.shutdown)


def _run(cancellation: Cancellation, call: Callable[[], Any]) -> Any:
    with watching(Watch(cancellation=cancellation)), cancelled_by(cancellation):
        return call()


class AsyncGraph:
    """A graph seen from one branch; methods that block run in a thread.

    `idempotency_key` of `mutate` and `job_id` of `load` and `ingest` are generated where none is given. A
    failed call carries its key as `error.idempotency_key`.
    """

    def __init__(self, graph: Graph, *, threads: int = _THREADS, _pool: _Pool | None = None) -> None:
        self.graph = graph
        self._pool = _pool or _Pool(threads)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait for the calls that run, and end the threads of the graph; handles made by `on` end with it."""
        self.graph.__exit__(None, None, None)
        await self._pool.close()

    def __repr__(self) -> str:
        return f"Async{self.graph!r}"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(Graph) if not name.startswith("_"))})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if isinstance(inspect.getattr_static(Graph, name, None), property):
            # A property may read the store, so it is awaited like a method without arguments.
            return lambda: _read(self._pool, functools.partial(getattr, self.graph, name), Cancellation())
        found = getattr(self.graph, name)
        return self._wrap(name, found) if callable(found) else found

    def _wrap(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(method) or method.__annotations__.get("return") == ChangeSet.__name__:
            # A page is asked for when it is wanted; of smaller things many come at once.
            at_once = 1 if method.__annotations__.get("return") == "Iterator[Result]" else _AT_ONCE

            @functools.wraps(method)
            def items(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
                return _iterate(self._pool, _items(method, args, kwargs), at_once)

            return items

        parameters = inspect.signature(method).parameters

        @functools.wraps(method)
        async def call(*args: Any, **kwargs: Any) -> Any:
            cancellation = kwargs.get("cancel") or Cancellation()
            if "cancel" in parameters:
                kwargs["cancel"] = cancellation
            if name in _WRITES:
                return await self._write(name, method, args, kwargs, cancellation)
            found = await _read(self._pool, functools.partial(method, *args, **kwargs), cancellation)
            if isinstance(found, Graph):
                return AsyncGraph(found, _pool=self._pool)
            return _iterate(self._pool, found, _AT_ONCE) if isinstance(found, Iterator) else found

        return call

    async def _write(
        self,
        name: str,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        cancellation: Cancellation,
    ) -> Any:
        parameter = _KEYS.get(name)
        if parameter is not None and kwargs.get(parameter) is None:
            kwargs[parameter] = GeneratedKey(f"call-{new_ulid(system_clock())}")
        key = None if parameter is None else str(kwargs[parameter])
        work = self._pool.submit(cancellation, functools.partial(method, *args, **kwargs))
        try:
            return await _settle(name, work, cancellation, key)
        except OmniGraphError as error:
            error.idempotency_key = key  # type: ignore[attr-defined]
            raise


async def _settle(name: str, work: Future[Any], cancellation: Cancellation, key: str | None) -> Any:
    """The outcome of a write; a cancelled one is stopped, and waited for."""
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


async def _read(pool: _Pool, call: Callable[[], Any], cancellation: Cancellation) -> Any:
    try:
        return await asyncio.wrap_future(pool.submit(cancellation, call))
    except asyncio.CancelledError:
        cancellation.cancel()
        raise


def _items(method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """The items of a call, which is made in the thread that takes the first of them."""
    yield from method(*args, **kwargs)


async def _iterate(pool: _Pool, items: Iterator[Any], at_once: int) -> AsyncIterator[Any]:
    cancellation = Cancellation()
    while some := await _read(pool, lambda: list(islice(items, at_once)), cancellation):
        for item in some:
            yield item


async def aopen(uri: str, *, threads: int = _THREADS, **options: Any) -> AsyncGraph:
    """Open a graph as `open` does, from an event loop; `threads` bounds how many calls run at a time."""
    pool = _Pool(threads)
    try:
        graph = await _read(pool, functools.partial(open_graph, uri, **options), Cancellation())
    except BaseException:
        await pool.close()
        raise
    return AsyncGraph(graph, _pool=pool)
