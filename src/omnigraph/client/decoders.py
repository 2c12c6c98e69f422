"""Decoders of streamed bodies: Arrow IPC streams and JSON lines. They hold no more than the items not yet complete."""

from __future__ import annotations

import struct
from collections import deque
from typing import Any, Generic, TypeVar

import msgspec
import pyarrow as pa

from omnigraph.arrays import validate_fully
from omnigraph.client.failures import reading, unreadable
from omnigraph.decodable import decodable

_PREFIX = 8
"""Bytes before the metadata of an Arrow message: the continuation marker and the length."""
_CONTINUATION = 0xFFFFFFFF
_END = b"\xff\xff\xff\xff\0\0\0\0"
_RECORD_BATCH = 3
_HEADER_TYPE, _BODY_LENGTH = 1, 3
"""Numbers of the fields of the table `Message` in the Arrow format."""

T = TypeVar("T")


def read_arrow(body: bytes) -> pa.Table:
    """Return the table of a complete Arrow IPC stream; raise `RemoteError` if it is cut off or damaged."""
    if not body.endswith(_END):
        raise unreadable("the Arrow stream ends before its end marker")
    try:
        with pa.ipc.open_stream(body) as reader:
            return checked(reader.read_all())
    except (pa.ArrowException, OSError, EOFError) as error:
        raise unreadable(f"the Arrow stream is not valid ({error})") from None


Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def checked(rows: Rows) -> Rows:
    """Return rows whose offsets and texts are valid. Arrow trusts them, and wrong ones end the process."""
    rows.validate()
    for column in rows.columns:
        validate_fully(column)
    return rows


class ArrowDecoder:
    """Record batches from an Arrow IPC stream. `schema` is None until its message has arrived."""

    def __init__(self) -> None:
        self._buffer = _Buffer()
        self._reader: pa.RecordBatchStreamReader | None = None
        self._needed = 0
        """The size of the next message, once its metadata has arrived; else 0."""
        self._kind = 0
        self._scanned = 0
        """The number of buffered bytes that belong to complete messages."""
        self._ended = False
        self.schema: pa.Schema | None = None

    @reading
    def feed(self, data: bytes) -> list[pa.RecordBatch]:
        """Return the batches that these bytes complete."""
        self._buffer.append(data)
        batches = []
        while self._complete_message():
            if self.schema is None:
                self._reader = pa.ipc.open_stream(self._buffer)
                self.schema = self._reader.schema
            elif self._kind == _RECORD_BATCH:
                assert self._reader is not None
                batches.append(checked(self._reader.read_next_batch()))
            else:
                # The reader takes a dictionary together with the batch that follows it.
                self._scanned += self._needed
                self._needed = 0
                continue
            self._scanned = self._needed = 0
        return batches

    def finish(self) -> None:
        """Raise `RemoteError` if the end-of-stream marker is missing."""
        if not self._ended:
            raise unreadable("the Arrow stream ends before its end marker")

    def _complete_message(self) -> bool:
        """Return True if the next message has arrived; note its kind and its size."""
        if self._ended:
            return False
        if not self._needed and not self._read_head():
            return False
        return len(self._buffer) - self._scanned >= self._needed

    def _read_head(self) -> bool:
        prefix = self._buffer.peek(self._scanned, _PREFIX)
        if len(prefix) < _PREFIX:
            return False
        marker, length = struct.unpack("<II", prefix)
        if marker != _CONTINUATION:
            raise unreadable("the body is not an Arrow stream")
        if length == 0:
            self._ended = True
            return False
        metadata = self._buffer.peek(self._scanned + _PREFIX, length)
        if len(metadata) < length:
            return False
        self._kind, body = _message_head(metadata)
        if body < 0:
            raise unreadable("an Arrow message has a negative length")
        self._needed = _PREFIX + length + body
        return True


class _Buffer:
    """Bytes that arrive in chunks, as a file that Arrow reads."""

    closed = False

    def __init__(self) -> None:
        self._chunks: deque[memoryview] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, data: bytes) -> None:
        if data:
            self._chunks.append(memoryview(data))
            self._size += len(data)

    def peek(self, offset: int, count: int) -> bytes:
        """Return up to `count` bytes from an offset; they stay in the buffer."""
        found = []
        for chunk in self._chunks:
            if offset >= len(chunk):
                offset -= len(chunk)
                continue
            found.append(chunk[offset : offset + count])
            count -= len(found[-1])
            offset = 0
            if not count:
                break
        return b"".join(found)

    def read(self, count: int) -> bytes:
        """Return and remove the next bytes."""
        taken = []
        wanted = min(count, self._size)
        self._size -= wanted
        while wanted:
            chunk = self._chunks.popleft()
            if len(chunk) > wanted:
                self._chunks.appendleft(chunk[wanted:])
                chunk = chunk[:wanted]
            taken.append(chunk)
            wanted -= len(chunk)
        return b"".join(taken)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        return None

    def close(self) -> None:
        return None


def _message_head(metadata: bytes) -> tuple[int, int]:
    """Return the kind of an Arrow message and the length of its body, from its flatbuffer."""
    (table,) = struct.unpack_from("<I", metadata, 0)
    (back,) = struct.unpack_from("<i", metadata, table)
    offsets = table - back
    (size,) = struct.unpack_from("<H", metadata, offsets)

    def field(number: int, kind: str) -> int:
        position = 4 + 2 * number
        offset = struct.unpack_from("<H", metadata, offsets + position)[0] if position < size else 0
        return int(struct.unpack_from(kind, metadata, table + offset)[0]) if offset else 0

    return field(_HEADER_TYPE, "<B"), field(_BODY_LENGTH, "<q")


class LineDecoder(Generic[T]):
    """Items from JSON lines: a first line with metadata, one line for each item, and a last line.

    `metadata` and `end` are these two lines as objects; None until they have arrived.
    """

    def __init__(self, kind: type[T] | Any = Any, *, enveloped: bool = True) -> None:
        self._items = msgspec.json.Decoder(decodable(kind))
        self._enveloped = enveloped
        self._waiting: list[bytes] = []
        self.metadata: dict[str, Any] | None = None
        self.end: dict[str, Any] | None = None

    @reading
    def feed(self, data: bytes) -> list[T]:
        """Return the items that these bytes complete."""
        head, newline, tail = data.rpartition(b"\n")
        if not newline:
            self._waiting += [data] if data else []
            return []
        lines = b"".join([*self._waiting, head]).split(b"\n")
        self._waiting = [tail] if tail else []
        return [item for line in lines if line and (item := self._item(line)) is not None]

    def _item(self, line: bytes) -> T | None:
        if self._enveloped and self.metadata is None:
            self.metadata = msgspec.json.decode(line, type=dict[str, Any])
            return None
        if self._enveloped and line.startswith(b'{"kind":"end"'):
            self.end = msgspec.json.decode(line, type=dict[str, Any])
            return None
        item: T = self._items.decode(line)
        return item

    def finish(self) -> None:
        """Raise `RemoteError` if the last line is missing."""
        if self._waiting or (self._enveloped and self.end is None):
            raise unreadable("the JSON lines end before their last line")
