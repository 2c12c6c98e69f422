"""Spark DataFrames as the input of a load: rows pass from Spark to Python once and are staged in the workers.

Each partition is a split of the input. The task functions that decode, check and write rows are those of file loads.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.operations.load.load_request import LoadRequest, check_missing, check_mode
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.operations.store_statistics import store_load_statistics
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import Watch
from omnigraph.pipeline.stage_task import StagedSplit, stage_rows
from omnigraph.pipeline.staged_input import RowSource
from omnigraph.spark.arrow_interop import restore_unsigned
from omnigraph.spark.cancellable_action import run_action
from omnigraph.spark.runner import SparkRunner, prepare_worker
from omnigraph.storage.files.blob_sources import BlobSources
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ANSWER = pa.schema([("answer", pa.binary())])
_SPLITS_MAX = 1 << 20
"""Maximum number of partitions of a DataFrame: splits are numbered across all DataFrames."""


def is_frame(data: Any) -> bool:
    """True for a Spark DataFrame, classic or of Spark Connect."""
    return type(data).__module__.startswith("pyspark.sql") and type(data).__name__ == "DataFrame"


def session_of(frames: Mapping[str, Any]) -> SparkSession:
    """Return the common session of some DataFrames."""
    sessions = [frame.sparkSession for frame in frames.values()]
    if any(session is not sessions[0] for session in sessions):
        raise InputError("the DataFrames belong to several Spark sessions", hint="load them one after the other")
    found: SparkSession = sessions[0]
    return found


def frame_source(frames: Mapping[str, DataFrame], watch: Watch | None = None) -> RowSource:
    """Return a row source of DataFrames by type name; their columns are named like those of any loaded table."""
    spark = session_of(frames)

    def read(job: Job) -> Iterator[StagedSplit]:
        for number, (name, frame) in enumerate(frames.items()):
            task = _StageFrame(pickle.dumps(job), name, number * _SPLITS_MAX)
            parts = frame if job.at_once is None else frame.coalesce(job.at_once)
            answers = parts.mapInArrow(task, "answer binary")
            table = run_action(spark, f"read {name}", answers.toArrow, watch=watch)
            found = [pickle.loads(answer) for answer in table["answer"].to_pylist()]  # noqa: S301 (made by the tasks of this job)
            yield from sorted(found, key=lambda staged: staged.split)

    return RowSource(0, read)


class _StageFrame:
    """Stages the rows of one partition in a Spark task."""

    def __init__(self, job: bytes, type_name: str, first: int) -> None:
        self._job = job
        self._type_name = type_name
        self._first = first

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one pickled `StagedSplit` for the partition."""
        from pyspark import TaskContext  # noqa: PLC0415 (PySpark is optional)

        prepare_worker()
        context = TaskContext.get()
        number = self._first + (context.partitionId() if context is not None else 0)
        job: Job = pickle.loads(self._job)  # noqa: S301
        rows = restore_unsigned(batches, self._type_name, job.catalog)
        staged = stage_rows(job, number, self._type_name, rows)
        yield pa.record_batch([pa.array([pickle.dumps(staged)], pa.binary())], schema=_ANSWER)


def load(
    spark: SparkSession,
    uri: str,
    *,
    nodes: Mapping[str, DataFrame] | None = None,
    edges: Mapping[str, DataFrame | tuple[DataFrame, str, str]] | None = None,
    mode: str = "merge",
    missing: str = "keep",
    branch: str = MAIN,
    from_branch: str | None = None,
    actor: str | None = None,
    message: str | None = None,
    job_id: str | None = None,
    embed: bool = True,
    blob_sources: Sequence[str | os.PathLike[str]] = (),
    environ: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> LoadResult:
    """Load DataFrames into a graph as one commit, on their session; see `Graph.load` for the options.

    `edges` maps an edge type to a DataFrame, or to a DataFrame and the names of the columns with the source and target
    ids. With `from_branch`, a missing branch is created from that one. `blob_sources` has the meaning it has in
    `omnigraph.open`.
    """
    environ = os.environ if environ is None else environ
    frames: dict[str, DataFrame] = dict(nodes or {})
    for name, given in (edges or {}).items():
        if name in frames:
            raise InputError(
                f"'{name}' is given both as a node type and as an edge type", hint="load them one after the other"
            )
        frames[name] = _with_ends(*given) if isinstance(given, tuple) else given
    if not frames:
        raise InputError("there is no DataFrame to load", hint="give nodes, edges, or both")
    repository = Repository.open(uri, environ=environ)
    options = WriteOptions(branch=branch, actor=actor, message=message, idempotency_key=job_id)
    request = LoadRequest(
        check_mode(mode),
        options,
        check_missing(missing),
        from_branch=from_branch,
        embed=embed,
        fetch=BlobSources(blob_sources, environ) if blob_sources else None,
        environ=environ,
    )
    result = load_source(repository, SparkRunner(spark, watch), frame_source(frames, watch), request)
    store_load_statistics(repository, result)
    return result


def _with_ends(frame: DataFrame, source: str, target: str) -> DataFrame:
    return frame.withColumnsRenamed({source: "from", target: "to"})
