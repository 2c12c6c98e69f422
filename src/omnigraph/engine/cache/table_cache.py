"""In-memory columns and derived structures of pinned table versions.

A node or edge is identified by its row number, the position of its row in the version. Columns are read once per
version, on first use, and shared by all queries on that version. The cache is bounded by bytes and evicts the least
recently used entries. A version never changes, so entries are never stale.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.column_access import ColumnUse, fits, pays, select_rows
from omnigraph.engine.cache.dictionary_codes import DictionaryCodes, encode
from omnigraph.engine.cache.ranged_arrays import RangedArray
from omnigraph.engine.exec.cancellation import add_note, checkpoint
from omnigraph.errors import Hint, LimitReached
from omnigraph.fast_dataclass import dataclass
from omnigraph.machine_memory import MemoryBudget
from omnigraph.observer import current, timed
from omnigraph.storage.lance.indexes import IndexSpec, index_names
from omnigraph.storage.lance.tables import FragmentKey, Table
from omnigraph.storage.lance.version_diff import live_offsets

if TYPE_CHECKING:
    from omnigraph.engine.cache.earlier_columns import EarlierColumn
    from omnigraph.engine.cache.remote_cache import RemoteCache
    from omnigraph.engine.cache.union_table import UnionTable
    from omnigraph.engine.exec.context import SnapshotTables
    from omnigraph.versioning.model.snapshot import Snapshot

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Fragments = tuple[FragmentKey, ...]
Derived = TypeVar("Derived")

_OVERHEAD_BYTES = 1_024
"""Size of an entry in addition to its arrays."""
_BASE = "base"
_TAKE_BYTES = 64 * 1024**2
"""Approximate size of the rows that are read by number at a time."""


@dataclass
class UseCounter:
    """Counts the uses of a structure, to decide when building an index pays."""

    count: int = 0

    def increment(self) -> int:
        """Count one use; return the new count."""
        self.count += 1
        return self.count


def numbered_rows(rows: int, what: str) -> int:
    """Return a number of rows; raise `LimitReached` if row numbers cannot count them."""
    most = tuning.current.row_numbers_max
    if rows <= most:
        return rows
    raise LimitReached(
        f"{what} has {rows:,} rows; the engine numbers at most {most:,} rows of a table",
        resource="rows",
        limit=most,
        actual=rows,
        hint=Hint(
            "run the query with engine='spark', or divide the rows among several types",
            cli="run the query with --engine spark, or divide the rows among several types",
        ),
    )


class TableData:
    """The columns of one table at one version."""

    union: UnionTable | None = None
    """The union this table is, or None."""

    visible: Mask | None = None
    """A mask of the visible rows; None: all rows are visible."""

    version = 0
    """The number of the version; 0 for rows that are not a version of a table."""

    def __init__(self, table: Table, cache: DataCache) -> None:
        self._table = table
        self.cache = cache
        self.folder = table.folder
        """The folder of the table, the same for all versions."""
        self.version = table.version
        self.key = (table.folder, table.identity)
        """Identifies the version. The version number does not: a restored copy of the graph reuses numbers."""
        self._keys: dict[str, tuple[str, str, str]] = {}

    @cached_property
    def row_count(self) -> int:
        """The number of rows. Raises `LimitReached` if row numbers cannot count them."""
        return numbered_rows(self._table.row_count, f"table '{self.folder}'")

    def is_of(self, table: Table) -> bool:
        """Return True if the data is read through this table handle."""
        return self._table is table

    @property
    def fragments(self) -> Fragments:
        """The fragments of the version."""
        return self._table.fragments

    def extends(self, earlier: Fragments) -> bool:
        """Return True if this version begins with the fragments of an earlier version."""
        return self.fragments[: len(earlier)] == earlier

    def rows_in(self, fragment: int) -> int:
        """Return the number of live rows of a fragment."""
        return self._table.rows_in(fragment)

    def live_offsets(self, fragment: int) -> Numbers:
        """Return the offsets of the live rows of a fragment."""
        return self.derived(f"live:{fragment}", lambda: live_offsets(self._table, fragment))

    @property
    def rows_by_file(self) -> dict[str, int]:
        """The number of live rows of each fragment, by its data files."""
        return {files: self.rows_in(at) for at, (files, _, _) in enumerate(self.fragments)}

    def stream(self, name: str, fragments: Sequence[int] | None = None) -> Iterator[pa.Array]:
        """Yield a column in row order, of all fragments or of some, chunk by chunk, without caching it."""
        for batch in self._table.stream([name], fragments=fragments):
            checkpoint()
            yield batch.column(0)

    def read_fragments(self, names: Sequence[str], fragments: Sequence[int]) -> pa.Table:
        """Read columns of some fragments, in row order. Small fragments are kept: later versions have them too."""
        schema = pa.schema([self._table.schema.field(name) for name in names])
        kept = [self.cache.base(self._rows_key(names, at)) for at in fragments]
        missing = [at for at, rows in zip(fragments, kept, strict=True) if rows is None]
        read = pa.Table.from_batches(self._table.batches(names, fragments=missing), schema)
        if not kept:
            return read
        start, parts = 0, []
        for at, rows in zip(fragments, kept, strict=True):
            if rows is not None:
                # A column may have been renamed since.
                parts.append(pa.Table.from_arrays(rows.columns, schema=schema))
                continue
            parts.append(read.slice(start, self.rows_in(at)))
            start += self.rows_in(at)
            if parts[-1].num_rows <= tuning.current.fragment_kept_rows:
                self.cache.set_base(self._rows_key(names, at), parts[-1])
        return pa.concat_tables(parts)

    def _rows_key(self, names: Sequence[str], fragment: int) -> tuple[str, ...]:
        """Return the cache key of columns of a fragment, which all versions with this fragment share."""
        files, _, gone = self.fragments[fragment]
        return ("rows", self.folder, files, str(gone), *map(self.column_key, names))

    def read_deleted(self, fragment: int, name: str, places: Numbers) -> pa.Array:
        """Read values of deleted rows of a fragment, by offset."""
        column = self._table.read_with_deleted(name, fragment)
        return column.take(pa.array(places))

    def field_id(self, name: str) -> int:
        """Return the field id of a column, which is the same after a rename."""
        return self._table.field_ids[name]

    def column(self, name: str) -> pa.Array:
        """Return a complete column in row order, as one chunk."""
        return self.cache.get(self._key_of(name), lambda: self._read(name))

    def _key_of(self, name: str) -> tuple[str, str, str]:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = (*self.key, self.column_key(name))
        return key

    def column_for(self, name: str, rows: int) -> pa.Array | None:
        """Return a complete column if it is in memory, or if it is to be read for a query that needs so many rows.

        None if the rows are to be read by their numbers.
        """
        found: pa.Array | None = self.cache.find(self._key_of(name))
        if found is not None:
            self.cache.hits += 1
            return found
        if self.is_few(rows) and self._earlier(name) is not None and not self._is_used(name):
            return None
        return self.column(name) if self._reads_complete(name, rows) else None

    def _earlier(self, name: str) -> EarlierColumn | None:
        """Return a column by way of an earlier version that has it in memory; None if there is none."""
        if name in self._table.blobs or not self.cache.has_column(self, self.column_key(name)):
            return None
        from omnigraph.engine.cache.earlier_columns import find_earlier  # noqa: PLC0415 (it maps rows of tables)

        return find_earlier(self, name)

    def _is_used(self, name: str) -> bool:
        """Count a use of a column of an earlier version; return True once the complete column pays."""
        uses = self.derived(f"uses:{self.column_key(name)}", UseCounter).increment()
        return uses * tuning.current.joined_take_rows > self.row_count

    def _reads_complete(self, name: str, rows: int) -> bool:
        if self._is_small or name in self._table.blobs:
            return True
        row_count, cache_bytes = self.row_count, self.cache.bytes_max
        if not self.is_few(rows):
            return fits(self.column_bytes(name), cache_bytes)
        use = self.cache.column_use(self.folder, self.column_key(name))
        if pays(use, use.column_bytes(self._table.schema.field(name).type, row_count), row_count, cache_bytes):
            return True
        # The column of an earlier version is in memory: only the added rows are read.
        return self._earlier(name) is not None

    def is_few(self, rows: int) -> bool:
        """Return True if so many rows are read faster by their numbers than with the complete column."""
        return not self._is_small and rows * tuning.current.take_row_cost <= self.row_count

    @cached_property
    def _is_small(self) -> bool:
        """True if every column is read in full on first use."""
        constants = tuning.current
        return (
            self.row_count <= constants.complete_column_rows
            and self._table.stored_bytes <= 4 * constants.complete_column_bytes
            and self._table.largest_bytes <= 128 * constants.complete_column_bytes
        )

    def streams(self, name: str) -> bool:
        """Return True if a column is not in memory and does not fit the cache: scans read it batch by batch."""
        if not self.may_stream or name in self._table.blobs:
            return False
        return self.cache.find(self._key_of(name)) is None and not fits(self.column_bytes(name), self.cache.bytes_max)

    @cached_property
    def may_stream(self) -> bool:
        """False if the table is so small on disk that all its columns fit the cache; reads nothing."""
        return not self._is_small and not fits(self._table.largest_bytes, self.cache.bytes_max)

    def has_sorted_index(self, name: str) -> bool:
        """Return True if Lance finds the rows of a filter on a column by an index."""
        return IndexSpec(name).name in self.derived("indexes", lambda: index_names(self._table))

    def matches(self, names: Sequence[str], sql: str | None) -> Iterator[tuple[pa.RecordBatch, Numbers]]:
        """Yield columns of the rows that pass an SQL filter, batch by batch, with their row numbers."""
        for batch in self._table.matches(names, sql):
            checkpoint()
            yield batch, batch.column(batch.num_columns - 1).to_numpy().astype(np.int64)

    def has_column(self, name: str) -> bool:
        """Return True if the table has a column whose values are stored in its rows."""
        return name in self._table.schema.names and name not in self._table.blobs

    def mean_bytes(self, name: str, rows: int) -> int:
        """Return the approximate size of a value of a column, 0 if so many values are certainly small."""
        size = self._table.largest_bytes // max(self.row_count, 1)
        if self._is_small or name in self._table.blobs or size * rows <= tuning.current.lazy_result_bytes // 4:
            return 0
        return self.column_bytes(name) // max(self.row_count, 1)

    def column_bytes(self, name: str) -> int:
        """Return the size of a complete column in memory, from a sample if its values differ in size."""
        use = self.cache.column_use(self.folder, self.column_key(name))
        size = use.column_bytes(self._table.schema.field(name).type, self.row_count)
        if size is None:
            steps = np.linspace(0, self.row_count - 1, min(self.row_count, tuning.current.column_sample_rows))
            sample = self._table.take([name], pa.array(np.unique(steps.astype(np.int64))))[name]
            size = sample.nbytes * self.row_count // max(len(sample), 1)
            use.rows += len(sample)
            use.nbytes += sample.nbytes
        return size

    def column_key(self, name: str) -> str:
        """Return the cache key of a column."""
        return f"column:{self.field_id(name)}"

    def _read(self, name: str) -> pa.Array:
        self._check_size([name], self.row_count)
        add_note(f"'{name}' read")
        earlier = self._earlier(name)
        if earlier is not None:
            return earlier.complete()
        return one_array(self.read(name))

    def known_column(self, name: str) -> pa.Array | None:
        """Return a complete column if it is in memory."""
        return self.cache.find(self._key_of(name))

    def column_type(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return self._table.schema.field(name).type

    @property
    def stored_bytes(self) -> int:
        """The size of the data files of the version."""
        return self._table.stored_bytes

    @property
    def has_long_values(self) -> bool:
        """True if the size on disk says little of the size in memory."""
        return self._table.has_long_values

    @property
    def stored_columns(self) -> list[str]:
        """The columns whose values are stored in the rows; Blobs are stored beside them."""
        return [name for name in self._table.schema.names if name not in self._table.blobs]

    def _stored(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in self._table.blobs]

    def _check_size(self, names: Sequence[str], rows: int) -> None:
        """Raise `LimitReached` for values of so many rows that exceed the memory budget."""
        memory = self.cache.memory
        if memory is None or not self.may_stream:
            return
        stored = self._stored(names)
        size = sum(map(self.column_bytes, stored)) * rows // max(self.row_count, 1)
        if size > memory.query_bytes:
            listed = ", ".join(f"'{name}'" for name in stored)
            raise LimitReached(
                f"{rows:,} values of {listed} need about {size:,} bytes; a query may use {memory.query_bytes:,}",
                resource="bytes",
                limit=memory.query_bytes,
                actual=size,
                hint=Hint(
                    "add a condition or a limit, or open the graph with more memory: og.open(uri, memory=…)",
                    cli="add a condition or a limit, or set OMNIGRAPH_MEMORY to a larger size",
                ),
            )

    def codes(self, name: str, rows: int | None = None) -> DictionaryCodes | None:
        """Return the dictionary codes of a text column; None if it has too many distinct values.

        With `rows`, also None if so few rows would be read alone. The codes order groups, so it does not matter whether
        the column is in memory: pages of one result need the same order.
        """
        if rows is not None and (self.is_few(rows) or self.column_for(name, rows) is None):
            return None
        return self.derived(f"codes:{self.column_key(name)}", lambda: encode(self.column(name))).codes

    def known_codes(self, name: str) -> DictionaryCodes | None:
        """Return the dictionary codes of a text column if they are in memory; else None."""
        found = self.cache.find((*self.key, f"codes:{self.column_key(name)}"))
        return None if found is None else found.codes

    @timed("storage", "table_read")
    def read(self, name: str) -> pa.ChunkedArray:
        """Read a complete column in row order without caching it."""
        schema = pa.schema([self._table.schema.field(name)])
        return pa.Table.from_batches(with_checkpoints(self._table.batches([name])), schema)[name]

    def read_rows(self, names: Sequence[str], numbers: Numbers) -> dict[str, pa.Array]:
        """Read columns of some rows, by ascending row number, without reading the columns as a whole."""
        rows = self._table.take(names, pa.array(numbers))
        return {name: one_array(rows[name]) for name in names}

    def take(self, name: str, numbers: Numbers) -> pa.Array:
        """Return the values of some rows."""
        return self.take_columns([name], numbers)[name]

    def take_columns(self, names: Sequence[str], numbers: Numbers) -> dict[str, pa.Array]:
        """Return the values of several columns of some rows; those not in memory are read by one call."""
        found: dict[str, pa.Array] = {}
        missing: list[str] = []
        for name in names:
            column = self.column_for(name, len(numbers))
            earlier = self._earlier(name) if column is None else None
            if column is not None:
                found[name] = select_rows(column, numbers)
            elif earlier is not None:
                found[name] = earlier.take(numbers)
            else:
                missing.append(name)
        return found | self._take(missing, numbers) if missing else found

    def _take(self, names: Sequence[str], numbers: Numbers) -> dict[str, pa.Array]:
        """Read rows by their numbers; each row is read once."""
        if not len(numbers) and not any(name in self._table.blobs for name in names):
            return {name: pa.array([], self.column_type(name)) for name in names}
        if not self.is_few(len(numbers)):
            self._check_size(names, len(numbers))
        add_note(f"{len(numbers):,} rows of {', '.join(repr(name) for name in names)} read")
        ascending = len(numbers) < 2 or bool((numbers[1:] > numbers[:-1]).all())
        wanted, places = (numbers, None) if ascending else np.unique(numbers, return_inverse=True)
        parts: list[pa.Table] = []
        at_once = tuning.current.take_batch_rows
        if len(wanted) > 1 and len(wanted) * self._table.largest_bytes // max(self.row_count, 1) > _TAKE_BYTES:
            mean = sum(map(self.column_bytes, self._stored(names))) // max(self.row_count, 1)
            at_once = max(1, min(at_once, _TAKE_BYTES // max(mean, 1)))
        for start in range(0, max(len(wanted), 1), at_once):
            checkpoint()
            parts.append(self._table.take(names, pa.array(wanted[start : start + at_once])))
        found: dict[str, pa.Array] = {}
        for name in names:
            self.cache.column_use(self.folder, self.column_key(name)).add(parts[0][name])
            column = pa.chunked_array([chunk for part in parts for chunk in part[name].chunks], parts[0][name].type)
            found[name] = one_array(column) if places is None else select_rows(one_array(column), places)
        return found

    def derived(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Return a structure derived from the version; it is computed once and cached."""
        return self.cache.get((*self.key, name), make)


