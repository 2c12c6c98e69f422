"""Steps that build the adjacency of an edge table in several processes: a sort in three steps.

1. `number_range`: the ends of a range of edges are looked up and written to their range of the entry of the ends. The
   pairs of node numbers, in both directions, are written to sorted files, the runs.
2. `merge_range`: a range of pairs is read from every run and sorted. Its neighbours, offsets and loops are written to
   files. The bounds of the ranges come from samples of the runs (`divide_pairs`), so that ranges have about the same
   number of pairs, and the edges of one node can be in several ranges.
3. `place_range`: once it is known how many neighbours each range has, the files are copied to their places in the
   arrays of the entry, by ranges of whole blocks (`shared_arrays`).

Each step needs memory for the rows or pairs of one range, beside the ids of the nodes (`edge_ends`). The result is the
same as that of one process.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import oriented
from omnigraph.engine.adjacency.csr import I32, SORTED_EDGE_BYTES, U64, distinct, high, low, pack
from omnigraph.engine.adjacency.edge_ends import IdFiles, NodeIds, number_ends, write_ids
from omnigraph.engine.cache.ranged_arrays import AnyArray
from omnigraph.engine.cache.shared_arrays import BlockSums, SharedArray
from omnigraph.engine.cache.table_cache import Numbers, TableData
from omnigraph.engine.exec.native_calls import batches, interruptible
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan.ir import Direction

ENDS = ("src", "dst")
ENDS_KIND = np.dtype(np.int32)
DIRECTIONS: tuple[Direction, ...] = ("out", "in")
KINDS: Mapping[str, np.dtype[Any]] = {
    "targets": np.dtype(np.int32),
    "offsets": np.dtype(np.int64),
    "loops": np.dtype(np.int64),
}
"""The arrays of the neighbours in one direction."""
Tables = tuple[TableData, TableData, TableData]
"""The tables of the edges, of the sources and of the targets."""
_PAIR = np.dtype(np.uint64)
_ENDS_BYTES = 16
"""Memory per row of a range of edges whose ends are looked up."""


@dataclass(frozen=True)
class Run:
    """A file of sorted pairs, and some of its pairs in equal distances."""

    path: Path
    sample: U64


@dataclass(frozen=True)
class NumberedRange:
    """The result of `number_range`: the checksums of the ends, and the runs by direction."""

    ends: Mapping[str, BlockSums]
    runs: Mapping[Direction, tuple[Run, ...]]


@dataclass(frozen=True)
class PairRange:
    """Pairs from `first` to before `stop`, and the nodes whose offsets are computed with them."""

    first: int
    stop: int
    nodes: range


@dataclass(frozen=True)
class MergedRange:
    """The result of `merge_range`: the files of the arrays of a range, and their lengths."""

    folder: Path
    lengths: Mapping[str, int]


def rows_at_once(memory: int | None, rows: int, processes: int) -> int:
    """Return how many edges a task numbers: an equal share, unless their ends exceed the memory."""
    share = -(-rows // processes)
    return share if memory is None else min(share, max(memory // _ENDS_BYTES, 1))


def pairs_at_once(memory: int | None) -> int:
    """Return how many pairs are sorted at a time."""
    most = tuning.current.adjacency_sorted_edges
    return most if memory is None else min(most, max(memory // SORTED_EDGE_BYTES, 1))


def write_node_ids(nodes: TableData, rows: range, buckets: int, memory: int | None, scratch: Path) -> Path:
    """Write the ids of a range of nodes to a new folder, by hash; return the folder."""
    folder = Path(tempfile.mkdtemp(dir=scratch)) / "ids"
    write_ids(nodes, folder, buckets, memory, rows)
    return folder


def number_range(
    tables: Tables,
    rows: range,
    arrays: Mapping[str, SharedArray],
    ids: Mapping[str, IdFiles],
    memory: int | None,
    scratch: Path,
) -> NumberedRange:
    """Write the ends of a range of edges, and their pairs as runs.

    `ids` has the files with the ids of the nodes at an end if they do not fit into memory.
    """
    folder = Path(tempfile.mkdtemp(dir=scratch))
    ends = _numbers(tables, rows, ids, memory, folder)
    sums = {name: arrays[name].write(_blocks(arrays[name], ends[name]), rows.start) for name in ENDS}
    runs: dict[Direction, tuple[Run, ...]] = {}
    for direction in DIRECTIONS:
        near, far = oriented(ends["src"], ends["dst"], direction)
        runs[direction] = tuple(
            _write_run(folder / f"{direction}{some.start}", near[some], far[some], rows.start + some.start)
            for some in batches(len(rows), pairs_at_once(memory))
        )
    return NumberedRange(sums, runs)


def _numbers(
    tables: Tables, rows: range, ids: Mapping[str, IdFiles], memory: int | None, folder: Path
) -> dict[str, I32]:
    edges, sources, targets = tables
    both = np.empty(2 * len(rows), ENDS_KIND)
    src, dst = both[: len(rows)], both[len(rows) :]
    if targets is sources:
        number_ends(edges, ENDS, NodeIds(sources, memory, ids.get("src")), both, folder, rows)
    else:
        # The ids of two tables are not in memory at the same time.
        number_ends(edges, ("src",), NodeIds(sources, memory, ids.get("src")), src, folder, rows)
        number_ends(edges, ("dst",), NodeIds(targets, memory, ids.get("dst")), dst, folder, rows)
    return {"src": src, "dst": dst}


def _blocks(array: SharedArray, values: AnyArray) -> Iterator[AnyArray]:
    """Divide values into parts of whole blocks."""
    step = max(tuning.current.batch_values // array.block, 1) * array.block
    for some in batches(len(values), step):
        yield values[some]


def _write_run(path: Path, near: I32, far: I32, number: int) -> Run:
    """Sort pairs and write them to a file. The number of the run determines the first pair of its sample."""
    pairs = interruptible(lambda: distinct(pack(near, far)), len(near))
    path.write_bytes(pairs.data)
    step = tuning.current.adjacency_sample_pairs
    # Samples that begin with the first pair of every run are close together, since the runs are alike: a range between
    # two such groups would have a share of all pairs.
    first = int(np.random.default_rng(number).integers(step))
    return Run(path, pairs[first::step].copy())


def divide_pairs(samples: Sequence[U64], ranges: int, count: int) -> list[PairRange]:
    """Divide the pairs of some runs into at most so many ranges of about equal size. There are `count` nodes."""
    every = np.sort(np.concatenate(samples))
    bounds = distinct(every[[len(every) * number // ranges for number in range(1, ranges)]]) if len(every) else every
    stops = [*bounds.tolist(), count << 32]
    firsts = [0, *stops[:-1]]
    # A range has the offsets of the nodes that begin in it: a node whose edges continue from the range before does not.
    begins = [0, *((first >> 32) + 1 for first in firsts[1:])]
    ends = [*begins[1:], count + 1]
    return [PairRange(first, stop, range(*of)) for first, stop, *of in zip(firsts, stops, begins, ends, strict=True)]


def merge_range(runs: Sequence[Path], of: PairRange, scratch: Path) -> MergedRange:
    """Sort a range of the pairs of all runs; write its neighbours, offsets in the range, and loops."""
    parts = [np.zeros(0, np.uint64), *(_slice(path, of) for path in runs)]
    rows = sum(map(len, parts))
    pairs = interruptible(partial(_distinct_of, parts), rows)
    folder = Path(tempfile.mkdtemp(dir=scratch))
    far = low(pairs)
    loops = far[high(pairs) == far]
    (folder / "targets").write_bytes(far.astype(np.int32).data)
    (folder / "loops").write_bytes(loops.data)
    with (folder / "offsets").open("wb") as file:
        for some in batches(len(of.nodes), tuning.current.batch_values):
            file.write(_offsets(pairs, of.nodes[some]).tobytes())
    return MergedRange(folder, {"targets": len(pairs), "offsets": len(of.nodes), "loops": len(loops)})


def _slice(path: Path, of: PairRange) -> U64:
    """Return the pairs of a run in a range."""
    if not path.stat().st_size:
        return np.zeros(0, np.uint64)
    run = np.memmap(path, _PAIR, "r")
    first, stop = np.searchsorted(run, np.array([of.first, of.stop], np.uint64))
    return np.array(run[first:stop])


def _distinct_of(parts: list[U64]) -> U64:
    every = np.concatenate(parts)
    parts.clear()
    return distinct(every)


def _offsets(pairs: U64, nodes: range) -> Numbers:
    """Return for each node the number of pairs of earlier nodes."""
    first, stop = np.searchsorted(pairs, np.array([nodes.start << 32, nodes.stop << 32], np.uint64)).tolist()
    degrees = np.bincount(high(pairs[first:stop]) - nodes.start, minlength=len(nodes))
    offsets: Numbers = np.cumsum(degrees) - degrees + first
    return offsets


@dataclass(frozen=True)
class Part:
    """A file with consecutive values of an array, the place of its first value, and a number added to all values."""

    path: Path
    first: int
    added: int = 0


def parts_of(merged: Sequence[MergedRange], name: str) -> tuple[list[Part], int]:
    """Return the files of an array, in order, and its length."""
    parts: list[Part] = []
    first = pairs = 0
    for one in merged:
        parts.append(Part(one.folder / name, first, pairs if name == "offsets" else 0))
        first, pairs = first + one.lengths[name], pairs + one.lengths["targets"]
    return parts, first


def place_range(array: SharedArray, values: range, parts: Sequence[Part]) -> BlockSums:
    """Copy a range of an array from the files of its parts."""
    step = max(tuning.current.batch_values // array.block, 1) * array.block
    copied = (_read(array, values[some], parts) for some in batches(len(values), step))
    return array.write(copied, values.start)


def _read(array: SharedArray, values: range, parts: Sequence[Part]) -> AnyArray:
    found = np.empty(len(values), array.kind)
    for part, stop in zip(parts, [*(part.first for part in parts[1:]), array.length], strict=True):
        begin, end = max(values.start, part.first), min(values.stop, stop)
        if begin < end:
            at = (begin - part.first) * array.kind.itemsize
            read = np.fromfile(part.path, array.kind, end - begin, offset=at)
            if len(read) < end - begin:
                raise OSError(f"'{part.path}' is truncated")
            found[begin - values.start : end - values.start] = read + part.added
    return found


def remove(paths: Sequence[Path]) -> None:
    """Remove folders of intermediate files."""
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
