"""Union of node tables, for variables of several types.

The row number of a node in the union is its row number in its own table plus the offset of that table. Columns are
concatenations of the members' columns. Structures computed for a member (inverted index, vectors) are reused with
shifted row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.arrays import concatenate
from omnigraph.engine import tuning
from omnigraph.engine.cache.column_access import select_rows
from omnigraph.engine.cache.columns import ColumnSource, Derived
from omnigraph.engine.cache.dictionary_codes import DictionaryCodes, encode
from omnigraph.engine.cache.segments import SegmentView
from omnigraph.engine.cache.table_cache import (
    DataCache,
    Mask,
    Numbers,
    TableData,
    UseCounter,
    numbered_rows,
)
from omnigraph.engine.cache.visibility import StoredTable, hides_rows
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import UnionType

Body = TypeVar("Body")


class UnionTable:
    """The nodes of several types; empty if no type implements the interface."""

    def __init__(self, of: UnionType, members: Sequence[StoredTable], cache: DataCache) -> None:
        self.of = of
        self.members = members
        self.cache = cache
        self.folder = "|".join(f"{member.folder}@{member.key[1]}" for member in members)
        self.key = (self.folder, "")
        self.union = self
        counts = [member.row_count for member in members]
        numbered_rows(sum(counts), f"the union '{of.name}'")
        self.starts = np.cumsum([0, *counts])
        """The first row number of each member, then the number of rows."""

    @cached_property
    def row_count(self) -> int:
        """The number of nodes."""
        return int(self.starts[-1])

    @property
    def visible(self) -> Mask | None:
        """A mask of the visible nodes; None if no node is hidden."""
        if not any(hides_rows(member) for member in self.members):
            return None
        return self.derived("visible", self._visible)

    def _visible(self) -> Mask:
        seen = ((member.visible, member.row_count) for member in self.members)
        return np.concatenate([np.ones(count, bool) if mask is None else mask for mask, count in seen])

    def member_of(self, numbers: Numbers) -> Numbers:
        """Return the member index of each node."""
        return np.searchsorted(self.starts[1:], numbers, side="right")

    def column(self, name: str) -> pa.Array:
        """Return a complete column, member by member; `TYPE` is the type name of each node."""
        return self.derived(self.column_key(name), lambda: self._joined(name))

    def column_for(self, name: str, rows: int) -> pa.Array | None:
        """Return a complete column if it is in memory, or if every member reads its own for so many rows; else None.

        A few rows are read member by member: joining the columns of a version takes longer than many such reads.
        """
        found: pa.Array | None = self.cache.find((*self.key, self.column_key(name)))
        if found is not None:
            return found
        if rows * tuning.current.take_row_cost <= self.row_count and not self._is_used(name):
            return None
        return self.column(name) if self._reads_complete(name, rows) else None

    def _is_used(self, name: str) -> bool:
        """Count a use of a column; return True once joining it pays."""
        uses = self.derived(f"uses:{self.column_key(name)}", UseCounter).increment()
        return uses * tuning.current.joined_take_rows > self.row_count

    def _reads_complete(self, name: str, rows: int) -> bool:
        return name == ir.TYPE or all(member.column_for(name, rows) is not None for member in self.members)

    def take(self, name: str, numbers: Numbers) -> pa.Array:
        """Return the values of some nodes."""
        return self.take_columns([name], numbers)[name]

    def take_columns(self, names: Sequence[str], numbers: Numbers) -> dict[str, pa.Array]:
        """Return the values of several columns of some nodes."""
        columns = {name: self.column_for(name, len(numbers)) for name in names}
        found = {name: select_rows(column, numbers) for name, column in columns.items() if column is not None}
        missing = [name for name, column in columns.items() if column is None]
        which = self.member_of(numbers) if missing else numbers
        if ir.TYPE in missing:
            missing.remove(ir.TYPE)
            found[ir.TYPE] = pa.array(self.of.members, pa.utf8()).take(pa.array(which))
        if missing:
            read = np.unique(which) if len(which) else np.zeros(1, np.int64)
            places = [np.flatnonzero(which == at) for at in read]
            parts = [
                self.members[at].take_columns(missing, numbers[rows] - self.starts[at])
                for at, rows in zip(read, places, strict=True)
            ]
            order = np.argsort(np.concatenate(places), kind="stable")
            found |= {name: select_rows(concatenate([part[name] for part in parts]), order) for name in missing}
        return found

    def mean_bytes(self, name: str, rows: int) -> int:
        """Return the largest mean size of a value of a column among the members."""
        return 0 if name == ir.TYPE else max((member.mean_bytes(name, rows) for member in self.members), default=0)

    def codes(self, name: str, rows: int | None = None) -> DictionaryCodes | None:
        """Return the dictionary codes of a text column; None if it has too many distinct values.

        With `rows`, also None if so few rows would be read alone.
        """
        few = rows is not None and any(member.is_few(rows) for member in self.members)
        # The codes order groups, so they do not depend on the columns that are in memory.
        if rows is not None and (few or not self._reads_complete(name, rows)):
            return None
        return self.derived(f"codes:{self.column_key(name)}", lambda: encode(self.column(name))).codes

    def derived(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Return a structure computed from these versions of the members; it is computed once."""
        return self.cache.get((*self.key, name), make)

    def column_key(self, name: str) -> str:
        """Return the cache key of a column."""
        if name == ir.TYPE:
            return f"types:{self.of.name}"
        return "|".join(member.column_key(name) for member in self.members) or name

    def _joined(self, name: str) -> pa.Array:
        if name == ir.TYPE:
            return pa.array(self.of.members, pa.utf8()).take(pa.array(self.member_of(np.arange(self.row_count))))
        if not self.members:
            return pa.array([], pa.utf8() if name == "id" else arrow_type(self.of.properties[name].type))
        return concatenate([member.column(name) for member in self.members])