class DataCache:
    """Columns and derived structures by version and name, bounded by bytes."""

    def __init__(
        self,
        bytes_max: int | None = None,
        folder: Path | None = None,
        *,
        keep: bool = True,
        memory: MemoryBudget | None = None,
        remote: RemoteCache | None = None,
    ) -> None:
        share = memory.cache_bytes if memory is not None else tuning.current.cache_bytes_max
        self.bytes_max = share if bytes_max is None else bytes_max
        """The largest size of all entries."""
        self.memory = memory
        """The budget of the graph; None does not limit queries and builds."""
        self._entries: OrderedDict[tuple[str, ...], tuple[Any, int]] = OrderedDict()
        self._versions: dict[str, OrderedDict[str, TableData]] = {}
        self.snapshots: WeakKeyDictionary[Snapshot, SnapshotTables] = WeakKeyDictionary()
        """The tables that were opened of each snapshot; an entry is dropped with its snapshot."""
        self.folder = folder
        """The disk cache to read from; None if there is none."""
        self.keep_in = folder if keep else None
        """The disk cache to write to; None writes nothing."""
        self.remote = remote
        """The entries of the disk cache beside the tables on an object store; None if there are none."""
        self.takes_turns = False
        """True if only one process of the machine builds a large structure at a time."""
        self._bytes = 0
        self._uses: dict[tuple[str, str], ColumnUse] = {}
        self._lock = RLock()
        self._building: dict[tuple[str, ...], Any] = {}
        self.hits = 0
        """The number of requested entries that were in memory."""
        self.misses = 0
        """The number of requested entries that were computed."""

    @property
    def turn_folder(self) -> Path | None:
        """The disk cache whose writers take turns; None if they do not."""
        return self.keep_in if self.takes_turns else None

    def is_kept(self, subject: disk_cache.Subject) -> bool:
        """Return True if a structure is kept, locally or on the object store, possibly of another version."""
        if disk_cache.exists(self.keep_in, subject):
            return True
        return self.remote is not None and self.remote.exists(subject)

    def table(self, table: Table) -> TableData:
        """Return the data of a table version."""
        with self._lock:
            known = self._versions.setdefault(table.folder, OrderedDict())
            data = known.get(table.identity)
            if data is None or not data.is_of(table):
                data = known[table.identity] = TableData(table, self)
                while len(known) > tuning.current.table_versions_max:
                    self._drop(known.popitem(last=False)[1].key)
            known.move_to_end(table.identity)
        return data

    def has_column(self, data: TableData, name: str) -> bool:
        """Return True if another version of a table has an entry under a name."""
        folder, identity = data.key
        with self._lock:
            others = list(self._versions.get(folder, ()))
            return any(other != identity and (folder, other, name) in self._entries for other in others)

    def columns_of(self, data: TableData, name: str, most: int) -> list[tuple[TableData, pa.Array]]:
        """Return the entries of other versions under a name, of at most `most` versions, those used last first."""
        folder, identity = data.key
        found: list[tuple[TableData, pa.Array]] = []
        with self._lock:
            for other, known in reversed(self._versions.get(folder, {}).items()):
                entry = self._entries.get((folder, other, name)) if other != identity else None
                if entry is not None:
                    found.append((known, entry[0]))
                    if len(found) == most:
                        break
        return found

    def touch(self, data: TableData) -> None:
        """Count a use of a version, so that it is remembered."""
        folder, identity = data.key
        with self._lock:
            if identity in self._versions.get(folder, {}):
                self._versions[folder].move_to_end(identity)

    def newest(self, data: TableData, name: str) -> Any:
        """Return the entry of this version under a name, else of the version used last; None if there is none."""
        with self._lock:
            versions = [data.key, *(other.key for other in reversed(self._versions.get(data.folder, {}).values()))]
            for key in versions:
                found = self._entries.get((*key, name))
                if found is not None:
                    return found[0]
        return None

    def column_of(self, data: TableData, fragments: Fragments, name: str) -> pa.Array | None:
        """Return a column of the version with these fragments if it is in memory."""
        with self._lock:
            versions = list(self._versions.get(data.folder, {}).values())
        for other in versions:
            if other.fragments == fragments:
                return self.find((*other.key, other.column_key(name)))
        return None

    def column_use(self, folder: str, column: str) -> ColumnUse:
        """Return the use of a column of a table, of all its versions."""
        use = self._uses.get((folder, column))
        return self._uses.setdefault((folder, column), ColumnUse()) if use is None else use

    def base(self, subject: tuple[str, ...]) -> Any:
        """Return the last structure built in full for a subject, which later versions update; None if there is none.

        Adjacency, inverted indexes and vector codes use it.
        """
        return self.find((_BASE, *subject))

    def set_base(self, subject: tuple[str, ...], value: Any) -> None:
        """Replace the structure of a subject. It counts and is evicted like every other entry."""
        self._put((_BASE, *subject), value)

    def find(self, key: tuple[str, ...]) -> Any:
        """Return the entry of a key; None if there is none."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def get(self, key: tuple[str, ...], make: Callable[[], Derived]) -> Derived:
        """Return the entry of a key; compute it with `make` if there is none."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                self.hits += 1
                return cast(Derived, found[0])
            self.misses += 1
            writing_entry = self._building.setdefault(key, RLock())
        observer = current()
        if observer is not None:
            observer.missed("tables")
        # One thread computes an entry; other threads that need it wait.
        with _waiting(writing_entry):
            with self._lock:
                found = self._entries.get(key)
            if found is not None:
                return cast(Derived, found[0])
            try:
                value = make()
                self._put(key, value)
            finally:
                with self._lock:
                    self._building.pop(key, None)
        return value

    def _put(self, key: tuple[str, ...], value: Any) -> None:
        size = _OVERHEAD_BYTES + _size(value)
        with self._lock:
            _, before = self._entries.pop(key, (None, 0))
            self._entries[key] = (value, size)
            self._bytes += size - before
            entries_max = max(tuning.current.cache_entries_max, 1)
            while len(self._entries) > entries_max or (len(self._entries) > 1 and self._bytes > self.bytes_max):
                self._bytes -= self._entries.popitem(last=False)[1][1]

    def shrink(self, bytes_max: int) -> None:
        """Evict entries until their size is at most `bytes_max`. The bound of the cache stays as it is."""
        with self._lock:
            if self._bytes <= bytes_max:
                return
            # The tables of open snapshots hold adjacencies.
            self.snapshots.clear()
            while self._entries and self._bytes > bytes_max:
                self._bytes -= self._entries.popitem(last=False)[1][1]

    def forget(self) -> None:
        """Drop everything, because the history that it was derived from was replaced."""
        with self._lock:
            self._entries.clear()
            self._versions.clear()
            self.snapshots.clear()
            self._uses.clear()
            self._bytes = 0

    def _drop(self, version: tuple[str, str]) -> None:
        """Remove the entries of a version, and those of other tables that are made from it and name it.

        An edge table that does not change would otherwise keep its adjacency to every version of its nodes.
        """
        _, identity = version
        for key in [key for key in self._entries if key[:2] == version or identity in key[-1]]:
            self._bytes -= self._entries.pop(key)[1]

    @property
    def bytes(self) -> int:
        """The size of all entries."""
        return self._bytes

    @property
    def entry_count(self) -> int:
        """The number of entries."""
        return len(self._entries)


@contextmanager
def _waiting(lock: Any) -> Iterator[None]:
    """Hold a lock that another thread may hold for long; check the limits while waiting."""
    while not lock.acquire(timeout=tuning.current.poll_s):
        checkpoint()
    try:
        yield
    finally:
        lock.release()


def with_checkpoints(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches with a checkpoint before each."""
    for batch in batches:
        checkpoint()
        yield batch


def _size(value: Any) -> int:
    """Return the size of a value in memory; mapped files count 0."""
    if isinstance(value, np.ndarray):
        return unmapped_bytes(value)
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(map(_size, value))
    size = getattr(value, "nbytes", None)
    return int(size) if isinstance(size, int) else 0


def is_mapped(array: np.ndarray[Any, Any] | RangedArray) -> bool:
    """Return True if the array is a mapped file."""
    return isinstance(array, np.memmap) or isinstance(array.base, np.memmap)


def unmapped_bytes(*arrays: np.ndarray[Any, Any] | RangedArray) -> int:
    """Return the size of arrays in memory; mapped files count 0."""
    return sum(int(array.nbytes) for array in arrays if not is_mapped(array))
