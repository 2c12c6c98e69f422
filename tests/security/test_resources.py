"""OWASP API 4: resources. Bodies and numbers that are cheap to send and costly to handle are refused.

tests/unit/server/process/test_connections.py has the limits of connections: slow heads, idle clients, their number.
"""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator

import pytest

import omnigraph as og
from support.raw_http import exchange, statuses
from support.server import WAIT_S, ServerUnderTest, serving

READ = "query people($n: I64?) { match { $p: Person } return { $p.name } }"
BODY_MAX = 64 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    graph = og.init(tmp_path_factory.mktemp("resources") / "g.omni", "node Person { name: String @key }", sync=False)
    with serving(graph.uri, flags={"limits.body_bytes": BODY_MAX}) as running:
        yield running
        assert running.post("/query", {"query": READ}).status == 200, "the server still answers"


def send(server: ServerUnderTest, body: bytes, **headers: str) -> tuple[int, str]:
    given = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    reply = server.request("POST", "/query", body, headers=given)
    return reply.status, reply.json["reason"]


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"query":"x","params":{"a":' + b"[" * 100])
def test_deep_json(server: ServerUnderTest, opening: bytes) -> None:
    assert send(server, opening * (BODY_MAX // len(opening) - 1))[0] == 400


def test_deep_parameters(server: ServerUnderTest) -> None:
    nested = "[" * 2000 + "]" * 2000
    assert send(server, f'{{"query":{json.dumps(READ)},"params":{{"n":{nested}}}}}'.encode())[0] == 400


@pytest.mark.parametrize("number", ["9" * 10_000, "-" + "9" * 5_000, "1e999999", "NaN", "Infinity", "1" + "0" * 400])
def test_huge_numbers(server: ServerUnderTest, number: str) -> None:
    for member in ("page", "params"):
        value = number if member == "page" else f'{{"n":{number}}}'
        assert send(server, f'{{"query":{json.dumps(READ)},"{member}":{value}}}'.encode())[0] == 400


def test_a_page_of_a_billion_rows(server: ServerUnderTest) -> None:
    assert server.post("/query", {"query": READ, "page": 10**9}).status == 400
    for path in ("/commits", "/changes", "/diff"):
        assert server.get(path, params={"limit": 10**9}).status in (400, 413), path


def test_repeated_members(server: ServerUnderTest) -> None:
    assert send(server, b'{"query":"a","query":"b"}') == (400, "bad_json")


def test_a_compressed_bomb(server: ServerUnderTest) -> None:
    body = gzip.compress(b'{"query":"' + b" " * 50_000_000 + b'"}')
    assert len(body) < BODY_MAX
    assert send(server, body, Content_Encoding="gzip") == (413, "body_too_large")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "compress", "x"])
def test_other_encodings(server: ServerUnderTest, encoding: str) -> None:
    assert send(server, b"{}", Content_Encoding=encoding)[0] == 415


def test_broken_compressed_bodies(server: ServerUnderTest) -> None:
    body = gzip.compress(json.dumps({"query": READ}).encode())
    for broken in (b"{}", body[:-4], body[:10]):
        assert send(server, broken, Content_Encoding="gzip") == (400, "bad_encoding")


def test_a_body_that_does_not_end_is_refused_at_its_limit(server: ServerUnderTest) -> None:
    """The answer arrives while the client still sends: the rest is not read into memory."""
    head = b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Transfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as connection:
        connection.sendall(head + chunk * 2)
        assert statuses(connection.recv(65536)) == [413]


def test_a_declared_length_over_the_limit_is_refused_before_the_body(server: ServerUnderTest) -> None:
    head = b"POST /query HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    assert statuses(exchange(server.port, head + b"Content-Length: 99999999999\r\n\r\n")) == [413]


def test_many_parameters_and_headers(server: ServerUnderTest) -> None:
    assert server.get("/commits?" + "&".join(f"a{n}=1" for n in range(500))).status == 400
    assert server.get("/version", headers={f"X-{n}": "x" * 100 for n in range(90)}).status == 200
    assert server.get("/version", headers={"X-Large": "x" * 17_000}).status == 431
