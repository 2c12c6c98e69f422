"""`Blob`: a Blob value that is read in ranges."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

from omnigraph.checkpoints import checkpoint
from omnigraph.errors import InputError, RangeNotSatisfiable

CHUNK_BYTES = 1024 * 1024
"""Default size of the chunks of a stream."""

ReadRange = Callable[[int, int], bytes]
"""Returns the bytes of a value from an offset; offset and length are within the value."""


def range_within(first: int | None, last: int | None, size: int, *, hint: str | None = None) -> tuple[int, int]:
    """Return the offset and the length of a range of bytes within a value of `size` bytes.

    `first` and `last` are included. Without `last` the range extends to the end; without `first` it is the last `last`
    bytes. A range that begins beyond the end raises `RangeNotSatisfiable`.
    """
    if first is None:
        first, last = max(size - (last or 0), 0), size - 1
    if first >= size:
        raise RangeNotSatisfiable(first, last, size, hint=hint)
    return first, min(size - 1 if last is None else last, size - 1) - first + 1


def bounds_within(offset: int, length: int | None, size: int) -> tuple[int, int]:
    """Return the start and the end of `length` bytes from `offset` within a value of `size` bytes."""
    for name, value in (("offset", offset), ("length", length)):
        if value is not None and (type(value) is not int or value < 0):
            raise InputError(f"{name} must be a non-negative integer (got {str(value)[:40]})")
    start = min(offset, size)
    return start, size if length is None else min(start + length, size)


def check_chunk_bytes(chunk_bytes: int) -> None:
    """Raise `InputError` unless the size of chunks is a positive integer."""
    if type(chunk_bytes) is not int or chunk_bytes < 1:
        raise InputError(f"chunk_bytes must be a positive integer (got {str(chunk_bytes)[:40]})")


class Blob:
    """The bytes of one Blob property of a node or edge at one commit.

    Bytes are read on demand; only the requested range is in memory. The value never changes, so `size` and `etag` stay
    valid as long as the commit is readable. A `Blob` can be used by several threads.
    """

    def __init__(self, read_range: ReadRange, *, size: int, etag: str, commit_id: str) -> None:
        self._read_range = read_range
        self.size = size
        """The number of bytes."""
        self.etag = etag
        """Opaque validator of the bytes: in double quotes, a strong HTTP `ETag`.

        Equal tags mean equal bytes. The tag of a value stays equal at every commit until the row is rewritten, by a
        change of any of its properties or by a compaction.
        """
        self.commit_id = commit_id
        """The commit at which the value is read."""

    def __repr__(self) -> str:
        return f"Blob(size={self.size}, etag={self.etag!r})"

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Return `length` bytes from `offset`, by default all; fewer at the end, none beyond it."""
        start, stop = self._range(offset, length)
        return self._fetch(start, stop - start)

    def stream(self, chunk_bytes: int = CHUNK_BYTES, *, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Return an iterator of the bytes of a range, by default of all, in chunks of `chunk_bytes`.

        Each chunk is read when it is requested; the last one may be shorter.
        """
        check_chunk_bytes(chunk_bytes)
        return self._chunks(*self._range(offset, length), chunk_bytes)

    def open(self) -> io.BufferedReader:
        """Return a seekable binary file of the bytes, with a buffer of 1 MiB."""
        return io.BufferedReader(_BlobIO(self), CHUNK_BYTES)

    def _chunks(self, start: int, stop: int, chunk_bytes: int) -> Iterator[bytes]:
        for position in range(start, stop, chunk_bytes):
            yield self._fetch(position, min(chunk_bytes, stop - position))

    def _fetch(self, offset: int, length: int) -> bytes:
        checkpoint()
        return self._read_range(offset, length) if length else b""

    def _range(self, offset: int, length: int | None) -> tuple[int, int]:
        return bounds_within(offset, length, self.size)


class _BlobIO(io.RawIOBase):
    """Unbuffered binary file of a Blob."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._blob.size}[whence]
        if base + offset < 0:
            raise ValueError(f"negative position {base + offset}")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._blob.read(self._position, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
