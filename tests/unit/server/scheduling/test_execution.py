"""Streams: their iterator is advanced and closed in threads, never by two at once."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator

import pytest

from omnigraph.server.messages.answers import Chunk
from omnigraph.server.scheduling.execution import Execution, Stream

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
        assert stream.first() == b"first"
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
        stream.first()
        rest = stream.rest()
        reading = asyncio.ensure_future(anext(rest))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait_for(stream.close(), WAIT_S)
        execution.close()

    asyncio.run(abandon())


def test_the_chunks_before_a_failure_are_sent() -> None:
    def chunks() -> Iterator[bytes]:
        yield from (b"first", b"second", b"third")
        raise ZeroDivisionError

    async def read() -> list[bytes]:
        execution, seen = Execution(reads=1), []
        stream = Stream(execution, "reads", chunks())
        seen.append(stream.first())
        rest = stream.rest()
        seen += [await anext(rest), await anext(rest)]
        with pytest.raises(ZeroDivisionError):
            await anext(rest)
        await stream.close()
        execution.close()
        return [bytes(chunk or b"") for chunk in seen]

    assert asyncio.run(read()) == [b"first", b"second", b"third"]


def test_a_step_takes_several_small_chunks() -> None:
    """The iterator runs in one context, however many steps there are."""
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("steps", default=0)

    def chunks() -> Iterator[bytes]:
        for number in range(1000):
            variable.set(variable.get() + 1)
            yield b"x" * 1024 if number < 999 else str(variable.get()).encode()

    async def read() -> tuple[int, bytes, int]:
        execution, calls, size, last = Execution(reads=1), 0, 0, b""
        stream = Stream(execution, "reads", chunks())
        size += len(stream.first() or b"")
        advance = stream._advance

        def counted() -> list[Chunk]:
            nonlocal calls
            calls += 1
            return advance()

        stream._advance = counted  # type: ignore[method-assign]
        async for chunk in stream.rest():
            size, last = size + len(chunk), bytes(chunk)
        await stream.close()
        execution.close()
        return calls, last, size

    calls, last, size = asyncio.run(read())
    assert (last, size) == (b"1000", 999 * 1024 + 4)
    assert calls < 500
