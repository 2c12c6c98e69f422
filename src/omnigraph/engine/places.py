"""Rows by id. A few lookups look through the column; after that a map of all ids pays, and is carried along.

The map of one version serves later ones: rows that stayed are found through the numbers they had, and only the ids
of new rows are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.carried import Layout, carry
from omnigraph.engine.data import Numbers, TableData

KEY = "places:id"
_LOOKUPS_BEFORE_MAP = 3
_ENTRY_BYTES = 150
"""About what an id and its number take in a map."""


@dataclass(frozen=True)
class Places:
    """Where each id is: the rows of a version, then those that were added since."""

    layout: Layout
    base: dict[str, int]
    added: dict[str, int]
    row_of: np.ndarray[Any, np.dtype[np.int32]] | None = None
    """Where a known row is now, -1 when it is gone; None when all are where they were."""

    @property
    def nbytes(self) -> int:
        """What it takes in memory, without the map it shares once rows were added."""
        moved = 0 if self.row_of is None else int(self.row_of.nbytes)
        return moved + _ENTRY_BYTES * (len(self.added) or len(self.base))

    def find(self, id_: str) -> int | None:
        """The number of an id's row."""
        place = self.added.get(id_)
        if place is None:
            place = self.base.get(id_)
        if place is None or self.row_of is None:
            return place
        row = int(self.row_of[place])
        return row if row >= 0 else None


def find(data: TableData, id_: str) -> int | None:
    """The number of the row with this id."""
    places: Places | None = data.cache.find((*data.key, KEY))
    if places is None:
        uses = data.derived("uses:id", lambda: [0])
        uses[0] += 1
        if uses[0] <= _LOOKUPS_BEFORE_MAP and data.cache.newest(data, KEY) is None:
            place = pc.index(data.column("id"), pa.scalar(id_, pa.utf8())).as_py()
            return None if place < 0 else int(place)
        places = data.derived(KEY, lambda: _make(data))
    return places.find(id_)


def find_all(data: TableData, ids: Sequence[str]) -> Numbers | None:
    """The numbers of the rows with these ids; None when one of them is not there."""
    if data.cache.newest(data, KEY) is not None:
        places = data.derived(KEY, lambda: _make(data))
        found = [places.find(id_) for id_ in ids]
        return None if None in found else np.array(found, np.int64)
    # One look through the column, instead of a map of all of it for the sake of a few.
    column = data.column("id")
    wanted = pa.array(ids, pa.utf8())
    rows = np.flatnonzero(pc.is_in(column, value_set=pc.unique(wanted)).to_numpy(zero_copy_only=False))
    among = pc.index_in(wanted, value_set=column.take(pa.array(rows)))
    return None if among.null_count else rows[among.to_numpy(zero_copy_only=False)]


def _make(data: TableData) -> Places:
    known: Places | None = data.cache.newest(data, KEY)
    carried = carry(known.layout, data) if known is not None else None
    if known is None or carried is None:
        return Places(Layout.of(data), _numbered(data.column("id"), 0), {})
    added = _numbered(data.read_pieces(["id"], carried.new)["id"], len(known.base))
    return Places(known.layout, known.base, added, carried.row_of)


def _numbered(ids: pa.Array | pa.ChunkedArray, start: int) -> dict[str, int]:
    return dict(zip(ids.to_pylist(), range(start, start + len(ids)), strict=True))
