"""Tables in memory: columns of a pinned table version, kept for the next query.

A node or edge is known by its number, the position of its row in the version's own order. Columns are
read once per version, when a query first needs them, and all queries on that version share them. What is
kept is bounded by bytes; the least recently used goes first. A version never changes, so nothing here
can be stale.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine import tuning
from omnigraph.engine.exec.cancellation import checkpoint, say
from omnigraph.storage.lance.tables import FragmentKey, Table
from omnigraph.storage.lance.version_diff import live_offsets

if TYPE_CHECKING:
    from omnigraph.engine.cache.union_table import UnionTable

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Fragments = tuple[FragmentKey, ...]
Derived = TypeVar("Derived")

_ENTRY_BYTES = 150
"""About what an id and its number take in a map."""


_OVERHEAD_BYTES = 1_024
"""The cost of an entry beside its arrays."""
_BASE = "base"


@dataclass(frozen=True)
class DictionaryCodes:
    """A text column: what each value is called by, and which one each row has; null is -1."""

    of: dict[str, int]
    rows: np.ndarray[Any, np.dtype[np.int32]]

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        return int(self.rows.nbytes) + _ENTRY_BYTES * len(self.of)


@dataclass(frozen=True)
class _Coded:
    """Codes, or that there are none."""

    codes: DictionaryCodes | None

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes if self.codes is not None else 0


def _coded(column: pa.Array) -> _Coded:
    sample = column.slice(0, tuning.current.codes_sample_rows)
    few = len(pc.unique(sample)) * 4 <= len(sample)
    if not few:
        return _Coded(None)
    encoded = column.dictionary_encode()
    if len(encoded.dictionary) > tuning.current.codes_max:
        return _Coded(None)
    rows = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    return _Coded(DictionaryCodes({value: code for code, value in enumerate(encoded.dictionary.to_pylist())}, rows))


@dataclass
class UseCounter:
    """Counts how often a structure was used, to decide when building an index pays."""

    count: int = 0

    def increment(self) -> int:
        """Count one use; return the new count."""
        self.count += 1
        return self.count


class TableData:
    """The columns of one table at one version."""

    union: UnionTable | None = None
    """The tables this one is put together from, if it is."""

    version = 0
    """The number of the version; 0 for rows that are not a version of a table."""

    def __init__(self, table: Table, cache: DataCache) -> None:
        self._table = table
        self.cache = cache
        self.folder = table.folder
        """The table, whatever its version."""
        self.version = table.version
        self.key = (table.folder, table.identity)
        """Identifies the version; its number does not, once a copy of the graph was restored."""
        self._keys: dict[str, str] = {}

    @cached_property
    def row_count(self) -> int:
        """How many rows there are."""
        return self._table.row_count

    def is_of(self, table: Table) -> bool:
        """Whether this is read through that very handle."""
        return self._table is table

    @property
    def fragments(self) -> Fragments:
        """The pieces the version is made of."""
        return self._table.fragments

    def extends(self, earlier: Fragments) -> bool:
        """Whether this is an earlier version and more."""
        return self.fragments[: len(earlier)] == earlier

    def added_since(self, earlier: Fragments, columns: Sequence[str]) -> pa.Table | None:
        """The rows behind those of an earlier version; None when this one is not that one and more."""
        if not self.extends(earlier):
            return None
        return self._table.read_from(columns, len(earlier))

    def rows_in(self, fragment: int) -> int:
        """How many rows a piece has."""
        _, rows, gone = self.fragments[fragment]
        return len(self.live_offsets(fragment)) if gone else rows

    def live_offsets(self, fragment: int) -> Numbers:
        """The places of a piece that still have their row."""
        return self.derived(f"live:{fragment}", lambda: live_offsets(self._table, fragment))

    def stream(self, name: str, fragments: Sequence[int] | None = None) -> Iterator[pa.Array]:
        """A column in row order, of all pieces or of some, chunk by chunk; it is not kept."""
        for batch in self._table.batches([name], fragments=fragments):
            checkpoint()
            yield batch.column(0)

    def read_fragments(self, names: Sequence[str], fragments: Sequence[int]) -> pa.Table:
        """Some columns of some pieces, in row order; they are not kept."""
        schema = pa.schema([self._table.schema.field(name) for name in names])
        return pa.Table.from_batches(self._table.batches(names, fragments=fragments), schema)

    def removed(self, fragment: int, name: str, places: Numbers) -> pa.Array:
        """What rows of a piece held that are gone."""
        column = self._table.read_with_deleted(name, fragment)
        return column.take(pa.array(places))

    def field_id(self, name: str) -> int:
        """What tells a column through its renames."""
        return self._table.field_ids[name]

    def column(self, name: str) -> pa.Array:
        """A whole column in row order, as one chunk."""
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = self.column_key(name)
        return self.derived(key, lambda: self._read(name))

    def column_key(self, name: str) -> str:
        """Under what a column is kept."""
        return f"column:{self.field_id(name)}"

    def _read(self, name: str) -> pa.Array:
        say(f"'{name}' read")
        earlier = self.cache.earlier(self, self.column_key(name))
        if earlier is not None:
            known, fragments = earlier
            added = self.added_since(fragments, [name])
            assert added is not None
            return pa.concat_arrays([known, *added[name].chunks])
        return one_array(self.read(name))

    def codes(self, name: str) -> DictionaryCodes | None:
        """A text column with few different values as numbers; None when there are many."""
        return self.derived(f"codes:{self.column_key(name)}", lambda: _coded(self.column(name))).codes

    def read(self, name: str) -> pa.ChunkedArray:
        """A whole column in row order, for one use: it is not kept."""
        schema = pa.schema([self._table.schema.field(name)])
        return pa.Table.from_batches(stopping(self._table.batches([name])), schema)[name]

    def take(self, name: str, numbers: Numbers) -> pa.Array:
        """The values of some rows."""
        return self.column(name).take(pa.array(numbers))

    def derived(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Something computed from the version, computed once."""
        return self.cache.get((*self.key, name), make)


