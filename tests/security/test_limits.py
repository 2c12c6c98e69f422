"""OWASP API 4: resources. Each limit of the server is reached by a request and reported with its value."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server.deployment.settings import ServerLimits
from support.raw_http import statuses
from support.server import WAIT_S, Reply, ServerUnderTest, serving
from support.waiting import wait_for

NAMES = "query names() { match { $p: Person } return { $p.name } }"
PAIRS = "query pairs() { match { $a: Person $b: Person $a.age < $b.age } return { count($a) as n } }"
SLOW = f"""query slow() {{
    match {{ $p0: Person {" ".join(f"$p{at}: Person $p{at}.age = $p{at - 1}.age + 1" for at in range(1, 40))} }}
    return {{ count($p0) as n }}
}}"""
"""Each step compares all pairs of people: it takes far longer than requests wait in a queue."""
ADD = "query add($name: String) { insert Person { name: $name } }"
LINES = b"".join(json.dumps({"type": "Person", "data": {"name": f"q{n}"}}).encode() + b"\n" for n in range(200))
NDJSON = {"Content-Type": "application/x-ndjson"}
WIDE = {"limits.rows_max": 50_000_000_000, "limits.query_bytes": "1000 GiB"}
PEOPLE = 2000


def read(text: str, **headers: str) -> Callable[[ServerUnderTest], Reply]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda server: server.post("/query", {"query": text}, headers=named)


def add(server: ServerUnderTest) -> Reply:
    return server.post("/change", {"query": ADD, "params": {"name": "new"}})


def load(server: ServerUnderTest) -> Reply:
    return server.post("/load/ndjson?mode=merge", LINES, headers=NDJSON)


@dataclass(frozen=True)
class Reached:
    """A limit, the request that exceeds it, and what the response says."""

    key: str
    value: Any
    send: Callable[[ServerUnderTest], Reply]
    status: int
    reason: str
    member: tuple[str, str] | None = None
    """The member of the response that states the limit, if it is not in the text."""
    flags: tuple[tuple[str, Any], ...] = ()


REACHED = (
    Reached("body_bytes", 2000, read(NAMES + " " * 2000), 413, "body_too_large"),
    Reached(
        "envelope_bytes",
        2000,
        lambda server: server.post("/load", {"data": LINES.decode(), "mode": "merge"}),
        413,
        "body_too_large",
    ),
    Reached("load_bytes", 2000, load, 413, "body_too_large"),
    Reached("header_bytes", 2000, read(NAMES, X_Large="x" * 3000), 431, "header_too_large"),
    Reached("url_bytes", 1000, lambda server: server.get("/version?" + "x" * 2000), 414, "url_too_long"),
    Reached("query_s", 0.05, read(SLOW), 413, "timeout", flags=tuple(WIDE.items())),
    Reached("query_max_s", 0.05, read(SLOW, Omnigraph_Timeout_Ms="60000"), 413, "timeout", flags=tuple(WIDE.items())),
    Reached("rows_max", 1000, read(PAIRS), 413, "limit_reached", ("resource_limit", "limit")),
    Reached("query_bytes", 100_000, read(PAIRS), 413, "limit_reached", ("resource_limit", "limit")),
    Reached("json_rows", 10, read(NAMES), 413, "json_too_large", ("resource_limit", "limit")),
    Reached("json_bytes", 100, read(NAMES), 413, "json_too_large", ("resource_limit", "limit")),
    Reached("bytes_per_actor", 100, load, 429, "overloaded", ("overload", "value")),
    Reached("writes_per_actor", 0, add, 429, "overloaded", ("overload", "value")),
)
ELSEWHERE = {
    "body_memory": "tests/security/test_floods.py",
    "body_rate": "tests/unit/server/process/test_connections.py",
    "connections": "tests/unit/server/process/test_connections.py",
    "idle_s": "tests/unit/server/process/test_connections.py",
    "request_head_s": "tests/unit/server/process/test_connections.py",
    "memory_high": "tests/unit/server/scheduling/test_memory.py",
    "exports": "tests/unit/server/scheduling/test_admission.py",
}
"""Limits whose tests need other means, and the file that has them."""
HERE = {"reads", "queue_s", "reads_per_actor", "streams"}


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    graph = og.init(
        tmp_path_factory.mktemp("limits") / "g.omni", "node Person { name: String @key age: I64? }", sync=False
    )
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(PEOPLE)], mode="append")
    return graph.uri


def test_every_limit_has_a_test() -> None:
    assert {field.name for field in fields(ServerLimits)} == {each.key for each in REACHED} | ELSEWHERE.keys() | HERE
    for file in ELSEWHERE.values():
        assert (Path(__file__).parents[2] / file).is_file()


@pytest.mark.parametrize("case", REACHED, ids=lambda case: case.key)
def test_a_limit_is_reported(uri: str, case: Reached) -> None:
    with serving(uri, flags={f"limits.{case.key}": case.value, **dict(case.flags)}) as server:
        reply = case.send(server)
        assert (reply.status, reply.json["reason"]) == (case.status, case.reason), reply.body
        if case.member is not None:
            outer, inner = case.member
            assert reply.json[outer][inner] == case.value
        else:
            assert str(case.value) in reply.json["error"].replace(",", "")
        assert server.get("/version").status == 200, "the server still answers"
        assert server.becomes_idle()
    assert og.open(uri).get("Person", "new") is None
    assert og.open(uri).get("Person", "q0") is None


@contextmanager
def held(server: ServerUnderTest, running: int) -> Iterator[None]:
    """Hold slots of reads by slow queries; the clients then disconnect."""
    body = json.dumps({"query": SLOW}).encode()
    head = f"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    clients = []
    try:
        for _ in range(running):
            clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S))
            clients[-1].sendall(head.encode() + b"\r\n\r\n" + body)
        wait_for(lambda: server.app.server.execution.in_flight_reads >= running)
        yield
    finally:
        for client in clients:
            client.close()


def test_reads_that_wait_too_long_are_refused(uri: str) -> None:
    flags = {**WIDE, "limits.reads": 1, "limits.queue_s": 0.1, "inline_reads": False}
    with serving(uri, flags=flags) as server:
        with held(server, 1):
            reply = server.post("/query", {"query": NAMES})
            assert (reply.status, reply.json["overload"]["scope"]) == (503, "server"), reply.body
            assert int(reply.headers["retry-after"]) >= 1
        assert server.becomes_idle()
        assert server.post("/query", {"query": NAMES}).status == 200


def test_an_actor_with_all_its_reads_is_refused(uri: str) -> None:
    with serving(uri, flags={**WIDE, "limits.reads_per_actor": 2, "inline_reads": False}) as server:
        with held(server, 2):
            reply = server.post("/query", {"query": NAMES})
            assert (reply.status, reply.json["overload"]["limit"]) == (429, "reads_per_actor"), reply.body
            assert reply.json["overload"]["value"] == 2
        assert server.becomes_idle()
        assert server.post("/query", {"query": NAMES}).status == 200


def test_event_streams_over_their_number_are_refused(uri: str) -> None:
    head = b"GET /changes/stream HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    with (
        serving(uri, flags={"limits.streams": 1, "limits.queue_s": 0.1}) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as first,
        socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as second,
    ):
        first.sendall(head)
        assert statuses(first.recv(65536)) == [200]
        second.sendall(head)
        assert statuses(second.recv(65536)) == [503]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(.*a){20}", "(a{0,200}){0,200}"])
def test_regular_expressions_take_linear_time_or_are_refused(uri: str, pattern: str) -> None:
    """RE2 does not backtrack; a pattern that it cannot hold is an error of the query."""
    text = f'query m($t: String) {{ match {{ $p: Person $p.name != $t $t matches "{pattern}" }} return {{ $p.name }} }}'
    with serving(uri, flags={"limits.query_s": 20}) as server:
        reply = server.post("/query", {"query": text, "params": {"t": "a" * 5000 + "!"}})
        assert reply.status in (200, 400), reply.body


def test_clients_that_read_nothing_lose_their_slots(uri: str) -> None:
    """Streams without a reader take every slot of an actor; after `idle_s` they are closed and the actor is served."""
    text = "query all() { match { $a: Person $b: Person } return { $a.name, $b.name } }"
    body = json.dumps({"query": text}).encode()
    head = "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Accept: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n"
    with ExitStack() as clients, serving(uri, flags={"limits.reads": 2, "limits.idle_s": 1}) as server:
        for _ in range(4):
            client = clients.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(head.encode() + body)
        wait_for(lambda: server.app.server.execution.in_flight_reads > 0)
        assert server.becomes_idle()
        assert server.post("/query", {"query": NAMES}).status == 200
