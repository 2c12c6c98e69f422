"""A proxy in front of an object store that records every request and adds a delay.

The proxy is a process of its own, so its time is no part of the measured process. Half of the delay lies before the
store sees a request and half after its response. `depth` of a request is its place in the longest chain of requests
that do not overlap: 1 + the greatest depth of the requests whose response had ended before it began. The number of
sequential requests of an operation is the greatest depth.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.s3 import BUCKET, HOST, S3

DELAY_S = 0.02
_QUIET_S = 0.1
_QUIET_AT_MOST_S = 10.0
_LIMIT = 1 << 20


@dataclass(frozen=True)
class Request:
    """A request; times are those of `time.monotonic`, which all processes of a machine share."""

    method: str
    path: str
    note: str
    status: int
    size: int
    began: float
    ended: float

    @property
    def title(self) -> str:
        """The method and the shortened key."""
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        method, key = self.method, unquote(parts.path)
        if "list-type" in query:
            method, key = "LIST", f"/{BUCKET}/{query.get('prefix', [''])[0]}"
        note = self.note
        if "start-after" in query:
            note += " start-after"
        return f"{method:<6} {shortened(key)}{note}"


def shortened(key: str) -> str:
    """A key without its bucket and prefix; long names are cut."""
    key = re.sub(rf"^/{BUCKET}/?(place-\d+/?)?", "", key)
    return re.sub(r"[0-9A-Za-z-]{14,}", lambda found: found[0][:2] + "…" + found[0][-4:], key) or "."


def depths(spans: Sequence[tuple[float, float]]) -> list[int]:
    """The depth of each span in the longest chain of spans that do not overlap."""
    found = [0] * len(spans)
    ends = sorted(range(len(spans)), key=lambda place: spans[place][1])
    done = longest = 0
    for place in sorted(range(len(spans)), key=lambda place: spans[place][0]):
        while spans[ends[done]][1] < spans[place][0]:
            longest = max(longest, found[ends[done]])
            done += 1
        found[place] = longest + 1
    return found


@dataclass(frozen=True)
class Recorded:
    """The requests of one operation, those that began before it returned and those after."""

    before: list[Request]
    after: list[Request]
    began: float
    returned: float

    @property
    def total(self) -> int:
        """The number of requests, with those after the return."""
        return len(self.before) + len(self.after)

    @property
    def sequential(self) -> int:
        """The length of the longest chain of requests that do not overlap, without those after the return."""
        return max(depths([(one.began, one.ended) for one in self.before]), default=0)

    @property
    def ms(self) -> float:
        """Milliseconds until the return."""
        return (self.returned - self.began) * 1e3

    def trace(self) -> list[str]:
        """One line per request: its depth, its times, its status and its key."""
        lines: list[str] = []
        for when, requests in (("", self.before), ("after the return: ", self.after)):
            places = depths([(one.began, one.ended) for one in requests])
            for depth, one in zip(places, requests, strict=True):
                times = f"{(one.began - self.began) * 1e3:7.1f} –{(one.ended - self.began) * 1e3:7.1f} ms"
                lines.append(f"{depth:>3} {times} {one.status} {one.size:>7,} B  {when}{one.title}")
        return lines


class Proxy(S3):
    """A running proxy: an object store whose requests are recorded."""

    def __init__(self, endpoint: str, control: Connection) -> None:
        super().__init__(endpoint)
        self._control = control

    def _ask(self, *what: object) -> Any:
        self._control.send(what)
        return self._control.recv()

    def set_delay(self, seconds: float) -> None:
        """Set the time that is added to each request."""
        self._ask("delay", seconds)

    def wait_until_quiet(self) -> None:
        """Wait until no request was under way for a short time."""
        end = time.monotonic() + _QUIET_AT_MOST_S
        while time.monotonic() < end and self._ask("idle") < _QUIET_S:
            time.sleep(_QUIET_S / 4)

    def record(self, operation: Callable[[], object]) -> Recorded:
        """Run an operation and return its requests."""
        self.wait_until_quiet()
        self._ask("record", True)
        began = time.monotonic()
        operation()
        returned = time.monotonic()
        self.wait_until_quiet()
        requests = sorted((Request(*fields) for fields in self._ask("record", False)), key=lambda one: one.began)
        before = [one for one in requests if one.began <= returned]
        return Recorded(before, requests[len(before) :], began, returned)


@contextmanager
def proxy_to(behind: S3) -> Iterator[Proxy]:
    """Run a proxy to a store, at first without delay."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    target = urlsplit(behind.endpoint)
    process = context.Process(target=_run, args=(target.port, theirs), daemon=True)
    process.start()
    try:
        yield Proxy(f"http://{HOST}:{ours.recv()}", ours)
    finally:
        process.kill()
        process.join()


