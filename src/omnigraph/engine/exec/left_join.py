"""Optional blocks: rows that may have no entity for a variable.

A table gets one more row after its last: the null row. Its properties are null, and null sorts first, so most operators
need no special case. Expand drops null rows: an absent node has no edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.arrays import concatenate
from omnigraph.engine.adjacency.csr import Room, batched_ranges
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.dictionary_codes import DictionaryCodes
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.native_calls import gather, interruptible
from omnigraph.query.plan import ir

Derived = TypeVar("Derived")


class NullExtendedTable:
    """A table with a null row after its last row."""

    def __init__(self, base: ColumnSource) -> None:
        self.base = base
        self.key = base.key
        self.union = base.union

    @property
    def visible(self) -> Mask | None:
        """A mask of the visible rows and the null row; None if no row is hidden."""
        seen = self.base.visible
        return None if seen is None else np.append(seen, True)

    @property
    def absent(self) -> int:
        """The number of the null row."""
        return self.base.row_count

    @property
    def row_count(self) -> int:
        """The number of rows, including the null row."""
        return self.base.row_count + 1

    def column(self, name: str) -> pa.Array:
        """Return a whole column; its last value is null."""
        known = self.base.column(name)
        return concatenate([known, pa.nulls(1, known.type)])

    def column_for(self, name: str, rows: int) -> pa.Array | None:
        """Return a whole column if that of the table is in memory and at least half of its rows are needed; else None.

        The column is a copy, so a few rows are read by their numbers.
        """
        return None if rows * 2 < self.row_count or self.base.column_for(name, rows) is None else self.column(name)

    def take(self, name: str, numbers: Numbers) -> pa.Array:
        """Return the values of some rows."""
        return self.take_columns([name], numbers)[name]

    def take_columns(self, names: Sequence[str], numbers: Numbers) -> dict[str, pa.Array]:
        """Return the values of several columns of some rows."""
        present = numbers != self.absent
        rows = np.flatnonzero(present)
        found = self.base.take_columns(names, numbers[rows])
        if len(rows) == len(numbers):
            return found
        places = pa.array(np.cumsum(present) - 1, mask=~present)
        return {name: column.take(places) for name, column in found.items()}

    def mean_bytes(self, name: str, rows: int) -> int:
        """Return the approximate size of a value of a column."""
        return self.base.mean_bytes(name, rows)

    def codes(self, name: str, rows: int | None = None) -> DictionaryCodes | None:  # noqa: ARG002
        """Return None: the columns are not encoded."""
        assert name
        return None

    def derived(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Return a structure computed from the extended rows; it is kept apart from those of the table."""
        return self.base.derived(f"none:{name}", make)


def left_join(
    bindings: BindingTable,
    combinations: Numbers,
    inner: BindingTable,
    owners: Numbers,
    outer_count: int,
    variables: Iterable[str],
    room: Room,
) -> BindingTable:
    """Return each row with every match of its combination; a row without a match occurs once, with null.

    `combinations` is the combination of each row, `owners` that of each inner row.
    """
    order = interruptible(lambda: np.argsort(owners, kind="stable"), len(owners))
    counts = np.bincount(owners, minlength=outer_count)
    starts = np.cumsum(counts) - counts
    per_row = counts[combinations]
    copies = np.maximum(per_row, 1)
    room(int(copies.sum()))
    positions = np.repeat(np.arange(bindings.count), copies)
    within = batched_ranges(np.zeros(len(copies), np.int64), copies)
    found = np.flatnonzero(per_row[positions])
    rows = gather(order, gather(starts[combinations], positions[found]) + within[found])
    result = bindings.take(positions)
    for name in variables:
        bound = inner.bound[name]
        data = bound.data if isinstance(bound.data, NullExtendedTable) else NullExtendedTable(bound.data)
        numbers = np.full(len(positions), data.absent, np.int64)
        numbers[found] = gather(bound.numbers, rows)
        result = result.bind(name, data, numbers)
    return result


def drop_absent(bindings: BindingTable, op: ir.Expand | ir.FindPaths | ir.PathSteps) -> BindingTable:
    """Return the rows whose ends of a hop, or nodes of a path, are not null."""
    if isinstance(op, ir.FindPaths | ir.PathSteps):
        names = op.bound_vars
    else:
        names = (op.src_var, op.dst_var) if op.dst_bound else (op.src_var,)
    for name in names:
        bound = bindings.bound[name]
        if isinstance(bound.data, NullExtendedTable):
            bindings = bindings.take(np.flatnonzero(bound.numbers != bound.data.absent))
            bindings = BindingTable(
                bindings.count,
                {**bindings.bound, name: Binding(bound.data.base, bindings.bound[name].numbers)},
                bindings.weight,
            )
    return bindings
