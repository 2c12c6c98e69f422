"""OWASP API 4: resources. One client with many or large requests does not take the memory, disk or time of others.

The tests count what the server holds and the order of its answers; they measure no time.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server import exchange
from omnigraph.server.messages import bodies
from omnigraph.wire.decoding import VALUES_MAX
from support.raw_http import statuses
from support.server import WAIT_S, ServerUnderTest, serving

MIB = 1 << 20
TOKENS = {"ana": "t-ana", "bo": "t-bo", "eve": "t-eve"}
POLICY = """version: 1
groups: { readers: [eve], writers: [ana, bo] }
rules:
  - id: readers
    allow: { actors: { group: readers }, actions: [read] }
  - id: writers
    allow: { actors: { group: writers }, actions: [read, change], branch_scope: any }
"""
NAMES = "query names() { match { $p: Person } return { $p.name } }"
ADD = "query add($name: String) { insert Person { name: $name } }"
LINE = b'{"type": "Person", "data": {"name": "x"}}\n'
WHOLE = {"limits.queue_s": 600, "limits.body_rate": 0}
"""Waits end by themselves: no test depends on the time that they take."""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("floods")
    return og.init(folder / "g.omni", "node Person { name: String @key }", sync=False).uri


@contextmanager
def guarded(uri: str, folder: Path, **limits: Any) -> Iterator[ServerUnderTest]:
    """Serve the graph with tokens and a policy."""
    (folder / "policy.yaml").write_text(POLICY)
    config = folder / "omnigraph.yaml"
    config.write_text(f"graphs:\n  g: {{ uri: {uri}, policy: {{ file: policy.yaml }} }}\nserver: {{ graph: g }}\n")
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS)}
    flags = {**WHOLE, **{f"limits.{name}": value for name, value in limits.items()}}
    with serving(config=config, environ=environ, flags=flags) as server:
        yield server
        assert server.becomes_idle()
        assert server.app.server.admission.bodies.used == 0


def begin(
    server: ServerUnderTest, path: str, body: bytes, *headers: str, actor: str = "ana", length: int | None = None
) -> socket.socket:
    """Send a request and return its connection; the body can be shorter than its declared length."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKENS[actor]}", *headers]
    if not any(line.startswith("Transfer-Encoding") for line in headers):
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    if not any(line.startswith("Content-Type") for line in headers):
        lines.append("Content-Type: application/json")
    client = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S)
    client.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return client


def answer(client: socket.socket) -> tuple[int, Any]:
    """Return status and document of a response."""
    data = client.recv(65536)
    return statuses(data)[0], json.loads(data.partition(b"\r\n\r\n")[2])


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("the condition did not hold in time")


@contextmanager
def writes_held(server: ServerUnderTest) -> Iterator[None]:
    """Hold every slot for writes."""
    lane = server.app.server.execution.lanes["writes"]

    async def take() -> None:
        for number in range(lane.slots):
            await lane.enter(f"holder {number}", WAIT_S)

    asyncio.run_coroutine_threadsafe(take(), server.loop).result(WAIT_S)
    try:
        yield
    finally:
        for number in range(lane.slots):
            server.loop.call_soon_threadsafe(lane.leave, f"holder {number}")


# -- bodies in memory --------------------------------------------------------------------------------


def test_a_caller_without_rights_is_refused_before_its_body(uri: str, tmp_path: Path) -> None:
    """The bodies are not complete: the answers cannot depend on their ends."""
    with guarded(uri, tmp_path) as server, ExitStack() as clients:
        begun = [
            clients.enter_context(begin(server, "/ingest", b'{"data":"' + b"x" * 100_000, actor="eve", length=32 * MIB))
            for _ in range(40)
        ]
        assert [answer(client)[0] for client in begun] == [403] * 40
        assert server.app.server.admission.bodies.used == 0


@pytest.mark.parametrize("is_chunked", [False, True])
def test_bodies_that_do_not_end_are_bounded_per_actor_and_in_all(uri: str, tmp_path: Path, is_chunked: bool) -> None:
    """A chunked body counts as it arrives; one with a length counts as a whole."""
    size = 300_000
    body = b'{"data":"' + b"x" * size
    headers = ("Transfer-Encoding: chunked",) if is_chunked else ()
    if is_chunked:
        body = b"%x\r\n%s\r\n" % (len(body), body)
    with guarded(uri, tmp_path, body_memory=8 * MIB) as server, ExitStack() as clients:
        memory = server.app.server.admission.bodies
        counted = 3 * (size if is_chunked else MIB)
        refused = {"ana": 0, "bo": 0}
        for actor in 8 * ["ana"] + 8 * ["bo"]:
            end = memory.used + counted
            client = clients.enter_context(begin(server, "/ingest", body, *headers, actor=actor, length=MIB))
            wait_until(lambda client=client, end=end: memory.used >= end or _has_answer(client))
            assert memory.used <= 8 * MIB
            if _has_answer(client):
                status, document = answer(client)
                assert (status, document["overload"]["limit"]) == (429, "body_memory")
                refused[actor] += 1
        held = 4 * MIB // counted
        assert refused == {"ana": 8 - held, "bo": 8 - held}
        assert server.post("/query", {"query": NAMES}, token="t-eve").status == 200


