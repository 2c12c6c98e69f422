"""The rows a query has so far: for every variable a column of numbers, all of one length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine import tuning
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.native import gather, in_batches
from omnigraph.query.syntax.ast import ANONYMOUS


class Binding:
    """A variable: which table its entities are in, and which one each row means.

    The rows are those of the table, those of it that pass a mask, or any that are numbered.
    """

    __slots__ = ("_numbers", "_places", "data", "mask", "unique")

    def __init__(
        self, data: ColumnSource, numbers: Numbers | None = None, *, mask: Mask | None = None, unique: bool = False
    ) -> None:
        self.data = data
        self._numbers = numbers
        self.mask = mask
        """Which rows of the table these are, if that is all that was said."""
        self._places: pa.Array | None = None
        self.unique = unique or numbers is None
        """Whether no entity is there twice, as far as is known."""

    @property
    def whole(self) -> bool:
        """Whether the rows are those of the table, in its order: then its columns need no picking."""
        return self._numbers is None and self.mask is None

    @property
    def count(self) -> int:
        """How many rows there are."""
        if self._numbers is not None:
            return len(self._numbers)
        return self.data.row_count if self.mask is None else int(np.count_nonzero(self.mask))

    @property
    def numbers(self) -> Numbers:
        """The entity of each row."""
        if self._numbers is not None:
            return self._numbers
        if self.mask is None:
            return np.arange(self.data.row_count)
        self._numbers = np.flatnonzero(self.mask)
        return self._numbers

    def take(self, positions: Numbers, *, unique: bool = False) -> Binding:
        """The entities of the rows at these positions; `once` says that no position is there twice."""
        numbers = positions if self.whole else gather(self.numbers, positions)
        return Binding(self.data, numbers, unique=unique and self.unique)

    def column(self, name: str) -> pa.Array:
        """A property of each row."""
        column = self.data.column(name)
        if self.whole:
            return column
        numbers = self.numbers
        if len(numbers) == 1:
            return pa.concat_arrays([column.slice(int(numbers[0]), 1)])  # a slice would keep the whole column
        if not column.null_count and is_numeric(column.type):
            return pa.array(gather(column.to_numpy(), numbers))
        if self._places is None:
            self._places = pa.array(numbers)
        places = self._places
        return in_batches(column.take, places)

    def plain(self, name: str) -> np.ndarray[Any, Any] | None:
        """A property of each row, if it is a number and never null; else None."""
        column = self.data.column(name)
        if column.null_count or not is_numeric(column.type):
            return None
        values: np.ndarray[Any, Any] = column.to_numpy()
        return values if self.whole else values[self.numbers]


@dataclass(frozen=True)
class BindingTable:
    """A bag of rows. Without variables it is one empty row, the start of every match."""

    count: int = 1
    bound: Mapping[str, Binding] = field(default_factory=dict)
    weight: Numbers | None = None
    """How many rows of the match each row stands for; one each when there is none."""

    def take(self, positions: Numbers, *, unique: bool = False) -> BindingTable:
        """The rows at these positions, in their order; `once` says that no position is there twice."""
        bound = {name: b.take(positions, unique=unique) for name, b in self.bound.items()}
        return BindingTable(len(positions), bound, self.weight[positions] if self.weight is not None else None)

    def keep(self, mask: Mask) -> BindingTable:
        """The rows where the mask is true."""
        if mask.all():
            return self
        if len(self.bound) == 1 and self.weight is None:
            ((name, bound),) = self.bound.items()
            if bound.whole:
                passing = Binding(bound.data, mask=mask)
                return BindingTable(passing.count, {name: passing})
        return self.take(np.flatnonzero(mask), unique=True)

    def bind(self, name: str, data: ColumnSource, numbers: Numbers, *, unique: bool = False) -> BindingTable:
        """The same rows with one more variable; `once` says that no number is there twice."""
        return BindingTable(self.count, {**self.bound, name: Binding(data, numbers, unique=unique)}, self.weight)

    def only(self, names: Iterable[str]) -> BindingTable:
        """The same rows with some of their variables."""
        return BindingTable(self.count, {name: self.bound[name] for name in names}, self.weight)

    def weighted(self, factor: Numbers) -> BindingTable:
        """The same rows, each standing for `factor` times as many."""
        return BindingTable(self.count, self.bound, factor if self.weight is None else self.weight * factor)

    def merged(self) -> BindingTable:
        """The same bag with equal rows put together, where that is cheap: no variable, or one that repeats much."""
        if not self.bound:
            total = self.count if self.weight is None else int(self.weight.sum())
            return BindingTable(1 if total else 0, {}, np.array([total] if total else [], np.int64))
        if len(self.bound) != 1:
            return self
        ((name, bound),) = self.bound.items()
        size = bound.data.row_count
        if bound.unique or self.count < tuning.current.merge_rows_min or self.count * 32 < size:
            return self
        counts = weighted_counts(bound.numbers, self.weight, size)
        numbers = np.flatnonzero(counts)
        return BindingTable(len(numbers), {name: Binding(bound.data, numbers, unique=True)}, counts[numbers])

    def named(self) -> list[str]:
        """The variables a user can name, by name."""
        return sorted(name for name in self.bound if not name.startswith(f"{ANONYMOUS}#"))


def is_numeric(type_: pa.DataType) -> bool:
    """Whether this is a type of numbers that numpy has too."""
    return type_.id in _NUMBERS


def weighted_counts(numbers: Numbers, weight: Numbers | None, size: int) -> Numbers:
    """For each of `size` numbers how often it is there, or the sum of its weights."""
    if weight is None:
        return np.bincount(numbers, minlength=size)
    if int(weight.max(initial=0)) * len(weight) < _EXACT:
        return np.bincount(numbers, weights=weight, minlength=size).astype(np.int64)
    total = np.zeros(size, np.int64)
    np.add.at(total, numbers, weight)
    return total


_NUMBERS = frozenset(
    type_.id for type_ in (pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64())
)
_EXACT = 2**53
"""Sums of floats are exact as long as they stay below."""
