"""Arrow arrays."""

from __future__ import annotations

import pyarrow as pa

_VARIABLE_BYTES = 16
"""Assumed size of a value whose size its type does not tell."""


def rows_within(schema: pa.Schema, rows: int, bytes_max: int) -> int:
    """Return how many rows a batch may have: at most `rows`, and fewer if rows of these types are wide."""
    width = sum(_width(field.type) for field in schema)
    return max(1, min(rows, bytes_max // max(width, 1)))


def _width(type_: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * _width(type_.value_type)
    if pa.types.is_struct(type_):
        return sum(_width(type_.field(number).type) for number in range(type_.num_fields))
    try:
        return -(-int(type_.bit_width) // 8)
    except ValueError:
        return _VARIABLE_BYTES


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values as one array; an array or a single chunk is returned without a copy.

    The text of one array is limited to 2 GiB by its 32-bit offsets: Arrow raises `ArrowInvalid` for more.
    """
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
