"""Substring tests of text columns.

Arrow tests every text byte by byte. The search of Python's `bytes` skips most bytes of long texts, so the texts of a
batch are searched as one, and each hit is assigned to its row. For a pattern that occurs in many rows, Arrow is faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.exec.native_calls import slices

_BYTES_MIN = 65_536
"""Fewer bytes are tested by Arrow."""
_HITS_MAX = 512
"""Hits after which their share of the rows decides how the rest of a batch is tested."""
_ROWS_PER_HIT = 16
"""With fewer rows per hit, Arrow is faster."""


def contains_text(column: pa.Array, pattern: str) -> pa.Array:
    """Return which texts contain a pattern; null for a null."""
    wide = pa.types.is_large_string(column.type)
    if not pattern or column.nbytes < _BYTES_MIN or not (wide or pa.types.is_string(column.type)):
        return pc.match_substring(column, pattern=pattern)
    _, offsets, data = column.buffers()
    every: np.ndarray[Any, Any] = np.frombuffer(offsets, np.int64 if wide else np.int32)
    ends = every[column.offset : column.offset + len(column) + 1]
    wanted = pattern.encode()
    found = np.zeros(len(column), bool)
    frequent = False
    for some in slices(np.diff(ends).astype(np.int64), tuning.current.batch_bytes):
        start, done = int(ends[some.start]), 0
        if not frequent:
            text = data.slice(start, int(ends[some.stop]) - start).to_pybytes()
            # A search in 32-bit numbers would convert all of them for each hit.
            relative = (ends[some.start : some.stop + 1] - start).astype(np.int64)
            done = _search(text, wanted, relative, found[some])
        if done < some.stop - some.start:
            frequent = True
            rest = column.slice(some.start + done, some.stop - some.start - done)
            hits = pc.fill_null(pc.match_substring(rest, pattern=pattern), False)
            found[some.start + done : some.stop] = hits.to_numpy(zero_copy_only=False)
    return pa.array(found, mask=column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None)


def _search(text: bytes, pattern: bytes, ends: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> int:
    """Mark the rows of a text that contain a pattern; return the number of rows that were tested.

    A row may be null: it has no bytes, and no hit begins in it.
    """
    position, hits = 0, 0
    while True:
        position = text.find(pattern, position)
        if position < 0:
            return len(found)
        row = int(ends.searchsorted(position, side="right")) - 1
        end = int(ends[row + 1])
        if position + len(pattern) <= end:
            found[row] = True
            position = end
        else:
            position += 1  # the hit spans two rows
        hits += 1
        if hits >= _HITS_MAX and row < hits * _ROWS_PER_HIT:
            return row + 1 if found[row] else row
