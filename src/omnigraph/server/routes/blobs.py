"""Blob properties: whole values and ranges of bytes, with the conditional headers of HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from omnigraph.blob import Blob, range_within
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.errors import RequestFault
from omnigraph.server.messages.answers import Chunks
from omnigraph.server.messages.content_negotiation import CONTENT_TYPES
from omnigraph.server.messages.request import matches_none
from omnigraph.wire.requests.tables import BlobQuery

CHUNK_BYTES = 1024 * 1024
"""Size of the chunks of a value; two are in memory."""

_INERT = {"Content-Disposition": "attachment", "Content-Security-Policy": "default-src 'none'; sandbox"}
"""A browser saves a value, whatever it contains, and never opens it as a page."""

_RANGE = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*")


def get_blob(caller: Caller, body: BlobQuery) -> Chunks:
    """Send the value of a Blob property, or one range of its bytes."""
    blob = caller.graph.blob(
        body.type, body.id, body.property_, branch=body.branch, at=point_of(body.point), kind=body.entity
    )
    tag = f'"{blob.etag}"'
    headers = {"ETag": tag, "Accept-Ranges": "bytes", "Omnigraph-Snapshot-Id": blob.commit_id, **_INERT}
    _check_match(caller.headers, tag)
    if matches_none(caller.headers, tag):
        return _reply(blob, iter(()), headers, 304)
    wanted = None if caller.method == "HEAD" else _range(caller.headers, tag)
    offset, length = (0, blob.size) if wanted is None else range_within(*wanted, blob.size)
    headers["Content-Length"] = str(length)
    if caller.method == "HEAD":
        return _reply(blob, iter(()), headers, 200)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {offset}-{offset + length - 1}/{blob.size}"
    chunks = blob.stream(CHUNK_BYTES, offset=offset, length=length)
    return _reply(blob, chunks, headers, 200 if wanted is None else 206)


def _reply(blob: Blob, chunks: Iterator[bytes], headers: dict[str, str], status: int) -> Chunks:
    return Chunks(chunks, CONTENT_TYPES["octets"], status, commit=blob.commit_id, headers=headers)


def _check_match(headers: Mapping[str, str], tag: str) -> None:
    """Refuse a request whose `If-Match` does not name the tag, which a strong comparison decides."""
    value = headers.get("if-match")
    if value is None or value.strip() == "*" or tag in (each.strip() for each in value.split(",")):
        return
    raise RequestFault(
        f"the value has the tag {tag}, which If-Match does not name",
        status=412,
        code="blob_changed",
        hint="read the value again without If-Match",
    )


def _range(headers: Mapping[str, str], tag: str) -> tuple[int | None, int | None] | None:
    """Return the first and the last byte of the requested range; None for the whole value.

    A header that is malformed, lists several ranges or has another unit requests the whole value.
    """
    found = _RANGE.fullmatch(headers.get("range", ""))
    if found is None or headers.get("if-range", tag) != tag:
        return None
    first, last = (int(bound) if bound else None for bound in found.groups())
    if (first is None and last is None) or (first is not None and last is not None and last < first):
        return None
    return first, last
