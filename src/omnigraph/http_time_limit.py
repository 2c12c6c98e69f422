"""A time limit for a whole HTTP response of the standard library.

The timeout of a socket bounds the time between two reads only. Here it is set again before every read, so a server that
sends its answer byte by byte cannot exceed the limit.
"""

from __future__ import annotations

import io
import socket
import time
from functools import partial
from http.client import HTTPResponse
from typing import Any


def response_until(ends: float) -> Any:
    """Return a `response_class` of a connection; reads raise `TimeoutError` after a time of `time.monotonic`."""
    return partial(_response, ends=ends)


def _response(sock: socket.socket, *args: Any, ends: float, **options: Any) -> HTTPResponse:
    return HTTPResponse(_TimedSocket(sock, ends), *args, **options)  # type: ignore[arg-type]


class _TimedSocket:
    """The only method of a socket that a response calls."""

    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock = sock
        self._ends = ends

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReads(self._sock, self._ends))


class _TimedReads(io.RawIOBase):
    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock = sock
        self._ends = ends
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._ends - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._sock.settimeout(left_s)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
