"""Row numbers of the nodes at the ends of edges.

The ids of the nodes are held in memory and looked up there. If they do not fit the memory of a build, the ids of nodes
and edges are written to files by the hash of the id, and the files of one hash at a time are looked up.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.csr import I32
from omnigraph.engine.adjacency.incremental import dangling
from omnigraph.engine.cache.id_segments import HASHED_BYTES
from omnigraph.engine.cache.table_cache import TableData
from omnigraph.engine.exec.cancellation import add_note
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.fast_dataclass import dataclass
from omnigraph.hashing import crc32_texts

_ROW_BYTES = 40
"""Size of an entry of a hash table, without its text."""
_BUCKETS_MAX = 256
"""Files that are open at a time."""
_ID, _NUMBER = "id", "number"
_SCHEMA = pa.schema([(_ID, pa.utf8()), (_NUMBER, pa.int64())])


@dataclass(frozen=True)
class IdFiles:
    """The folders in which several processes wrote the ids of a node table (`write_ids`), each in so many buckets."""

    folders: tuple[Path, ...]
    buckets: int


class NodeIds:
    """The ids of a node table: in memory, or in files by hash, which other processes may have written."""

    def __init__(self, nodes: TableData, memory: int | None, written: IdFiles | None = None) -> None:
        self._nodes = nodes
        self.memory = memory
        self.buckets = bucket_count(nodes, memory) if written is None else written.buckets
        self.column = nodes.column("id") if self.buckets == 1 else None
        """All ids; None if they are written to files."""
        self._written = written
        self._spilled: dict[Path, Path] = {}

    def batches(self, bucket: int, folder: Path) -> Iterator[pa.RecordBatch]:
        """Yield the ids of a bucket and their row numbers. They are written to files below a folder, once."""
        if self._written is not None:
            for path in self._written.folders:
                yield from _batches(path, bucket)
            return
        if folder not in self._spilled:
            self._spilled[folder] = folder / f"nodes{len(list(folder.iterdir()))}"
            write_ids(self._nodes, self._spilled[folder], self.buckets, self.memory)
        yield from _batches(self._spilled[folder], bucket)


def bucket_count(nodes: TableData, memory: int | None) -> int:
    """Return the number of buckets of the ids of a table; 1 if they fit into memory."""
    if memory is None:
        return 1
    size = 2 * nodes.column_bytes("id") + _ROW_BYTES * nodes.row_count
    return max(1, min(_BUCKETS_MAX, -(-size // memory)))


def write_ids(nodes: TableData, folder: Path, buckets: int, memory: int | None, rows: range | None = None) -> None:
    """Write the ids of all rows, or of a range of rows, and their numbers to a new folder, by hash."""
    chunks = stream_rows(nodes, "id", rows)
    _spill(_parts(chunks, memory), folder, buckets, 0 if rows is None else rows.start)


def stream_rows(data: TableData, name: str, rows: range | None) -> Iterator[pa.Array]:
    """Yield a column of a range of rows, chunk by chunk; of all rows if there is no range."""
    if rows is None:
        yield from data.stream(name)
        return
    starts = np.cumsum([0, *(data.rows_in(at) for at in range(len(data.fragments)))])
    first = int(np.searchsorted(starts, rows.start, side="right")) - 1
    last = int(np.searchsorted(starts, rows.stop, side="left"))
    end = int(starts[first])
    for chunk in data.stream(name, range(first, last)):
        begin, end = end, end + len(chunk)
        if end > rows.start and begin < rows.stop:
            skipped = max(rows.start - begin, 0)
            yield chunk.slice(skipped, min(end, rows.stop) - begin - skipped)


def number_ends(
    edges: TableData, names: Sequence[str], ids: NodeIds, numbers: I32, scratch: Path, rows: range | None = None
) -> None:
    """Set the row numbers of the nodes at one end of all edges, or of a range of them; at both, one after the other.

    Intermediate files are written below `scratch`.
    """
    parts = _parts((chunk for name in names for chunk in stream_rows(edges, name, rows)), ids.memory)
    if ids.column is not None:
        missing = _from_memory(parts, ids.column, numbers)
    else:
        add_note(f"ends looked up in {ids.buckets} parts")
        missing = _from_files(parts, ids, numbers, scratch)
    if missing:
        raise dangling(missing, edges)


def _from_memory(parts: Iterator[pa.ChunkedArray], ids: pa.Array, numbers: I32) -> int:
    """Look the ends up in a column; return the number of ends that do not exist."""
    end = missing = 0
    for part in parts:
        places = interruptible(partial(pc.index_in, part, value_set=ids), len(part) + len(ids))
        missing += places.null_count
        begin, end = end, end + len(part)
        if not missing:
            numbers[begin:end] = places.to_numpy()
    return missing


def _from_files(parts: Iterator[pa.ChunkedArray], ids: NodeIds, numbers: I32, scratch: Path) -> int:
    """Look the ends up bucket by bucket; return the number of ends that do not exist."""
    folder = scratch / "ends"
    _spill(parts, folder, ids.buckets, 0)
    missing = 0
    for bucket in range(ids.buckets):
        known = pa.Table.from_batches(ids.batches(bucket, scratch), _SCHEMA)
        rows = known[_NUMBER].to_numpy()
        for part in _grouped(_batches(folder, bucket), ids.memory):
            find = partial(pc.index_in, part[_ID], value_set=known[_ID])
            places = interruptible(find, part.num_rows + known.num_rows)
            missing += places.null_count
            if not missing:
                numbers[part[_NUMBER].to_numpy()] = rows[places.to_numpy()]
    shutil.rmtree(folder)
    return missing


def _spill(parts: Iterator[pa.ChunkedArray], folder: Path, buckets: int, first: int) -> None:
    """Write ids and their row numbers, from `first` on, to a file per bucket in a new folder."""
    folder.mkdir()
    with ExitStack() as stack:
        paths = [folder / str(bucket) for bucket in range(buckets)]
        writers = [stack.enter_context(pa.ipc.new_file(str(path), _SCHEMA)) for path in paths]
        for part in parts:
            for array in part.chunks:
                _add(writers, array, first)
                first += len(array)


def _add(writers: list[Any], ids: pa.Array, first: int) -> None:
    buckets = crc32_texts(ids, HASHED_BYTES) % np.uint32(len(writers))
    order = np.argsort(buckets, kind="stable")
    rows = pa.record_batch([ids.take(pa.array(order)), pa.array(order + first)], schema=_SCHEMA)
    ends = np.searchsorted(buckets[order], np.arange(len(writers) + 1))
    for writer, begin, end in zip(writers, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if end > begin:
            writer.write_batch(rows.slice(begin, end - begin))


def _batches(folder: Path, bucket: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a bucket."""
    with pa.OSFile(str(folder / str(bucket))) as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _parts(chunks: Iterator[pa.Array], memory: int | None) -> Iterator[pa.ChunkedArray]:
    """Combine chunks to parts: a lookup hashes all ids for each part."""
    waiting: list[pa.Array] = []
    rows = size = 0
    for chunk in chunks:
        waiting.append(chunk)
        rows, size = rows + len(chunk), size + chunk.nbytes
        if rows >= tuning.current.adjacency_ends_rows or (memory is not None and size >= memory // 4):
            yield pa.chunked_array(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.chunked_array(waiting)


def _grouped(batches: Iterator[pa.RecordBatch], memory: int | None) -> Iterator[pa.Table]:
    """Combine batches to tables of bounded size: a lookup hashes the ids of the bucket for each table."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if memory is not None and size >= memory // 2:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
