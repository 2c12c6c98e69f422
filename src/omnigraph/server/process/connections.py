"""Limits of connections: their number, the time and size of a request head, the rate of a body, and idle time.

uvicorn bounds the time between two requests. The protocol classes here add the rest, for both HTTP parsers. They record
times; one task per process compares them with the limits once a second, so that a request costs no timer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Overloaded
from omnigraph.server.deployment.settings import ServerLimits
from omnigraph.server.messages.request_heads import PLAIN_HEADERS, error_body, problem_of_raw_head, problem_of_target
from omnigraph.wire.document import encoder
from omnigraph.wire.errors import error_document

SWEEP_S = 1.0
"""The interval at which connections are compared with the limits."""
BODY_WINDOW_S = 30.0
"""The time over which the rate of a body is measured."""
_SLACK = 4096
"""Bytes of a head that are neither URL nor headers, such as the request line and separators."""
_log = logging.getLogger(__name__)


@dataclass
class ConnectionTimes:
    """When a connection was opened, when it last received bytes, and since when a head is incomplete."""

    last_data: float
    head_since: float | None = None
    head_bytes: int = 0
    received: int = 0
    """Bytes of the client since the connection was opened."""
    body: tuple[int, float] | None = None
    """The bytes that were received when the measurement of the rate of a body began, and its time."""
    unsent: tuple[int, float] | None = None
    """Bytes that the client does not read, and since when their number is the same."""


@dataclass
class ConnectionUsage:
    """The connections of a process."""

    open: Collection[Any] = ()
    accepted: int = 0
    """The number of connections since the start of the process, with those that were refused."""
    refused: int = 0
    """The number of connections over the limit since the start of the process."""
    timed_out: int = 0
    """The number of connections that were closed for a slow head or body, idleness or an unread response."""


def raw_response(status: int, body: bytes, *headers: str) -> bytes:
    """Return a complete response that ends the connection."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
        *PLAIN_HEADERS,
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _too_many(limit: int, present: int) -> bytes:
    error = Overloaded(
        f"the server process has {limit:,} open connections, its limit; nothing was executed",
        scope="server",
        retry_after_s=1,
        limit="connections",
        value=limit,
        actual=present,
    )
    return encoder.encode(error_document(error))


if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as _Base
else:
    _Base = object


