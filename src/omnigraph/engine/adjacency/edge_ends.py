"""Row numbers of the nodes at the ends of edges.

The ids of the nodes are held in memory and looked up there. If they do not fit the memory of a build, the ids of nodes
and edges are written to files by the hash of the id, and the files of one hash at a time are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from omnigraph.hashing import crc32_texts

_ROW_BYTES = 40
"""Size of an entry of a hash table, without its text."""
_BUCKETS_MAX = 256
"""Files that are open at a time."""
_ID, _NUMBER = "id", "number"
_SCHEMA = pa.schema([(_ID, pa.utf8()), (_NUMBER, pa.int64())])


class NodeIds:
    """The ids of a node table: in memory, or in files by hash."""

    def __init__(self, nodes: TableData, memory: int | None) -> None:
        self._nodes = nodes
        self.memory = memory
        size = 0 if memory is None else 2 * nodes.column_bytes("id") + _ROW_BYTES * nodes.row_count
        self.buckets = 1 if memory is None else max(1, min(_BUCKETS_MAX, -(-size // memory)))
        self.column = nodes.column("id") if self.buckets == 1 else None
        """All ids; None if they are written to files."""
        self._spilled: dict[Path, _SpilledIds] = {}

    def files(self, folder: Path) -> _SpilledIds:
        """Write the ids to files below a folder, once."""
        if folder not in self._spilled:
            self._spilled[folder] = _spill(self._nodes, "id", folder / f"nodes{len(list(folder.iterdir()))}", self)
        return self._spilled[folder]


def number_ends(edges: TableData, name: str, ids: NodeIds, numbers: I32, scratch: Path) -> None:
    """Set the row numbers of the nodes at one end of all edges. Intermediate files are written below `scratch`."""
    if ids.column is not None:
        missing = _from_memory(edges, name, ids.column, ids.memory, numbers)
    else:
        add_note(f"ends looked up in {ids.buckets} parts")
        missing = _from_files(edges, name, ids, numbers, scratch)
    if missing:
        raise dangling(missing, edges)


def _from_memory(edges: TableData, name: str, ids: pa.Array, memory: int | None, numbers: I32) -> int:
    """Look the ends up in a column; return the number of ends that do not exist."""
    end = missing = 0
    for part in _parts(edges.stream(name), memory):
        places = interruptible(partial(pc.index_in, part, value_set=ids), len(part) + len(ids))
        missing += places.null_count
        begin, end = end, end + len(part)
        if not missing:
            numbers[begin:end] = places.to_numpy()
    return missing


def _from_files(edges: TableData, name: str, ids: NodeIds, numbers: I32, scratch: Path) -> int:
    """Look the ends up bucket by bucket; return the number of ends that do not exist."""
    nodes = ids.files(scratch)
    ends = _spill(edges, name, scratch / name, ids)
    missing = 0
    for bucket in range(ids.buckets):
        known = pa.Table.from_batches(nodes.batches(bucket), _SCHEMA)
        rows = known[_NUMBER].to_numpy()
        for part in _grouped(ends.batches(bucket), ids.memory):
            find = partial(pc.index_in, part[_ID], value_set=known[_ID])
            places = interruptible(find, part.num_rows + known.num_rows)
            missing += places.null_count
            if not missing:
                numbers[part[_NUMBER].to_numpy()] = rows[places.to_numpy()]
    ends.remove()
    return missing


class _SpilledIds:
    """Ids and their row numbers in a file per bucket."""

    def __init__(self, folder: Path, buckets: int) -> None:
        folder.mkdir()
        self._paths = [folder / str(bucket) for bucket in range(buckets)]

    def write(self, parts: Iterator[pa.ChunkedArray]) -> None:
        """Write ids in row order."""
        first = 0
        with ExitStack() as stack:
            writers = [stack.enter_context(pa.ipc.new_file(str(path), _SCHEMA)) for path in self._paths]
            for part in parts:
                for array in part.chunks:
                    self._add(writers, array, first)
                    first += len(array)

    def _add(self, writers: list[Any], ids: pa.Array, first: int) -> None:
        buckets = crc32_texts(ids, HASHED_BYTES) % np.uint32(len(writers))
        order = np.argsort(buckets, kind="stable")
        rows = pa.record_batch([ids.take(pa.array(order)), pa.array(order + first)], schema=_SCHEMA)
        ends = np.searchsorted(buckets[order], np.arange(len(writers) + 1))
        for writer, begin, end in zip(writers, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            if end > begin:
                writer.write_batch(rows.slice(begin, end - begin))

    def batches(self, bucket: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a bucket."""
        with pa.OSFile(str(self._paths[bucket])) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)

    def remove(self) -> None:
        """Remove the files."""
        for path in self._paths:
            path.unlink()


def _spill(data: TableData, name: str, folder: Path, ids: NodeIds) -> _SpilledIds:
    spilled = _SpilledIds(folder, ids.buckets)
    spilled.write(_parts(data.stream(name), ids.memory))
    return spilled


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
    """Combine batches to tables of bounded size."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if memory is not None and size >= memory // 4:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
