"""A loopback HTTP server whose answers a test writes, and a proxy that cuts connections."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

WAIT_S = 30.0


@dataclass(frozen=True)
class Received:
    """One request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Received], bytes | None]
"""Returns the bytes of an answer; None closes the connection without one."""


@dataclass
class ScriptedServer:
    """A running server; `closed` is set when a client closes a connection that waits for an answer."""

    port: int
    requests: list[Received] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    cut_after_answer: bool = False
    """True if the connection is closed after each answer, so that a short body is cut off."""

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.port}"


def answer(status: int, body: Any = b"", **headers: str) -> bytes:
    """Return the bytes of an answer; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


ME = answer(200, {"actor_id": "ana", "groups": [], "attributes": {}, "actions": [], "graphs": []})


@contextmanager
def scripted(script: Answer) -> Iterator[ScriptedServer]:
    """Serve `/me`, and every other path as the script says, one thread for each connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    running = ScriptedServer(listener.getsockname()[1])

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            file = connection.makefile("rb")
            while (request := _read(file)) is not None:
                if request.target.startswith("/me"):
                    connection.sendall(ME)
                    continue
                running.requests.append(request)
                sent = script(request)
                if sent is None:
                    return
                if not sent:
                    # No answer: wait until the client closes the connection or the test ends.
                    connection.settimeout(WAIT_S)
                    if connection.recv(1) == b"":
                        running.closed.set()
                    return
                connection.sendall(sent)
                if running.cut_after_answer:
                    return

    thread = threading.Thread(target=_accept, args=(listener, serve), daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.released.set()
        _stop(listener, thread)


@contextmanager
def cutting_proxy(port: int, cuts: list[str]) -> Iterator[str]:
    """Forward connections to a port; a connection is cut when the answer to a path in `cuts` arrives, once each."""
    listener = socket.create_server(("127.0.0.1", 0))

    def forward(client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", port)) as server:
            file = client.makefile("rb")
            while (request := _read(file)) is not None:
                server.sendall(_written(request))
                data = server.recv(65536)
                path = request.target.partition("?")[0]
                if path in cuts:
                    cuts.remove(path)
                    return
                server.settimeout(0.2)
                with suppress(TimeoutError):
                    while data:
                        client.sendall(data)
                        data = server.recv(65536)
                server.settimeout(None)

    thread = threading.Thread(target=_accept, args=(listener, forward), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        _stop(listener, thread)


def _stop(listener: socket.socket, thread: threading.Thread) -> None:
    # A closed socket does not wake the thread that waits for a connection.
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(WAIT_S)


def _accept(listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def _read(file: Any) -> Received | None:
    first = file.readline()
    if not first:
        return None
    method, target, _ = first.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while (line := file.readline().strip()) != b"":
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(file.readline(), 16):
            body += file.read(size)
            file.readline()
        file.readline()
    else:
        body = file.read(int(headers.get("content-length", 0)))
    return Received(method, target, headers, body)


def _written(request: Received) -> bytes:
    headers = {**request.headers, "content-length": str(len(request.body))}
    headers.pop("transfer-encoding", None)
    lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + request.body