# -- the process of the proxy --------------------------------------------------------------------------


def _run(target: int, control: Connection) -> None:
    asyncio.run(_Server(target, control).serve())


class _Server:
    def __init__(self, target: int, control: Connection) -> None:
        self.target = target
        self.control = control
        self.delay = 0.0
        self.open = 0
        self.last = time.monotonic()
        self.recorded: list[tuple[object, ...]] | None = None

    async def serve(self) -> None:
        server = await asyncio.start_server(self.connected, HOST, 0, limit=_LIMIT)
        asyncio.get_running_loop().add_reader(self.control.fileno(), self.told)
        self.control.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    def told(self) -> None:
        try:
            what, *arguments = self.control.recv()
        except EOFError:
            raise SystemExit(0) from None
        answer: object = None
        if what == "delay":
            self.delay = arguments[0]
        elif what == "idle":
            answer = 0.0 if self.open else time.monotonic() - self.last
        else:
            answer, self.recorded = self.recorded, ([] if arguments[0] else None)
        self.control.send(answer)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.forward(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass  # one side closed the connection
        finally:
            writer.close()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(HOST, self.target, limit=_LIMIT)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                began = time.monotonic()
                self.open += 1
                try:
                    body = await _body(reader, head)
                    if self.delay:
                        await asyncio.sleep(self.delay / 2)
                    if up_reader.at_eof():
                        up_writer.close()
                        up_reader, up_writer = await asyncio.open_connection(HOST, self.target, limit=_LIMIT)
                    up_writer.write(head + body)
                    response = await up_reader.readuntil(b"\r\n\r\n")
                    data = b"" if _is_bare(head, response) else await _body(up_reader, response)
                    if self.delay:
                        await asyncio.sleep(self.delay / 2)
                    writer.write(response + data)
                finally:
                    self.open -= 1
                    self.last = time.monotonic()
                if self.recorded is not None:
                    method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
                    size = len(body) or len(data)
                    status = int(response.split(b" ", 2)[1])
                    self.recorded.append((method, path, _note(head), status, size, began, self.last))
        finally:
            up_writer.close()


def _field(head: bytes, name: bytes) -> bytes | None:
    found = re.search(rb"\r\n" + name + rb":[ \t]*([^\r]*)", head, re.IGNORECASE)
    return found[1] if found else None


def _note(head: bytes) -> str:
    names = {b"If-None-Match": " if-none-match", b"If-Match": " if-match", b"Range": " range"}
    return "".join(text for name, text in names.items() if _field(head, name) is not None)


def _is_bare(head: bytes, response: bytes) -> bool:
    return head.startswith(b"HEAD ") or response.split(b" ", 2)[1] in (b"204", b"304")


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    length = _field(head, b"Content-Length")
    if length is not None:
        return await reader.readexactly(int(length)) if int(length) else b""
    if (_field(head, b"Transfer-Encoding") or b"").lower() != b"chunked":
        return b""
    chunks: list[bytes] = []
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        chunks += [line, await reader.readexactly(size + 2)]
        if not size:
            return b"".join(chunks)
