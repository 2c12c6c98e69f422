"""A TCP balancer in front of the servers: connections go to the servers in turn, and each is cut after a while.

It cuts after an answer has begun, often at the moment at which the client sends its next request.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

HOST = "127.0.0.1"
LIFETIME_S = (1.0, 6.0)
"""A connection is cut after a random time, so that one client talks to all servers."""
_CHUNK = 1 << 16
_TICK_S = 0.1
_WAIT_S = 30.0


class Balancer:
    """Relays connections to the first server that accepts one."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._next = 0
        self.connections = 0
        self.cut = 0

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        behind = await self._connect()
        if behind is None:
            writer.transport.abort()
            return
        connection = _Connection()
        pipes = [
            asyncio.ensure_future(connection.pipe(reader, behind[1], "request")),
            asyncio.ensure_future(connection.pipe(behind[0], writer, "answer")),
        ]
        end = time.monotonic() + random.uniform(*LIFETIME_S)
        ended = False
        while not ended and not (connection.last == "answer" and time.monotonic() > end):
            ended = bool((await asyncio.wait(pipes, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED))[0])
        self.cut += not ended
        for pipe in pipes:
            pipe.cancel()
        for each in (writer, behind[1]):
            each.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self._ports:
            self._next = (self._next + 1) % len(self._ports)
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(HOST, self._ports[self._next])
        return None


class _Connection:
    """A connection that is relayed."""

    last: Literal["request", "answer"] = "request"
    """What was relayed last."""

    async def pipe(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, what: Literal["request", "answer"]
    ) -> None:
        """Relay one direction until its end."""
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                self.last = what
                writer.write(data)
                await writer.drain()


@contextmanager
def balancing(balancer: Balancer) -> Iterator[int]:
    """Run a balancer in a thread; yields its port."""
    ports: list[int] = []
    started = threading.Event()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        server = await asyncio.start_server(balancer.relay, HOST, 0)
        ports.append(server.sockets[0].getsockname()[1])
        started.set()
        await ended.wait()
        server.close()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(_WAIT_S)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(_WAIT_S)
