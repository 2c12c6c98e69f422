"""Rows by id. A few lookups look through the column; after that an index of all ids pays, and is carried along.

The index is an ordered array of hashes with their rows: 8 bytes an id, and made a hundred times faster than a dict of
as many texts. That of one version serves later ones: rows that stayed are found through the numbers they had, and only
the ids of new rows are added, in a dict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.cache.row_mapping import FragmentLayout, map_rows
from omnigraph.engine.cache.table_cache import Numbers, TableData, UseCounter
from omnigraph.hashing import crc32_texts
from omnigraph.types import PropertyType

KEY = "id_index"
_ENTRY_BYTES = 150
"""About what an id and its number take in a dict."""

_HASHED_BYTES = 64
_HIGH = 0xFFFFFFFF << 32
"""Mask of the hash bits in an entry; the low half holds the row number. The text of the row decides a match."""


class IdHashIndex:
    """Where each id of a column is."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids
        self._packed = np.sort(_hashes(ids) | np.arange(len(ids), dtype=np.uint64))
        self.nbytes = int(self._packed.nbytes + ids.nbytes)

    def __len__(self) -> int:
        return len(self._ids)

    def find(self, id_: str) -> int | None:
        """The row of an id."""
        wanted = _hash(id_)
        packed = self._packed
        place = int(packed.searchsorted(np.uint64(wanted)))
        while place < len(packed):
            entry = int(packed[place])
            if entry & _HIGH != wanted:
                return None
            row = entry & 0xFFFFFFFF
            if self._ids[row].as_py() == id_:
                return row
            place += 1
        return None


def _hash(id_: str) -> int:
    """Return the hash of an id in the high half of an entry."""
    return crc32(id_.encode()[:_HASHED_BYTES]) << 32


def _hashes(ids: pa.Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return `_hash` of every id of a column."""
    return crc32_texts(ids, _HASHED_BYTES).astype(np.uint64) << np.uint64(32)


@dataclass(frozen=True)
class IdIndex:
    """Where each id is: the rows of a version, then those that were added since."""

    layout: FragmentLayout
    base: IdHashIndex
    added: dict[str, int]
    row_of: np.ndarray[Any, np.dtype[np.int32]] | None = None
    """Where a known row is now, -1 when it is gone; None when all are where they were."""

    @property
    def nbytes(self) -> int:
        """What it takes in memory, without the index it shares once rows were added."""
        moved = 0 if self.row_of is None else int(self.row_of.nbytes)
        return moved + (_ENTRY_BYTES * len(self.added) if self.added or self.row_of is not None else self.base.nbytes)

    def find(self, id_: str) -> int | None:
        """The number of an id's row."""
        place = self.added.get(id_)
        if place is None:
            place = self.base.find(id_)
        if place is None or self.row_of is None:
            return place
        row = int(self.row_of[place])
        return row if row >= 0 else None


def spelt(value: object, type_: PropertyType) -> str | None:
    """The id a key value makes; None where a look at the column is needed to tell."""
    if type_.is_text and isinstance(value, str):
        return value
    return str(value) if type_.is_integer and isinstance(value, int) and not isinstance(value, bool) else None


def find(data: TableData, id_: str) -> int | None:
    """The number of the row with this id."""
    index: IdIndex | None = data.cache.find((*data.key, KEY))
    if index is None:
        uses = data.derived("uses:id", UseCounter).increment()
        if uses <= tuning.current.id_lookups_before_index and data.cache.newest(data, KEY) is None:
            place = pc.index(data.column("id"), pa.scalar(id_, pa.utf8())).as_py()
            return None if place < 0 else int(place)
        index = data.derived(KEY, lambda: _make(data))
    return index.find(id_)


def find_all(data: TableData, ids: Sequence[str]) -> Numbers | None:
    """The numbers of the rows with these ids; None when one of them is not there."""
    if data.cache.newest(data, KEY) is not None:
        index = data.derived(KEY, lambda: _make(data))
        found = [index.find(id_) for id_ in ids]
        return None if None in found else np.array(found, np.int64)
    # One look through the column, instead of an index of all of it for the sake of a few.
    column = data.column("id")
    wanted = pa.array(ids, pa.utf8())
    rows = np.flatnonzero(pc.is_in(column, value_set=pc.unique(wanted)).to_numpy(zero_copy_only=False))
    among = pc.index_in(wanted, value_set=column.take(pa.array(rows)))
    return None if among.null_count else rows[among.to_numpy(zero_copy_only=False)]


def _make(data: TableData) -> IdIndex:
    known: IdIndex | None = data.cache.newest(data, KEY)
    mapping = map_rows(known.layout, data) if known is not None else None
    if known is None or mapping is None:
        return IdIndex(FragmentLayout.of(data), IdHashIndex(data.column("id")), {})
    added = _numbered(data.read_fragments(["id"], mapping.new)["id"], len(known.base))
    return IdIndex(known.layout, known.base, added, mapping.row_of)


def _numbered(ids: pa.Array | pa.ChunkedArray, start: int) -> dict[str, int]:
    return dict(zip(ids.to_pylist(), range(start, start + len(ids)), strict=True))
