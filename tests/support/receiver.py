"""A receiver of webhooks on loopback: a real HTTP server that verifies signatures and answers from a script."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "a-secret-of-the-receiver"
WAIT_S = 30.0


def within(ends: float, what: str = "the condition did not hold") -> None:
    """Fail if a wait has reached its bound."""
    if time.monotonic() > ends:
        raise AssertionError(what)


@dataclass(frozen=True)
class Received:
    """A received request."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def event(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Receiver:
    """The server. `script` has the statuses of the next requests, or a status with headers; then it answers 204."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.script: list[int | tuple[int, dict[str, str]]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append(Received(self.path, headers, body))
                reply = receiver.script.pop(0) if receiver.script else 204
                status, extra = reply if isinstance(reply, tuple) else (reply, {})
                self.send_response(status)
                for name, value in extra.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def kinds(self) -> list[str]:
        """The kinds of the received events."""
        return [each.event["kind"] for each in self.received]

    def wait_for(self, count: int) -> list[Received]:
        """Wait until so many requests arrived, and return them."""
        ends = time.monotonic() + WAIT_S
        while len(self.received) < count:
            within(ends, f"{len(self.received)} of {count} requests arrived")
            time.sleep(0.02)
        return self.received

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver."""
    receiver = Receiver()
    try:
        yield receiver
    finally:
        receiver.close()
