"""Connections on which a `Cancellation` takes effect.

A blocking read of a socket is split into short waits while the calling thread has a cancellation. The connection of a
read is closed, and the server stops. A write is stopped by a request of its own, and its answer tells the outcome.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpcore2

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import Cancelled

HELD_BYTES = 16 * 1024
POLL_S = 0.05
"""The longest time between a cancellation and its effect."""


class _Current(threading.local):
    cancel: Cancellation | None = None
    stop: Callable[[], None] | None = None


_current = _Current()


@contextmanager
def cancelled_by(cancel: Cancellation | None, stop: Callable[[], None] | None = None) -> Iterator[None]:
    """Let a cancellation end the wait of this thread for an answer.

    `stop` is called once, and the thread waits on; without it, the connection is closed.
    """
    before = _current.cancel, _current.stop
    _current.cancel, _current.stop = cancel, stop
    try:
        check(cancel)
        yield
    finally:
        _current.cancel, _current.stop = before


def check(cancel: Cancellation | None) -> None:
    """Raise `Cancelled` if a call was cancelled."""
    if cancel is not None and cancel.cancelled:
        raise Cancelled("the call was cancelled; the server stops a read when its connection is closed")


class CancellableStream(httpcore2.NetworkStream):
    """A connection whose reads end when the call is cancelled.

    Small writes are held until the next read, so that the head and the body of a request are one packet.
    """

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream
        self._held = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes."""
        if self._held:
            self._flush()
        cancel = _current.cancel
        if cancel is None:
            return self._stream.read(max_bytes, timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            if cancel.cancelled and _current.stop is not None:
                stop, _current.cancel = _current.stop, None
                stop()
                return self._stream.read(max_bytes, timeout)
            check(cancel)
            remaining = POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())
            try:
                return self._stream.read(max_bytes, max(remaining, 0.001))
            except httpcore2.ReadTimeout:
                if deadline is not None and time.monotonic() >= deadline:
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, or hold them until the next read."""
        if len(self._held) + len(buffer) <= HELD_BYTES:
            self._held += buffer
            return
        held, self._held = self._held, b""
        self._stream.write(held + buffer, timeout)

    def _flush(self) -> None:
        held, self._held = self._held, b""
        # A server that refuses a request may close the connection before it has read the body; its answer counts.
        with suppress(httpcore2.WriteError):
            self._stream.write(held)

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Return the connection with TLS."""
        return CancellableStream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return a detail of the connection, such as its socket."""
        return self._stream.get_extra_info(info)


class CancellableBackend(httpcore2.NetworkBackend):
    """Opens connections that a cancellation closes."""

    def __init__(self) -> None:
        self._backend = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Open a connection to a host."""
        return CancellableStream(self._backend.connect_tcp(host, port, timeout, local_address, socket_options))

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.NetworkStream:
        """Open a connection to a socket of this machine."""
        return CancellableStream(self._backend.connect_unix_socket(path, timeout, socket_options))
