"""Physical difference of two versions of a table: the rows that each stores and the other does not.

A row that both versions store at the same position is equal and is not read. A row that was rewritten, with or
without a change of value, is in both results; to find changes, the caller compares values. The work is proportional
to the difference, on whatever branches the versions are and however large the table is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.checkpoints import checked
from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.lance.deletions import Offsets, deleted_offsets
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.scan import Scan, take_in_parts
from omnigraph.storage.lance.tables import IO_BYTES, Table, files_of, sql_text

_TAKE_ROWS = 8_192
_BLOB_ROWS = 256
"""Rows with large values are fetched in small batches."""
_SCAN_ABOVE = 20
"""A fragment is scanned completely if more than one in this many of its rows is requested."""


class IdRange(NamedTuple):
    """Ids from `low` (inclusive) to `high` (exclusive); None is unbounded."""

    low: str | None = None
    high: str | None = None

    def sql(self) -> str | None:
        """Return the range as an SQL condition on `id`; None if it is unbounded."""
        parts = [f"id >= {sql_text(self.low)}"] if self.low is not None else []
        parts += [f"id < {sql_text(self.high)}"] if self.high is not None else []
        return " AND ".join(parts) or None

    def overlaps(self, ends: IdRange) -> bool:
        """Return True if the closed interval `ends` can overlap the range."""
        before = self.high is not None and ends.low is not None and ends.low >= self.high
        after = self.low is not None and ends.high is not None and ends.high < self.low
        return not before and not after

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows of a table whose ids are in the range."""
        if self.low is not None:
            rows = rows.filter(pc.greater_equal(rows["id"], self.low))
        return rows.filter(pc.less(rows["id"], self.high)) if self.high is not None else rows


EVERYTHING = IdRange()


@dataclass(frozen=True)
class _FragmentRows:
    """Rows of one fragment: all live rows, or those at some offsets."""

    fragment: lance.LanceFragment
    offsets: Offsets | None
    count: int


class StoredRows:
    """Rows of one version of a table, identified by position and read on demand."""

    def __init__(self, table: Table, parts: Sequence[_FragmentRows]) -> None:
        self.table = table
        self._parts = [part for part in parts if part.count]
        self.count = sum(part.count for part in self._parts)
        self._bounds: dict[int, IdRange] = {}

    @property
    def parts(self) -> Sequence[_FragmentRows]:
        """The rows of each fragment."""
        return self._parts

    def ids(self) -> pa.ChunkedArray:
        """Return the ids. Afterwards, reads of a range skip fragments that cannot contain ids of it."""
        chunks: list[pa.Array] = []
        for number, part in enumerate(self._parts):
            found = pa.chunked_array(
                [chunk for rows in self._read(part, ["id"], EVERYTHING) for chunk in rows["id"].chunks]
            )
            ends = pc.min_max(found)
            self._bounds[number] = IdRange(ends["min"].as_py(), ends["max"].as_py())
            chunks += found.chunks
        return pa.chunked_array(chunks, pa.utf8())

    def sample_ids(self, step: int) -> pa.ChunkedArray:
        """Return about one in `step` ids. Afterwards, reads of a range skip fragments as after `ids`."""
        chunks: list[pa.Array] = []
        for number, part in enumerate(self._parts):
            lows, highs = [], []
            for rows in self._read(part, ["id"], EVERYTHING):
                if rows.num_rows:
                    ends = pc.min_max(rows["id"])
                    lows.append(ends["min"].as_py())
                    highs.append(ends["max"].as_py())
                    chunks += rows["id"].take(np.arange(0, rows.num_rows, step)).chunks
            self._bounds[number] = IdRange(min(lows, default=None), max(highs, default=None))
        return pa.chunked_array(chunks, pa.utf8())

    def read(self, columns: Sequence[str] | None = None, within: IdRange = EVERYTHING) -> pa.Table:
        """Return the rows, or those with ids in a range, as one Arrow table in no guaranteed order."""
        wanted = [*columns] if columns is not None else self.table.schema.names
        schema = pa.schema([self.table.schema.field(name) for name in wanted])
        found = [schema.empty_table()]
        for number, part in enumerate(self._parts):
            if not within.overlaps(self._bounds.get(number, EVERYTHING)):
                continue
            found += [rows.select(wanted).cast(schema) for rows in self._read(part, wanted, within) if rows.num_rows]
        return pa.concat_tables(found)

    def _read(self, part: _FragmentRows, columns: list[str], within: IdRange) -> Iterator[pa.Table]:
        with self.table.reading():
            if part.offsets is None:
                scan = self._scan(part, columns, within.sql())
                yield from (pa.Table.from_batches([batch]) for batch in scan.batches())
            elif len(part.offsets) * _SCAN_ABOVE > part.fragment.count_rows():
                yield from self._scan_rows(part, part.offsets, columns, within)
            else:
                yield from self._fetch_rows(part, part.offsets, columns, within)

    def _scan(self, part: _FragmentRows, columns: list[str], filter: str | None) -> Scan:
        return Scan(self.table, columns, fragments=[part.fragment], filter=filter, io_buffer_size=IO_BYTES)

    def _scan_rows(
        self, part: _FragmentRows, offsets: Offsets, columns: list[str], within: IdRange
    ) -> Iterator[pa.Table]:
        """Scan the fragment and keep the requested rows."""
        wanted = pa.array(offsets.astype(np.uint64) | _address_base(part.fragment))
        for batch in self._scan(part, [*columns, "_rowaddr"], within.sql()).batches():
            rows = pa.Table.from_batches([batch])
            yield rows.filter(pc.is_in(rows["_rowaddr"], value_set=wanted))

    def _fetch_rows(
        self, part: _FragmentRows, offsets: Offsets, columns: list[str], within: IdRange
    ) -> Iterator[pa.Table]:
        """Fetch single rows, which is faster for few rows of many."""
        with_id = columns if "id" in columns or within == EVERYTHING else [*columns, "id"]
        if self.table.blob_handling(columns) is not None:
            base = int(_address_base(part.fragment))
            for start in checked(range(0, len(offsets), _BLOB_ROWS)):
                addresses = ", ".join(str(base | offset) for offset in offsets[start : start + _BLOB_ROWS].tolist())
                yield within.rows(self._scan(part, with_id, f"_rowaddr IN ({addresses})").to_table())
            return
        # Lance counts live rows, not offsets.
        left = offsets - np.searchsorted(deleted_offsets(self.table, part.fragment), offsets)
        for start in checked(range(0, len(left), _TAKE_ROWS)):
            some = left[start : start + _TAKE_ROWS].tolist()
            yield within.rows(take_in_parts(partial(part.fragment.take, columns=with_id), some))


