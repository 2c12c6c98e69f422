"""Deletion files of Lance, read without reading the rows.

The files of a fragment never change; a delete or update only adds to its set of deleted offsets. Lance writes that set
as an Arrow file while it is small, and as a roaring bitmap (portable serialisation) beyond that. The cost of reading it
grows with the number of deleted rows, whereas Lance's own list of live offsets grows with the number of live rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import Damaged
from omnigraph.storage.lance.lance_module import lance

if TYPE_CHECKING:
    from omnigraph.storage.lance.tables import Table

Offsets = np.ndarray[Any, Any]
"""Row offsets within a fragment, ascending, as 64-bit integers."""

NO_OFFSETS: Offsets = np.empty(0, np.int64)

_COOKIE = 12346
_COOKIE_WITH_RUNS = 12347
_OFFSETS_FROM = 4
"""In a bitmap with run containers, the table of container positions is omitted below this number of containers."""
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192


class DeletionCache:
    """LRU cache of parsed deletion files. The files are immutable, and a diff reads the same ones repeatedly."""

    def __init__(self, bytes_max: int = 32 * 1024 * 1024) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._known: OrderedDict[str, Offsets] = OrderedDict()
        self._lock = Lock()

    def get(self, name: str, read: Callable[[], Offsets]) -> Offsets:
        """Return the offsets in a file, from the cache or from `read`."""
        with self._lock:
            known = self._known.get(name)
            if known is not None:
                self._known.move_to_end(name)
                return known
        offsets = read()
        with self._lock:
            if name not in self._known:
                self._known[name] = offsets
                self._bytes += offsets.nbytes
                while self._bytes > self._bytes_max:
                    self._bytes -= self._known.popitem(last=False)[1].nbytes
        return offsets


def deleted_offsets(table: Table, fragment: lance.LanceFragment) -> Offsets:
    """Return the offsets of the deleted rows of a fragment, ascending."""
    file = fragment.metadata.deletion_file
    if file is None:
        return NO_OFFSETS
    name = file.path(fragment.fragment_id)
    return table.store.deletions.get(f"{table.folder}/{name}", lambda: parse_deletions(table.read_file(name), file))


def parse_deletions(data: bytes, file: lance.fragment.DeletionFile) -> Offsets:
    """Return the offsets that a deletion file lists."""
    offsets = _arrow(data) if file.file_type == "array" else parse_roaring(data)
    if len(offsets) != file.num_deleted_rows:
        raise Damaged(f"a deletion file lists {len(offsets)} rows, its manifest counts {file.num_deleted_rows}")
    return offsets


def _arrow(data: bytes) -> Offsets:
    # Threads would cost more than reading so few numbers.
    options = pa.ipc.IpcReadOptions(use_threads=False)
    column = pa.ipc.open_file(pa.BufferReader(data), options=options).read_all().column(0)
    return np.sort(column.to_numpy().astype(np.int64))


def parse_roaring(data: bytes) -> Offsets:
    """Return the numbers in a 32-bit roaring bitmap (portable serialisation)."""
    cookie = int.from_bytes(data[:4], "little")
    runs = np.zeros(0, bool)
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count, at = (cookie >> 16) + 1, 4
        flags = (count + 7) // 8
        runs = np.unpackbits(np.frombuffer(data, np.uint8, flags, at), bitorder="little").astype(bool)
        at += flags
    elif cookie == _COOKIE:
        count, at = int.from_bytes(data[4:8], "little"), 8
    else:
        raise Damaged(f"a deletion file begins with {data[:4].hex()}: this is no roaring bitmap")
    heads = np.frombuffer(data, "<u2", 2 * count, at).reshape(-1, 2).astype(np.int64)
    at += 4 * count
    if not len(runs) or count >= _OFFSETS_FROM:
        at += 4 * count
    parts: list[Offsets] = []
    for number, (high, last) in enumerate(heads.tolist()):
        if len(runs) and runs[number]:
            pairs = int.from_bytes(data[at : at + 2], "little")
            spans = np.frombuffer(data, "<u2", 2 * pairs, at + 2).reshape(-1, 2).astype(np.int64)
            low = np.concatenate([np.arange(start, start + more + 1) for start, more in spans.tolist()])
            at += 2 + 4 * pairs
        elif last < _ARRAY_MAX:
            low = np.frombuffer(data, "<u2", last + 1, at).astype(np.int64)
            at += 2 * (last + 1)
        else:
            bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, at), bitorder="little")
            low = np.flatnonzero(bits)
            at += _BITMAP_BYTES
        parts.append(low + (high << 16))
    return np.concatenate(parts) if parts else NO_OFFSETS
