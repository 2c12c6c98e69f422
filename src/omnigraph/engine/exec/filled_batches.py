"""Batches of visible rows. Their sizes depend on these rows alone, not on the hidden rows between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import fixed_width
from omnigraph.engine.cache.table_cache import Numbers

_ITEM_BYTES = 16
"""Assumed size of a value whose size is not looked up."""


def filled_batches(batches: Iterable[pa.RecordBatch], rows: int, bytes_max: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some batches in batches of `rows` rows, or of fewer rows of about `bytes_max` bytes."""
    kept: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        ends = np.cumsum(_row_bytes(batch))
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            fitting = int(np.searchsorted(ends, before + bytes_max - size, side="right"))
            stop = min(max(fitting, start + (not count)), start + rows - count, batch.num_rows)
            if stop > start:
                kept.append(batch.slice(start, stop - start))
                count, size = count + stop - start, size + int(ends[stop - 1]) - before
                start = stop
            if count == rows or start < batch.num_rows:
                yield pa.concat_batches(kept)
                kept, count, size = [], 0, 0
    if kept:
        yield pa.concat_batches(kept)


def _row_bytes(batch: pa.RecordBatch) -> Numbers:
    """Return the approximate size of each row."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        kind, width = column.type, fixed_width(column.type)
        if width is not None:
            sizes += width
        elif pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
        elif pa.types.is_list(kind):
            sizes += _ITEM_BYTES * pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        else:
            sizes += _ITEM_BYTES
    return sizes
