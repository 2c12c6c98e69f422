"""Integer codes of keys that consist of several columns.

The codes of the columns are the digits of a mixed-radix number. The numbers are made dense after each column, so they
do not overflow. Dense codes keep the order of their input: combined codes sort like the tuples of the columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.native_calls import interruptible

Codes = np.ndarray[Any, Any]

_PRODUCT_MAX = 2**62


def combine_codes(columns: Iterable[Codes]) -> tuple[Numbers, int]:
    """Return the dense codes of the combinations of all columns, and the number of distinct combinations.

    A column contains integers or floats. Negative codes are valid; null is -1.
    """
    remaining = iter(columns)
    codes, count = dense_codes(next(remaining))
    for column in remaining:
        digits, radix = _digits(column)
        if count * radix > _PRODUCT_MAX:
            digits, radix = dense_codes(digits)
        codes, count = dense_codes(codes * radix + digits)
    return codes, count


def dense_codes(codes: Codes) -> tuple[Numbers, int]:
    """Return the codes without gaps, from 0 and in the same order, and the number of distinct codes."""
    digits, radix = _digits(codes)
    if radix > 4 * len(digits) + 1024:
        return _ranked(digits)
    present = np.zeros(radix, bool)
    present[digits] = True
    numbers: Numbers = np.cumsum(present) - 1
    return numbers[digits], int(np.count_nonzero(present))


def first_rows(codes: Numbers, count: int) -> Numbers:
    """Return the first row of each of `count` dense codes."""
    first = np.zeros(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last assignment of a code is its first row
    return first


def _digits(codes: Codes) -> tuple[Numbers, int]:
    """Return codes from 0 in the same order, and a number above all of them; small integers keep their distances."""
    if codes.dtype.kind not in "iu" or not len(codes):
        return _ranked(codes)
    low, high = min(int(codes.min()), 0), int(codes.max())
    if high - low >= _PRODUCT_MAX or high >= _PRODUCT_MAX:
        return _ranked(codes)
    return codes.astype(np.int64, copy=False) - low if low < 0 else codes.astype(np.int64, copy=False), high - low + 1


def _ranked(codes: Codes) -> tuple[Numbers, int]:
    distinct, positions = interruptible(lambda: np.unique(codes, return_inverse=True), len(codes))
    return positions.astype(np.int64, copy=False), len(distinct)
