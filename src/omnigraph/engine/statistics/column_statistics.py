"""Statistics of a column: nulls, distinct values, most common values, bounds, coverage.

A summary is computed from a column, or from a sample of it, and merged with a summary of the rows that a later version
adds. `pack` is the form in which it is stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.statistics.sampling import estimated_total, is_plain, is_text, sample_positions
from omnigraph.engine.statistics.value_hashes import Hashes, hash_numbers, hash_texts, unique_sorted
from omnigraph.scalar_types.columns import as_numbers, comparable

_SAMPLE = 1_024
_TEXT_SAMPLE_CHARS = 65_536
"""Approximate size of the texts of a sample; it has fewer texts if they are long."""
_TEXT_SAMPLE_MIN = 64
_TEXT_CHARS = 1_024
"""Longer texts of a sample are cut."""
_HASHES = 512
"""Smallest hashes kept to count distinct values; the standard error is 4 %."""
_HASHED_MAX = 100_000
"""Values that are hashed."""
_COMMON_MAX = 16
_ROUNDING = 1e-9
_VALUE_BYTES = 100
Counts = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """A summary of one column of a table version. Values are in stored form."""

    rows: int
    nulls: int
    sample: tuple[Any, ...]
    """Some values, ascending; empty for types without an order."""
    hashes: Hashes | None
    """The smallest hashes of the values, ascending; None for types without an order."""
    counts: Counts | None = None
    """How many of the hashed values have each of these hashes."""
    low: Any = None
    high: Any = None
    hashed: int = 0
    """The number of values that were hashed. Without a sample of the column it is the number of values."""
    filled: int = 0
    """The number of rows with a text that is not empty, or with a list, vector or other value."""
    length: float = 0.0
    """The mean number of characters of these texts."""

    @property
    def nbytes(self) -> int:
        """The approximate size in memory."""
        return _VALUE_BYTES * len(self.sample) + 16 * _HASHES

    # -- construction ----------------------------------------------------------------------------

    @classmethod
    def of(cls, column: pa.Array, rows: int | None = None) -> ColumnStatistics:
        """Summarise a column of `rows` rows from all its values or from a sample."""
        total = len(column) if rows is None else rows
        nulls = round(total * column.null_count / len(column)) if len(column) else 0
        type_ = column.type
        if column.null_count == len(column) or not (is_text(type_) or is_plain(type_)):
            return cls(total, nulls, (), None, filled=total - nulls)
        values = column.drop_null() if column.null_count else column
        if is_text(type_):
            return _of_texts(comparable(values), total, nulls)
        numbers = as_numbers(values).to_numpy(zero_copy_only=False)
        if numbers.dtype.kind == "f":
            numbers = numbers[~np.isnan(numbers)]
        if not len(numbers):
            return cls(total, nulls, (), None, filled=total - nulls)
        low, high = numbers.min().item(), numbers.max().item()
        ordered = np.sort(numbers[sample_positions(len(numbers), _SAMPLE)])
        some = numbers[sample_positions(len(numbers), _HASHED_MAX)]
        hashes, counts = _smallest(hash_numbers(some))
        hashed = total - nulls if len(some) == total - nulls else len(some)
        return cls(total, nulls, tuple(ordered.tolist()), hashes, counts, low, high, hashed, total - nulls)

    def merged(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the summary of the rows of both."""
        hashes, counts = _merged_hashes(self, other)
        lows = [one.low for one in (self, other) if one.sample]
        highs = [one.high for one in (self, other) if one.sample]
        filled = self.filled + other.filled
        return ColumnStatistics(
            self.rows + other.rows,
            self.nulls + other.nulls,
            _merged_samples(self, other),
            hashes,
            counts,
            min(lows, default=None),
            max(highs, default=None),
            self.hashed + other.hashed,
            filled,
            (self.length * self.filled + other.length * other.filled) / filled if filled else 0.0,
        )

    # -- stored form -----------------------------------------------------------------------------

    def pack(self) -> list[Any]:
        """Return the summary as a list of plain values."""
        sketch = None
        if self.hashes is not None and self.counts is not None:
            sketch = [self.hashes.astype("<u8").tobytes(), self.counts.astype("<i8").tobytes()]
        figures = [self.rows, self.nulls, self.hashed, self.filled, self.length]
        return [*figures, list(self.sample), sketch, self.low, self.high]

    @classmethod
    def unpack(cls, packed: Sequence[Any]) -> ColumnStatistics:
        """Return the summary from its stored form; raise `ValueError` or `TypeError` if it is malformed."""
        rows, nulls, hashed, filled, length, sample, sketch, low, high = packed
        if not (0 <= nulls <= rows and 0 <= filled <= rows and 0 <= hashed <= rows and length >= 0):
            raise ValueError("a number of rows is out of range")
        if any(before > after for before, after in pairwise(sample)):
            raise ValueError("a sample is not ascending")
        hashes = counts = None
        if sketch is not None:
            hashes, counts = np.frombuffer(sketch[0], "<u8"), np.frombuffer(sketch[1], "<i8")
        if (hashes is None) != (not sample) or (hashes is not None and not _is_sketch(hashes, counts)):
            raise ValueError("hashes are malformed")
        return cls(rows, nulls, tuple(sample), hashes, counts, low, high, hashed, filled, length)

    # -- figures ---------------------------------------------------------------------------------

    @property
    def known_share(self) -> float:
        """The share of rows with a value."""
        return 1 - self.nulls / self.rows if self.rows else 0.0

    @property
    def filled_share(self) -> float:
        """The share of rows with a text that is not empty, or with a vector."""
        return self.filled / self.rows if self.rows else 0.0

    @property
    def is_sampled(self) -> bool:
        """True if the summary does not cover all rows."""
        return self.hashed < self.rows - self.nulls

    @cached_property
    def distinct(self) -> float:
        """The estimated number of distinct values, at least 1."""
        values = self.rows - self.nulls
        if self.hashes is None or self.counts is None:
            return max(float(values), 1.0)
        kept = len(self.hashes)
        found = float(kept)
        if kept >= _HASHES:
            found = min(max((_HASHES - 1) / (float(self.hashes[-1]) / 2.0**64), 1.0), float(self.hashed))
        each = found / kept
        once, twice = (each * np.count_nonzero(self.counts == count) for count in (1, 2))
        return max(estimated_total(once, twice, found, self.hashed, values), 1.0)

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
        if outside:
            # A sample may lack the extreme values.
            return min(self._rest, 0.5 / self.hashed) if self.is_sampled else 0.0
        return max(self._rest, 1e-9)

    def share_equal_any(self) -> float:
        """Return the share of rows that equal a value of the column that is not known yet."""
        return self.known_share / self.distinct

    def share_below(self, value: Any, *, inclusive: bool) -> float:
        """Return the share of rows with a value below a bound."""
        if not self.sample or value is None:
            return self.known_share / 3
        try:
            position = self._ordered.searchsorted(value, side="right" if inclusive else "left")
        except TypeError:
            return self.known_share / 3
        # A bound outside the sample may still exclude or include some rows.
        margin = 0.5 / len(self.sample)
        return self.known_share * min(max(float(position) / len(self.sample), margin), 1 - margin)

    def share_where(self, test: Callable[[Any], bool], most: int = _SAMPLE) -> float:
        """Return the share of rows that pass a test, from at most about `most` values of the sample."""
        if not self.sample:
            return self.known_share / 3
        tested = self.sample[:: -(-len(self.sample) // most)]
        passing = sum(1 for value in tested if test(value))
        return self.known_share * max(passing, 0.5) / len(tested)

    @cached_property
    def _ordered(self) -> np.ndarray[Any, Any]:
        return np.array(self.sample)


def _merged_samples(one: ColumnStatistics, other: ColumnStatistics) -> tuple[Any, ...]:
    """Return a sample in which both parts have the share of their rows."""
    parts = [part for part in (one, other) if part.sample]
    total = sum(part.rows - part.nulls for part in parts)
    shares = [(part.rows - part.nulls) / total for part in parts]
    size = min([_SAMPLE, *(len(part.sample) / share for part, share in zip(parts, shares, strict=True))])
    found: list[Any] = []
    for part, share in zip(parts, shares, strict=True):
        room = min(math.ceil(size * share - _ROUNDING), len(part.sample))
        steps = np.linspace(0, len(part.sample) - 1, room).astype(np.int64)
        found += [part.sample[step] for step in steps]
    return tuple(sorted(found))


def _of_texts(texts: pa.Array, rows: int, nulls: int) -> ColumnStatistics:
    """Summarise a sample of texts."""
    sizes = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    filled = int(np.count_nonzero(sizes))
    length = float(sizes.sum()) / filled if filled else 0.0
    wanted = min(_SAMPLE, max(int(_TEXT_SAMPLE_CHARS / max(length, 1.0)), _TEXT_SAMPLE_MIN))
    chosen = texts.take(pa.array(sample_positions(len(texts), wanted)))
    some = texts.take(pa.array(sample_positions(len(texts), _HASHED_MAX))) if len(texts) > _HASHED_MAX else texts
    bounds = pc.min_max(texts)
    hashes, counts = _smallest(hash_texts(some))
    return ColumnStatistics(
        rows,
        nulls,
        tuple(sorted(text[:_TEXT_CHARS] for text in chosen.to_pylist())),
        hashes,
        counts,
        bounds["min"].as_py()[:_TEXT_CHARS],
        _cut_above(bounds["max"].as_py()),
        rows - nulls if len(some) == rows - nulls else len(some),
        round((rows - nulls) * filled / len(texts)),
        length,
    )


def _cut_above(text: str) -> str:
    """Return a text of bounded size that is not below another one."""
    return text if len(text) <= _TEXT_CHARS else text[:_TEXT_CHARS] + "\U0010ffff"


def _smallest(hashes: Hashes) -> tuple[Hashes, Counts]:
    """Return the smallest distinct hashes, ascending, and how often each occurs."""
    found, counts = unique_sorted(hashes)
    return found[:_HASHES], counts[:_HASHES]


def _merged_hashes(one: ColumnStatistics, other: ColumnStatistics) -> tuple[Hashes | None, Counts | None]:
    if one.hashes is None or other.hashes is None or one.counts is None or other.counts is None:
        known = other if one.hashes is None else one
        return known.hashes, known.counts
    hashes, places = np.unique(np.concatenate([one.hashes, other.hashes]), return_inverse=True)
    counts = np.bincount(places.reshape(-1), np.concatenate([one.counts, other.counts])).astype(np.int64)
    return hashes[:_HASHES], counts[:_HASHES]


def _is_sketch(hashes: Hashes, counts: np.ndarray[Any, Any] | None) -> bool:
    return (
        counts is not None
        and hashes.ndim == counts.ndim == 1
        and 0 < len(hashes) == len(counts) <= _HASHES
        and bool((hashes[1:] > hashes[:-1]).all())
        and bool((counts > 0).all())
    )
