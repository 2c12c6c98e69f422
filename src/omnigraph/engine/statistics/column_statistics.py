"""Statistics of a column: nulls, distinct values, most common values, bounds.

A summary is computed from all rows once and merged with a summary of the rows that a later version adds. The sample is
taken at equal distances, so a version always gives the same summary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.scalar_types.columns import as_numbers, comparable

_SAMPLE = 1_024
_HASHES = 256
"""Smallest hashes kept to count distinct values; the standard error is 6 %."""
_HASHED_MAX = 100_000
"""Values that are hashed, at equal distances."""
_COMMON_MAX = 16
_VALUE_BYTES = 100
_U64 = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True)
class ColumnStatistics:
    """A summary of one column of a table version. Values are in stored form."""

    rows: int
    nulls: int
    sample: tuple[Any, ...]
    """Non-null values at equal distances, ascending; empty for types without an order."""
    hashes: _U64 | None
    """The smallest hashes of the values, ascending; None for texts, whose distinct values the sample estimates."""
    low: Any = None
    high: Any = None
    hashed: int = 0
    """The number of values that were hashed."""

    @property
    def nbytes(self) -> int:
        """The approximate size in memory."""
        return _VALUE_BYTES * len(self.sample)

    # -- construction ----------------------------------------------------------------------------

    @classmethod
    def of(cls, column: pa.Array) -> ColumnStatistics:
        """Summarise a column."""
        rows, nulls = len(column), column.null_count
        type_ = column.type
        if rows == nulls or not (_is_text(type_) or _is_plain(type_)):
            return cls(rows, nulls, (), None)
        values = column.drop_null() if nulls else column
        steps = np.linspace(0, len(values) - 1, min(len(values), _SAMPLE)).astype(np.int64)
        if _is_text(type_):
            values = comparable(values)
            bounds = pc.min_max(values)
            sample = tuple(sorted(values.take(pa.array(steps)).to_pylist()))
            return cls(rows, nulls, sample, None, bounds["min"].as_py(), bounds["max"].as_py())
        numbers = as_numbers(values).to_numpy(zero_copy_only=False)
        ordered = np.sort(numbers[steps])
        if ordered.dtype.kind == "f":
            numbers = numbers[~np.isnan(numbers)]
            ordered = ordered[~np.isnan(ordered)]
        if not len(numbers):
            return cls(rows, nulls, (), None)
        low, high = numbers.min().item(), numbers.max().item()
        some = numbers[:: max(math.ceil(len(numbers) / _HASHED_MAX), 1)]
        return cls(rows, nulls, tuple(ordered.tolist()), _smallest(_hashed(some)), low, high, len(some))

    def merged(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the summary of the rows of both."""
        hashes = None
        if self.hashes is not None and other.hashes is not None:
            hashes = _smallest(np.concatenate([self.hashes, other.hashes]))
        elif not self.sample or not other.sample:
            hashes = self.hashes if self.sample else other.hashes
        lows = [one.low for one in (self, other) if one.sample]
        highs = [one.high for one in (self, other) if one.sample]
        return ColumnStatistics(
            self.rows + other.rows,
            self.nulls + other.nulls,
            _merged_samples(self, other),
            hashes,
            min(lows, default=None),
            max(highs, default=None),
            self.hashed + other.hashed,
        )

    # -- figures ---------------------------------------------------------------------------------

    @property
    def known_share(self) -> float:
        """The share of rows with a value."""
        return 1 - self.nulls / self.rows if self.rows else 0.0

    @cached_property
    def distinct(self) -> float:
        """The estimated number of distinct values, at least 1."""
        values = self.rows - self.nulls
        if not self.sample:
            return max(float(values), 1.0)
        if self.hashes is not None:
            kept = len(self.hashes)
            if kept < _HASHES:
                return float(max(kept, 1))
            found = max((_HASHES - 1) / (float(self.hashes[-1]) / 2.0**64), 1.0)
            # If most hashed values differ, most others differ too; else nearly all distinct values were hashed.
            return found * values / self.hashed if found > self.hashed / 2 else found
        counts = self._counts
        once = sum(1 for count in counts.values() if count == 1)
        if values <= len(self.sample):
            return float(len(counts))
        return len(counts) - once + math.sqrt(values / len(self.sample)) * once

    @cached_property
    def common(self) -> dict[Any, float]:
        """The most common values and their shares of the rows."""
        least = max(2, len(self.sample) // 100)
        often = sorted(
            ((value, count) for value, count in self._counts.items() if count >= least), key=lambda pair: -pair[1]
        )
        return {value: self.known_share * count / len(self.sample) for value, count in often[:_COMMON_MAX]}

    @cached_property
    def _counts(self) -> dict[Any, int]:
        counts: dict[Any, int] = {}
        for value in self.sample:
            counts[value] = counts.get(value, 0) + 1
        return counts

    @cached_property
    def _rest(self) -> float:
        """The share of the rows with a value that is not common, for each such value."""
        others = max(self.distinct - len(self.common), 1.0)
        return max(self.known_share - sum(self.common.values()), 0.0) / others

    def share_equal(self, value: Any) -> float:
        """Return the share of rows with a value."""
        if value is None or self.nulls == self.rows:
            return 0.0
        share = self.common.get(value)
        if share is not None:
            return share
        try:
            outside = self.sample and not self.low <= value <= self.high
        except TypeError:
            outside = False
        return 0.0 if outside else max(self._rest, 1e-9)

    def share_equal_any(self) -> float:
        """Return the share of rows that equal a value of the column that is not known yet."""
        return self.known_share / self.distinct

    def share_below(self, value: Any, *, inclusive: bool) -> float:
        """Return the share of rows with a value below a bound."""
        if not self.sample or value is None:
            return self.known_share / 3
        try:
            position = np.searchsorted(self._ordered, value, side="right" if inclusive else "left")
        except TypeError:
            return self.known_share / 3
        # A bound outside the sample may still exclude or include some rows.
        margin = 0.5 / len(self.sample)
        return self.known_share * min(max(float(position) / len(self.sample), margin), 1 - margin)

    def share_where(self, test: Callable[[Any], bool]) -> float:
        """Return the share of rows that pass a test, from the sample."""
        if not self.sample:
            return self.known_share / 3
        passing = sum(1 for value in self.sample if test(value))
        return self.known_share * max(passing, 0.5) / len(self.sample)

    @cached_property
    def _ordered(self) -> np.ndarray[Any, Any]:
        return np.array(self.sample)


def _merged_samples(one: ColumnStatistics, other: ColumnStatistics) -> tuple[Any, ...]:
    """Return a sample in which both parts have the share of their rows."""
    total = max((one.rows - one.nulls) + (other.rows - other.nulls), 1)
    parts: list[Any] = []
    for part in (one, other):
        room = min(math.ceil(_SAMPLE * (part.rows - part.nulls) / total), len(part.sample))
        if len(one.sample) + len(other.sample) <= _SAMPLE:
            room = len(part.sample)
        steps = np.linspace(0, len(part.sample) - 1, room).astype(np.int64) if room else ()
        parts += [part.sample[step] for step in steps]
    return tuple(sorted(parts))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_plain(type_: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(type_) or pa.types.is_boolean(type_))


def _hashed(numbers: np.ndarray[Any, Any]) -> _U64:
    """Return a 64-bit hash of each number (splitmix64)."""
    if numbers.dtype.kind == "f":
        bits = numbers.astype(np.float64).view(np.uint64)
    else:
        bits = numbers.astype(np.int64).view(np.uint64) if numbers.dtype != np.uint64 else numbers.copy()
    with np.errstate(over="ignore"):
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)), np.uint64)


def _smallest(hashes: _U64) -> _U64:
    """Return the smallest distinct hashes, ascending."""
    found = hashes
    wanted = 4 * _HASHES
    while len(found) > wanted:
        some = np.unique(np.partition(found, wanted)[:wanted])
        if len(some) >= _HASHES:
            return some[:_HASHES]
        # Values repeat often: take more of them.
        wanted *= 8
    return np.unique(found)[:_HASHES]
