"""HTTP requests to one base URL over persistent connections.

The module is independent of embeddings. A request has a time limit for the whole exchange. Redirects are not followed:
the key is sent only to the configured host.
"""

from __future__ import annotations

import re
import selectors
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from urllib.parse import urlsplit

from omnigraph.embedding.retry import WAIT_MAX_S, TryFailed
from omnigraph.http_time_limit import response_until
from omnigraph.observer import outgoing_headers

_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Answer:
    """Response with any status."""

    status: int
    body: bytes
    retry_after_s: float


class Transport:
    """Posts to one base URL. Thread-safe; it uses one connection per concurrent request."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        assert parts.hostname is not None, "a configuration checks its base URL"
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._secure else 80)
        self._path = parts.path.rstrip("/")
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._idle: list[HTTPConnection] = []
        weakref.finalize(self, _close_all, self._idle)

    def post(self, path: str, headers: Mapping[str, str], body: bytes, *, timeout_s: float, answer_max: int) -> Answer:
        """Send one request and return its response of at most `answer_max` bytes; `TryFailed` if there is none."""
        try:
            return self._exchange(path, headers, body, timeout_s, answer_max)
        except TimeoutError:
            raise TryFailed(f"timeout after {round(timeout_s * 1000)} ms", retryable=True, timed_out=True) from None
        except IncompleteRead as error:
            raise TryFailed(f"{self._name} ended the connection within its answer", retryable=True) from error
        except OSError as error:
            cause = error.strerror or str(error) or type(error).__name__
            raise TryFailed(f"no connection to {self._name}: {cause}", retryable=True) from error
        except HTTPException as error:
            raise TryFailed(f"{self._name} does not answer in HTTP", retryable=False) from error

    def _exchange(
        self, path: str, headers: Mapping[str, str], body: bytes, timeout_s: float, answer_max: int
    ) -> Answer:
        ends = time.monotonic() + timeout_s
        connection = self._take(timeout_s)
        reusable = False
        try:
            connection.response_class = response_until(ends)
            connection.request("POST", self._path + path, body, {**headers, **outgoing_headers()})
            with connection.getresponse() as response:
                data = response.read(answer_max + 1)
                if len(data) > answer_max:
                    raise TryFailed("the answer is longer than any right one", retryable=False)
                if response.length:
                    raise IncompleteRead(data, response.length)
                reusable = response.isclosed() and connection.sock is not None
            return Answer(response.status, data, _retry_after_s(response))
        finally:
            if reusable:
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close idle connections; the next request opens a new one."""
        with self._lock:
            _close_all(self._idle)

    @property
    def _name(self) -> str:
        return f"{self._host}:{self._port}"

    def _take(self, timeout_s: float) -> HTTPConnection:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if _is_open(connection.sock):
                    connection.sock.settimeout(timeout_s)
                    return connection
                connection.close()
            if self._secure and self._context is None:
                self._context = ssl.create_default_context()
        if self._secure:
            return HTTPSConnection(self._host, self._port, timeout=timeout_s, context=self._context)
        return HTTPConnection(self._host, self._port, timeout=timeout_s)


def _is_open(sock: socket.socket) -> bool:
    # No request is pending on an idle connection, so readable data means that it was closed.
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return not selector.select(timeout=0)


def _close_all(connections: list[HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


# -- Retry-After -------------------------------------------------------------------------------------


def _retry_after_s(response: HTTPResponse) -> float:
    """Return the seconds that the server asks to wait: a number, or a date relative to its `Date` header."""
    text = response.getheader("Retry-After", "").strip()
    if _SECONDS.fullmatch(text):
        seconds = float(text)
    else:
        until = _moment(text)
        if until is None:
            return 0.0
        now = _moment(response.getheader("Date", ""))
        seconds = until - (time.time() if now is None else now)
    return min(max(seconds, 0.0), WAIT_MAX_S)


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