def _has_answer(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        client.settimeout(WAIT_S)


# -- compressed and large JSON -----------------------------------------------------------------------


def test_a_compressed_body_of_too_many_values_is_refused_before_it_is_decoded(uri: str, tmp_path: Path) -> None:
    with guarded(uri, tmp_path) as server:
        for unit in (b"[", b"{},", b"[[],1],", b'{"a":1},', b"1,"):
            body = gzip.compress(b'{"data":[' + unit * (2 * VALUES_MAX))
            with begin(server, "/ingest", body, "Content-Encoding: gzip") as client:
                status, document = answer(client)
            assert (status, document["reason"]) == (400, "bad_json")
            assert f"{VALUES_MAX:,} values" in document["error"]


def test_the_event_loop_turns_while_a_large_body_is_decoded(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder waits for turns of the event loop, which come only if it does not run there."""
    turns: list[int] = []
    ticks = [0]

    async def tick() -> None:
        while True:
            ticks[0] += 1
            await asyncio.sleep(0.001)

    decode = exchange.decode_body

    def watched(*arguments: Any, **options: Any) -> Any:
        before = ticks[0]
        decoded = decode(*arguments, **options)
        wait_until(lambda: ticks[0] > before + 10)
        turns.append(ticks[0] - before)
        return decoded

    monkeypatch.setattr(exchange, "decode_body", watched)
    with guarded(uri, tmp_path) as server:
        ticker = asyncio.run_coroutine_threadsafe(tick(), server.loop)
        data = {"data": LINE.decode() * 5000, "mode": "merge"}
        assert server.post("/load", data, token="t-ana").status == 200
        ticker.cancel()
    assert turns[0] > 10


# -- streamed loads ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "bodies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


NDJSON = "Content-Type: application/x-ndjson"
CHUNKED = "Transfer-Encoding: chunked"
PATH = "/load/ndjson?mode=merge"


def test_a_load_over_the_writes_of_its_actor_is_not_spooled(uri: str, tmp_path: Path, folder: Path) -> None:
    with guarded(uri, tmp_path, writes_per_actor=1) as server:
        waiting = server.app.server.admission.usage
        with ExitStack() as slots, ExitStack() as clients:
            slots.enter_context(writes_held(server))
            first = clients.enter_context(begin(server, PATH, LINE, NDJSON))
            wait_until(lambda: server.app.server.execution.lanes["writes"].waiting == 1)
            others = [clients.enter_context(begin(server, PATH, LINE, NDJSON)) for _ in range(4)]
            wait_until(lambda: len(waiting["ana"].waiting) == 4)
            assert len(list(folder.iterdir())) == 1
            with begin(server, PATH, LINE, NDJSON) as refused:
                status, document = answer(refused)
                assert (status, document["overload"]["limit"]) == (429, "writes_per_actor")
            slots.close()
            assert [answer(client)[0] for client in (first, *others)] == [200] * 5
    assert list(folder.iterdir()) == []


def test_a_load_that_grows_over_the_bytes_of_its_actor_ends_while_it_is_spooled(
    uri: str, tmp_path: Path, folder: Path
) -> None:
    part = LINE * 1000
    chunk = b"%x\r\n%s\r\n" % (len(part), part)
    with guarded(uri, tmp_path, bytes_per_actor=3 * MIB) as server:
        with begin(server, PATH, chunk, NDJSON, CHUNKED) as client:
            for _ in range(3 * MIB // len(part) + 10):
                client.sendall(chunk)
            status, document = answer(client)
        assert (status, document["overload"]["limit"]) == (429, "bytes_per_actor")
        with begin(server, PATH, b"", NDJSON, "Expect: 100-continue", length=4 * MIB) as client:
            refusal = client.recv(65536)
            assert (statuses(refusal), b"connection: close" in refusal) == ([429], True), "the declared size suffices"
    assert list(folder.iterdir()) == []


def test_a_load_leaves_space_on_the_disk_free(
    uri: str, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "DISK_FREE", 1 << 60)
    with guarded(uri, tmp_path) as server:
        for size in (1, 100_000, 2 * MIB):
            with begin(server, PATH, b" " * size, NDJSON) as client:
                status, document = answer(client)
            assert (status, document["overload"]["limit"]) == (503, "disk")
    assert list(folder.iterdir()) == []


# -- waiting writes ----------------------------------------------------------------------------------


def test_writes_of_an_actor_are_answered_in_order_of_arrival(uri: str, tmp_path: Path) -> None:
    """More writes than an actor may have at once wait for their turn and are refused by nothing."""
    names = [f"in order {number}" for number in range(1, 5)]
    with guarded(uri, tmp_path, writes_per_actor=1) as server, ExitStack() as clients:
        begun, usage = [], server.app.server.admission.usage
        with writes_held(server):
            for number, name in enumerate(names):
                body = json.dumps({"query": ADD, "params": {"name": name}, "message": name}).encode()
                begun.append(clients.enter_context(begin(server, "/change", body)))
                wait_until(lambda number=number: "ana" in usage and len(usage["ana"].waiting) == number)
        assert [answer(client)[0] for client in begun] == [200] * len(names)
    commits = [commit.message for commit in og.open(uri).commits(limit=len(names))]
    assert commits == names[::-1]


def test_an_actor_without_writes_is_refused_at_once(uri: str, tmp_path: Path) -> None:
    with guarded(uri, tmp_path, writes_per_actor=0) as server:
        reply = server.post("/change", {"query": ADD, "params": {"name": "none"}}, token="t-ana")
        assert (reply.status, reply.headers["retry-after"]) == (429, "1")
