"""Lookup of rows by the values of a text column, through a hash index per fragment.

The data files of a fragment are immutable, so an index of their values stays valid for every version and branch that
shares the fragment; a commit adds one small fragment. An index covers all rows of the files. Whether a row is deleted
depends on the version and is tested by the lookup.

A small fragment is indexed on first use. Large fragments are indexed after scans have taken about as long as the
construction would, so a process that looks up a few values never reads a whole column.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checkpoint
from omnigraph.hashing import hash_texts
from omnigraph.storage.lance.deletions import deleted_offsets

if TYPE_CHECKING:
    from omnigraph.storage.lance.tables import Table

_DICT_ROWS_MAX = 1_024
_DICT_ENTRY_BYTES = 200
_DIRECT_ROWS_MAX = 16_384
_BUILD_S_PER_ROW = 2e-7
"""Approximate time to read and index a row."""
_VALUES_MAX = 256
"""More values are found faster by a scan."""
_CANDIDATES_MAX = 4_096
"""More rows are read faster by a scan."""
_STALE_MAX = 256
"""Indexes of fragments that the version does not have, before the oldest are dropped."""
_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(0xFFFFFFFF00000000)
_ADDRESS, _ROW_ID = "_rowaddr", "_rowid"


class FragmentRows(NamedTuple):
    """Rows of one fragment: its position, and the offsets of the rows, ascending."""

    position: int
    offsets: list[int]


class _ValueDict:
    """The offsets of each value of a small fragment."""

    exact = True

    def __init__(self, values: pa.Array) -> None:
        self._offsets: dict[str, list[int]] = {}
        for offset, value in enumerate(values.to_pylist()):
            if value is not None:
                self._offsets.setdefault(value, []).append(offset)
        self.nbytes = _DICT_ENTRY_BYTES * (1 + len(values))

    def candidates(self, values: _Values) -> list[int]:
        """Return the offsets of the rows that have one of the values."""
        known = self._offsets
        if len(values.texts) == 1:
            return known.get(values.texts[0], [])
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

    def candidates(self, values: _Values) -> list[int]:
        """Return the offsets of the rows whose value has the hash of one of the values."""
        packed = self._packed
        starts = packed.searchsorted(values.hashes)
        ends = packed.searchsorted(values.hashes | _LOW, side="right")
        found: list[int] = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if start != end:
                found += (packed[start : min(end, start + _CANDIDATES_MAX + 1)] & _LOW).tolist()
        return found


_FragmentIndex = _ValueDict | _HashArray


class _Values:
    """Values to look up, and their hashes as far as they are needed."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(dict.fromkeys(texts))
        self._hashes: np.ndarray[Any, np.dtype[np.uint64]] | None = None

    @property
    def array(self) -> pa.Array:
        """The values as an Arrow array."""
        return pa.array(self.texts, pa.utf8())

    @property
    def hashes(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The hash of each value, in the high half; equal hashes once."""
        if self._hashes is None:
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
        direct_rows_max: int = _DIRECT_ROWS_MAX,
        dict_rows_max: int = _DICT_ROWS_MAX,
    ) -> None:
        self.bytes_max = bytes_max
        self.direct_rows_max = direct_rows_max
        """Up to this many rows are indexed on first use: about the time of one scan."""
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

    def known(self, table: Table, column: str) -> dict[str, _FragmentIndex] | None:
        """Return the indexes of a column by files, those of all fragments of the version; None if a scan is better."""
        key = (table.folder, table.field_ids[column])
        indexes = self._get(key).by_files
        missing = [at for at, (files, _, _) in enumerate(table.fragments) if files not in indexes]
        if not missing:
            return indexes
        rows = sum(table.fragments[at][1] for at in missing)
        if not self._pays(key, rows, sum(rows for _, rows, _ in table.fragments)):
            return None
        # One thread builds; others scan meanwhile.
        if not self._building.acquire(blocking=rows <= self.direct_rows_max):
            return None
        try:
            for at in missing:
                self._build(table, column, at)
        finally:
            self._building.release()
        indexes = self._get(key).by_files
        return indexes if all(files in indexes for files, _, _ in table.fragments) else None

    def _get(self, key: tuple[str, int]) -> _ColumnIndexes:
        with self._lock:
            found = self._columns.get(key)
            if found is None:
                found = self._columns[key] = _ColumnIndexes({})
            self._columns.move_to_end(key)
            return found

    def _pays(self, key: tuple[str, int], rows: int, all_rows: int) -> bool:
        if rows <= self.direct_rows_max:
            return True
        return self._get(key).scanned_s >= rows * _BUILD_S_PER_ROW and 8 * all_rows <= self.bytes_max // 2

    def record_scan(self, table: Table, column: str, seconds: float) -> None:
        """Record the time of a scan for values of a column."""
        self._get((table.folder, table.field_ids[column])).scanned_s += seconds

    def _build(self, table: Table, column: str, at: int) -> None:
        """Index a fragment; the columns that identify rows and ends are indexed together if it is small."""
        files, rows, _ = table.fragments[at]
        names = ["id", "src", "dst"] if rows <= self.dict_rows_max else []
        # The requested column comes last: it is dropped last.
        names = [*(name for name in names if name != column and name in table.field_ids), column]
        values = table.read_all_rows(names, at)
        checkpoint()
        for name in names:
            array = one_array(values[name])
            index = _ValueDict(array) if rows <= self.dict_rows_max else _HashArray(array)
            self._put((table.folder, table.field_ids[name]), files, index, table)

    def _put(self, key: tuple[str, int], files: str, index: _FragmentIndex, table: Table) -> None:
        column = self._get(key)
        with self._lock:
            if files in column.by_files:
                return
            if index.exact is False:
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

    def forget(self, folder: str) -> None:
        """Drop the indexes of a table."""
        with self._lock:
            for key in [key for key in self._columns if key[0] == folder]:
                self._bytes -= self._columns.pop(key).nbytes


def find_rows(table: Table, column: str, values: Sequence[str], columns: Sequence[str]) -> pa.Table | None:
    """Return columns of the live rows whose text `column` is one of `values`, in row order.

    The result is None if a scan is better: the column is not indexed yet, or there are many values or rows.
    """
    if len(values) > _VALUES_MAX or not pa.types.is_string(table.schema.field(column).type):
        return None
    with table.reading():
        indexes = table.store.lookups.known(table, column)
        if indexes is None:
            return None
        wanted = _Values(values)
        found: list[FragmentRows] = []
        exact, total = True, 0
        for position, (files, _, gone) in enumerate(table.fragments):
            index = indexes[files]
            offsets = index.candidates(wanted)
            if not offsets:
                continue
            total += len(offsets)
            if total > _CANDIDATES_MAX:
                return None
            if gone:
                fragment = table.dataset.get_fragments()[position]
                offsets = np.setdiff1d(np.array(offsets), deleted_offsets(table, fragment)).tolist()
            elif len(offsets) > 1:
                offsets = sorted(offsets)
            exact = exact and index.exact
            if offsets:
                found.append(FragmentRows(position, offsets))
        if exact and list(columns) == [column] and len(wanted.texts) == 1:
            return _repeated(table, column, wanted.texts[0], sum(len(rows.offsets) for rows in found))
        needed = [*columns] if exact or column in columns else [*columns, column]
        rows = _read(table, found, needed)
        if not exact:
            rows = rows.filter(pc.is_in(rows[column], value_set=wanted.array))
        return rows if needed == [*columns] else rows.select([*columns])


def _repeated(table: Table, column: str, text: str, count: int) -> pa.Table:
    return pa.Table.from_arrays([pa.array([text] * count, pa.utf8())], schema=_schema(table, [column]))


def _schema(table: Table, columns: Sequence[str]) -> pa.Schema:
    virtual = (_ADDRESS, _ROW_ID)
    return pa.schema([pa.field(name, pa.uint64()) if name in virtual else table.schema.field(name) for name in columns])


def _read(table: Table, found: Sequence[FragmentRows], columns: Sequence[str]) -> pa.Table:
    """Read columns of rows, in row order."""
    schema = _schema(table, columns)
    if not found:
        return schema.empty_table()
    fragments = table.dataset.get_fragments()
    if _ROW_ID in columns or table.blobs.intersection(columns):
        addresses = [(fragments[rows.position].fragment_id << 32) | offset for rows in found for offset in rows.offsets]
        scanner = table.dataset.scanner(
            columns=[*columns],
            fragments=[fragments[rows.position] for rows in found],
            filter=f"{_ADDRESS} IN ({', '.join(map(str, addresses))})",
            blob_handling=table.blob_handling(columns),
        )
        return _conformed(scanner.to_table(), schema)
    stored = [name for name in columns if name != _ADDRESS]
    parts: list[pa.Table] = []
    for position, offsets in found:
        fragment = fragments[position]
        places = np.array(offsets)
        live = places - np.searchsorted(deleted_offsets(table, fragment), places)
        rows = fragment.take(live.tolist(), columns=stored)
        if _ADDRESS in columns:
            address = pa.array((fragment.fragment_id << 32) | places.astype(np.uint64), pa.uint64())
            rows = rows.append_column(_ADDRESS, address).select([*columns])
        parts.append(_conformed(rows, schema))
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts)


def _conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the fields of a schema; the types are those of the table."""
    return pa.Table.from_arrays([rows[name] for name in schema.names], schema=schema)
