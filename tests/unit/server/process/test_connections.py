"""Limits of connections, with both HTTP parsers: number, time of a head, idle time, size of a head, and bytes that are
not HTTP."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.server.process import connections, lifecycle
from omnigraph.server.process.connections import guarded_protocol, h11_protocol
from support.serving import WAIT_S, Running, make_graph, running
from support.waiting import wait_for


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_graph(tmp_path_factory.mktemp("graph") / "g.omni")


PARSERS = {"httptools": guarded_protocol, "h11": h11_protocol}


@pytest.fixture(params=PARSERS)
def parser(request) -> str:
    return request.param


@contextmanager
def serving(parser: str, graph: Path, **limits: float) -> Iterator[Running]:
    """A server with one of the parsers and limits that settings do not allow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            lifecycle, "guarded_protocol", lambda found, usage: PARSERS[parser](replace(found, **limits), usage)
        )
        patch.setattr(connections, "SWEEP_S", 0.05)
        with running(graph, limits__header_bytes=2048) as found:
            yield found


@pytest.fixture(params=PARSERS, scope="module")
def served(request, graph) -> Iterator[Running]:
    with serving(request.param, graph) as found:
        yield found


@pytest.fixture(params=PARSERS, scope="module")
def short_head(request, graph) -> Iterator[Running]:
    """A server that waits a moment for a head."""
    with serving(request.param, graph, request_head_s=0.1) as found:
        yield found


@pytest.fixture(params=PARSERS, scope="module")
def short_idle(request, graph) -> Iterator[Running]:
    """A server that closes idle connections soon."""
    with serving(request.param, graph, idle_s=0.5) as found:
        yield found


def connect(served: Running) -> socket.socket:
    host, port = served.address.split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_S)


def read_all(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    found = b""
    try:
        while chunk := connection.recv(65536):
            found += chunk
    except ConnectionResetError:
        pass
    return found


def parts(answer: bytes) -> tuple[int, dict[str, str]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_a_request_is_answered(served: Running):
    assert served.get("/ok").document["path"] == "/ok"
    assert "server" not in served.get("/ok").headers


def test_a_slow_head_is_refused(short_head: Running):
    with connect(short_head) as connection:
        connection.sendall(b"GET /ok HTTP/1.1\r\nHost: x\r\n")
        status, document = parts(read_all(connection))
    assert (status, document["reason"]) == (408, "head_timeout")


def test_a_slow_second_head_is_refused(short_head: Running):
    with connect(short_head) as connection:
        connection.sendall(b"GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"G")
        assert b"408" in read_all(connection)


def test_an_idle_connection_is_closed(short_idle: Running):
    with connect(short_idle) as connection:
        assert read_all(connection) == b""


def test_an_idle_connection_after_a_request_is_closed(short_idle: Running):
    with connect(short_idle) as connection:
        connection.sendall(b"GET /ok HTTP/1.1\r\nHost: x\r\n\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 200")


def test_a_body_that_stops_is_closed(short_idle: Running):
    with connect(short_idle) as connection:
        connection.sendall(b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        assert read_all(connection) == b""


def test_a_body_that_arrives_slowly_is_refused(served: Running):
    """The clock of the check is the test's own: the windows of the rate pass at once."""
    start = time.monotonic()

    def check(seconds: float) -> None:
        done = threading.Event()

        def look() -> None:
            for connection in tuple(served.lifecycle.connections):
                connection.check_times(start + seconds)
            done.set()

        served.lifecycle._loop.call_soon_threadsafe(look)
        assert done.wait(WAIT_S)

    def received(count: int) -> None:
        wait_for(lambda: [each.times.received for each in served.lifecycle.connections] == [count])

    rate = served.holder.current.settings.limits.body_rate
    head = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    wait_for(lambda: not served.lifecycle.connections)
    with connect(served) as connection:
        connection.sendall(head)
        received(len(head))
        check(1)
        enough = int(rate * connections.BODY_WINDOW_S)
        connection.sendall(b"x" * 2 * enough)
        received(len(head) + 2 * enough)
        check(1 + connections.BODY_WINDOW_S)
        connection.sendall(b"x" * (enough - 1))
        received(len(head) + 3 * enough - 1)
        check(1 + 2 * connections.BODY_WINDOW_S - 0.01)
        check(1 + 2 * connections.BODY_WINDOW_S)
        status, document = parts(read_all(connection))
    assert (status, document["reason"]) == (408, "slow_body")


def test_a_client_that_reads_nothing_is_closed(short_idle: Running):
    with connect(short_idle) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: len(short_idle.lifecycle.connections) == 1)
        wait_for(lambda: not short_idle.lifecycle.connections)
        assert len(read_all(connection)) < 64 << 20


def test_connections_over_the_limit_are_refused(parser: str, graph: Path):
    with serving(parser, graph, connections=4) as served:
        open_ones = served.lifecycle.connections
        held = [connect(served) for _ in range(4)]
        wait_for(lambda: len(open_ones) == 4)
        with connect(served) as more:
            answer = read_all(more)
        status, document = parts(answer)
        assert (status, document["code"]) == (503, "too_many_requests")
        assert b"retry-after: 1" in answer
        for connection in held:
            connection.close()
        wait_for(lambda: not open_ones)
        assert served.get("/ok").status == 200


def test_large_headers_are_refused(served: Running):
    answer = served.get("/ok", headers={"X-Large": "x" * 3000})
    assert (answer.status, answer.document["reason"]) == (431, "header_too_large")
    assert served.get("/ok", headers={"X-Fits": "x" * 1000}).status == 200


def test_a_head_without_end_is_refused(served: Running):
    with connect(served) as connection:
        connection.sendall(b"GET /ok HTTP/1.1\r\n")
        try:
            for _ in range(1000):
                connection.sendall(b"X-Pad: " + b"y" * 1000 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = read_all(connection)
    assert not answer or answer.split()[1] in (b"431", b"400")


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET /ok HTTP/1.1\r\nA B: c\r\n\r\n", b"nonsense\r\n\r\n"]
)
def test_bytes_that_are_not_http_are_refused(served: Running, data: bytes):
    with connect(served) as connection:
        connection.sendall(data)
        status, document = parts(read_all(connection))
    assert (status, document["code"], document["reason"]) == (400, "bad_request", "bad_http")


def test_forwarded_headers_of_an_unknown_peer_are_ignored(served: Running):
    answer = served.get("/ok", headers={"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"})
    assert (answer.document["client"][0], answer.document["scheme"]) == ("127.0.0.1", "http")


def test_forwarded_headers_of_a_trusted_proxy_are_used(graph):
    with running(graph, proxies=("127.0.0.0/8",)) as served:
        answer = served.get("/ok", headers={"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"})
        assert (answer.document["client"][0], answer.document["scheme"]) == ("192.0.2.7", "https")
