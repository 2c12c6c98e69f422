"""The id index of a large table: sorted hashes and rows in segments of the disk cache.

An entry of a segment is the hash of an id in the high half and the number of its row in the segment in the low half.
Entries are sorted and mapped, so a lookup touches a few pages; on an object store it reads the block in which the hash
must be, since hashes are spread evenly. The hash selects candidates; their ids are read and
compared. The id column is not read to find a few ids.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.checkpoints import paced
from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.ranged_arrays import RangedArray
from omnigraph.engine.cache.segments import Segment, SegmentBuilder, find_fragment, list_segments
from omnigraph.engine.cache.table_cache import Numbers, TableData, unmapped_bytes
from omnigraph.fast_dataclass import dataclass
from omnigraph.hashing import crc32_texts

IDS = "ids"
"""The kind of the entries in the disk cache."""
HASHED_BYTES = 64
"""Only the first and the last bytes of a longer id are hashed, so many of each."""
_COMPARED_ONE_BY_ONE = 8
"""More candidates with one hash are read and compared together."""
_LOW = 0xFFFFFFFF
_PACKED = "ids"

Packed = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True)
class PackedIds:
    """The hashes and rows of a segment, sorted."""

    packed: Packed | RangedArray

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return unmapped_bytes(self.packed)

    def prefetch(self, hashes: Sequence[int]) -> None:
        """Read the entries of some hashes from the object store, by requests at the same time."""
        if isinstance(self.packed, RangedArray):
            blocks = self.packed.blocks_near(np.array(hashes, np.uint64) << np.uint64(32))
            self.packed.entry.ensure([(self.packed, blocks)])


class IdSegments:
    """Finds the rows of a version by id."""

    def __init__(self, data: TableData, segments: Sequence[Segment[PackedIds]]) -> None:
        self._data = data
        self._bodies = [segment.body for segment in segments]
        self._packed = [body.packed for body in self._bodies]
        self._layouts = [segment.layout for segment in segments]
        self._begins = [
            np.cumsum([0, *(layout.rows(at) for at in range(len(layout.fragments)))]).tolist()
            for layout in self._layouts
        ]
        """The first row of each fragment in its segment, then the number of rows."""
        starts = np.cumsum([0, *(data.rows_in(at) for at in range(len(data.fragments)))]).tolist()
        self._current: dict[tuple[int, int], tuple[int, int]] = {}
        """(segment, position of a fragment in it) → (position of the fragment in the version, its first row)."""
        for at in range(len(data.fragments)):
            found = find_fragment(segments, data, at)
            assert found is not None, "every fragment is in a segment"
            self._current[found[0], found[1]] = (at, starts[at])
        self.nbytes = sum(segment.nbytes for segment in segments)

    def find(self, id_: str, hashed: int) -> int | None:
        """Return the row of an id, given its hash; None if it does not exist."""
        rows = self._candidates(hashed)
        if len(rows) > _COMPARED_ONE_BY_ONE:
            place = pc.index(self._data.take("id", np.array(rows, np.int64)), pa.scalar(id_, pa.utf8())).as_py()
            return None if place < 0 else rows[place]
        for row in rows:
            if self._id_of(row) == id_:
                return row
        return None

    def find_all(self, ids: pa.Array) -> Numbers:
        """Return the row of each id, -1 if it does not exist."""
        hashes = crc32_texts(ids, HASHED_BYTES).tolist()
        for body in self._bodies:
            body.prefetch(hashes)
        pairs = [(at, row) for at, hashed in enumerate(paced(hashes)) for row in self._candidates(hashed)]
        found = np.full(len(ids), -1, np.int64)
        if pairs:
            places, rows = np.array(pairs, np.int64).T
            same = pc.equal(self._data.take("id", rows), ids.take(pa.array(places)))
            hits = same.to_numpy(zero_copy_only=False).astype(bool)
            found[places[hits]] = rows[hits]
        return found

    def _id_of(self, row: int) -> str:
        data = self._data
        column = data.column_for("id", 1)
        id_: str = (data.take("id", np.array([row]))[0] if column is None else column[row]).as_py()
        return id_

    def _candidates(self, hashed: int) -> list[int]:
        """Return the rows of the version whose id has a hash."""
        high = np.uint64(hashed << 32 | _LOW)
        rows: list[int] = []
        for number, packed in enumerate(self._packed):
            position = _position_of(packed, hashed)
            if position == len(packed) or packed[position] > high:
                continue
            for place in paced(range(position, len(packed))):
                entry = int(packed[place])
                if entry > high:
                    break
                row = self._row_of(number, entry & _LOW)
                if row is not None:
                    rows.append(row)
        return rows

    def _row_of(self, number: int, stored: int) -> int | None:
        """Return the row of the version that a row of a segment is; None if it was deleted or moved."""
        place = bisect_right(self._begins[number], stored) - 1
        current = self._current.get((number, place))
        if current is None:
            return None
        at, start = current
        layout = self._layouts[number]
        offset = stored - self._begins[number][place]
        live = layout.live.get(place)
        if layout.fragments[place] == self._data.fragments[at]:
            return int(start + offset)
        if live is not None:
            offset = int(live[offset])
        left = self._data.live_offsets(at)
        position = int(left.searchsorted(offset))
        return int(start + position) if position < len(left) and left[position] == offset else None


def _position_of(packed: Packed | RangedArray, hashed: int) -> int:
    """Return the position of the first entry whose hash is not less than a hash.

    Hashes are spread evenly, so the position is close to that of equal distances. A search of the whole array would
    touch a page of a mapped file in each of its first steps.
    """
    low, count = np.uint64(hashed << 32), len(packed)
    if isinstance(packed, np.ndarray):
        expected, deviation = hashed * count >> 32, math.isqrt(count)
        start, stop = max(expected - 4 * deviation, 0), min(expected + 4 * deviation, count)
        position = start + int(packed[start:stop].searchsorted(low))
        if (start < position or not start) and (position < stop or stop == count):
            return position
    return int(packed.searchsorted(low))


def uses_segments(data: TableData) -> bool:
    """Return True if the table is so large that its ids are found by an index on disk."""
    return data.row_count >= tuning.current.id_segments_rows_min


def build_id_segments(data: TableData) -> None:
    """Build the missing segments of the id index of a large table."""
    if uses_segments(data):
        id_segments(data)


def id_segments(data: TableData) -> IdSegments:
    """Return the id index of a version. Missing segments are built, and kept on disk if the graph can be written."""
    return data.derived("id_segments", lambda: IdSegments(data, list_segments(data, "id", id_segment_builder(data))))


def id_segment_builder(data: TableData) -> SegmentBuilder[PackedIds]:
    """Return the builder of the segments of the id index."""

    def count(fragments: Sequence[int] | None) -> int:
        return sum(map(data.rows_in, range(len(data.fragments)) if fragments is None else fragments))

    def fill(packed: Packed, fragments: Sequence[int] | None) -> None:
        end = 0
        for ids in data.stream("id", fragments):
            begin, end = end, end + len(ids)
            packed[begin:end] = crc32_texts(ids, HASHED_BYTES).astype(np.uint64) << np.uint64(32)
            packed[begin:end] |= np.arange(begin, end, dtype=np.uint64)
        packed.sort()

    def make(fragments: Sequence[int] | None) -> PackedIds:
        packed = np.empty(count(fragments), np.uint64)
        fill(packed, fragments)
        return PackedIds(packed)

    def write(fragments: Sequence[int] | None, writer: EntryWriter) -> None:
        with writer.mapped(_PACKED, (count(fragments),), np.dtype(np.uint64)) as packed:
            fill(packed, fragments)

    def read(entry: disk_cache.CacheEntry, row_count: int) -> PackedIds:
        packed = entry.get(_PACKED)
        entry_checks.check(packed.dtype == np.uint64 and packed.shape == (row_count,), f"'{_PACKED}' has a wrong size")
        if not entry.trusted:
            entry_checks.check_ascending(packed, _PACKED)
            entry_checks.check_within(packed, max(row_count, 1), _PACKED, bits=_LOW)
        return PackedIds(packed)

    return SegmentBuilder(IDS, tuning.current.segment_rows_min, make, write, read, ranged=(_PACKED,))
