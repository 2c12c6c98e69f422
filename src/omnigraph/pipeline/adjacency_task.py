"""Adjacency of a bulk load that its workers build.

The driver allocates the arrays of the ends of edges, and tasks write ranges of them and sorted runs of pairs. From
samples of the runs the driver chooses ranges of pairs, which tasks merge; tasks then copy the neighbours to their
places (`engine.adjacency.parallel_build`). The driver handles samples, lengths and checksums of blocks, never edges. It
publishes the entries of the disk cache by renames, after all tasks have ended, so that no reader sees a part of one.

Intermediate files are in the folder of the unfinished entry, which the driver removes, or, if it dies, a later writer
of the disk cache. If a task fails, nothing is published and the driver builds the structures (`operations.derived`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import EdgeAdjacency
from omnigraph.engine.adjacency.edge_ends import IdFiles, bucket_count
from omnigraph.engine.adjacency.parallel_build import (
    DIRECTIONS,
    ENDS,
    ENDS_KIND,
    KINDS,
    MergedRange,
    NumberedRange,
    PairRange,
    Part,
    Tables,
    divide_pairs,
    merge_range,
    number_range,
    pairs_at_once,
    parts_of,
    place_range,
    remove,
    rows_at_once,
    write_node_ids,
)
from omnigraph.engine.cache.build_turn import build_turn
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.shared_arrays import BlockSums, SharedArray
from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.machine_memory import MemoryBudget
from omnigraph.operations.derived import large_tables, missing_adjacency, reason_of
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.segment_task import shared_folder, task_memory
from omnigraph.query.plan.ir import Direction
from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.store_pool import pooled_store
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot

_Pin = tuple[str, int, str]


@dataclass(frozen=True)
class AdjacencyJob:
    """What all tasks need: the tables (edges, sources, targets), the memory of a task and a folder for files."""

    location: Location
    pins: tuple[_Pin, _Pin, _Pin]
    memory: MemoryBudget | None
    scratch: Path

    @property
    def build_bytes(self) -> int | None:
        """The memory of the buffers of a task; None does not limit them."""
        return None if self.memory is None else self.memory.build_bytes

    def tables(self) -> Tables:
        """Open the tables."""
        cache = DataCache(0, memory=self.memory)
        edges, sources, targets = (cache.table(pooled_store(self.location).open(*pin)) for pin in self.pins)
        return edges, sources, targets


@dataclass(frozen=True)
class IdsWork:
    """A range of the nodes at one end whose ids are written to files."""

    end: str
    rows: range
    buckets: int


@dataclass(frozen=True)
class NumberJob:
    """The arrays of the ends of edges, and the files of the ids of nodes that do not fit into memory."""

    of: AdjacencyJob
    arrays: Mapping[str, SharedArray]
    ids: Mapping[str, IdFiles]


@dataclass(frozen=True)
class MergeJob:
    """The sorted runs by direction."""

    of: AdjacencyJob
    runs: Mapping[Direction, tuple[Path, ...]]


@dataclass(frozen=True)
class PlaceJob:
    """The arrays of the neighbours, by direction and name, and the files of their parts."""

    arrays: Mapping[tuple[Direction, str], SharedArray]
    parts: Mapping[tuple[Direction, str], Sequence[Part]]


@contextmanager
def _reported() -> Iterator[None]:
    """Raise errors of the disk and of memory as errors that a runner returns to the driver."""
    try:
        yield
    except (OSError, MemoryError, pa.ArrowException) as error:
        raise StorageError(reason_of(error)) from error


def write_task_ids(job: AdjacencyJob, work: IdsWork) -> Path:
    """Write the ids of a range of nodes; return their folder."""
    with _reported():
        _, sources, targets = job.tables()
        nodes = sources if work.end == "src" else targets
        return write_node_ids(nodes, work.rows, work.buckets, job.build_bytes, job.scratch)


def number_edges(job: NumberJob, rows: range) -> NumberedRange:
    """Write the ends of a range of edges, and their pairs as sorted runs."""
    with _reported():
        return number_range(job.of.tables(), rows, job.arrays, job.ids, job.of.build_bytes, job.of.scratch)


def merge_pairs(job: MergeJob, work: tuple[Direction, PairRange]) -> MergedRange:
    """Sort a range of the pairs of a direction, and write its neighbours, offsets and loops."""
    direction, pairs = work
    with _reported():
        return merge_range(job.runs[direction], pairs, job.of.scratch)


def place_values(job: PlaceJob, work: tuple[Direction, str, range]) -> BlockSums:
    """Copy a range of an array of a direction to its place."""
    direction, name, values = work
    with _reported():
        return place_range(job.arrays[direction, name], values, job.parts[direction, name])


def build_adjacency(context: GraphContext, runner: Runner, result: LoadResult) -> LoadResult:
    """Build the neighbours and ends of the edge types to which a load added many edges, on the workers of the load.

    The load is published, so an error is a note of its result. The driver builds what is missing.
    """
    keys = [key for key in large_tables(result) if TableKey.parse(key).kind == "edge"]
    if not keys or shared_folder(context, runner) is None or runner.parallelism < 2:
        return result
    snapshot = context.repository.snapshot(result.branch, result.commit_id)
    notes: list[str] = []
    for key in keys:
        try:
            with build_turn(context.cache.turn_folder):
                adjacency = missing_adjacency(context, snapshot, key)
                if adjacency is not None and adjacency.edges.row_count >= tuning.current.adjacency_divided_edges_min:
                    _Build(context, runner, snapshot, adjacency).run()
        except (OmniGraphError, OSError, MemoryError, pa.ArrowException) as error:
            notes.append(f"the workers did not build the neighbours of '{key}' ({reason_of(error)})")
    return replace(result, notes=(*result.notes, *notes))


class _Build:
    """The jobs that build the adjacency of one edge table."""

    def __init__(self, context: GraphContext, runner: Runner, snapshot: Snapshot, adjacency: EdgeAdjacency) -> None:
        self._location = context.repository.location
        self._pins = {table.open_args[0]: table.open_args for table in snapshot.tables.values()}
        self._runner = runner
        self._adjacency = adjacency
        self._memory = task_memory(context, runner)

    def run(self) -> None:
        """Run the jobs and publish the entries."""
        with ExitStack() as stack:
            # The ends are published first: a direction without them cannot follow later commits.
            writers = {kind: stack.enter_context(self._adjacency.writing(kind)) for kind in (*DIRECTIONS, "ends")}
            sources, targets = self._adjacency.node_tables
            edges, src, dst = (self._pins[data.folder] for data in (self._adjacency.edges, sources, targets))
            job = AdjacencyJob(self._location, (edges, src, dst), self._memory, writers["ends"].scratch())
            numbered = self._number(job, writers["ends"])
            merged = self._merge(job, numbered)
            self._place(merged, writers)
        self._adjacency.use_written(("ends", *DIRECTIONS))

    def _number(self, job: AdjacencyJob, writer: EntryWriter) -> list[NumberedRange]:
        rows = self._adjacency.edges.row_count
        arrays = {name: writer.share(name, ENDS_KIND, rows) for name in ENDS}
        ids = self._ids(job)
        work = list(arrays["src"].ranges(rows_at_once(job.build_bytes, rows, self._runner.parallelism)))
        done = list(self._runner.run("ends", number_edges, NumberJob(job, arrays, ids), work))
        for name, array in arrays.items():
            writer.finish(array, [one.ends[name] for one in done])
        for files in ids.values():
            remove([folder.parent for folder in files.folders])
        return done

    def _ids(self, job: AdjacencyJob) -> dict[str, IdFiles]:
        """Write the ids of nodes that do not fit into the memory of a task; return their files by end."""
        found: dict[str, IdFiles] = {}
        tables: dict[str, TableData] = dict(zip(ENDS, self._adjacency.node_tables, strict=True))
        for end, nodes in tables.items():
            buckets = bucket_count(nodes, job.build_bytes)
            if buckets == 1:
                continue
            if end == "dst" and self._adjacency.joins_one_table:
                found[end] = found["src"]
                continue
            step = -(-nodes.row_count // self._runner.parallelism)
            rows = range(nodes.row_count)
            work = [IdsWork(end, rows[first : first + step], buckets) for first in rows[::step]]
            found[end] = IdFiles(tuple(self._runner.run("ends", write_task_ids, job, work)), buckets)
        return found

    def _merge(self, job: AdjacencyJob, numbered: Sequence[NumberedRange]) -> dict[Direction, list[MergedRange]]:
        rows, parallelism = self._adjacency.edges.row_count, self._runner.parallelism
        ranges = max(min(parallelism, rows // tuning.current.segment_part_rows_min), 1)
        ranges = max(ranges, -(-rows // pairs_at_once(job.build_bytes)))
        runs = {direction: [run for one in numbered for run in one.runs[direction]] for direction in DIRECTIONS}
        counts = dict(zip(DIRECTIONS, (nodes.row_count for nodes in self._adjacency.node_tables), strict=True))
        work = [
            (direction, pairs)
            for direction in DIRECTIONS
            for pairs in divide_pairs([run.sample for run in runs[direction]], ranges, counts[direction])
        ]
        files = {direction: tuple(run.path for run in runs[direction]) for direction in DIRECTIONS}
        done = list(self._runner.run("neighbours", merge_pairs, MergeJob(job, files), work))
        remove(list({path.parent for paths in files.values() for path in paths}))
        return {
            direction: [one for (of, _), one in zip(work, done, strict=True) if of == direction]
            for direction in DIRECTIONS
        }

    def _place(self, merged: Mapping[Direction, Sequence[MergedRange]], writers: Mapping[str, EntryWriter]) -> None:
        arrays: dict[tuple[Direction, str], SharedArray] = {}
        parts: dict[tuple[Direction, str], Sequence[Part]] = {}
        for direction in DIRECTIONS:
            for name, kind in KINDS.items():
                parts[direction, name], length = parts_of(merged[direction], name)
                arrays[direction, name] = writers[direction].share(name, kind, length)
        work = [
            (*of, values)
            for of, array in arrays.items()
            for values in array.ranges(-(-array.length // self._runner.parallelism))
        ]
        done = list(self._runner.run("neighbours", place_values, PlaceJob(arrays, parts), work))
        for of, array in arrays.items():
            sums = [one for unit, one in zip(work, done, strict=True) if unit[:2] == of]
            writers[of[0]].finish(array, sums)
