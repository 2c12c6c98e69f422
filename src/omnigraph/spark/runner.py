"""Runs the tasks of a job on Spark: one task of Spark for each piece of work, one action for all of them.

Spark carries descriptions of work and of results, never rows. A task of Spark may be tried again; what is wrong with
the data will be wrong again, so that is handed back as an answer and raised by the driver, as it would be in a loop.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.pipeline.runner import Watch, give_back_memory
from omnigraph.spark.cancellable_action import run_action
from omnigraph.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Job = TypeVar("Job")
Work = TypeVar("Work")
Done = TypeVar("Done")

_ATTEMPTS_ON_STORAGE = 3
_ANSWER = pa.schema([("place", pa.int64()), ("answer", pa.binary())])
_ANSWER_DDL = "place long, answer binary"
_ONE_THREAD = ("LANCE_CPU_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS")
"""Spark runs a task per core, so a task takes no second one."""


class SparkRunner:
    """Runs tasks on the session it is given, which stays the caller's."""

    def __init__(self, spark: SparkSession, watch: Watch | None = None) -> None:
        self._spark = spark
        self._watch = watch

    @cached_property
    def parallelism(self) -> int:
        """How many tasks run at a time."""
        if not is_connect(self._spark):
            return int(self._spark.sparkContext.defaultParallelism)
        # A server does not say, but it cuts a range into as many parts.
        parts = self._spark.range(1 << 16).selectExpr("spark_partition_id() as part").distinct()
        return len(run_action(self._spark, "parallelism", parts.collect))

    def run(
        self,
        step: str,
        task: Callable[[Job, Work], Done],
        job: Job,
        work: Sequence[Work],
        *,
        at_once: int | None = None,
    ) -> Iterator[Done]:
        """One result for each piece of work, in its order; see `pipeline.runner`."""
        from pyspark import cloudpickle  # noqa: PLC0415

        if not work:
            return
        count = len(work)
        # A function of a script has no module that a worker could import, so it travels itself.
        dumps: Callable[[Any], bytes] = cloudpickle.dumps
        packed = _Packed(dumps((task, job)), [pickle.dumps(piece) for piece in work])
        tasks = min(count, at_once or count)
        answers = self._spark.range(0, count, 1, tasks).mapInArrow(packed, _ANSWER_DDL)
        table = run_action(self._spark, step, answers.toArrow, total=tasks, watch=self._watch)
        found = dict(zip(table["place"].to_pylist(), table["answer"].to_pylist(), strict=True))
        assert len(found) == count, "each piece of work is answered once"
        for place in range(count):
            answer = pickle.loads(found[place])  # noqa: S301 (made by the tasks of this very job)
            if isinstance(answer, _Raised):
                raise answer.error
            yield answer


class _Raised:
    """An error as an answer."""

    def __init__(self, error: OmniGraphError) -> None:
        self.error = error


class _Packed:
    """The work on its way to the workers, in bytes, so that each task unpacks no more than its own."""

    def __init__(self, task_and_job: bytes, work: list[bytes]) -> None:
        self._task_and_job = task_and_job
        self._work = work

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What a task of Spark does."""
        use_one_thread()
        task, job = pickle.loads(self._task_and_job)  # noqa: S301
        for batch in batches:
            for place in batch.column(0).to_pylist():
                answer = _answer(task, job, pickle.loads(self._work[place]))  # noqa: S301
                give_back_memory()
                yield pa.record_batch([pa.array([place], pa.int64()), pa.array([answer], pa.binary())], schema=_ANSWER)


def _answer(task: Callable[[Any, Any], Any], job: Any, piece: Any) -> bytes:
    try:
        return pickle.dumps(task(job, piece))
    except OmniGraphError as error:
        if isinstance(error, StorageError) and _attempt() < _ATTEMPTS_ON_STORAGE - 1:
            raise
        return pickle.dumps(_Raised(error))


def _attempt() -> int:
    from pyspark import TaskContext  # noqa: PLC0415

    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0


def use_one_thread() -> None:
    """Keep the libraries of a worker, which it has not loaded yet, from taking more than the one core it has."""
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
