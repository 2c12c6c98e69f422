"""Sizes of Arrow data before it is decoded.

The message of a record batch lists its buffers. A compressed buffer begins with its decompressed size, so the memory
that a batch needs is known from a few bytes. The layout is that of the Arrow IPC format and of FlatBuffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_HEADER = 2
"""The field of a message that holds its record batch or dictionary batch."""
_DICTIONARY_DATA = 1
_BUFFERS, _COMPRESSION = 2, 3
_NOT_COMPRESSED = -1


def decoded_sizes(file: pa.NativeFile) -> Iterator[int]:
    """Yield the size of each batch of the stream at the position of a file, decompressed; reads to its end."""
    reader = pa.ipc.MessageReader.open_stream(file)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        yield decoded_size(message)


def decoded_size(message: pa.ipc.Message) -> int:
    """Return the bytes that the buffers of a message have when they are decompressed."""
    if message.type not in ("record batch", "dictionary"):
        return 0
    data, body = memoryview(message.metadata), message.body
    table = _child(data, _root(data), _HEADER)
    if message.type == "dictionary":
        table = _child(data, table, _DICTIONARY_DATA)
    buffers = list(_buffers(data, table))
    if _field(data, table, _COMPRESSION) is None:
        return sum(length for _, length in buffers)
    content = memoryview(body) if body is not None else memoryview(b"")
    return sum(_size(content, offset, length) for offset, length in buffers)


def _size(body: memoryview, offset: int, length: int) -> int:
    """Return the decompressed size of a buffer; an empty buffer has no prefix."""
    if not length:
        return 0
    (size,) = struct.unpack_from("<q", body, offset)
    return length if size == _NOT_COMPRESSED else max(int(size), 0)


def _root(data: memoryview) -> int:
    (offset,) = struct.unpack_from("<I", data, 0)
    return int(offset)


def _field(data: memoryview, table: int, number: int) -> int | None:
    """Return the position of a field of a table; None if the field is absent."""
    (distance,) = struct.unpack_from("<i", data, table)
    vtable = table - distance
    (size,) = struct.unpack_from("<H", data, vtable)
    entry = 4 + 2 * number
    if entry + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", data, vtable + entry)
    return table + offset if offset else None


def _child(data: memoryview, table: int, number: int) -> int:
    """Return the position of a table that a field refers to."""
    position = _field(data, table, number)
    if position is None:
        raise pa.ArrowInvalid("a message lacks its batch")
    (offset,) = struct.unpack_from("<I", data, position)
    return position + int(offset)


def _buffers(data: memoryview, table: int) -> Iterator[tuple[int, int]]:
    """Yield offset and length of the buffers of a record batch."""
    if _field(data, table, _BUFFERS) is None:
        return
    vector = _child(data, table, _BUFFERS)
    (count,) = struct.unpack_from("<I", data, vector)
    for position in range(vector + 4, vector + 4 + 16 * count, 16):
        offset, length = struct.unpack_from("<qq", data, position)
        if offset < 0 or length < 0:
            raise pa.ArrowInvalid("a buffer of a message has a negative size")
        yield offset, length


def plain_size(array: pa.Array) -> int:
    """Return the size of an array without dictionaries: a value of a dictionary counts for each row that has it."""
    type_ = array.type
    if pa.types.is_dictionary(type_):
        each = _lengths(array.dictionary)
        used = array.indices.drop_null()
        return int(array.nbytes) if each is None else int(pc.sum(each.take(used)).as_py() or 0) + array.indices.nbytes
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return int(array.nbytes - array.flatten().nbytes) + plain_size(array.flatten())
    return int(array.nbytes)


def _lengths(values: pa.Array) -> pa.Array | None:
    """Return the size of each value of a dictionary of texts; None for values of fixed size."""
    type_ = values.type
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_binary(type_):
        return pc.fill_null(pc.binary_length(values).cast(pa.int64()), 0)
    if pa.types.is_large_binary(type_):
        return pc.fill_null(pc.binary_length(values), 0)
    return None
