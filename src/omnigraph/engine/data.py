"""Tables in memory: columns of a pinned table version, kept for the next query.

A node or edge is known by its number, the position of its row in the version's own order. Columns are
read once per version, when a query first needs them, and all queries on that version share them. What is
kept is bounded by bytes; the least recently used goes first. A version never changes, so nothing here
can be stale.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.tables import Piece, Table

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Fragments = tuple[Piece, ...]
Derived = TypeVar("Derived")

_LOOKUPS_BEFORE_INDEX = 3
"""A few lookups are cheaper by looking; after that a map of all ids pays."""

_VERSIONS_KNOWN = 8
CACHE_BYTES = 2 * 1024**3


class TableData:
    """The columns of one table at one version."""

    def __init__(self, table: Table, cache: DataCache) -> None:
        self._table = table
        self._cache = cache
        self.key = (table.folder, table.version)

    @cached_property
    def row_count(self) -> int:
        """How many rows there are."""
        return self._table.row_count

    @property
    def folder(self) -> str:
        """The table, whatever its version."""
        return self._table.folder

    @property
    def fragments(self) -> Fragments:
        """The pieces the version is made of."""
        return self._table.fragments

    def added_since(self, earlier: Fragments, columns: Sequence[str]) -> pa.Table | None:
        """The rows behind those of an earlier version; None when this one is not that one and more."""
        if self.fragments[: len(earlier)] != earlier:
            return None
        return self._table.read_from(columns, len(earlier))

    def column(self, name: str) -> pa.Array:
        """A whole column in row order, as one chunk."""
        return self.derived(self._column_key(name), lambda: self._read(name))

    def _column_key(self, name: str) -> str:
        return f"column:{self._table.field_ids[name]}"

    def _read(self, name: str) -> pa.Array:
        earlier = self._cache.earlier(self, self._column_key(name))
        if earlier is not None:
            known, fragments = earlier
            added = self.added_since(fragments, [name])
            assert added is not None
            return pa.concat_arrays([known, *added[name].chunks])
        chunks = self._table.read([name])[name]
        return chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)

    def take(self, name: str, numbers: Numbers) -> pa.Array:
        """The values of some rows."""
        return self.column(name).take(pa.array(numbers))

    def find(self, id_: str) -> int | None:
        """The number of the row with this id."""
        uses = self.derived("uses:id", lambda: [0])
        uses[0] += 1
        if uses[0] > _LOOKUPS_BEFORE_INDEX:
            return self.derived("places:id", self._places).get(id_)
        place = pc.index(self.column("id"), pa.scalar(id_, pa.utf8())).as_py()
        return None if place < 0 else int(place)

    def _places(self) -> dict[str, int]:
        return {id_: place for place, id_ in enumerate(self.column("id").to_pylist())}

    def derived(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Something computed from the version, computed once."""
        return self._cache.get((*self.key, name), make)


class DataCache:
    """What was read or computed, by version and name, bounded by bytes."""

    def __init__(self, bytes_max: int = CACHE_BYTES, folder: Path | None = None) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[tuple[Any, ...], tuple[Any, int]] = OrderedDict()
        self._versions: dict[str, OrderedDict[int, Fragments]] = {}
        self.bases: dict[tuple[str, ...], Any] = {}
        """Adjacency built in full, by what it is of: later versions add to it."""
        self.folder = folder
        """Where what took long to build is kept for the next process; None keeps nothing."""
        self._bytes = 0
        self._lock = RLock()

    def table(self, table: Table) -> TableData:
        """The data of a table version."""
        with self._lock:
            known = self._versions.setdefault(table.folder, OrderedDict())
            known[table.version] = table.fragments
            known.move_to_end(table.version)
            while len(known) > _VERSIONS_KNOWN:
                known.popitem(last=False)
        return TableData(table, self)

    def earlier(self, data: TableData, name: str) -> tuple[Any, Fragments] | None:
        """What is kept of an earlier version that this one only adds rows to, and that version's pieces."""
        folder, version = data.key
        fragments = data.fragments
        with self._lock:
            for other, pieces in reversed(self._versions.get(folder, {}).items()):
                if other != version and len(pieces) <= len(fragments) and fragments[: len(pieces)] == pieces:
                    found = self._kept.get((folder, other, name))
                    if found is not None:
                        return found[0], pieces
        return None

    def get(self, key: tuple[Any, ...], make: Callable[[], Derived]) -> Derived:
        """What is kept under a key, made if it is not there."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return cast(Derived, found[0])
        value = make()
        size = _size(value)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = (value, size)
                self._bytes += size
            while self._bytes > self._bytes_max and len(self._kept) > 1:
                _, (_, freed) = self._kept.popitem(last=False)
                self._bytes -= freed
                self.bases.clear()
        return value

    @property
    def bytes(self) -> int:
        """How much is kept."""
        return self._bytes


def _size(value: Any) -> int:
    if isinstance(value, pa.Array | pa.ChunkedArray | np.ndarray):
        return int(value.nbytes)
    if isinstance(value, dict):
        return 120 * len(value)
    if isinstance(value, tuple):
        return sum(map(_size, value))
    size = getattr(value, "nbytes", None)
    return int(size) if isinstance(size, int) else 1024