def depends_on_type(expr: ir.Expr) -> bool:
    """Return True if an expression depends on the type of a node."""
    return (isinstance(expr, ir.Prop) and expr.name == ir.TYPE) or any(map(depends_on_type, ir.parts_of(expr)))


def column_of(data: ColumnSource, field: str) -> str:
    """Return the column of a field of a node; the `type` of a union is its `TYPE` column."""
    return ir.TYPE if field == "type" and data.union is not None else field


def is_streamed(data: ColumnSource, name: str) -> bool:
    """Return True if a column does not fit the cache."""
    if isinstance(data, UnionTable):
        return name != ir.TYPE and any(member.streams(name) for member in data.members)
    return isinstance(data, TableData) and data.streams(name)


def joined_segments(views: Sequence[SegmentView[Body]], tables: Sequence[StoredTable]) -> SegmentView[Body]:
    """Combine the segments of several tables into those of their concatenation."""
    bodies = tuple(body for view in views for body in view.bodies)
    sizes = [len(c.row_of) if c.row_of is not None else t.row_count for c, t in zip(views, tables, strict=True)]
    begins = np.cumsum([0, *sizes[:-1]])
    starts = tuple(int(begin) + start for view, begin in zip(views, begins, strict=True) for start in view.starts)
    if all(view.row_of is None for view in views):
        return SegmentView(bodies, starts)
    rows = np.cumsum([0, *(table.row_count for table in tables[:-1])])
    stored_of: list[Numbers] = []
    row_of: list[Numbers] = []
    for view, begin, row, table in zip(views, begins, rows, tables, strict=True):
        there = np.arange(table.row_count)
        stored_of.append(begin + (there if view.stored_of is None else view.stored_of))
        back = there if view.row_of is None else view.row_of
        row_of.append(np.where(back >= 0, back + row, -1))
    return SegmentView(
        bodies, starts, np.concatenate(stored_of).astype(np.int32), np.concatenate(row_of).astype(np.int32)
    )
