"""Streams: their iterator is advanced and closed in threads, never by two at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

from omnigraph.server.execution import Execution, Stream

WAIT_S = 30.0


class Source:
    """Two chunks; the second step waits until it is released."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.released = threading.Event()
        self.closed = False

    def chunks(self) -> Iterator[bytes]:
        try:
            yield b"first"
            self.inside.set()
            assert self.released.wait(WAIT_S)
            yield b"second"
        finally:
            self.closed = True


def test_a_stream_is_closed_after_the_step_that_runs() -> None:
    source = Source()

    async def abandon() -> None:
        execution = Execution(reads=2)
        stream = Stream(execution, "reads", source.chunks())
        assert await stream.first() == b"first"
        rest = stream.rest()
        reading = asyncio.ensure_future(anext(rest))
        while not source.inside.is_set():
            await asyncio.sleep(0)
        reading.cancel()
        closing = asyncio.ensure_future(stream.close())
        await asyncio.sleep(0)
        assert not source.closed
        source.released.set()
        await asyncio.wait_for(closing, WAIT_S)
        execution.close()

    asyncio.run(abandon())
    assert source.closed


def test_the_failure_of_an_abandoned_step_is_not_raised_by_the_close() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"first"
        raise ZeroDivisionError

    async def abandon() -> None:
        execution = Execution(reads=1)
        stream = Stream(execution, "reads", chunks())
        await stream.first()
        rest = stream.rest()
        reading = asyncio.ensure_future(anext(rest))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait_for(stream.close(), WAIT_S)
        execution.close()

    asyncio.run(abandon())
