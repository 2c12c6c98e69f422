"""Responses: an encoded answer or a stream, and how they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache

from starlette.types import Receive, Send

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.server.messages.answers import Chunk
from omnigraph.server.scheduling.execution import Execution, LaneName, Stream, watching_disconnect

Headers = dict[str, str]

NOT_MODIFIED = 304
POLL_S = 0.25
"""Pause of an event stream after a poll without events."""
HEARTBEAT_S = 15.0
"""An event stream sends a comment after this time without events."""


@dataclass
class Response:
    """A complete response. The answer to HEAD has no length where GET sends a stream."""

    status: int
    headers: Headers
    body: bytes = b""
    has_length: bool = True

    @property
    def size(self) -> int:
        """The number of bytes of the body."""
        return len(self.body)

    async def send(self, send: Send, common: Mapping[str, str], receive: Receive) -> bool:  # noqa: ARG002
        """Send the response; return True if it is complete."""
        # A route that answers HEAD states the length of the body that GET sends.
        sized = self.has_length and self.status != NOT_MODIFIED
        length = {"Content-Length": str(len(self.body))} if sized else {}
        headers = {**common, **length, **self.headers}
        await send({"type": "http.response.start", "status": self.status, "headers": raw_headers(headers)})
        await send({"type": "http.response.body", "body": self.body})
        return True


@dataclass
class StreamResponse:
    """A response whose body is produced while it is sent. It holds the slots of its request until the end."""

    status: int
    headers: Headers
    stream: Stream
    first: Chunk | None
    cancel: Cancellation
    on_error: Callable[[BaseException], None]
    held: ExitStack = field(default_factory=ExitStack)
    size: int = 0
    """The number of bytes that were sent."""

    async def send(self, send: Send, common: Mapping[str, str], receive: Receive) -> bool:
        """Send the response; return False if it was cut by a failure or a disconnect.

        A cut response lacks its end, so that the client notices: the server closes the connection.
        """
        try:
            async with watching_disconnect(receive, self.cancel.cancel):
                return await self._send(send, {**common, **self.headers})
        except Exception as error:
            if not self.cancel.cancelled:
                self.on_error(error)
            return False

    async def close(self) -> None:
        """Close the iterator and release the slots."""
        with self.held:
            await self.stream.close()

    async def _send(self, send: Send, headers: Headers) -> bool:
        await send({"type": "http.response.start", "status": self.status, "headers": raw_headers(headers)})
        if self.first is not None:
            await send({"type": "http.response.body", "body": self.first, "more_body": True})
            self.size += len(self.first)
            async for chunk in self.stream.rest():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                self.size += len(chunk)
                if self.cancel.cancelled:
                    return False
        await send({"type": "http.response.body", "body": b""})
        return True


@dataclass
class EventResponse:
    """An event stream: a function is polled until it returns None, the client disconnects or the server drains."""

    headers: Headers
    poll: Callable[[], bytes | None]
    execution: Execution
    lane: LaneName
    cancel: Cancellation
    on_error: Callable[[BaseException], None]
    first: bytes | None = None
    held: ExitStack = field(default_factory=ExitStack)
    status: int = 200
    size: int = 0
    """The number of bytes that were sent."""

    async def send(self, send: Send, common: Mapping[str, str], receive: Receive) -> bool:
        """Send events until the end; return False if a failure cut the stream."""
        headers = raw_headers({**common, **self.headers})
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        try:
            async with watching_disconnect(receive, self.cancel.cancel):
                await self._poll(send)
        except Exception as error:
            if not self.cancel.cancelled:
                self.on_error(error)
            return False
        await send({"type": "http.response.body", "body": b""})
        return True

    async def close(self) -> None:
        """Release the slots."""
        self.held.close()

    async def _poll(self, send: Send) -> None:
        idle = 0.0
        events = self.first
        while events is not None and not self.cancel.cancelled:
            if not events and idle >= HEARTBEAT_S:
                events, idle = b":\n\n", 0.0
            if events:
                await send({"type": "http.response.body", "body": events, "more_body": True})
                self.size += len(events)
            else:
                await asyncio.sleep(POLL_S)
                idle += POLL_S
            events = await self.execution.call(self.lane, self.poll)


AnyResponse = Response | StreamResponse | EventResponse


def raw_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers as ASGI sends them; a value with a control character is an error of the server."""
    return [(_raw_name(name), _raw_value(value)) for name, value in headers.items()]


@lru_cache(256)
def _raw_name(name: str) -> bytes:
    return name.lower().encode("ascii")


def _raw_value(value: str) -> bytes:
    if not value.isprintable():
        value = "".join(character for character in value if character.isprintable())
    return value.encode("latin-1", "replace")