def all_rows(table: Table) -> StoredRows:
    """Return every row of a version."""
    with table.reading():
        return StoredRows(table, [_FragmentRows(f, None, f.count_rows()) for f in table.dataset.get_fragments()])


def difference(
    before: Table, after: Table, unshared: tuple[AbstractSet[int], AbstractSet[int]] = (frozenset(), frozenset())
) -> tuple[StoredRows, StoredRows]:
    """Return the rows that only `before` has and the rows that only `after` has, by physical position.

    `unshared` contains, for each side, the field ids of the columns that the other side does not have. Rows in a file
    with such a column are not considered equal.
    """
    with before.reading():
        old = {files_of(f): f for f in before.dataset.get_fragments()}
    with after.reading():
        new = {files_of(f): f for f in after.dataset.get_fragments()}
    removed = [_all_rows(f) for files, f in old.items() if files not in new]
    added = [_all_rows(f) for files, f in new.items() if files not in old]
    for files in old.keys() & new.keys():
        a, b = old[files], new[files]
        if _contains(before, a, unshared[0]) or _contains(after, b, unshared[1]):
            removed.append(_all_rows(a))
            added.append(_all_rows(b))
        elif a.metadata.deletion_file != b.metadata.deletion_file:
            x, y = deleted_offsets(before, a), deleted_offsets(after, b)
            removed.append(_rows_at(a, np.setdiff1d(y, x, assume_unique=True)))
            added.append(_rows_at(b, np.setdiff1d(x, y, assume_unique=True)))
    return StoredRows(before, removed), StoredRows(after, added)


def with_rows(rows: StoredRows, numbers: Offsets) -> StoredRows:
    """Return stored rows and those with some row numbers: positions among the live rows of the version."""
    if not len(numbers):
        return rows
    known = {part.fragment.fragment_id: part for part in rows.parts}
    with rows.table.reading():
        fragments = rows.table.dataset.get_fragments()
        ends = np.cumsum([fragment.count_rows() for fragment in fragments])
    for place, own in _by_fragment(numbers, ends):
        fragment = fragments[place]
        part = known.get(fragment.fragment_id)
        if part is None or part.offsets is not None:
            offsets = live_offsets(rows.table, place)[own]
            if part is not None and part.offsets is not None:
                offsets = np.union1d(offsets, part.offsets)
            known[fragment.fragment_id] = _rows_at(fragment, offsets)
    return StoredRows(rows.table, list(known.values()))


def _by_fragment(numbers: Offsets, ends: Offsets) -> Iterator[tuple[int, Offsets]]:
    """Yield the positions of the fragments that contain row numbers, each with the numbers within the fragment."""
    fragment_of = np.searchsorted(ends, numbers, side="right")
    for place in np.unique(fragment_of).tolist():
        start = int(ends[place - 1]) if place else 0
        yield place, numbers[fragment_of == place] - start


def live_offsets(table: Table, number: int) -> Offsets:
    """Return the offsets of the live rows of a fragment, which is given by its position."""
    with table.reading():
        fragment = table.dataset.get_fragments()[number]
        every = np.arange(fragment.metadata.physical_rows)
    return np.delete(every, deleted_offsets(table, fragment))


def _contains(table: Table, fragment: lance.LanceFragment, fields: AbstractSet[int]) -> bool:
    return bool(fields) and not fields.isdisjoint(table.fields_in(fragment.metadata.files))


def _all_rows(fragment: lance.LanceFragment) -> _FragmentRows:
    return _FragmentRows(fragment, None, fragment.count_rows())


def _rows_at(fragment: lance.LanceFragment, offsets: Offsets) -> _FragmentRows:
    return _FragmentRows(fragment, offsets, len(offsets))


def _address_base(fragment: lance.LanceFragment) -> np.uint64:
    return np.uint64(fragment.fragment_id) << np.uint64(32)
