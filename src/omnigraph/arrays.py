"""Arrow arrays."""

from __future__ import annotations

import pyarrow as pa

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

    The text of one array is limited to 2 GiB by its 32-bit offsets: Arrow raises `ArrowInvalid` for more.
    """
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


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