class GuardedProtocol(_Base):
    """Additions to a protocol of uvicorn. `guarded_protocol` sets `limits` and `usage`."""

    limits: ServerLimits
    usage: ConnectionUsage
    times: ConnectionTimes

    def connection_made(self, transport: Any) -> None:
        """Accept a connection, or refuse it if there are too many."""
        self.times = ConnectionTimes(time.monotonic())
        super().connection_made(transport)
        self.usage.accepted += 1
        if len(self.connections) > self.limits.connections:
            self.usage.refused += 1
            body = _too_many(self.limits.connections, len(self.connections))
            transport.write(raw_response(503, body, "retry-after: 1"))
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse bytes of the client, and bound the head of a request."""
        if self.transport.is_closing():
            return
        times = self.times
        times.last_data = time.monotonic()
        times.received += len(data)
        super().data_received(data)
        if not self.in_head():
            times.head_since, times.head_bytes = None, 0
            return
        if times.head_since is None:
            times.head_since = times.last_data
        times.head_bytes += len(data)
        if times.head_bytes > self.limits.header_bytes + self.limits.url_bytes + _SLACK:
            message = f"the request head exceeds {self.limits.header_bytes} bytes"
            self.refuse(431, message, "header_too_large")

    def eof_received(self) -> None:
        """Note that the client is gone; the transport closes, and a response would fail."""
        self._end_requests()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the requests under way that the client is gone."""
        super().connection_lost(exc)
        self._end_requests()

    def _end_requests(self) -> None:
        for cycle in self.unanswered():
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def unanswered(self) -> list[Any]:
        """Return the requests that may be under way. uvicorn knows the last one only, not those before it."""
        cycle: Any = self.cycle
        return [] if cycle is None else [cycle]

    def on_response_complete(self) -> None:
        """Begin the idle time after a response."""
        self.times.last_data = time.monotonic()
        super().on_response_complete()

    def in_head(self) -> bool:
        """True if the head of a request has begun and is not complete."""
        raise NotImplementedError

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP."""
        self.refuse(400, msg, "bad_http")

    def refuse(self, status: int, message: str, reason: str, *, answers_body: bool = False) -> None:
        """Answer with an error and close the connection; a response under way is cut.

        A request whose body is incomplete gets an answer only with `answers_body`.
        """
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete or (answers_body and self._is_first_unanswered(cycle)):
            self.transport.write(raw_response(status, error_body(message, "bad_request", reason)))
        self.transport.close()

    def _is_first_unanswered(self, cycle: Any) -> bool:
        """True if a response to the last request would follow those to all requests before it."""
        return not cycle.response_started and self.unanswered() == [cycle]

    def check_times(self, now: float) -> None:
        """Close the connection if it exceeds a limit of time."""
        times, limits = self.times, self.limits
        if self.transport.is_closing():
            return
        if times.head_since is not None and now - times.head_since > limits.request_head_s:
            self.usage.timed_out += 1
            self.refuse(408, f"the request head did not arrive within {limits.request_head_s:g} s", "head_timeout")
        elif self._is_slow_body(now):
            self.usage.timed_out += 1
            message = f"the request body arrived at less than {limits.body_rate:,} bytes per second"
            self.refuse(408, message, "slow_body", answers_body=True)
        elif self._is_unread(now) or (self._awaits_client() and now - times.last_data > limits.idle_s):
            self.usage.timed_out += 1
            _log.debug("closed an idle connection")
            self.transport.abort()

    def _awaits_client(self) -> bool:
        """True if no request is under way, or if the body of the request is incomplete."""
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            return True
        return cycle.more_body and not self.flow.read_paused

    def _is_slow_body(self, now: float) -> bool:
        """True if the client sends a body at less than the smallest rate, while the server reads."""
        times = self.times
        cycle: Any = self.cycle
        if not self._awaits_client() or cycle is None or cycle.response_complete or cycle.waiting_for_100_continue:
            times.body = None
            return False
        if times.body is None:
            times.body = times.received, now
        before, since = times.body
        seconds = now - since
        if seconds < BODY_WINDOW_S:
            return False
        times.body = times.received, now
        return times.received - before < self.limits.body_rate * seconds

    def _is_unread(self, now: float) -> bool:
        """True if the client has read nothing of a response for the idle time."""
        times = self.times
        if not self.flow.write_paused:
            times.unsent = None
            return False
        size = self.transport.get_write_buffer_size()
        if times.unsent is None or times.unsent[0] != size:
            times.unsent = size, now
        return now - times.unsent[1] > self.limits.idle_s


def guarded_protocol(limits: ServerLimits, usage: ConnectionUsage) -> type[Any]:
    """Return the protocol class of the server: httptools if it is installed, else h11."""
    try:
        from httptools import HttpParserError  # noqa: PLC0415
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # noqa: PLC0415
    except ImportError:
        return h11_protocol(limits, usage)

    class GuardedHttpTools(GuardedProtocol, HttpToolsProtocol):
        """HTTP/1.1 parsed by httptools."""

        _begun = False
        _running: Any = None

        def _start_asgi_task(self, cycle: Any, app: Any) -> None:
            """Note the request that runs; those behind it wait in `pipeline`."""
            self._running = cycle
            super()._start_asgi_task(cycle, app)

        def unanswered(self) -> list[Any]:
            """Return the request that runs and those that wait for its end."""
            running = [self._running] if self._running is not None else []
            return [*running, *(cycle for cycle, _ in self.pipeline)]

        def on_message_begin(self) -> None:
            """Note the first byte of a request."""
            self._begun = True
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            """Note the end of the head, and refuse one that h11 would refuse."""
            self._begun = False
            if problem_of_target(self.url, self.headers) is not None:
                raise HttpParserError
            super().on_headers_complete()

        def in_head(self) -> bool:
            """True if the head of a request has begun and is not complete."""
            return self._begun

    GuardedHttpTools.limits = limits
    GuardedHttpTools.usage = usage
    return GuardedHttpTools


def h11_protocol(limits: ServerLimits, usage: ConnectionUsage) -> type[Any]:
    """Return the protocol class that parses with h11."""
    import h11  # noqa: PLC0415
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415

    class GuardedH11(GuardedProtocol, H11Protocol):  # type: ignore[misc]
        """HTTP/1.1 parsed by h11."""

        def in_head(self) -> bool:
            """True if the head of a request has begun and is not complete."""
            return self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])

        def handle_events(self) -> None:
            """Parse what has arrived; refuse a head that httptools would refuse."""
            in_head = self.conn.their_state is h11.IDLE
            problem = problem_of_raw_head(self.conn.trailing_data[0]) if in_head else None
            if problem is None:
                super().handle_events()
            else:
                self.refuse(400, problem, "bad_http")

    GuardedH11.limits = limits
    GuardedH11.usage = usage
    return GuardedH11


async def sweep(connections: Iterable[Any]) -> None:
    """Compare all connections with their limits, once a second, until cancelled."""
    while True:
        await asyncio.sleep(SWEEP_S)
        now = time.monotonic()
        for connection in tuple(connections):
            connection.check_times(now)
