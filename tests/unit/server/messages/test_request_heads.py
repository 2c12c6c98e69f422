"""Checks of request heads; tests/security/test_smuggling.py sends them to both parsers."""

from __future__ import annotations

import pytest

from omnigraph.server.messages.request_heads import problem_of_raw_head, problem_of_target

GOOD = b"POST / HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"Content-Length: 2\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"X-Content-Length: 1\r\nContent-Length: 2\r\n",
        b"Content-Length: 2\r\n\r\nContent-Length: 3\nTransfer-Encoding: chunked",
    ],
)
def test_clear_heads_pass(lines: bytes) -> None:
    assert problem_of_raw_head(GOOD + lines) is None
    assert problem_of_raw_head(GOOD + lines + b"\r\n") is None


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (b"X: y\nZ: a\r\n", "CR LF"),
        (b"X: y\r\n z\r\n", "CR LF"),
        (b"Content-Length: 2\r\ncontent-length: 2\r\n", "several values"),
        (b"Content-Length: 2, 2\r\n", "several values"),
        (b"Content-Length: 2\r\nTRANSFER-ENCODING: x\r\n", "both"),
    ],
)
def test_ambiguous_heads_are_named(lines: bytes, problem: str) -> None:
    assert problem in str(problem_of_raw_head(GOOD + lines + b"\r\n"))


def test_targets() -> None:
    assert problem_of_target(b"/a?b", [(b"transfer-encoding", b"Chunked")]) is None
    for target in (b"*", b"http://a/", b"a:80", b"/a#b", b""):
        assert problem_of_target(target, []) == "the request target is not a path"
    assert "chunked" in str(problem_of_target(b"/", [(b"transfer-encoding", b"gzip, chunked")]))
