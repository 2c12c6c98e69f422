"""Search structures of a bulk load that its workers build.

Fragments get their ids when they are committed, so this is a job after the commit. The driver divides the rows that no
segment contains into a few segments per structure; each task computes one and writes it to the disk cache, which the
workers share: the folder of the graph, or for a graph on an object store the cache folder of the machine if they run on
it. The driver builds what is then still missing (`operations.derived`): structures that are not divided, small ones,
those of a task that failed, and all structures of a graph on an object store if the workers are other machines.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from omnigraph.engine.cache.build_turn import build_turn
from omnigraph.engine.cache.segments import SegmentPart, divide_missing, use_written_segments, write_segment
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.errors import OmniGraphError
from omnigraph.machine_memory import MemoryBudget
from omnigraph.operations.derived import large_tables, reason_of, segment_builder, segment_structures
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.pipeline.runner import Runner
from omnigraph.schema.identity import SchemaIR, catalog_of
from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.store_pool import pooled_store


@dataclass(frozen=True)
class SegmentJob:
    """What all tasks need: the tables, the disk cache, the schema and the memory of one task."""

    location: Location
    folder: Path
    schema: str
    memory: MemoryBudget | None


@dataclass(frozen=True)
class SegmentWork:
    """One segment of a structure."""

    table_key: str
    pin: tuple[str, int, str]
    kind: str
    column: str
    part: SegmentPart


def build_segment(job: SegmentJob, work: SegmentWork) -> str | None:
    """Compute and write one segment; return the reason if this fails."""
    cache = DataCache(0, job.folder, memory=job.memory)
    data = cache.table(pooled_store(job.location).open(*work.pin))
    catalog = catalog_of(SchemaIR.from_json(json.loads(job.schema)))
    type_ = next(one for one in catalog.tables() if one.table_key == work.table_key)
    try:
        write_segment(data, work.column, segment_builder(work.kind, type_, data, work.column), work.part)
    except (OmniGraphError, OSError, MemoryError, pa.ArrowException) as error:
        return reason_of(error)
    return None


def build_segments(context: GraphContext, runner: Runner, result: LoadResult) -> LoadResult:
    """Build the search structures of the tables to which a load added many rows, on the workers of the load.

    The load is published, so an error is a note of its result. The driver builds what is missing.
    """
    keys, folder = large_tables(result), shared_folder(context, runner)
    if not keys or folder is None or runner.parallelism < 2:
        return result
    snapshot = context.repository.snapshot(result.branch, result.commit_id)
    job = SegmentJob(context.repository.location, folder, snapshot.schema.ir, task_memory(context, runner))
    work: list[SegmentWork] = []
    written: list[Callable[[], None]] = []
    try:
        with build_turn(context.cache.turn_folder):
            for key in keys:
                for data, column, builder in segment_structures(context, snapshot, key):
                    parts = divide_missing(data, column, builder, runner.parallelism)
                    pin = snapshot.tables[key].open_args
                    work += [SegmentWork(key, pin, builder.kind, column, part) for part in parts]
                    if parts:
                        written.append(partial(use_written_segments, data, column, builder, parts[-1].number))
            try:
                reasons = dict.fromkeys(filter(None, runner.run("index", build_segment, job, work)))
            except OmniGraphError as error:
                reasons = {reason_of(error): None}
            for use in written:
                use()
    except (OmniGraphError, OSError, MemoryError, pa.ArrowException) as error:
        reasons = {reason_of(error): None}
    notes = [f"the workers did not build all search structures ({reason})" for reason in reasons]
    return replace(result, notes=(*result.notes, *notes))


def shared_folder(context: GraphContext, runner: Runner) -> Path | None:
    """Return the disk cache if the workers can write to it; None if there is none or if it is of this machine only."""
    in_graph = context.repository.location.path is not None
    return context.cache.keep_in if in_graph or runner.on_this_machine else None


def task_memory(context: GraphContext, runner: Runner) -> MemoryBudget | None:
    """The memory of one task: all tasks together use the budget of the graph."""
    budget = context.cache.memory
    return None if budget is None else MemoryBudget(budget.total // runner.parallelism)
