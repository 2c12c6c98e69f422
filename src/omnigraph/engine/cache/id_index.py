"""Lookup of rows by id.

A large table has an index on disk (`id_segments`). For other tables, the first lookups scan the id column; after a few
of them an index of all ids is built. The index is a sorted array of hashes and row numbers: 8 bytes per id, built a
hundred times faster than a dict of strings. Later versions reuse it: rows that still exist are found through the row
mapping, and the ids of new rows are added in a dict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.checkpoints import ITEMS_AT_ONCE, checkpoint, paced
from omnigraph.engine import tuning
from omnigraph.engine.cache.id_segments import HASHED_BYTES, id_segments, uses_segments
from omnigraph.engine.cache.row_mapping import FragmentLayout, map_rows
from omnigraph.engine.cache.table_cache import Numbers, TableData, UseCounter
from omnigraph.engine.cache.visibility import StoredTable
from omnigraph.fast_dataclass import dataclass
from omnigraph.hashing import crc32_text, crc32_texts
from omnigraph.types import PropertyType

KEY = "id_index"
_ENTRY_BYTES = 150
"""Approximate size of an id and its row number in a dict."""

_HIGH = 0xFFFFFFFF << 32
"""Mask of the hash bits in an entry; the low half holds the row number."""


class IdHashIndex:
    """Hash index of an id column."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids
        self._packed = np.sort(_hashes(ids) | np.arange(len(ids), dtype=np.uint64))
        self.nbytes = int(self._packed.nbytes + ids.nbytes)

    def __len__(self) -> int:
        return len(self._ids)

    def find(self, id_: str) -> int | None:
        """Return the row of an id; None if it does not exist."""
        wanted = _hash(id_)
        packed = self._packed
        position = int(packed.searchsorted(np.uint64(wanted)))
        while position < len(packed):
            entry = int(packed[position])
            if entry & _HIGH != wanted:
                return None
            row = entry & 0xFFFFFFFF
            if self._ids[row].as_py() == id_:
                return row
            position += 1
            if position % ITEMS_AT_ONCE == 0:
                checkpoint()
        return None


def _hash(id_: str) -> int:
    """Return the hash of an id in the high half of an entry."""
    return crc32_text(id_, HASHED_BYTES) << 32


