"""Lookup of rows by the values of text columns, through a hash index per fragment.

The data files of a fragment are immutable, so an index of their values stays valid for every version and branch that
shares the fragment; a commit adds one small fragment. An index covers all rows of the files. Whether a row is deleted
depends on the version and is tested by the lookup.

A small fragment is indexed on first use. A large fragment is scanned, which is fast if Lance has an index of the
column, and is indexed here after its scans have taken about as long as the construction would. A process that looks up
a few values never reads a whole column.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checked, checkpoint
from omnigraph.hashing import hash_text, hash_texts
from omnigraph.storage.lance.deletions import deleted_offsets
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.scan import Scan, take_in_parts

if TYPE_CHECKING:
    from omnigraph.storage.lance.tables import Table

_DICT_ROWS_MAX = 1_024
_DICT_ENTRY_BYTES = 200
_SMALL_ROWS_MAX = 4_096
_BUILD_S_PER_ROW = 4e-8
"""Approximate time to read and index a row."""
_LOOKUP_S, _LOOKUP_S_PER_ROW = 2.5e-4, 1e-5
"""Approximate time of a lookup by an index, and for each row that it finds."""
_SCAN_S_PER_VALUE = 2e-5
"""Approximate time of a scan for each value, if Lance has an index of the column; without one it takes longer."""
_VALUES_MAX = 4_096
"""More values are found faster by a scan."""
_CANDIDATES_MAX = 4_096
"""More rows are read faster by a scan."""
_SINGLE_READS_MAX = 4
"""More small fragments are read by one scan."""
_TAKEN_FRAGMENTS_MAX = 4
"""Rows of more fragments are read by one scan if their row ids are wanted."""
_RANGE_BYTES_MAX = 26
"""Size of the description of consecutive row ids at most."""
_STALE_MAX = 256
"""Indexes of fragments that the version does not have, before the oldest are dropped."""
_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(0xFFFFFFFF00000000)
ADDRESS, ROW_ID = "_rowaddr", "_rowid"
"""Columns of Lance: the fragment id and the offset of a row, and its id, which never changes."""


def _is_text(column: pa.ChunkedArray) -> bool:
    """True for ids; a node type may have a property of another type that is named like an end of an edge."""
    return bool(pa.types.is_string(column.type))


class _FoundRows(NamedTuple):
    """Rows of one fragment: its position, and the offsets of the rows, ascending."""

    position: int
    offsets: list[int]


class _ValueDict:
    """The offsets of each value of a small fragment."""

    exact = True

    def __init__(self, values: pa.Array | pa.ChunkedArray) -> None:
        self._offsets: dict[str, list[int]] = {}
        for offset, value in enumerate(values.to_pylist()):
            if value is not None:
                self._offsets.setdefault(value, []).append(offset)
        self._count = len(values)
        self.nbytes = _DICT_ENTRY_BYTES * (1 + len(values))

    def __len__(self) -> int:
        return self._count

    def candidates(self, values: _Values) -> list[int]:
        """Return the offsets of the rows that have one of the values."""
        known = self._offsets
        if len(values.texts) == 1:
            return known.get(values.texts[0], [])
        if len(values.texts) > len(known):
            return [offset for text, offsets in known.items() if text in values.distinct for offset in offsets]
        return [offset for text in values.texts for offset in known.get(text, ())]


class _HashArray:
    """Hash and offset of every value of a fragment, sorted: 8 bytes per row."""

    exact = False

    def __init__(self, values: pa.Array) -> None:
        packed = (hash_texts(values) & _HIGH) | np.arange(len(values), dtype=np.uint64)
        if values.null_count:
            packed = packed[np.asarray(values.is_valid())]
        packed.sort()
        self._packed = packed
        self.nbytes = int(packed.nbytes)

    def __len__(self) -> int:
        return len(self._packed)

    def candidates(self, values: _Values) -> list[int]:
        """Return the offsets of the rows whose value has the hash of one of the values."""
        packed = self._packed
        starts = packed.searchsorted(values.hashes)
        ends = packed.searchsorted(values.hashes | _LOW, side="right")
        hits = starts != ends
        found: list[int] = []
        for start, end in zip(starts[hits].tolist(), ends[hits].tolist(), strict=True):
            found += (packed[start : min(end, start + _CANDIDATES_MAX + 1)] & _LOW).tolist()
        return found


_FragmentIndex = _ValueDict | _HashArray


class _Values:
    """Values to look up, and their hashes as far as they are needed."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(dict.fromkeys(texts))
        self._hashes: np.ndarray[Any, np.dtype[np.uint64]] | None = None

    @cached_property
    def distinct(self) -> frozenset[str]:
        """The values as a set."""
        return frozenset(self.texts)

    @property
    def array(self) -> pa.Array:
        """The values as an Arrow array."""
        return pa.array(self.texts, pa.utf8())

    @property
    def hashes(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The hash of each value, in the high half; equal hashes once."""
        if self._hashes is None:
            if len(self.texts) == 1:
                self._hashes = np.array([hash_text(self.texts[0])], np.uint64) & _HIGH
            else:
                self._hashes = np.unique(hash_texts(self.array) & _HIGH)
        return self._hashes


@dataclass
class _ColumnIndexes:
    """The indexes of one column of a table, by the files of the fragment."""

    by_files: dict[str, _FragmentIndex]
    nbytes: int = 0
    scanned_s: float = 0.0
    """Time of the scans for values of large fragments without an index."""


class LookupCache:
    """The indexes of all tables of a graph, bounded by bytes; the columns used least recently are dropped first."""

    def __init__(
        self,
        bytes_max: int = 256 * 1024**2,
        small_rows_max: int = _SMALL_ROWS_MAX,
        dict_rows_max: int = _DICT_ROWS_MAX,
    ) -> None:
        self.bytes_max = bytes_max
        self.small_rows_max = small_rows_max
        """Fragments of at most this many rows are indexed on first use."""
        self.dict_rows_max = dict_rows_max
        """Up to this many rows, an index is a dict of the values; above, an array of hashes."""
        self._columns: OrderedDict[tuple[str, int], _ColumnIndexes] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()
        self._building = Lock()

    @property
    def nbytes(self) -> int:
        """The size of all indexes in memory."""
        return self._bytes

    def of(self, table: Table, column: str, count: int = 1) -> dict[str, _FragmentIndex]:
        """Return the indexes of a column for a lookup of `count` values, by the files of the fragment.

        Large fragments may be absent.
        """
        key = (table.folder, table.field_ids[column])
        indexes = self._get(key).by_files
        missing = [at for at, (files, _, _) in enumerate(table.fragments) if files not in indexes]
        if not missing:
            return indexes
        small = [at for at in missing if table.fragments[at][1] <= self.small_rows_max]
        if small:
            self._build_small(table, column, small)
        large = [at for at in missing if table.fragments[at][1] > self.small_rows_max]
        # One thread builds; others scan meanwhile.
        if large and self._pays(table, key, large, count) and self._building.acquire(blocking=False):
            try:
                for at in large:
                    checkpoint()
                    self._add(table, at, [column], table.read_all_rows([column], at))
            finally:
                self._building.release()
        return self._get(key).by_files

    def remember(self, table: Table, written: Iterable[tuple[str, int]], rows: pa.Table) -> None:
        """Index new fragments, given as files and number of rows, from the rows that were written to them, in order.

        Nothing is read. Large fragments are left to the first lookup.
        """
        if rows.num_rows > min(self.dict_rows_max, self.small_rows_max):
            return
        names = [name for name in ("id", "src", "dst") if name in table.field_ids and _is_text(rows[name])]
        start = 0
        for files, count in written:
            for name in names:
                index = _ValueDict(rows[name].slice(start, count))
                self._put((table.folder, table.field_ids[name]), files, index, table)
            start += count

    def _get(self, key: tuple[str, int]) -> _ColumnIndexes:
        with self._lock:
            return self._column(key)

    def _column(self, key: tuple[str, int]) -> _ColumnIndexes:
        """Return the indexes of a column, which is now the one used last; the lock is held."""
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = _ColumnIndexes({})
        self._columns.move_to_end(key)
        return found

    def _pays(self, table: Table, key: tuple[str, int], large: Sequence[int], count: int) -> bool:
        """Return True if indexes cost less than the scans for values so far and the one for `count` values."""
        rows = sum(table.fragments[at][1] for at in large)
        every = sum(rows for _, rows, _ in table.fragments)
        spent = self._get(key).scanned_s + count * _SCAN_S_PER_VALUE
        return spent >= rows * _BUILD_S_PER_ROW and 8 * every <= self.bytes_max // 2

    def record_scan(self, table: Table, column: str, seconds: float, found: int) -> None:
        """Record the time of a scan that an index would have saved, and the number of rows that it found."""
        saved = seconds - _LOOKUP_S - found * _LOOKUP_S_PER_ROW
        self._get((table.folder, table.field_ids[column])).scanned_s += max(saved, 0.0)

    def _build_small(self, table: Table, column: str, small: Sequence[int]) -> None:
        """Index small fragments, by the columns that identify rows and ends and by the requested one."""
        # The requested column comes last: it is dropped last.
        others = [name for name in ("id", "src", "dst") if name != column and name in table.field_ids]
        # A node type can have a property 'src' of another type.
        names = [*(name for name in others if pa.types.is_string(table.schema.field(name).type)), column]
        together = [at for at in small if not table.fragments[at][2]] if len(small) > _SINGLE_READS_MAX else []
        for at, rows in table.read_fragments(names, together):
            self._add(table, at, names, rows)
        for at in small:
            if at not in together:
                self._add(table, at, names, table.read_all_rows(names, at))

    def _add(self, table: Table, at: int, names: Sequence[str], values: pa.Table) -> None:
        """Index columns of a fragment, given the values of all its rows."""
        files, rows, _ = table.fragments[at]
        for name in names:
            array = one_array(values[name])
            index = _ValueDict(array) if rows <= self.dict_rows_max else _HashArray(array)
            self._put((table.folder, table.field_ids[name]), files, index, table)

    def _put(self, key: tuple[str, int], files: str, index: _FragmentIndex, table: Table) -> None:
        with self._lock:
            column = self._column(key)
            if files in column.by_files:
                return
            if len(index) > self.small_rows_max:
                column.scanned_s = 0.0
            column.by_files = {**self._current(column, table), files: index}
            before, column.nbytes = column.nbytes, sum(one.nbytes for one in column.by_files.values())
            self._bytes += column.nbytes - before
            while self._bytes > self.bytes_max and len(self._columns) > 1:
                self._bytes -= self._columns.popitem(last=False)[1].nbytes

    def _current(self, column: _ColumnIndexes, table: Table) -> dict[str, _FragmentIndex]:
        """Return the indexes without the oldest of fragments that the version does not have, if there are many."""
        if len(column.by_files) <= len(table.fragments) + _STALE_MAX:
            return column.by_files
        used = {files for files, _, _ in table.fragments}
        stale = [files for files in column.by_files if files not in used]
        dropped = set(stale[: len(stale) // 2])
        return {files: index for files, index in column.by_files.items() if files not in dropped}


def find_rows(table: Table, by: Sequence[str], values: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Return columns of the live rows with one of `values` in one of the text columns `by`, in no guaranteed order."""
    if len(values) > _VALUES_MAX or not all(pa.types.is_string(table.schema.field(name).type) for name in by):
        return table.read_with(by, values, columns)
    if not values:
        return _schema(table, columns).empty_table()
    with table.reading():
        wanted = _Values(values)
        indexes = [table.store.lookups.of(table, name, len(wanted.texts)) for name in by]
        found: list[_FoundRows] = []
        unindexed: list[int] = []
        exact, total = True, 0
        for position, (files, _, gone) in enumerate(checked(table.fragments)):
            here = [known.get(files) for known in indexes]
            offsets: list[int] = []
            for index in here:
                if index is None:
                    unindexed.append(position)
                    break
                offsets += index.candidates(wanted)
            else:
                if not offsets:
                    continue
                total += len(offsets)
                if total > _CANDIDATES_MAX:
                    return table.read_with(by, values, columns)
                exact = exact and all(index is not None and index.exact for index in here)
                left = _live(table, position, gone, offsets)
                if left:
                    found.append(_FoundRows(position, left))
        rows = _found(table, by, wanted, columns, found, exact=exact)
        if not unindexed:
            return rows
    started = time.perf_counter()
    scanned = table.read_with(by, values, columns, unindexed)
    spent = (time.perf_counter() - started) / len(by)
    for name in by:
        table.store.lookups.record_scan(table, name, spent, scanned.num_rows)
    scanned = _conformed(scanned, rows.schema)
    return pa.concat_tables([scanned, rows]) if rows.num_rows else scanned


def _live(table: Table, position: int, gone: str, offsets: list[int]) -> list[int]:
    """Return the offsets of rows that are not deleted, ascending and distinct."""
    if gone:
        fragment = table.dataset.get_fragments()[position]
        left: list[int] = np.setdiff1d(np.array(offsets), deleted_offsets(table, fragment)).tolist()
        return left
    return sorted(set(offsets)) if len(offsets) > 1 else offsets


def _found(
    table: Table,
    by: Sequence[str],
    wanted: _Values,
    columns: Sequence[str],
    found: Sequence[_FoundRows],
    *,
    exact: bool,
) -> pa.Table:
    """Read the rows that the indexes found, without those whose value only has the same hash."""
    if exact and len(wanted.texts) == 1 and [*columns] == [*by]:
        texts = pa.array(wanted.texts * sum(len(rows.offsets) for rows in found), pa.utf8())
        return pa.Table.from_arrays([texts], schema=_schema(table, columns))
    if exact:
        return _read(table, found, columns)
    needed = list(dict.fromkeys([*columns, *by]))
    rows = _read(table, found, needed)
    if rows.num_rows:
        rows = rows.filter(reduce(pc.or_, [pc.is_in(rows[name], value_set=wanted.array) for name in by]))
    return rows if len(needed) == len(columns) else rows.select([*columns])


def _schema(table: Table, columns: Sequence[str]) -> pa.Schema:
    virtual = (ADDRESS, ROW_ID)
    return pa.schema([pa.field(name, pa.uint64()) if name in virtual else table.schema.field(name) for name in columns])


def _read(table: Table, found: Sequence[_FoundRows], columns: Sequence[str]) -> pa.Table:
    """Read columns of rows, in row order."""
    schema = _schema(table, columns)
    if not found:
        return schema.empty_table()
    if not table.blobs.intersection(columns):
        parts = _taken(table, found, schema)
        if parts:
            return parts[0] if len(parts) == 1 else pa.concat_tables(parts)
    fragments = table.dataset.get_fragments()
    addresses = [(fragments[rows.position].fragment_id << 32) | offset for rows in found for offset in rows.offsets]
    scan = Scan(
        table,
        columns,
        fragments=[fragments[rows.position] for rows in found],
        filter=f"{ADDRESS} IN ({', '.join(map(str, addresses))})",
    )
    return _conformed(scan.to_table(), schema)


def _taken(table: Table, found: Sequence[_FoundRows], schema: pa.Schema) -> list[pa.Table]:
    """Read rows by number, fragment by fragment; nothing if a scan is faster or row ids are not consecutive."""
    with_ids = ROW_ID in schema.names
    if with_ids and len(found) > _TAKEN_FRAGMENTS_MAX:
        return []
    fragments = table.dataset.get_fragments()
    stored = [name for name in schema.names if name not in (ADDRESS, ROW_ID)]
    parts: list[pa.Table] = []
    for position, offsets in checked(found):
        fragment = fragments[position]
        places = np.array(offsets, np.int64)
        first = _first_row_id(fragment.metadata) if with_ids else 0
        if first is None:
            return []
        live = places - np.searchsorted(deleted_offsets(table, fragment), places)
        rows = take_in_parts(partial(fragment.take, columns=stored), live.tolist())
        virtual = {ADDRESS: (fragment.fragment_id << 32) + places, ROW_ID: first + places}
        columns = [
            pa.array(virtual[name].astype(np.uint64)) if name in virtual else rows[name] for name in schema.names
        ]
        parts.append(pa.Table.from_arrays(columns, schema=schema))
    return parts


def _first_row_id(metadata: lance.fragment.FragmentMetadata) -> int | None:
    """Return the row id of the first row if the row ids of a fragment are consecutive; None if they are not.

    Lance stores them as a message of segments. A segment of consecutive ids has a start, 0 if it is absent, and an end.
    """
    described: Any = metadata.row_id_meta
    stored = described.asdict().get("Inline") if described is not None else None
    if not stored or len(stored) > _RANGE_BYTES_MAX or stored[:4] != [10, len(stored) - 2, 10, len(stored) - 4]:
        return None
    ends = {8: 0, 16: 0}
    at = 4
    while at < len(stored):
        field, value, shift = stored[at], 0, 0
        at += 1
        while True:
            value |= (stored[at] & 0x7F) << shift
            shift += 7
            at += 1
            if stored[at - 1] < 0x80:
                break
        ends[field] = value
    start, end = ends[8], ends[16]
    return start if len(ends) == 2 and end - start == metadata.physical_rows else None


def _conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the fields of a schema; the types are those of the table."""
    return pa.Table.from_arrays([rows[name] for name in schema.names], schema=schema)
