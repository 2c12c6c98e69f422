"""Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

Mask = np.ndarray[Any, np.dtype[np.bool_]]

TEXT_BYTES_MAX = 2**31 - 2**20
"""Texts of more bytes are one array only with 64-bit offsets."""
_PLAIN: dict[int, np.dtype[Any]] = {
    8 * width.itemsize: width for width in map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64))
}
"""Bits of a number, date or time → an integer of that width."""
_VARIABLE_BYTES = 16
"""Assumed size of a value whose size its type does not tell."""


def rows_within(schema: pa.Schema, rows: int, bytes_max: int) -> int:
    """Return how many rows a batch may have: at most `rows`, and fewer if rows of these types are wide."""
    width = sum(_width(field.type) for field in schema)
    return max(1, min(rows, bytes_max // max(width, 1)))


def fixed_width(type_: pa.DataType) -> int | None:
    """Return the size of every value of a type in bytes; None if it varies."""
    if pa.types.is_fixed_size_list(type_):
        item = fixed_width(type_.value_type)
        return None if item is None else int(type_.list_size) * item
    try:
        return -(-int(type_.bit_width) // 8)
    except ValueError:
        return None


def _width(type_: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * _width(type_.value_type)
    if pa.types.is_struct(type_):
        return sum(_width(type_.field(number).type) for number in range(type_.num_fields))
    width = fixed_width(type_)
    return _VARIABLE_BYTES if width is None else width


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values as one array; an array or a single chunk is returned without a copy.

    Texts of more than 2 GiB get 64-bit offsets: `string` becomes `large_string`, also inside a list.
    """
    if not isinstance(values, pa.ChunkedArray):
        return values
    if values.num_chunks == 1:
        return values.chunk(0)
    wide = with_wide_text(values.type)
    if wide != values.type and values.nbytes > TEXT_BYTES_MAX:
        values = values.cast(wide)
    return values.combine_chunks()


def with_nulls(column: pa.Array | pa.ChunkedArray, kept: Mask) -> pa.Array | pa.ChunkedArray:
    """Return a column with null in place of the values that a mask does not select.

    The buffers of the result do not contain these values. The functions of Arrow that set values to null can keep them
    in the buffers, which every reader of the result gets.
    """
    if isinstance(column, pa.ChunkedArray):
        ends = np.cumsum([len(chunk) for chunk in column.chunks])
        parts = zip(column.chunks, np.split(kept, ends)[:-1], strict=True)
        return pa.chunked_array([with_nulls(chunk, part) for chunk, part in parts], column.type)
    if kept.all():
        return column
    width = _PLAIN.get(column.type.bit_width) if pa.types.is_primitive(column.type) else None
    if width is None:
        return column.take(pa.array(np.arange(len(column)), mask=~kept))
    known = kept & column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else kept
    stored = np.frombuffer(column.buffers()[1], width)[column.offset : column.offset + len(column)]
    values = np.where(known, stored, width.type(0))
    bits = np.packbits(known, bitorder="little")
    return pa.Array.from_buffers(column.type, len(column), [pa.py_buffer(bits), pa.py_buffer(values)])


def concatenate(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return arrays of one type as one array. Texts of more than 2 GiB, or a part with 64-bit offsets, get such."""
    kinds = {array.type for array in arrays}
    wide = next((kind for kind in map(with_wide_text, kinds) if kind in kinds), None)
    if wide is None and sum(array.nbytes for array in arrays) > TEXT_BYTES_MAX:
        wide = with_wide_text(arrays[0].type)
    return pa.concat_arrays(arrays if wide is None or kinds == {wide} else [array.cast(wide) for array in arrays])


def with_wide_text(type_: pa.DataType) -> pa.DataType:
    """Return a type of texts, or of lists of texts, with 64-bit offsets; any other type as it is."""
    if pa.types.is_string(type_):
        return pa.large_utf8()
    if pa.types.is_list(type_) and pa.types.is_string(type_.value_type):
        return pa.list_(type_.value_field.with_type(pa.large_utf8()))
    return type_


def narrow_chunks(values: pa.Array) -> pa.Array | pa.ChunkedArray:
    """Return texts with 32-bit offsets, in several chunks if they have more than 2 GiB; any other array as it is."""
    narrow = with_narrow_text(values)
    if narrow.type.id not in _MAY_BE_WIDE or not _has_wide_text(narrow.type):
        return narrow
    half = len(values) // 2
    if not half:
        return values  # a single value that no chunk can hold
    parts = [narrow_chunks(values.slice(0, half)), narrow_chunks(values.slice(half))]
    chunks = [chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])]
    return pa.chunked_array(chunks)


def _has_wide_text(type_: pa.DataType) -> bool:
    return bool(_narrow_type(type_) != type_)


def with_narrow_text(values: pa.Array) -> pa.Array:
    """Return texts with 32-bit offsets, also inside lists and structs, if they have at most 2 GiB."""
    if values.type.id not in _MAY_BE_WIDE:
        return values
    narrow = _narrow_type(values.type)
    if narrow == values.type or values.nbytes > TEXT_BYTES_MAX:
        return values
    # The offsets of a slice count from the start of its buffer: a copy begins with 0.
    return pa.concat_arrays([values]).cast(narrow)


_MAY_BE_WIDE = frozenset(type_.id for type_ in (pa.large_utf8(), pa.list_(pa.utf8()), pa.struct([])))
"""The types that are or contain texts with 64-bit offsets. Small results have few values, so the test is short."""


def _narrow_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(type_):
        return pa.utf8()
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_narrow_type(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_narrow_type(field.type)) for field in type_])
    return type_


def validate_fully(column: pa.Array | pa.ChunkedArray) -> None:
    """Raise `ArrowInvalid` if the buffers of a column are wrong; a `date64` may have a time of day, as a `DateTime`."""
    numbers = _without_days(column.type)
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
        (chunk if numbers == chunk.type else chunk.view(numbers)).validate(full=True)


def _without_days(kind: pa.DataType) -> pa.DataType:
    """Return a type with integers for `date64`, in which Arrow permits only whole days."""
    if pa.types.is_date64(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_days(field.type)) for field in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_item(kind), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_item(kind))
    return pa.list_(_item(kind)) if pa.types.is_list(kind) else kind


def _item(kind: pa.DataType) -> pa.Field:
    return kind.value_field.with_type(_without_days(kind.value_type))
