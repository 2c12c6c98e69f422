"""Checks of request heads that both HTTP parsers must pass.

The parsers differ in what they tolerate. A head that a proxy in front of the server could read in another way is
refused, so that no request can be hidden in the body of another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from omnigraph.server.deployment.settings import ServerLimits

RawHeaders = Sequence[tuple[bytes, bytes]]

PLAIN_HEADERS = ("cache-control: no-store", "x-content-type-options: nosniff")
"""Headers of responses that do not reach the application."""
_VERSIONS = ("1.0", "1.1")
_LOOSE_LINE = re.compile(rb"(?<!\r)\n|\n[ \t]")
_LENGTH = re.compile(rb"\ncontent-length[ \t]*:([^\r]*)", re.IGNORECASE)
_ENCODING = re.compile(rb"\ntransfer-encoding[ \t]*:", re.IGNORECASE)


def error_body(message: str, code: str, reason: str) -> bytes:
    """Return the error object of a request that does not reach the application."""
    return json.dumps({"error": message, "code": code, "reason": reason}).encode()


def problem_of_raw_head(data: bytes) -> str | None:
    """Return why the bytes of a head are refused; h11 would accept them. The head may be incomplete."""
    head = data.partition(b"\r\n\r\n")[0]
    if _LOOSE_LINE.search(head):
        return "a line of the request head does not end in CR LF, or continues another line"
    lengths = _LENGTH.findall(head)
    if len(lengths) > 1 or any(b"," in length for length in lengths):
        return "the request has several values of Content-Length"
    if lengths and _ENCODING.search(head):
        return "the request has both Content-Length and Transfer-Encoding"
    return None


def problem_of_target(target: bytes, headers: RawHeaders) -> str | None:
    """Return why a request target or a transfer encoding is refused; httptools would accept it."""
    if not target.startswith(b"/") or b"#" in target:
        return "the request target is not a path"
    encodings = [value for name, value in headers if name == b"transfer-encoding"]
    if encodings and [value.strip().lower() for value in encodings] != [b"chunked"]:
        return "the only supported Transfer-Encoding is 'chunked'"
    return None


class HeadCheck:
    """ASGI application that refuses large headers with 431, and ambiguous heads with 400."""

    def __init__(self, app: ASGIApp, limits: ServerLimits) -> None:
        self._app = app
        self._header_bytes = limits.header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
            if size > self._header_bytes:
                await _refuse(send, 431, f"the headers exceed {self._header_bytes} bytes", "header_too_large")
                return
            problem = _problem_of_head(scope)
            if problem is not None:
                await _refuse(send, 400, problem, "bad_http")
                return
        await self._app(scope, receive, send)


def _problem_of_head(scope: Scope) -> str | None:
    version, headers = scope["http_version"], scope["headers"]
    if version not in _VERSIONS:
        return f"the server does not support HTTP/{version}"
    hosts = sum(name == b"host" for name, _ in headers)
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        return "the request must have one header Host"
    return problem_of_target(scope["raw_path"], headers)


async def _refuse(send: Send, status: int, message: str, reason: str) -> None:
    body = error_body(message, "bad_request", reason)
    plain = [tuple(map(str.encode, line.split(": "))) for line in PLAIN_HEADERS]
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *plain,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
