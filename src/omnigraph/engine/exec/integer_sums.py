"""Exact sums of integers, for all rows or for each group.

A sum is computed exactly, so neither the order of the rows nor a large intermediate total changes it. The result is an
I64, or a U64 for a U64 argument; a total outside that range raises `overflow`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.errors import InputError
from omnigraph.types import INTEGER_RANGES

Values = np.ndarray[Any, Any]

_DIGIT_BITS = 22
_DIGIT = (1 << _DIGIT_BITS) - 1
_EXACT = 2**53
"""Up to this magnitude a 64-bit float represents every integer."""


def overflow(type_: str) -> InputError:
    """Return the error for a sum outside the range of its type."""
    low, high = INTEGER_RANGES["U64" if type_ == "U64" else "I64"]
    return InputError(
        f"'sum' overflows: the total is outside the {type_} range ({low} to {high})",
        code="overflow",
        hint="multiply the argument by 1.0 to add it up as F64",
    )


def sum_of(values: Values, type_: str) -> int:
    """Return the sum of all values."""
    if not len(values):
        return 0
    largest = max(int(values.max()), -int(values.min()))
    if largest * len(values) <= INTEGER_RANGES["I64"][1]:
        return int(values.sum())
    # Neither half of the digits can exceed 64 bits.
    high, low = values >> np.asarray(32, values.dtype), values & np.asarray(0xFFFF_FFFF, values.dtype)
    return within_range((int(high.sum()) << 32) + int(low.sum()), type_)


def sums_of(values: Values, groups: Numbers | None, weight: Numbers | None, count: int, type_: str) -> Values:
    """Return the sum of each group; `weight` is the number of times each value counts."""
    if groups is None:
        if weight is None:
            return _column([sum_of(values, type_)], type_)
        groups = np.zeros(len(values), np.int64)
    if not len(values):
        return _column([0] * count, type_)
    largest = max(int(values.max()), -int(values.min()))
    times = len(values) if weight is None else int(weight.sum())
    if largest * times <= _EXACT:
        weighted = values.astype(np.float64) if weight is None else values.astype(np.float64) * weight
        return np.bincount(groups, weights=weighted, minlength=count)[:count].astype(_dtype(type_))
    if times << _DIGIT_BITS <= _EXACT:
        return _by_digits(values, groups, weight, count, type_)
    exact = np.zeros(count, object)
    np.add.at(exact, groups, values.astype(object) * (1 if weight is None else weight.astype(object)))
    return _column([int(total) for total in exact], type_)


def sum_array(values: Values, groups: Numbers | None, weight: Numbers | None, sizes: Values, type_: str) -> pa.Array:
    """Return the sum of each group as a column; null for a group without values."""
    return pa.array(sums_of(values, groups, weight, len(sizes), type_), mask=sizes == 0)


def _by_digits(values: Values, groups: Numbers, weight: Numbers | None, count: int, type_: str) -> Values:
    """Return sums of three digits of 22 bits, each of which floats add up exactly."""
    bits = np.asarray(_DIGIT_BITS, values.dtype)
    digit = np.asarray(_DIGIT, values.dtype)
    totals: list[Values] = []
    for _ in range(3):
        part = values if len(totals) == 2 else values & digit
        weighted = part.astype(np.float64) if weight is None else part.astype(np.float64) * weight
        totals.append(np.bincount(groups, weights=weighted, minlength=count)[:count].astype(np.int64))
        values = values >> bits
    approximate = totals[2] * 2.0 ** (2 * _DIGIT_BITS) + totals[1] * 2.0**_DIGIT_BITS + totals[0]
    if float(np.abs(approximate).max()) < 2.0**62:
        exact = (totals[2] << (2 * _DIGIT_BITS)) + (totals[1] << _DIGIT_BITS) + totals[0]
        return exact.astype(_dtype(type_))
    whole = zip(*(part.tolist() for part in totals), strict=True)
    return _column([(c << 2 * _DIGIT_BITS) + (b << _DIGIT_BITS) + a for a, b, c in whole], type_)


def _column(totals: list[int], type_: str) -> Values:
    return np.array([within_range(total, type_) for total in totals], _dtype(type_))


def within_range(total: int, type_: str) -> int:
    """Return a sum; raise `overflow` if it is outside the range of its type."""
    low, high = INTEGER_RANGES["U64" if type_ == "U64" else "I64"]
    if not low <= total <= high:
        raise overflow(type_)
    return total


def _dtype(type_: str) -> type[np.int64] | type[np.uint64]:
    return np.uint64 if type_ == "U64" else np.int64
