"""Binding tables: the intermediate rows of a match. Each variable is a column of row numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine import tuning
from omnigraph.engine.cache.column_access import is_numeric, select_rows
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.native_calls import gather
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.syntax.ast import ANONYMOUS


class Binding:
    """The column of one variable: a table, and for each row the number of the entity in that table.

    The rows are the whole table, the rows of the table that a mask selects, or an array of row numbers. Without a mask
    and numbers they are the rows that are visible.
    """

    __slots__ = ("_count", "_expected", "_numbers", "_taken", "data", "mask", "unique")

    def __init__(
        self, data: ColumnSource, numbers: Numbers | None = None, *, mask: Mask | None = None, unique: bool = False
    ) -> None:
        self.data = data
        self._numbers = numbers
        self.mask = data.visible if numbers is None and mask is None else mask
        """The selected rows of the table; None if the rows are not defined by a mask."""
        self._taken: dict[str, pa.Array] = {}
        """Properties that were read for these rows alone."""
        self._expected: Sequence[str] = ()
        self._count: int | None = None
        self.unique = unique or numbers is None
        """True if it is known that no entity occurs twice."""

    @classmethod
    def every(cls, data: ColumnSource) -> Binding:
        """Bind all rows, hidden ones included, to evaluate a condition; the caller selects the visible rows."""
        every = cls(data, mask=_NO_ROWS)
        every.mask = None
        return every

    @property
    def whole(self) -> bool:
        """True if the rows are the whole table in its order; its columns are then used without a gather."""
        return self._numbers is None and self.mask is None

    @property
    def count(self) -> int:
        """The number of rows."""
        if self._numbers is not None:
            return len(self._numbers)
        if self.mask is None:
            return self.data.row_count
        if self._count is None:
            self._count = int(np.count_nonzero(self.mask))
        return self._count

    @property
    def numbers(self) -> Numbers:
        """The row number of the entity of each row."""
        if self._numbers is not None:
            return self._numbers
        if self.mask is None:
            return np.arange(self.data.row_count)
        self._numbers = np.flatnonzero(self.mask)
        return self._numbers

    def take(self, positions: Numbers, *, unique: bool = False) -> Binding:
        """Return the rows at some positions. `unique` states that no position occurs twice."""
        numbers = positions if self.whole else gather(self.numbers, positions)
        return Binding(self.data, numbers, unique=unique and self.unique)

    def column(self, name: str) -> pa.Array:
        """Return a property of each row."""
        if self.whole:
            return self.data.column(name)
        column = self.data.column_for(name, self.count)
        return self._read(name) if column is None else select_rows(column, self.numbers)

    def known(self, name: str) -> Mask:
        """Return a mask of the rows in which a property is not null; values in memory are not copied."""
        column = self.data.column(name) if self.whole else self.data.column_for(name, self.count)
        if column is None:
            column = self._read(name)
            return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        if not column.null_count:
            return np.ones(self.count, bool)
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        return valid if self.whole else gather(valid, self.numbers)

    def expect(self, names: Sequence[str]) -> None:
        """Name the properties that are needed: those that are read for these rows alone are read together."""
        self._expected = names

    def _read(self, name: str) -> pa.Array:
        """Return a property that is read for these rows alone, with all expected ones."""
        if name not in self._taken:
            names, count = dict.fromkeys((*self._expected, name)), self.count
            missing = [one for one in names if one not in self._taken and self.data.column_for(one, count) is None]
            self._taken |= self.data.take_columns(missing, self.numbers)
        found = self._taken.get(name)
        return self.data.take(name, self.numbers) if found is None else found

    def plain(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return a property of each row as a numpy array; None if it is not numeric or contains nulls."""
        column = self.data.column(name) if self.whole else self.data.column_for(name, self.count)
        if column is None:
            column = self._read(name)
            return None if column.null_count or not is_numeric(column.type) else column.to_numpy()
        if column.null_count or not is_numeric(column.type):
            return None
        values: np.ndarray[Any, Any] = column.to_numpy()
        return values if self.whole else values[self.numbers]


@dataclass(frozen=True)
class BindingTable:
    """A multiset of rows. Without variables it has one empty row: the start of every match."""

    count: int = 1
    bound: Mapping[str, Binding] = field(default_factory=dict)
    weight: Numbers | None = None
    """The number of rows of the match that each row represents; None if each represents one."""

    def take(self, positions: Numbers, *, unique: bool = False) -> BindingTable:
        """Return the rows at some positions, in that order. `unique` states that no position occurs twice."""
        bound = {name: b.take(positions, unique=unique) for name, b in self.bound.items()}
        return BindingTable(len(positions), bound, self.weight[positions] if self.weight is not None else None)

    def keep(self, mask: Mask) -> BindingTable:
        """Return the rows that a mask selects."""
        if mask.all():
            return self
        if len(self.bound) == 1 and self.weight is None:
            ((name, bound),) = self.bound.items()
            if bound.whole:
                passing = Binding(bound.data, mask=mask)
                return BindingTable(passing.count, {name: passing})
        return self.take(np.flatnonzero(mask), unique=True)

    def bind(self, name: str, data: ColumnSource, numbers: Numbers, *, unique: bool = False) -> BindingTable:
        """Return the rows with one more variable. `unique` states that no row number occurs twice."""
        return BindingTable(self.count, {**self.bound, name: Binding(data, numbers, unique=unique)}, self.weight)

    def only(self, names: Iterable[str]) -> BindingTable:
        """Return the rows with only some of the variables."""
        return BindingTable(self.count, {name: self.bound[name] for name in names}, self.weight)

    def weighted(self, factor: Numbers) -> BindingTable:
        """Return the rows with their weights multiplied by `factor`."""
        return BindingTable(self.count, self.bound, factor if self.weight is None else self.weight * factor)

    def merged(self) -> BindingTable:
        """Return the same multiset with equal rows merged, if that is cheap: without variables, or with one that
        repeats often.
        """
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
        """Return the names of the variables that the query names, sorted."""
        return sorted(name for name in self.bound if not name.startswith(f"{ANONYMOUS}#"))


def weighted_counts(numbers: Numbers, weight: Numbers | None, size: int) -> Numbers:
    """Return for each of `size` numbers how often it occurs, or the sum of its weights."""
    if weight is None:
        return np.bincount(numbers, minlength=size)
    if int(weight.max(initial=0)) * len(weight) < _EXACT:
        return np.bincount(numbers, weights=weight, minlength=size).astype(np.int64)
    total = np.zeros(size, np.int64)
    np.add.at(total, numbers, weight)
    return total


_NO_ROWS = np.zeros(0, bool)
_EXACT = 2**53
"""Float sums of integers are exact below this value."""