def _hashes(ids: pa.Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return `_hash` of every id of a column."""
    return crc32_texts(ids, HASHED_BYTES).astype(np.uint64) << np.uint64(32)


@dataclass(frozen=True)
class IdIndex:
    """The rows of all ids: a hash index of an earlier version and a dict of the rows added since."""

    layout: FragmentLayout
    base: IdHashIndex
    added: dict[str, int]
    row_of: np.ndarray[Any, np.dtype[np.int32]] | None = None
    """Indexed row → current row, -1 if it was deleted; None if all rows are unchanged."""

    @property
    def nbytes(self) -> int:
        """The size in memory, without the index it shares with an earlier version."""
        moved = 0 if self.row_of is None else int(self.row_of.nbytes)
        return moved + (_ENTRY_BYTES * len(self.added) if self.added or self.row_of is not None else self.base.nbytes)

    def find(self, id_: str) -> int | None:
        """Return the row of an id; None if it does not exist."""
        row = self.added.get(id_)
        if row is None:
            row = self.base.find(id_)
        if row is None or self.row_of is None:
            return row
        row = int(self.row_of[row])
        return row if row >= 0 else None


def id_of_key(value: object, type_: PropertyType) -> str | None:
    """Return the id of a key value; None if the key column must be scanned."""
    if type_.is_text and isinstance(value, str):
        return value
    return str(value) if type_.is_integer and isinstance(value, int) and not isinstance(value, bool) else None


def ids_of_keys(values: Iterable[object] | None, type_: PropertyType) -> list[str] | None:
    """Return the ids of the key values in a list, without nulls; None if the key column must be scanned."""
    ids: list[str] = []
    for value in paced(values or ()):
        if value is None:
            continue  # null equals nothing
        id_ = id_of_key(value, type_)
        if id_ is None:
            return None
        ids.append(id_)
    return ids


def find_visible(data: StoredTable, id_: str) -> int | None:
    """Return the row with an id; None if it does not exist or is not visible."""
    if isinstance(data, TableData):
        return find(data, id_)
    row = find(data.base, id_)
    return row if row is not None and data.sees_row(row) else None


def find_listed(data: StoredTable, ids: Sequence[str], rows: int) -> Numbers | None:
    """Return the rows of those ids that exist and are visible, ascending; None if comparing `rows` rows is faster."""
    base = data if isinstance(data, TableData) else data.base
    if len(ids) * tuning.current.id_lookup_rows > rows:
        return None
    # Only the first and the last bytes of a longer id are hashed, and many ids can have the same.
    if any(len(id_.encode()) > 2 * HASHED_BYTES for id_ in paced(ids)):
        return None
    # A scan counts as a lookup: the index is built after a few of them.
    if (
        not uses_segments(base)
        and base.cache.newest(base, KEY) is None
        and base.derived("uses:id", UseCounter).increment() <= tuning.current.id_lookups_before_index
    ):
        return None
    if uses_segments(base):
        found = np.unique(id_segments(base).find_all(pa.array(ids, pa.utf8())))
        numbers = found[found >= 0]
    else:
        numbers = np.array(sorted({row for id_ in paced(ids) if (row := find(base, id_)) is not None}), np.int64)
    return numbers if isinstance(data, TableData) else numbers[data.sees(numbers)]


def find(data: TableData, id_: str) -> int | None:
    """Return the row with an id; None if it does not exist."""
    index: IdIndex | None = data.cache.find((*data.key, KEY))
    if index is None:
        if uses_segments(data):
            return id_segments(data).find(id_, _hash(id_) >> 32)
        uses = data.derived("uses:id", UseCounter).increment()
        if uses <= tuning.current.id_lookups_before_index and data.cache.newest(data, KEY) is None:
            row = pc.index(data.column("id"), pa.scalar(id_, pa.utf8())).as_py()
            return None if row < 0 else int(row)
        index = data.derived(KEY, lambda: _build(data))
    return index.find(id_)


def find_all(data: TableData, ids: Sequence[str]) -> Numbers | None:
    """Return the rows with these ids; None if one does not exist."""
    if uses_segments(data) and (data.is_few(len(ids)) or data.streams("id")):
        rows = id_segments(data).find_all(pa.array(ids, pa.utf8()))
        return None if (rows < 0).any() else rows
    if data.cache.newest(data, KEY) is not None:
        index = data.derived(KEY, lambda: _build(data))
        found = [index.find(id_) for id_ in ids]
        return None if None in found else np.array(found, np.int64)
    # For a few ids, one scan of the column is cheaper than building an index.
    column = data.column("id")
    wanted = pa.array(ids, pa.utf8())
    rows = np.flatnonzero(pc.is_in(column, value_set=pc.unique(wanted)).to_numpy(zero_copy_only=False))
    among = pc.index_in(wanted, value_set=column.take(pa.array(rows)))
    return None if among.null_count else rows[among.to_numpy(zero_copy_only=False)]


def _build(data: TableData) -> IdIndex:
    known: IdIndex | None = data.cache.newest(data, KEY)
    mapping = map_rows(known.layout, data) if known is not None else None
    if known is None or mapping is None:
        return IdIndex(FragmentLayout.of(data), IdHashIndex(data.column("id")), {})
    added = _numbered(data.read_fragments(["id"], mapping.new)["id"], len(known.base))
    return IdIndex(known.layout, known.base, added, mapping.row_of)


def _numbered(ids: pa.Array | pa.ChunkedArray, start: int) -> dict[str, int]:
    return dict(zip(ids.to_pylist(), range(start, start + len(ids)), strict=True))
