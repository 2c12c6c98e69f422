"""Request bodies: read within a limit, into memory or into a temporary file.

The first 64 KiB of a body are free. Before more of it is kept, `Hold` counts it and can refuse it. Steps that take
longer than the parse of a request run in threads: decompression, and writes to the file.

A temporary file is locked while its process uses it. A process that is killed leaves its files; the next one that
starts removes those that nobody has locked.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from omnigraph.errors import Overloaded
from omnigraph.server.errors import RequestFault

if sys.platform != "win32":
    # Windows does not remove an open file: no lock is necessary.
    import fcntl

SMALL_BODY = 64 * 1024
"""A body of up to this many bytes is read and decoded at once."""
DISK_FREE = 64 << 20
"""Bytes that a body leaves free on the disk of its file."""
_STEP_BYTES = 1 << 20
"""Largest part of a body that is decompressed or written at once."""
_MEMBERS = 64
"""Largest number of members of a gzip body that are decompressed at once."""
_PREFIX = "omnigraph-body-"
_ABANDONED_S = 60.0
"""The age from which a file without a lock is abandoned; a younger one may not be locked yet."""


Hold = Callable[[int], Awaitable[None]]
"""Counts the size of a body so far before more of it is kept; raises an error to refuse it."""
RunInThread = Callable[[Callable[[], Any]], Awaitable[Any]]


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

    def write(self, data: bytes) -> None:
        """Append to the file; `Overloaded` if the disk has too little free space."""
        free = shutil.disk_usage(self.path.parent).free - len(data)
        try:
            if free < DISK_FREE:
                raise _disk_full(free)
            self.file.write(data)
            self.file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise _disk_full(free) from None

    def discard(self) -> None:
        """Remove the file."""
        # What the disk could not take is written again by `close`.
        with contextlib.suppress(OSError):
            self.file.close()
        self.path.unlink(missing_ok=True)


def _disk_full(free: int) -> Overloaded:
    return Overloaded(
        f"the disk of temporary files has no space for the body: {DISK_FREE:,} bytes of it stay free; "
        "nothing was executed",
        scope="server",
        retry_after_s=5,
        limit="disk",
        value=DISK_FREE,
        actual=max(free, 0),
    )


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


async def read_body(receive: Receive, limit: int, hold: Hold, run: RunInThread, encoding: str | None = None) -> bytes:
    """Return a body; refuse it as soon as it exceeds the limit."""
    if encoding is None:
        return await _read_plain(receive, limit, hold)
    body = bytearray()
    async for part in _parts(receive, encoding, limit, run):
        await _check_size(len(body) + len(part), limit, hold)
        body += part
    return bytes(body)


async def _read_plain(receive: Receive, limit: int, hold: Hold) -> bytes:
    """Return a body that is not compressed. Most have one part; an iterator takes longer than the part."""
    part, more = await _receive_part(receive)
    if len(part) > min(SMALL_BODY, limit):
        await _check_size(len(part), limit, hold)
    if not more:
        return part
    body = bytearray(part)
    while more:
        part, more = await _receive_part(receive)
        await _check_size(len(body) + len(part), limit, hold)
        body += part
    return bytes(body)


async def _check_size(size: int, limit: int, hold: Hold) -> None:
    if size > limit:
        raise too_large(limit)
    if size > SMALL_BODY:
        await hold(size)


async def spool_body(
    receive: Receive, limit: int, body: SpooledBody, hold: Hold, run: RunInThread, encoding: str | None = None
) -> None:
    """Write a body to its file; refuse it as soon as it exceeds the limit."""
    pending = bytearray()
    async for part in _parts(receive, encoding, limit, run):
        body.size += len(part)
        await _check_size(body.size, limit, hold)
        pending += part
        if len(pending) >= _STEP_BYTES:
            await run(partial(body.write, bytes(pending)))
            pending.clear()
    if len(pending) > SMALL_BODY:
        await run(partial(body.write, bytes(pending)))
    elif pending:
        body.write(bytes(pending))


async def _parts(receive: Receive, encoding: str | None, limit: int, run: RunInThread) -> AsyncIterator[bytes]:
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
    async for part in _inflated(receive, limit, run):
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


async def _inflated(receive: Receive, limit: int, run: RunInThread) -> AsyncIterator[bytes]:
    """Yield the decompressed body in parts of bounded size, so that a small body cannot expand without limit."""
    inflater, size = _Inflater(), 0
    try:
        async for part in _raw_parts(receive):
            size += len(part)
            if size > limit:
                # Members without content expand to nothing.
                raise too_large(limit)
            inflater.input = part
            if size <= SMALL_BODY:
                yield inflater.take(SMALL_BODY)
            while inflater.input:
                yield await run(partial(inflater.take, _STEP_BYTES))
    except zlib.error:
        raise RequestFault("the body is not valid gzip data", code="bad_encoding") from None
    if not inflater.is_complete:
        raise RequestFault("the gzip data of the body is incomplete", code="bad_encoding")


class _Inflater:
    """Decompresses gzip data in steps.

    A gzip file can consist of several members, one behind the other, as parallel compressors write them.
    """

    def __init__(self) -> None:
        self.input = b""
        """What is not decompressed yet."""
        self._member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)

    @property
    def is_complete(self) -> bool:
        """True after the end of a member."""
        return self._member.eof

    def take(self, most: int) -> bytes:
        """Decompress up to `most` bytes, of `_MEMBERS` members or fewer."""
        parts: list[bytes] = []
        for _ in range(_MEMBERS):
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            parts.append(self._member.decompress(self.input, most))
            most -= len(parts[-1])
            self.input = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if not self.input or not most:
                break
        return b"".join(parts)
