"""An embedding provider on loopback: a real HTTP server that answers like OpenAI and Gemini, or from a script."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from omnigraph.embedding.config import EmbeddingConfig

KEY = "sk-very-secret-0123456789"


@dataclass(frozen=True)
class Reply:
    """The reaction of the server to one request; a `body` of bytes is sent verbatim."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    trickle_s: float = 0.0
    hang_up_after: int | None = None
    """Close the connection after this many bytes of the body; -1: before the response."""


@dataclass
class Seen:
    """A received request."""

    path: str
    headers: dict[str, str]
    body: Any
    connection: tuple[str, int]


def raw_vector(text: str, dim: int) -> list[float]:
    """The vector of a text: not normalised, different for different texts."""
    return [(len(text) + 1) * 0.5, *((sum(text.encode()) * (place + 3)) % 17 - 8.25 for place in range(1, dim))]


class FakeProvider:
    """The server; `script` answers the next requests in order, then normal answers resume."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.script: list[Reply | Callable[[Seen], Reply]] = []
        self.delay_s = 0.0
        self.closed = 0
        self.peak = 0
        self.refused = 0
        self._allowed: tuple[int, float, Callable[[], float]] | None = None
        self._served: list[float] = []
        self._active = 0
        self._lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                provider._handle(self)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def shutdown_request(self, request: Any) -> None:
                super().shutdown_request(request)
                provider.closed += 1

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def config(self, provider: str = "openai", **changes: Any) -> EmbeddingConfig:
        given = {"model": "m-1", "base_url": self.url, "api_key": KEY, "timeout_ms": 5_000}
        return EmbeddingConfig(provider, **{**given, **changes})

    def allows(self, requests: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Limit the requests per window by the server clock; further requests are refused with a hint."""
        self._allowed = requests, seconds, clock

    def _refusal(self) -> Reply | None:
        if self._allowed is None:
            return None
        requests, seconds, clock = self._allowed
        now = clock()
        self._served = [at for at in self._served if at > now - seconds]
        if len(self._served) < requests:
            self._served.append(now)
            return None
        self.refused += 1
        after = self._served[-requests] + seconds - now
        return Reply(429, {"error": {"message": "too many requests"}}, {"Retry-After": f"{after:.6f}"})

    def environ(self, provider: str = "openai", **more: Any) -> dict[str, str]:
        """Environment variables that select this provider; keyword arguments add variables by suffix."""
        key = {"gemini": "GEMINI_API_KEY", "openai": "OPENAI_API_KEY"}[provider]
        named = {"OMNIGRAPH_EMBED_PROVIDER": provider, "OMNIGRAPH_EMBED_BASE_URL": self.url, key: KEY}
        return {**named, **{f"OMNIGRAPH_EMBED_{name}": str(value) for name, value in more.items()}}

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        seen = Seen(request.path, dict(request.headers), body, request.client_address)
        with self._lock:
            self.seen.append(seen)
            scripted = self._refusal() or (self.script.pop(0) if self.script else _proper)
            self._active += 1
            self.peak = max(self.peak, self._active)
        try:
            reply = scripted if isinstance(scripted, Reply) else scripted(seen)
            time.sleep(self.delay_s + reply.delay_s)
        finally:
            with self._lock:
                self._active -= 1
        try:
            _send(request, reply)
        except OSError:
            request.close_connection = True  # the client disconnected


def _send(request: BaseHTTPRequestHandler, reply: Reply) -> None:
    data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    if reply.hang_up_after is not None:
        request.close_connection = True
        if reply.hang_up_after < 0:
            return
    request.send_response(reply.status)
    for name, value in {"Content-Length": str(len(data)), **reply.headers}.items():
        request.send_header(name, value)
    request.end_headers()
    data = data[: reply.hang_up_after]
    if not reply.trickle_s:
        request.wfile.write(data)
        return
    for place in range(len(data)):
        request.wfile.write(data[place : place + 1])
        time.sleep(reply.trickle_s)


def _proper(seen: Seen) -> Reply:
    if seen.path.endswith(":embedContent"):
        text = seen.body["content"]["parts"][0]["text"]
        return Reply(body={"embedding": {"values": raw_vector(text, seen.body["outputDimensionality"])}})
    vectors = [raw_vector(text, seen.body["dimensions"]) for text in seen.body["input"]]
    items = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return Reply(body={"object": "list", "data": items[::-1], "usage": {}})  # `index` gives the order, not the position


class FakeTime:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


@contextmanager
def running() -> Iterator[FakeProvider]:
    """Run a provider for the duration of the block."""
    server = FakeProvider()
    try:
        yield server
    finally:
        server.stop()
