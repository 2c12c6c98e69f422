"""Exact medians of numbers, for all rows or for each group.

The median of an even number of values is the mean of the two middle values. The result is a 64-bit float: for integers
the one nearest to the exact mean, for floats `0.5 * low + 0.5 * high`, which cannot overflow. Spark computes the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.native_calls import interruptible

Values = np.ndarray[Any, Any]

_LOW_BITS = 2047
"""A 64-bit integer whose lowest 11 bits are zero is exact as a 64-bit float."""


def medians(values: Values, groups: Numbers | None, weight: Numbers | None, sizes: Numbers) -> pa.Array:
    """Return the median of each group; null for a group without values.

    `groups` is the group of each value, None for one group. `weight` is the number of times each value counts. `sizes`
    is the number of values of each group, with their weights.
    """
    empty = sizes == 0
    if not len(values):
        return pa.array(np.zeros(len(sizes)), mask=empty)
    if weight is None and len(sizes) == 1:
        middle = ((len(values) - 1) // 2, len(values) // 2)
        ordered = interruptible(lambda: np.partition(values, middle), len(values))
        low, high = ordered[[middle[0]]], ordered[[middle[1]]]
    else:
        order = interruptible(lambda: _order(values, groups, len(sizes)), len(values))
        low, high = _middle(values, order, None if weight is None else weight[order], sizes)
    return pa.array(_mean(low, high), mask=empty)


def _order(values: Values, groups: Numbers | None, count: int) -> Numbers:
    """Return the rows sorted by group and value."""
    order = np.argsort(values)
    if groups is None:
        return order
    # A radix sort by the digits of the group: numpy sorts 16-bit integers stably in linear time.
    for shift in range(0, max(count - 1, 1).bit_length(), 16):
        digits = (groups[order] >> shift).astype(np.uint16)
        order = order[np.argsort(digits, kind="stable")]
    return order


def _middle(values: Values, order: Numbers, weight: Numbers | None, sizes: Numbers) -> tuple[Values, Values]:
    """Return the two middle values of each group, which are one value if the group has an odd number of values."""
    starts = np.cumsum(sizes) - sizes
    low, high = starts + np.maximum(sizes - 1, 0) // 2, starts + sizes // 2
    if weight is not None:
        ends = np.cumsum(weight)
        low, high = np.searchsorted(ends, low, side="right"), np.searchsorted(ends, high, side="right")
    # The position of an empty group at the end is behind the last row.
    last = len(order) - 1
    return values[order[np.minimum(low, last)]], values[order[np.minimum(high, last)]]


def _mean(low: Values, high: Values) -> Values:
    """Return the means of pairs, rounded once."""
    if low.dtype.kind == "f":
        low, high = low.astype(np.float64), high.astype(np.float64)
        # `+ 0.0` turns -0.0 into 0.0: which of the two is in the middle depends on the order of equal values.
        return np.where(low == high, low, 0.5 * low + 0.5 * high) + 0.0
    wide = np.uint64 if low.dtype == np.uint64 else np.int64
    low, high = low.astype(wide), high.astype(wide)
    whole = (low & high) + ((low ^ high) >> wide(1))  # the mean rounded down, without overflow
    half = 0.5 * ((low ^ high) & wide(1)).astype(np.float64)
    low_bits = wide(_LOW_BITS)
    mean: Values = (whole & ~low_bits).astype(np.float64) + ((whole & low_bits).astype(np.float64) + half)
    return mean
