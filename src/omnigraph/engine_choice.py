"""Choice of the executor of bulk operations, and their execution.

There are three executors with equal results. A small input is loaded in memory. A larger one is a job of `pipeline`,
whose tasks run one after the other in this process, in bounded memory, or on Spark. `auto` chooses by size: starting
Spark takes seconds, and on one machine its speedup is limited by the number of cores. A given session, master or remote
selects Spark.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from omnigraph.bulk_options import BulkOptions
from omnigraph.embedding.offline import EmbedReport
from omnigraph.engine import tuning
from omnigraph.engine.ingest.tabular import table_bytes
from omnigraph.engine.statistics.summaries import Samples
from omnigraph.engine.write.fill_vectors import Embedder
from omnigraph.errors import Denied, InputError
from omnigraph.operations.analysis.analyze import Solve
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.load.load import load
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.operations.load.load_result import LoadResult, Reject
from omnigraph.operations.load.record_sources import ExceedsMemory, check_mapping, find_input_files, paths_of
from omnigraph.pipeline.diff import DiffRequest, DiffResult, diff_files
from omnigraph.pipeline.embed import EmbedRequest, embed_lines
from omnigraph.pipeline.export import ExportRequest, ExportResult, export_files
from omnigraph.pipeline.load import UNGUARDED, load_source
from omnigraph.pipeline.memory_source import MemorySource, divide, held_records, memory_bytes
from omnigraph.pipeline.runner import InlineRunner, Progress, Runner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.files.input_files import get_file, inflates_beyond, is_compressed
from omnigraph.storage.files.local_objects import LocalObjects
from omnigraph.storage.files.location import check_path
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository

if TYPE_CHECKING:
    from omnigraph.operations.resolution.resolve import Resolution, ResolveRequest
    from omnigraph.schema.catalog import NodeType

_ROW_BYTES = 100
"""Assumed size of a row."""

_PART_BYTES_MIN = 4 << 20
"""A part of an input is not made smaller to save memory."""

_REJECTS = pa.schema(
    [
        ("source", pa.utf8()),
        ("line", pa.int64()),
        ("type", pa.utf8()),
        ("property", pa.utf8()),
        ("column", pa.utf8()),
        ("rule", pa.utf8()),
        ("reason", pa.utf8()),
        ("record", pa.utf8()),
    ]
)

Finish = Callable[[Runner, LoadResult], LoadResult]
"""Called with the workers and the result of a load; returns the result, perhaps with notes."""
Rejects = list[Reject] | str | os.PathLike[str] | None
"""Destination of wrong records: None if they end the load, a list, or a file."""


def load_data(
    repository: Repository,
    catalogs: CatalogCache,
    data: Any,
    request: LoadRequest,
    bulk: BulkOptions,
    embedder: Embedder,
    samples: Samples | None = None,
    finish: Finish = lambda _, result: result,
) -> LoadResult:
    """Load records, files or DataFrames with the executor that suits their size.

    A load in memory adds samples of large tables to `samples`. `finish` is called after a load on Spark, while its
    workers are available.
    """
    check_mapping(data, request.environ, request.format)
    if _is_guarded(repository, request):
        return _load_guarded(repository, catalogs, data, request, bulk, embedder, samples)
    if isinstance(data, Mapping) and data and any(map(_is_frame, data.values())):
        return _load_frames(repository, data, request, bulk, finish)
    paths = paths_of(data)
    how = _choose(paths, request, bulk)
    creates = request.from_branch is not None and repository.state().find_head(request.options.branch) is None
    if how == "memory":
        held = _parts_of(data, request)
        if held is not None:
            return replace(load_source(repository, InlineRunner(bulk.watch), held, request), branch_created=creates)
        try:
            return load(repository, catalogs, data, request, embedder, samples)
        except ExceedsMemory:
            how = "inline"
    assert paths is not None
    with open_runner(how, bulk, request.environ) as runner:
        most = request.memory if how == "inline" else None
        planned = plan_input(
            paths,
            request.environ,
            runner.parallelism,
            split_bytes=None if most is None else min(tuning.current.split_bytes_max, max(most // 8, _PART_BYTES_MIN)),
            format=request.format,
        )
        result = load_source(repository, runner, FileSource(planned), request)
        if how == "spark":
            result = finish(runner, result)
    return replace(result, branch_created=creates)


def _is_guarded(repository: Repository, request: LoadRequest) -> bool:
    """True if rules for rows and properties limit a load."""
    if request.guard_of is None:
        return False
    branch = request.options.branch
    if repository.state().find_head(branch) is None and request.from_branch is not None:
        branch = request.from_branch
    return request.guard(repository.snapshot(branch)) is not None


def _load_guarded(
    repository: Repository,
    catalogs: CatalogCache,
    data: Any,
    request: LoadRequest,
    bulk: BulkOptions,
    embedder: Embedder,
    samples: Samples | None,
) -> LoadResult:
    """Load under rules for rows and properties. Only the load in memory applies them."""
    frames = isinstance(data, Mapping) and any(map(_is_frame, data.values()))
    if frames or bulk.engine == "spark" or bulk.spark is not None:
        hint = "pass frame.toArrow()" if frames else "load with engine='memory'"
        raise Denied(f"a load on Spark {UNGUARDED}", hint=hint)
    try:
        if _parts_of(data, request) is None:
            return load(repository, catalogs, data, request, embedder, samples)
    except ExceedsMemory:
        pass
    raise Denied(
        f"a load of an input that exceeds the memory {UNGUARDED}",
        hint="load the input in several calls, or raise the memory budget",
    )


def _parts_of(data: Any, request: LoadRequest) -> MemorySource | None:
    """Divide records or tables in memory that are too large to be converted at once; None for another input."""
    most = request.input_bytes_max
    if isinstance(data, MemorySource):
        return data
    if most is None or paths_of(data) is not None:
        return None
    size = memory_bytes(data)
    return divide(data, _part_bytes(request), request.format) if size is not None and size > most else None


def hold_records(data: Any, request: LoadRequest, folder: Path | None) -> AbstractContextManager[Any]:
    """Return a context with the records of an iterator in a form that can be read again; another input unchanged.

    Records that need too much memory are written to files below a folder.
    """
    return held_records(data, request.input_bytes_max, _part_bytes(request), folder)


def _part_bytes(request: LoadRequest) -> int:
    """The size of a part of an input in memory."""
    return max((request.input_bytes_max or 0) // 2, _PART_BYTES_MIN)


def _is_frame(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.")


def _load_frames(
    repository: Repository, data: Mapping[str, Any], request: LoadRequest, bulk: BulkOptions, finish: Finish
) -> LoadResult:
    """Load Spark DataFrames on their own session."""
    from omnigraph.spark.dataframe_input import frame_source, is_frame, session_of  # noqa: PLC0415
    from omnigraph.spark.runner import SparkRunner  # noqa: PLC0415

    if not all(map(is_frame, data.values())):
        raise InputError("Spark DataFrames cannot be mixed with other tables", hint="load them one after the other")
    if request.format.columns or request.format.skip_null_ends:
        raise InputError(
            "the columns of Spark DataFrames cannot be mapped", hint="rename them: frame.withColumnRenamed('a', 'from')"
        )
    if bulk.engine == "memory":
        raise InputError("engine='memory' does not load Spark DataFrames", hint="omit engine, or pass frame.toArrow()")
    runner = SparkRunner(session_of(data), bulk.watch)
    result = load_source(repository, runner, frame_source(data, bulk.watch), request)
    return finish(runner, result)


def export_data(
    repository: Repository,
    snapshot: Snapshot,
    catalog: Catalog,
    request: ExportRequest,
    bulk: BulkOptions,
    environ: Mapping[str, str],
) -> ExportResult:
    """Write a snapshot to files with the runner that suits its size."""
    rows = sum(table.pin.row_count for table in snapshot.tables.values())
    with open_runner(choose_runner(bulk, rows * _ROW_BYTES), bulk, environ) as runner:
        return export_files(repository, runner, snapshot, catalog, request, environ)


def diff_data(
    repository: Repository, request: DiffRequest, bulk: BulkOptions, environ: Mapping[str, str]
) -> DiffResult:
    """Write the changes between two snapshots to files with the runner that suits their size."""
    rows = sum(table.pin.row_count for table in request.after.tables.values())
    with open_runner(choose_runner(bulk, rows * _ROW_BYTES), bulk, environ) as runner:
        return diff_files(repository, runner, request, environ)


def embed_file(source: Path, request: EmbedRequest, bulk: BulkOptions, environ: Mapping[str, str]) -> EmbedReport:
    """Add vectors to a JSONL file with the runner that suits its size. No graph is opened."""
    file = get_file(source)
    with open_runner(choose_runner(bulk, file.size), bulk, environ) as runner:
        return embed_lines(runner, file, request, environ=environ)


def keep_rejects(found: Sequence[Reject], rejects: Rejects) -> None:
    """Write rejects to their destination. A file appears complete, and is written even without rejects."""
    if rejects is None:
        return
    if isinstance(rejects, list):
        rejects += found
        return
    rows = [reject.to_json() for reject in found]
    path = Path(rejects)
    check_path(str(path))
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 (imported only to write Parquet)

        sink = io.BytesIO()
        texts = [{**row, "record": None if row["record"] is None else _json(row["record"])} for row in rows]
        pq.write_table(pa.Table.from_pylist(texts, _REJECTS), sink)
        data = sink.getvalue()
    else:
        data = b"".join(_json(row).encode() + b"\n" for row in rows)
    LocalObjects(path.absolute().parent).write(path.name, data)


def _json(value: Any) -> str:
    # Records given in Python may contain values without a JSON form. They are written as texts.
    return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace").decode()


@contextmanager
def open_runner(how: Literal["inline", "spark"], bulk: BulkOptions, environ: Mapping[str, str]) -> Iterator[Runner]:
    """Open the runner of a job."""
    if how == "inline":
        yield InlineRunner(bulk.watch)
        return
    from omnigraph.spark.runner import SparkRunner  # noqa: PLC0415 (PySpark is optional)
    from omnigraph.spark.session import SessionOptions, open_session  # noqa: PLC0415

    options, session = (bulk.spark, None) if isinstance(bulk.spark, SessionOptions) else (None, bulk.spark)
    if bulk.watch is not None and session is None:
        bulk.watch(Progress("start Spark", 0, 1))
    with open_session(options, spark=session, environ=environ) as opened:
        yield SparkRunner(opened, bulk.watch)


@contextmanager
def solving(repository: Repository, bulk: BulkOptions, environ: Mapping[str, str]) -> Iterator[Solve | None]:
    """Open the solver of whole-graph algorithms; None for arrays in this process."""
    if bulk.engine != "spark":
        yield None
        return
    from omnigraph.spark.algorithms.solver import SparkSolver  # noqa: PLC0415 (PySpark is optional)
    from omnigraph.spark.scans import job_of  # noqa: PLC0415
    from omnigraph.spark.session import session_for  # noqa: PLC0415

    with session_for(bulk.spark, environ) as session:
        yield lambda snapshot, nodes, edges, weight: SparkSolver(
            session, job_of(repository, snapshot), nodes, edges, weight, bulk.watch
        )


def resolve_data(
    repository: Repository,
    snapshot: Snapshot,
    node: NodeType,
    request: ResolveRequest,
    bulk: BulkOptions,
    environ: Mapping[str, str],
) -> Resolution | None:
    """Find nodes of one entity on Spark; None if the table is so small that this process finds them sooner."""
    if choose_runner(bulk, snapshot.tables[node.table_key].pin.row_count * _ROW_BYTES) == "inline":
        return None
    from omnigraph.spark.resolution import resolve_on_spark  # noqa: PLC0415 (PySpark is optional)
    from omnigraph.spark.scans import job_of  # noqa: PLC0415
    from omnigraph.spark.session import session_for  # noqa: PLC0415

    with session_for(bulk.spark, environ) as session:
        return resolve_on_spark(session, job_of(repository, snapshot), node, request, bulk.watch)


def check_engine(bulk: BulkOptions, what: str) -> None:
    """Refuse Spark to a caller who sees a part of the graph."""
    if bulk.engine == "spark" or bulk.spark is not None:
        raise Denied(
            f"{what} on Spark applies no rules for rows and properties, and rules limit what you may see",
            hint="leave out 'engine' and 'spark'",
        )


def choose_runner(bulk: BulkOptions, bytes: int) -> Literal["inline", "spark"]:
    """Choose the runner of a job that reads about this many bytes."""
    if bulk.engine == "spark" or bulk.spark is not None:
        return "spark"
    limits = tuning.current
    if bulk.engine == "memory" or bytes < limits.spark_bytes_min or (os.cpu_count() or 1) < limits.spark_cores_min:
        return "inline"
    return "spark" if find_spec("pyspark") is not None else "inline"


def _choose(paths: list[str] | None, request: LoadRequest, bulk: BulkOptions) -> Literal["memory", "inline", "spark"]:
    if paths is None:
        if bulk.engine == "spark":
            raise InputError(
                "engine='spark' loads only files and Spark DataFrames",
                hint="load records in memory with engine='memory'",
            )
        return "memory"
    files = find_input_files(paths, request.environ, request.format, grouped=False)
    compressed = [file for file in files if is_compressed(file.base)]
    size = sum(map(table_bytes, files)) + sum(file.size * (tuning.current.gzip_ratio - 1) for file in compressed)
    most = tuning.current.memory_load_bytes_max
    in_memory = bulk.engine == "memory" or (bulk.engine == "auto" and bulk.spark is None and size <= most)
    # The size of a compressed file does not bound its content. A file that does not fit in memory is read in parts.
    if in_memory and not any(inflates_beyond(file, most) for file in compressed):
        return "memory"
    return choose_runner(bulk, size)
