"""Servers for tests: a small graph, a life cycle in a thread, and programs as real processes on a free port."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.server.app import create_app
from omnigraph.server.deployment.reload import make_holder
from omnigraph.server.deployment.state import StateHolder
from omnigraph.server.deployment.state_builder import StartOptions
from omnigraph.server.process.lifecycle import Lifecycle
from omnigraph.server.process.listening import bind
from support.commands import SCHEMA

WAIT_S = 60.0
"""The bound of every wait; no test depends on its value."""
POLICY = """version: 1
groups:
  team: [ana]
rules:
  - id: team-reads
    allow:
      actors: { group: team }
      actions: [read]
"""


def make_graph(path: Path, *names: str) -> Path:
    """Create a graph of persons."""
    graph = og.init(path, SCHEMA, sync=False)
    if names:
        graph.load([{"type": "Person", "data": {"name": name}} for name in names], mode="append")
    return path


@dataclass
class Response:
    """The answer of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=WAIT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(WAIT_S)
        self.sock.connect(self._path)


def request(
    address: str, path: str, *, method: str = "GET", context: ssl.SSLContext | None = None, **options: Any
) -> Response:
    """Send one request; `address` is IP:PORT or unix:PATH."""
    connection: http.client.HTTPConnection
    if address.startswith("unix:"):
        connection = _UnixConnection(address.removeprefix("unix:"))
    elif context is not None:
        connection = http.client.HTTPSConnection(address, timeout=WAIT_S, context=context)
    else:
        connection = http.client.HTTPConnection(address, timeout=WAIT_S)
    with contextlib.closing(connection):
        connection.request(method, path, **options)
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Response(answer.status, headers, answer.read())


class Counted:
    """An ASGI application whose `/read` and `/write` run until they are released, and the work that it counts."""

    def __init__(self) -> None:
        self.in_flight_reads = 0
        self.in_flight_writes = 0
        self.released = threading.Event()
        self.cancelled = threading.Event()

    def cancel_reads(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        pass

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        import asyncio  # noqa: PLC0415

        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        status, kind = 200, scope["path"]
        if kind in ("/read", "/write"):
            name = f"in_flight_{kind[1:]}s"
            setattr(self, name, getattr(self, name) + 1)
            while not self.released.is_set() and not (kind == "/read" and self.cancelled.is_set()):
                await asyncio.sleep(0.01)
            setattr(self, name, getattr(self, name) - 1)
            status = 200 if self.released.is_set() else 503
        elif kind == "/large":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(1024):
                await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
            await send({"type": "http.response.body", "body": b""})
            return
        elif kind == "/body":
            while (await receive()).get("more_body"):
                pass
        body = json.dumps({"path": kind, "client": scope["client"], "scheme": scope["scheme"]}).encode()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


@dataclass
class Running:
    """A life cycle that serves in a thread."""

    lifecycle: Lifecycle
    holder: StateHolder
    app: Counted
    ready: threading.Event = field(default_factory=threading.Event)
    code: int | None = None

    @property
    def address(self) -> str:
        """The address, with the real port."""
        return self._address

    def start(self) -> None:
        host, port = self.lifecycle.listener.getsockname()[:2]
        self._address = f"{host}:{port}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.ready.wait(WAIT_S)

    def _run(self) -> None:
        self.code = self.lifecycle.run(self.ready.set, with_signals=False)

    def join(self) -> int | None:
        """Wait for the end and return the exit code."""
        self._thread.join(WAIT_S)
        return self.code

    def get(self, path: str, **options: Any) -> Response:
        return request(self.address, path, **options)

    def get_later(self, path: str) -> Callable[[], Response]:
        """Send a request in a thread; the returned function waits for its answer."""
        found: list[Response | Exception] = []

        def ask() -> None:
            try:
                found.append(self.get(path))
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()

        def answer() -> Response:
            thread.join(WAIT_S)
            if isinstance(found[0], Exception):
                raise found[0]
            return found[0]

        return answer


@contextlib.contextmanager
def serving(options: StartOptions) -> Iterator[tuple[str, StateHolder]]:
    """Serve the application of the server in a thread; yields its address and state."""
    holder = make_holder(options)
    app = create_app(holder)
    lifecycle = Lifecycle(holder, app, app.server.execution, bind(holder.current.settings))
    host, port = lifecycle.listener.getsockname()[:2]
    ready = threading.Event()
    thread = threading.Thread(target=lifecycle.run, args=(ready.set,), kwargs={"with_signals": False}, daemon=True)
    thread.start()
    assert ready.wait(WAIT_S)
    try:
        yield f"{host}:{port}", holder
    finally:
        lifecycle.stop()
        thread.join(WAIT_S)


@contextlib.contextmanager
def running(graph: Path, *, read_grace_s: float = 10.0, **flags: Any) -> Iterator[Running]:
    """Serve `Counted` in a thread; `limits__idle_s=1` sets `server.limits.idle_s`."""
    values = {"bind": "127.0.0.1:0", **{name.replace("__", "."): value for name, value in flags.items()}}
    holder = make_holder(StartOptions((str(graph),), flags=values, environ={}))
    app = Counted()
    lifecycle = Lifecycle(holder, app, app, bind(holder.current.settings), read_grace_s=read_grace_s)
    served = Running(lifecycle, holder, app)
    served.start()
    try:
        yield served
    finally:
        app.released.set()
        if served.code is None and holder.phase != "draining":
            lifecycle.stop()
        served.join()


@dataclass
class Program:
    """A server as a process."""

    process: subprocess.Popen[str]
    address: str
    errors: Path
    lines: list[str]
    """The lines of stdout so far."""

    def get(self, path: str, **options: Any) -> Response:
        return request(self.address, path, **options)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.send(number)
        return self.process.wait(WAIT_S)

    @property
    def log(self) -> str:
        return self.errors.read_text(encoding="utf-8")


def environment(**variables: str) -> dict[str, str]:
    """The environment of a program: that of the tests without settings of a server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMNIGRAPH_")}
    return {**kept, "OMNIGRAPH_HOME": os.devnull, **variables}


_PASS_SOCKET = """
import os, sys
given = int(sys.argv[1])
if given != 3:
    os.dup2(given, 3)
    os.close(given)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""Passes a socket as a service manager does: as file descriptor 3 of the same process."""


@contextlib.contextmanager
def program(
    folder: Path,
    *arguments: str,
    lines: int = 1,
    module: str = "omnigraph",
    listener: socket.socket | None = None,
    **variables: str,
) -> Iterator[Program]:
    """Run `omnigraph serve` in a folder until it has printed its address; `lines` are read from stdout.

    The port is a free one unless the arguments name an address.
    """
    errors = folder / "stderr.txt"
    if module == "omnigraph":
        bind = () if listener is not None or "--bind" in arguments else ("--bind", "127.0.0.1:0")
        arguments = ("serve", *arguments, *bind)
    words = ["-m", module, *arguments]
    if listener is not None:
        words = ["-c", _PASS_SOCKET, str(listener.fileno()), *words]
    with errors.open("w", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            [sys.executable, *words],
            pass_fds=[listener.fileno()] if listener is not None else [],
            cwd=folder,
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    try:
        found = [process.stdout.readline().rstrip("\n") for _ in range(lines)]
        assert found[0].startswith("OMNIGRAPH_LISTEN_ADDR="), errors.read_text(encoding="utf-8")
        yield Program(process, found[0].partition("=")[2], errors, found)
    except BaseException as error:
        error.add_note(f"end of the log of the server:\n{errors.read_text(encoding='utf-8')[-3000:]}")
        raise
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(WAIT_S)
        process.stdout.close()
