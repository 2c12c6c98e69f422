"""Arrow arrays."""

from __future__ import annotations

import pyarrow as pa


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values as one array; an array or a single chunk is returned without a copy.

    The text of one array is limited to 2 GiB by its 32-bit offsets: Arrow raises `ArrowInvalid` for more.
    """
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
