"""Smuggled requests: both parsers read ambiguous bytes alike, and no request hides in another one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import omnigraph as og
from omnigraph.server.process import connections
from support.raw_http import exchange, statuses
from support.server import ServerUnderTest, serving

NEXT = b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
"""The request that an attacker hides behind another one."""
HEAD = b"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
BAD, BOTH, CUT = [400], [400, 200], []
"""The answers: one refusal; an error of the first and an answer of the second request; a closed connection."""
CASES: dict[str, tuple[bytes, list[int]]] = {
    "length": (b"Content-Length: 2\r\n\r\n{}", BOTH),
    "chunks": (CHUNKED + b"2\r\n{}\r\n0\r\n\r\n", BOTH),
    "chunk extension": (CHUNKED + b"2;a=b\r\n{}\r\n0\r\n\r\n", BOTH),
    "another name": (b"Content_Length: 2\r\n\r\n", BOTH),
    "encoding in capitals": (b"Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", BOTH),
    "length and chunks": (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
    "chunks and length": (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", BAD),
    "two lengths": (b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(NEXT), BAD),
    "two equal lengths": (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", BAD),
    "list of lengths": (b"Content-Length: 2, 2\r\n\r\n{}", BAD),
    "length with a sign": (b"Content-Length: +2\r\n\r\n{}", BAD),
    "negative length": (b"Content-Length: -2\r\n\r\n{}", BAD),
    "hexadecimal length": (b"Content-Length: 0x2\r\n\r\n{}", BAD),
    "space before the colon": (b"Content-Length : 2\r\n\r\n{}", BAD),
    "length of 23 digits": (b"Content-Length: 99999999999999999999999\r\n\r\n{}", BAD),
    "empty length": (b"Content-Length: \r\n\r\n{}", BAD),
    "unknown encoding": (b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", BAD),
    "two encodings": (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", BAD),
    "chunked is not last": (b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", BAD),
    "list of encodings": (b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", BAD),
    "encoding after a control character": (b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", BAD),
    "encoding on a continued line": (b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", BAD),
    "continued line": (b"X-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}", BAD),
    "line that ends in LF": (b"X-A: b\nContent-Length: 2\r\n\r\n{}", BAD),
    "head that ends in LF": (b"Content-Length: 2\n\n{}", BAD),
    "line that ends in CR": (b"X-A: b\rContent-Length: 2\r\n\r\n", BAD),
    "zero byte": (b"X-A: b\0c\r\nContent-Length: 2\r\n\r\n{}", BAD),
    "negative chunk": (CHUNKED + b"-1\r\n\r\n", CUT),
    "chunk with a prefix": (CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n", CUT),
    "chunk of 21 digits": (CHUNKED + b"fffffffffffffffffffff\r\n{}\r\n0\r\n\r\n", CUT),
    "chunk that ends in LF": (CHUNKED + b"2\n{}\n0\n\n", CUT),
    "chunk without its end": (CHUNKED + b"2\r\n{}xx0\r\n\r\n", CUT),
}
TARGETS = {
    "HTTP/0.9": b"GET /version\r\n\r\n",
    "HTTP/1.9": b"GET /version HTTP/1.9\r\nHost: localhost\r\n\r\n",
    "HTTP/2.0": b"GET /version HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": b"GET /version HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /version HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n",
    "absolute form": b"GET http://localhost/version HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "absolute form of another host": b"GET http://u:p@other/version HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "authority form": b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "fragment": b"GET /version#x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "space": b"GET /ver sion HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "bytes that are not ASCII": b"GET /v\xe9 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "method that is not ASCII": b"G\xc9T /version HTTP/1.1\r\nHost: localhost\r\n\r\n",
}
PARSERS = {"httptools": connections.guarded_protocol, "h11": connections.h11_protocol}


@pytest.fixture(scope="module", params=PARSERS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    graph = og.init(tmp_path_factory.mktemp("smuggling") / "g.omni", "node P { a: I32 }", sync=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.server.process.lifecycle.guarded_protocol", PARSERS[request.param])
        with serving(graph.uri) as running:
            yield running


@pytest.mark.parametrize(("sent", "expected"), CASES.values(), ids=CASES.keys())
def test_ambiguous_bodies(served: ServerUnderTest, sent: bytes, expected: list[int]) -> None:
    head = HEAD.replace(b"\r\n", b"\n") if sent.startswith(b"Content-Length: 2\n\n") else HEAD
    assert statuses(exchange(served.port, head + sent + NEXT)) == expected


@pytest.mark.parametrize("sent", TARGETS.values(), ids=TARGETS.keys())
def test_ambiguous_heads(served: ServerUnderTest, sent: bytes) -> None:
    answer = exchange(served.port, sent)
    assert statuses(answer) == BAD
    assert b"connection: close" in answer.lower()
    assert b"nosniff" in answer


def test_a_body_of_a_get_request_is_no_request(served: ServerUnderTest) -> None:
    sent = b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(NEXT)
    assert statuses(exchange(served.port, sent + NEXT)) == [200]
