"""Columns of a version from those of an earlier version.

A small commit leaves almost all rows where they are. A few values of a column are therefore read from the column of an
earlier version that is in memory, through the row mapping, and those of added rows from their fragments. A complete
column is assembled from the same parts, so that no unchanged row is read again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.arrays import concatenate, one_array
from omnigraph.engine.cache.column_access import select_rows
from omnigraph.engine.cache.row_mapping import FragmentLayout, RowMapping, map_rows
from omnigraph.fast_dataclass import dataclass

if TYPE_CHECKING:
    from omnigraph.engine.cache.table_cache import Numbers, TableData

_TRIED_MAX = 2
"""Earlier versions whose rows are compared with those of a version."""


@dataclass(frozen=True)
class EarlierColumn:
    """A column of a version, made of the column of an earlier version and of the fragments added since."""

    data: TableData
    name: str
    known: pa.Array
    mapping: RowMapping

    def take(self, numbers: Numbers) -> pa.Array:
        """Return the values of some rows."""
        stored = self._stored(numbers)
        added = stored >= len(self.known)
        if not added.any():
            return select_rows(self.known, stored)
        old, new = np.flatnonzero(~added), np.flatnonzero(added)
        few = select_rows(self._added(), stored[new] - len(self.known))
        if not len(old):
            return few
        values = concatenate([select_rows(self.known, stored[old]), few])
        places = np.empty(len(numbers), np.int64)
        places[np.concatenate([old, new])] = np.arange(len(numbers))
        return select_rows(values, places)

    def complete(self) -> pa.Array:
        """Return the complete column."""
        every = concatenate([self.known, self._added()]) if self.mapping.new else self.known
        return every if self.mapping.stored_of is None else select_rows(every, self.mapping.stored_of.astype(np.int64))

    def _stored(self, numbers: Numbers) -> Numbers:
        return numbers if self.mapping.stored_of is None else self.mapping.stored_of[numbers].astype(np.int64)

    def _added(self) -> pa.Array:
        return one_array(self.data.read_fragments([self.name], self.mapping.new)[self.name])


def find_earlier(data: TableData, name: str) -> EarlierColumn | None:
    """Return a column by way of an earlier version that has it in memory; None if there is none.

    An overwritten table numbers its fields again, so a field id can denote a column of another type.
    """
    kind = data.column_type(name)
    for other, known in data.cache.columns_of(data, data.column_key(name), _TRIED_MAX):
        if known.type != kind:
            continue
        mapping = map_rows(other.derived("layout", partial(FragmentLayout.of, other)), data)
        if mapping is not None:
            data.cache.touch(other)
            return EarlierColumn(data, name, known, mapping)
    return None
