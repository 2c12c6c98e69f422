"""Node tables put together: a variable of several types ranges over one table with numbers of its own.

A node's number is its row in its own table plus where that table begins. Columns are those of the members, one behind
the other; what was computed for a member (words, vectors) is used as it is, under the new numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.segments import SegmentView
from omnigraph.engine.cache.table_cache import DataCache, Numbers, TableData
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import UnionType

Body = TypeVar("Body")


class UnionTable(TableData):
    """The nodes of several types; of none, where nobody implements an interface."""

    def __init__(self, of: UnionType, members: Sequence[TableData], cache: DataCache) -> None:
        self.of = of
        self.members = members
        self.cache = cache
        self.folder = "|".join(f"{member.folder}@{member.key[1]}" for member in members)
        self.key = (self.folder, "")
        self.union = self
        self.starts = np.cumsum([0, *(member.row_count for member in members)])
        """Where each member begins, and the end."""

    @cached_property
    def row_count(self) -> int:
        """How many nodes there are."""
        return int(self.starts[-1])

    def kinds(self, numbers: Numbers) -> Numbers:
        """Which member each node is of."""
        return np.searchsorted(self.starts[1:], numbers, side="right")

    def column(self, name: str) -> pa.Array:
        """A whole column, member by member; `TYPE` is the name of each node's type."""
        return self.derived(self.column_key(name), lambda: self._joined(name))

    def column_key(self, name: str) -> str:
        """Under what a column is kept."""
        if name == ir.TYPE:
            return f"types:{self.of.name}"
        return "|".join(member.column_key(name) for member in self.members) or name

    def _joined(self, name: str) -> pa.Array:
        if name == ir.TYPE:
            names = pa.array(self.of.members, pa.utf8())
            return names.take(pa.array(self.kinds(np.arange(self.row_count))))
        if not self.members:
            return pa.array([], pa.utf8() if name == "id" else arrow_type(self.of.properties[name].type))
        return pa.concat_arrays([member.column(name) for member in self.members])


def about_type(expr: ir.Expr) -> bool:
    """Whether an expression asks which of its types a node is of."""
    return (isinstance(expr, ir.Prop) and expr.name == ir.TYPE) or any(map(about_type, ir.parts_of(expr)))


def column_of(data: TableData, field: str) -> str:
    """The column a field of a whole node shows; a node that could be of several types shows its own."""
    return ir.TYPE if field == "type" and data.union is not None else field


def joined_segments(views: Sequence[SegmentView[Body]], tables: Sequence[TableData]) -> SegmentView[Body]:
    """What was computed for each of some tables, for all their rows one behind the other."""
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
