"""Choice between reading a complete column and reading single rows of it.

A complete column serves every later query from memory. Reading it costs time and memory in proportion to the table, so
a query that needs few rows of a large column reads these rows by their numbers. A column that is used repeatedly is
read in full if it fits the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrays import fixed_width, with_narrow_text
from omnigraph.engine import tuning
from omnigraph.engine.exec.native_calls import gather, in_batches
from omnigraph.fast_dataclass import dataclass

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_TAKE_S, _TAKE_S_PER_ROW = 5e-4, 1e-5
"""Approximate time of reading rows by number: per call, and per row."""
_LOAD_S_PER_BYTE, _LOAD_S_PER_ROW = 5e-9, 1e-7
"""Approximate time of reading a complete column."""
_SAMPLED_MIN = 4
"""Values that were read before their mean size counts."""


@dataclass
class ColumnUse:
    """The rows that were read by number from a column that is not in memory, and their size."""

    takes: int = 0
    rows: int = 0
    nbytes: int = 0

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Count rows that were read."""
        self.takes += 1
        self.rows += len(values)
        self.nbytes += values.nbytes

    @property
    def seconds(self) -> float:
        """The approximate time that reading rows by number took so far."""
        return self.takes * _TAKE_S + self.rows * _TAKE_S_PER_ROW

    def column_bytes(self, type_: pa.DataType, row_count: int) -> int | None:
        """Return the approximate size of the complete column in memory; None if it is not known."""
        width = fixed_width(type_)
        if width is not None:
            return width * row_count
        return self.nbytes * row_count // self.rows if self.rows >= _SAMPLED_MIN else None


def pays(use: ColumnUse, size: int | None, row_count: int, cache_bytes: int) -> bool:
    """Return True if a complete column of this size is to be read although a query needs few of its rows."""
    if size is None:
        return False
    constants = tuning.current
    if size <= constants.complete_column_bytes:
        return True
    loading = size * _LOAD_S_PER_BYTE + row_count * _LOAD_S_PER_ROW
    if use.seconds >= loading * constants.hot_column_takes and size <= cache_bytes * constants.hot_column_share:
        return True
    return use.seconds >= loading and fits(size, cache_bytes)


def fits(size: int, cache_bytes: int) -> bool:
    """Return True if a column of this size may be kept in the cache."""
    return size <= cache_bytes * tuning.current.column_share_max


def select_rows(column: pa.Array, numbers: Numbers) -> pa.Array:
    """Return the values of some rows of a complete column."""
    if len(numbers) == 1:
        # A slice would keep the whole column in memory.
        return with_narrow_text(pa.concat_arrays([column.slice(int(numbers[0]), 1)]))
    if not column.null_count and is_numeric(column.type):
        return pa.array(gather(column.to_numpy(), numbers))
    return with_narrow_text(in_batches(column.take, pa.array(numbers)))


def is_numeric(type_: pa.DataType) -> bool:
    """Return True for a numeric type that numpy supports."""
    return type_.id in _NUMBERS


_NUMBERS = frozenset(
    type_.id for type_ in (pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64())
)
