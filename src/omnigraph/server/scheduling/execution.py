"""Execution: engine calls run in threads of their lane, streams are pumped with backpressure.

The event loop never waits for the engine. A call runs in a thread of its lane, together with the encoding of its
answer and the first chunk of a stream. A stream is advanced by thread calls of a few chunks each, which are prepared
while the previous ones are sent; a slow client therefore holds no thread, and little is in memory.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, TypeVar

from starlette.types import Receive

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.server.messages.answers import Chunk
from omnigraph.server.scheduling.admission import Lane

LaneName = Literal["reads", "writes", "exports", "slow", "streams", "audit", "bodies"]

WATCH_AFTER_S = 0.02
"""A call that takes longer is watched for a disconnect of its client; most calls are shorter than the watch costs."""

STEP_BYTES = 256 * 1024
"""Size of the chunks after which a step of a stream ends."""
STEP_S = 0.002
"""Time after which a step of a stream ends with the chunk that it has."""

_Result = TypeVar("_Result")


class Execution:
    """The lanes of a process, and the calls that run in them."""

    def __init__(self, reads: int, exports: int = 8, streams: int = 256) -> None:
        slots: dict[LaneName, int] = {
            "reads": reads,
            "writes": 8,
            "exports": exports,
            "slow": 2,
            "streams": streams,
            "audit": 2,
            "bodies": 2,
        }
        self.lanes = {name: Lane(name, count) for name, count in slots.items()}
        # An event stream polls now and then; a few threads serve all of them.
        threads = {**slots, "streams": 4}
        self._pools = {name: ThreadPoolExecutor(threads[name], f"omnigraph-{name}") for name in slots}
        self._reads: set[Cancellation] = set()
        self._maintenance: set[Cancellation] = set()
        self._writes = 0
        self.on_close: list[Callable[[], None]] = []
        """Called by `close`, such as the ends of further threads."""

    @property
    def in_flight_reads(self) -> int:
        """The number of reads and streams that run."""
        return len(self._reads)

    @property
    def in_flight_writes(self) -> int:
        """The number of writes that run."""
        return self._writes

    def cancel_reads(self) -> None:
        """Cancel every running read, stream and maintenance; other writes continue."""
        for cancel in (*self._reads, *self._maintenance):
            cancel.cancel()

    def track_read(self, cancel: Cancellation) -> Callable[[], None]:
        """Count a read or stream; the returned function ends it."""
        self._reads.add(cancel)
        return lambda: self._reads.discard(cancel)

    def track_write(self) -> Callable[[], None]:
        """Count a write; the returned function ends it."""
        self._writes += 1
        return self._end_write

    def track_maintenance(self, cancel: Cancellation) -> Callable[[], None]:
        """Count maintenance as a write that can be cancelled; the returned function ends it."""
        self._maintenance.add(cancel)
        self._writes += 1

        def end() -> None:
            self._maintenance.discard(cancel)
            self._end_write()

        return end

    def _end_write(self) -> None:
        self._writes -= 1

    async def call(self, lane: LaneName, work: Callable[[], _Result]) -> _Result:
        """Run a function in a thread of a lane."""
        return await asyncio.get_running_loop().run_in_executor(self._pools[lane], work)

    def close(self) -> None:
        """Release the threads that are idle; a running call ends by itself."""
        for end in self.on_close:
            end()
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)


class Stream:
    """The chunks of an iterator, advanced in threads of a lane; the next chunks are prepared while some are sent.

    One step takes chunks of up to `STEP_BYTES`, as far as they are ready within `STEP_S`: a change of thread takes as
    long as the encoding of a small chunk.
    """

    def __init__(self, execution: Execution, lane: LaneName, chunks: Iterator[Chunk]) -> None:
        self._execution = execution
        self._lane: LaneName = lane
        self._chunks = chunks
        # A generator may set context variables; all its steps run in one context.
        self._context = contextvars.copy_context()
        self._step: asyncio.Future[list[Chunk]] | None = None
        """The last step; a thread is inside the iterator until it is done."""
        self._ended = False
        self._error: Exception | None = None

    def first(self) -> Chunk | None:
        """Compute the first chunk in this thread, so that an early failure precedes the headers; None if there is none.

        It is called by the thread that made the iterator, before `rest`.
        """
        return self._context.run(next, self._chunks, None)

    async def rest(self) -> AsyncIterator[Chunk]:
        """Yield the other chunks."""
        following = self._begin()
        while chunks := await asyncio.shield(following):
            following = self._begin()
            for chunk in chunks:
                yield chunk

    async def close(self) -> None:
        """Close the iterator, after the step that runs: a generator cannot be closed during a step."""
        if self._step is not None:
            await asyncio.wait({self._step})
            if not self._step.cancelled():
                self._step.exception()
        close = getattr(self._chunks, "close", None)
        if close is not None and not self._ended:
            await self._execution.call(self._lane, lambda: self._context.run(close))

    def _begin(self) -> asyncio.Future[list[Chunk]]:
        """Begin the next step in a thread."""
        if self._ended and self._error is None:
            done: asyncio.Future[list[Chunk]] = asyncio.get_running_loop().create_future()
            done.set_result([])
            return done
        work = partial(self._context.run, self._advance)
        self._step = asyncio.ensure_future(self._execution.call(self._lane, work))
        return self._step

    def _advance(self) -> list[Chunk]:
        """Return the next chunks; none at the end. A failure is raised after the chunks before it were returned."""
        if self._error is not None:
            raise self._error
        taken: list[Chunk] = []
        size, end = 0, time.perf_counter() + STEP_S
        try:
            for chunk in self._chunks:
                taken.append(chunk)
                size += len(chunk)
                if size >= STEP_BYTES or time.perf_counter() >= end:
                    return taken
        except Exception as error:
            self._error = error
            if not taken:
                raise
        self._ended = True
        return taken


@asynccontextmanager
async def watching_disconnect(receive: Receive, on_disconnect: Callable[[], None]) -> AsyncIterator[None]:
    """Call a function if the client disconnects while the block runs; short blocks are not watched."""
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        on_disconnect()

    timer = loop.call_later(WATCH_AFTER_S, lambda: tasks.append(loop.create_task(watch())))
    try:
        yield
    finally:
        timer.cancel()
        for task in tasks:
            task.cancel()
