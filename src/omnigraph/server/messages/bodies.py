"""Request bodies: read within a limit, into memory or into a temporary file.

A temporary file is locked while its process uses it. A process that is killed leaves its files; the next one that
starts removes those that nobody has locked.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from omnigraph.server.errors import RequestFault

if sys.platform != "win32":
    # Windows does not remove an open file: no lock is necessary.
    import fcntl

_INFLATED_BYTES = 1 << 20
"""Largest part of a body that is decompressed at once."""
_PREFIX = "omnigraph-body-"
_ABANDONED_S = 60.0
"""The age from which a file without a lock is abandoned; a younger one may not be locked yet."""


@dataclass
class SpooledBody:
    """A body on disk; the file is removed with `discard`."""

    file: IO[bytes]
    media_type: str
    size: int = 0

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.file.name)

    def discard(self) -> None:
        """Remove the file."""
        self.file.close()
        self.path.unlink(missing_ok=True)


def new_body_file(suffix: str) -> IO[bytes]:
    """Create a temporary file for a body; it is locked while it is open."""
    file = tempfile.NamedTemporaryFile(prefix=_PREFIX, suffix=suffix, delete=False)  # noqa: SIM115 (closed by `discard`)
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def remove_abandoned_bodies(folder: Path | None = None, *, age_s: float = _ABANDONED_S) -> None:
    """Remove the temporary files of processes that were killed."""
    newest = time.time() - age_s
    for path in Path(folder or tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Another process may remove the file first, and a file of another user stays.
        with contextlib.suppress(OSError):
            if path.stat().st_mtime <= newest and not _is_in_use(path):
                path.unlink()


def _is_in_use(path: Path) -> bool:
    if sys.platform == "win32":
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def media_type(content_type: str | None) -> str:
    """Return the media type of a body, without parameters; empty if there is none."""
    return (content_type or "").partition(";")[0].strip().lower()


def check_length(length: str | None, limit: int) -> None:
    """Refuse a body whose declared length exceeds the limit, before any of it is read."""
    if length is not None and length.isdigit() and int(length) > limit:
        raise too_large(limit)


def too_large(limit: int) -> RequestFault:
    """Return the error for a body that exceeds its limit."""
    return RequestFault(
        f"the request body exceeds the limit of {limit:,} bytes of this route",
        status=413,
        code="body_too_large",
        hint="load large data by POST /load/ndjson or /load/arrow, or in several requests",
    )


async def read_body(receive: Receive, limit: int, encoding: str | None = None) -> bytes:
    """Return a body; refuse it as soon as it exceeds the limit."""
    if encoding is None:
        return await _read_plain(receive, limit)
    parts: list[bytes] = []
    size = 0
    async for part in _parts(receive, encoding, limit):
        size += len(part)
        if size > limit:
            raise too_large(limit)
        parts.append(part)
    return b"".join(parts)


async def _read_plain(receive: Receive, limit: int) -> bytes:
    """Return a body that is not compressed. Most have one part; an iterator takes longer than the part."""
    part, more = await _receive_part(receive)
    parts, size = [part], len(part)
    while more and size <= limit:
        part, more = await _receive_part(receive)
        parts.append(part)
        size += len(part)
    if size > limit:
        raise too_large(limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def spool_body(receive: Receive, limit: int, kind: str, suffix: str, encoding: str | None = None) -> SpooledBody:
    """Write a body to a temporary file; refuse it as soon as it exceeds the limit."""
    body = SpooledBody(new_body_file(suffix), kind)
    try:
        async for part in _parts(receive, encoding, limit):
            body.size += len(part)
            if body.size > limit:
                raise too_large(limit)
            body.file.write(part)
        body.file.flush()
    except BaseException:
        body.discard()
        raise
    return body


async def _parts(receive: Receive, encoding: str | None, limit: int) -> AsyncIterator[bytes]:
    encoding = (encoding or "identity").strip().lower()
    if encoding == "identity":
        async for part in _raw_parts(receive):
            yield part
        return
    if encoding not in ("gzip", "x-gzip"):
        raise RequestFault(
            f"the content encoding {encoding!r} is not supported",
            status=415,
            code="unsupported_media_type",
            hint="send the body as it is, or compressed with gzip",
        )
    async for part in _inflated(receive, limit):
        yield part


async def _raw_parts(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        part, more = await _receive_part(receive)
        if part:
            yield part


async def _receive_part(receive: Receive) -> tuple[bytes, bool]:
    """Return the next part of a body, and whether more follow."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


async def _inflated(receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """Yield the decompressed body in parts of bounded size, so that a small body cannot expand without limit.

    A gzip file can consist of several members, one behind the other, as parallel compressors write them.
    """
    inflater = _inflater()
    try:
        async for part in _raw_parts(receive):
            while part:
                if inflater.eof:
                    inflater = _inflater()
                yield inflater.decompress(part, min(limit + 1, _INFLATED_BYTES))
                part = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                # Other requests run between the parts of a body that expands much.
                await asyncio.sleep(0)
    except zlib.error:
        raise RequestFault("the body is not valid gzip data", code="bad_encoding") from None
    if not inflater.eof:
        raise RequestFault("the gzip data of the body is incomplete", code="bad_encoding")


def _inflater() -> zlib._Decompress:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
