"""Encoding of replies: from the return value of a route function to status, headers and bytes or chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never
from urllib.parse import quote

from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer, Background, Chunk, Chunks, Content, Events, Reply, Rows
from omnigraph.server.messages.content_negotiation import (
    CONTENT_TYPES,
    JsonBounds,
    arrow_body,
    gzip_bytes,
    gzip_chunks,
    json_body,
    row_chunks,
)
from omnigraph.server.messages.request import matches_none, responds_async, waits
from omnigraph.wire.document import Document, encoder

SMALL_ROWS = 1_000
"""An Arrow stream of up to this many rows and 64 KiB is sent as one body."""


@dataclass
class Encoded:
    """An encoded reply: a body, or chunks, or a function that is polled for events, and work that continues."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    chunks: Iterator[Chunk] | None = None
    poll: Callable[[], bytes | None] | None = None
    background: Callable[[], Document] | None = None
    commit: str | None = None


def encode(caller: Caller, reply: Reply) -> Encoded:
    """Encode the reply of a route function."""
    match reply:
        case Rows():
            return _rows(caller, reply)
        case Answer():
            return _document(caller, reply.document, reply.status, reply.commit, dict(reply.headers))
        case Document():
            return _document(caller, reply, 200, None, {})
        case Content():
            headers = {**({"Content-Type": reply.media_type} if reply.media_type else {}), **reply.headers}
            body = _compressed_body(caller, headers, reply.body)
            return Encoded(reply.status, headers, body, commit=reply.commit)
        case Chunks():
            headers = {"Content-Type": reply.media_type, **_tag(caller, reply.commit), **reply.headers}
            chunks = _compressed(caller, headers, reply.chunks)
            return Encoded(reply.status, headers, chunks=chunks, commit=reply.commit)
        case Background():
            return _background(caller, reply)
        case Events():
            headers = {"Content-Type": CONTENT_TYPES["events"]}
            return Encoded(200, headers, body=reply.poll() or b"", poll=reply.poll, commit=reply.commit)
        case _:
            assert_never(reply)


def etag_of(commit: str, fingerprint: str) -> str:
    """Return the tag of an answer: the commit that it shows, and the hash of the request."""
    return f'"{commit}.{fingerprint}"'


def is_not_modified(caller: Caller, body: Any, path: Mapping[str, str]) -> Encoded | None:
    """Return the answer 304 if the client already has this answer; nothing else runs then."""
    if getattr(body, "every_branch", None) is not None:
        # An answer about all branches depends on more than one commit.
        return None
    at = point_of(path.get("commit_id", getattr(body, "at", None)))
    commit = caller.graph.snapshot(getattr(body, "branch", None), at).commit_id
    caller.etag = etag_of(commit, caller.fingerprint)
    if not matches_none(caller.headers, caller.etag):
        return None
    return Encoded(304, {"ETag": caller.etag}, commit=commit)


def _rows(caller: Caller, rows: Rows) -> Encoded:
    chosen, limits, result = caller.negotiated, caller.state.settings.limits, rows.result
    caller.audit["rows"] = len(result)
    if caller.access is not None and caller.access.has_row_rules:
        # Whole milliseconds, as in Server-Timing: times tell less of hidden rows.
        result.elapsed_ms = float(round(result.elapsed_ms))
    headers = {"Content-Type": CONTENT_TYPES[chosen.form], "ETag": etag_of(result.commit_id, caller.fingerprint)}
    if chosen.form == "json":
        body = json_body(rows, JsonBounds(limits.json_rows, limits.json_bytes))
        return Encoded(200, headers, _compressed_body(caller, headers, body), commit=result.commit_id)
    if chosen.form == "arrow" and len(result) <= SMALL_ROWS:
        # One body takes fewer changes of thread than chunks.
        whole = arrow_body(result, chosen)
        if whole is not None:
            return Encoded(200, headers, whole, commit=result.commit_id)
    chunks = _compressed(caller, headers, row_chunks(rows, chosen))
    return Encoded(200, headers, chunks=chunks, commit=result.commit_id)


def _background(caller: Caller, reply: Background) -> Encoded:
    if waits(caller.headers):
        document = reply.work()
        commit = getattr(document, "commit_id", None)
        return _document(caller, document, 200, commit, {"Preference-Applied": "wait"})
    operation = caller.operation
    assert operation is not None, "only an admitted request continues in the background"
    location = f"/operations/{quote(operation.id, safe='')}"
    headers = {"Location": location}
    if responds_async(caller.headers):
        headers["Preference-Applied"] = "respond-async"
    encoded = _document(caller, operation.document(), 202, None, headers)
    encoded.background = reply.work
    return encoded


def _document(caller: Caller, document: Document, status: int, commit: str | None, headers: dict[str, str]) -> Encoded:
    content_type = caller.negotiated.content_type if caller.negotiated.form == "json" else CONTENT_TYPES["json"]
    headers = {"Content-Type": content_type, **_tag(caller, commit), **headers}
    body = _compressed_body(caller, headers, encoder.encode(document))
    return Encoded(status, headers, body, commit=commit)


def _tag(caller: Caller, commit: str | None) -> dict[str, str]:
    """Return the tag of a document. The branch may have moved since the comparison with `If-None-Match`."""
    if not caller.etag:
        return {}
    return {"ETag": caller.etag if commit is None else etag_of(commit, caller.fingerprint)}


def _compressed_body(caller: Caller, headers: dict[str, str], body: bytes) -> bytes:
    if not caller.negotiated.compresses(len(body)):
        return body
    headers["Content-Encoding"] = "gzip"
    return gzip_bytes(body)


def _compressed(caller: Caller, headers: dict[str, str], chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    if not caller.negotiated.compresses(None):
        return chunks
    headers["Content-Encoding"] = "gzip"
    return gzip_chunks(chunks)