class DataCache:
    """What was read or computed, by version and name, bounded by bytes."""

    def __init__(self, bytes_max: int | None = None, folder: Path | None = None, *, keep: bool = True) -> None:
        self._bytes_max = tuning.current.cache_bytes_max if bytes_max is None else bytes_max
        self._kept: OrderedDict[tuple[Any, ...], tuple[Any, int]] = OrderedDict()
        self._versions: dict[str, OrderedDict[str, TableData]] = {}
        self.folder = folder
        """Where earlier processes kept what took long to build; None when nowhere."""
        self.keep_in = folder if keep else None
        """Where it is kept for the next process; None keeps nothing."""
        self._bytes = 0
        self._lock = RLock()
        self._making: dict[tuple[Any, ...], Any] = {}

    def table(self, table: Table) -> TableData:
        """The data of a table version."""
        with self._lock:
            known = self._versions.setdefault(table.folder, OrderedDict())
            data = known.get(table.identity)
            if data is None or not data.is_of(table):
                data = known[table.identity] = TableData(table, self)
                while len(known) > tuning.current.table_versions_max:
                    self._drop(known.popitem(last=False)[1].key)
            known.move_to_end(table.identity)
        return data

    def earlier(self, data: TableData, name: str) -> tuple[Any, Fragments] | None:
        """What is kept of an earlier version that this one only adds rows to, and that version's pieces."""
        folder, identity = data.key
        with self._lock:
            for other, known in reversed(self._versions.get(folder, {}).items()):
                fragments = known.fragments
                if other != identity and data.extends(fragments):
                    found = self._kept.get((folder, other, name))
                    if found is not None:
                        return found[0], fragments
        return None

    def newest(self, data: TableData, name: str) -> Any:
        """What is kept under a name of this version, or else of the version last read before; None when nothing is."""
        with self._lock:
            versions = [data.key, *(other.key for other in reversed(self._versions.get(data.folder, {}).values()))]
            for key in versions:
                found = self._kept.get((*key, name))
                if found is not None:
                    return found[0]
        return None

    def column_of(self, data: TableData, fragments: Fragments, name: str) -> pa.Array | None:
        """A column of that version of a table which has these pieces, if it is in memory."""
        with self._lock:
            versions = list(self._versions.get(data.folder, {}).values())
        for other in versions:
            if other.fragments == fragments:
                return self.find((*other.key, other.column_key(name)))
        return None

    def base(self, what: tuple[str, ...]) -> Any:
        """The last structure built in full for a subject, to which later versions add; None if there is none.

        Adjacency, postings and vectors have one.
        """
        return self.find((_BASE, *what))

    def set_base(self, what: tuple[str, ...], value: Any) -> None:
        """Replace the structure of a subject. It counts and is evicted like every other entry."""
        self._put((_BASE, *what), value)

    def find(self, key: tuple[Any, ...]) -> Any:
        """What is kept under a key; None when nothing is."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def get(self, key: tuple[Any, ...], make: Callable[[], Derived]) -> Derived:
        """What is kept under a key, made if it is not there."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return cast(Derived, found[0])
            writing_entry = self._making.setdefault(key, RLock())
        # What takes long is made by one thread; the others that want it wait for that one.
        with _waiting(writing_entry):
            with self._lock:
                found = self._kept.get(key)
            if found is not None:
                return cast(Derived, found[0])
            try:
                value = make()
                self._put(key, value)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return value

    def _put(self, key: tuple[Any, ...], value: Any) -> None:
        size = _OVERHEAD_BYTES + _size(value)
        with self._lock:
            _, before = self._kept.pop(key, (None, 0))
            self._kept[key] = (value, size)
            self._bytes += size - before
            entries_max = max(tuning.current.cache_entries_max, 1)
            while len(self._kept) > entries_max or (len(self._kept) > 1 and self._bytes > self._bytes_max):
                self._bytes -= self._kept.popitem(last=False)[1][1]

    def _drop(self, version: tuple[str, str]) -> None:
        """Remove the entries of a version."""
        for key in [key for key in self._kept if key[:2] == version]:
            self._bytes -= self._kept.pop(key)[1]

    @property
    def bytes(self) -> int:
        """The size of all entries."""
        return self._bytes

    @property
    def entry_count(self) -> int:
        """The number of entries."""
        return len(self._kept)


@contextmanager
def _waiting(lock: Any) -> Iterator[None]:
    """Hold a lock, which another thread may keep for long: the limits are looked at while waiting."""
    while not lock.acquire(timeout=tuning.current.poll_s):
        checkpoint()
    try:
        yield
    finally:
        lock.release()


def stopping(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of a table, with a checkpoint before each."""
    for batch in batches:
        checkpoint()
        yield batch


def _size(value: Any) -> int:
    """The bytes of a value; mapped files count nothing."""
    if isinstance(value, np.ndarray):
        return 0 if is_mapped(value) else int(value.nbytes)
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(map(_size, value))
    size = getattr(value, "nbytes", None)
    return int(size) if isinstance(size, int) else 0


def is_mapped(array: np.ndarray[Any, Any]) -> bool:
    """Whether the bytes of an array are those of a mapped file."""
    return isinstance(array, np.memmap) or isinstance(array.base, np.memmap)
