"""Runs the tasks of a job on Spark: one Spark task per task input, one action for all of them.

Spark transports descriptions of tasks and of results, never rows. Spark may retry a task. An error in the data would
occur again, so it is returned as a result and raised by the driver, as in a loop.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.pipeline.runner import Done, Job, Task, Watch, Work, give_back_memory
from omnigraph.spark.cancellable_action import run_action
from omnigraph.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS_ON_STORAGE = 3
_ANSWER = pa.schema([("number", pa.int64()), ("answer", pa.binary())])
_ANSWER_DDL = "number long, answer binary"
_ONE_THREAD = ("LANCE_CPU_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS")
"""Variables that limit thread pools: Spark runs one task per core, so a task uses one thread."""
_modules_frozen = 0
"""The number of modules whose objects the garbage collector no longer visits."""


class SparkRunner:
    """Runs tasks on a session that the caller owns."""

    def __init__(self, spark: SparkSession, watch: Watch | None = None) -> None:
        self._spark = spark
        self._watch = watch

    @cached_property
    def parallelism(self) -> int:
        """The number of tasks that run concurrently."""
        if not is_connect(self._spark):
            return int(self._spark.sparkContext.defaultParallelism)
        # A Spark Connect server does not report it, but splits a range into as many partitions.
        parts = self._spark.range(1 << 16).selectExpr("spark_partition_id() as part").distinct()
        return len(run_action(self._spark, "parallelism", parts.collect))

    @cached_property
    def on_this_machine(self) -> bool:
        """True if the master is `local`: the workers are processes of this machine."""
        return not is_connect(self._spark) and str(self._spark.sparkContext.master).startswith("local")

    def run(
        self, step: str, task: Task[Job, Work, Done], job: Job, work: Sequence[Work], *, at_once: int | None = None
    ) -> Iterator[Done]:
        """Run `task` on each input; yield the results in the order of the inputs."""
        from pyspark import cloudpickle  # noqa: PLC0415

        if not work:
            return
        count = len(work)
        # A worker cannot import a function of a script, so the function is pickled by value.
        dumps: Callable[[Any], bytes] = cloudpickle.dumps
        packed = _PackedTasks(dumps((task, job)), [pickle.dumps(item) for item in work])
        tasks = min(count, at_once or count)

        def collect() -> pa.Table:
            return self._spark.range(0, count, 1, tasks).mapInArrow(packed, _ANSWER_DDL).toArrow()

        table = run_action(self._spark, step, collect, total=tasks, watch=self._watch)
        found = dict(zip(table["number"].to_pylist(), table["answer"].to_pylist(), strict=True))
        assert len(found) == count, "each input has one result"
        for number in range(count):
            answer = pickle.loads(found[number])  # noqa: S301 (made by the tasks of this job)
            if isinstance(answer, _RaisedError):
                raise answer.error
            yield answer


class _RaisedError:
    """An error that a task returns as its result."""

    def __init__(self, error: OmniGraphError) -> None:
        self.error = error


class _PackedTasks:
    """The pickled task and its pickled inputs; each Spark task unpickles only its own inputs."""

    def __init__(self, task_and_job: bytes, work: list[bytes]) -> None:
        self._task_and_job = task_and_job
        self._work = work

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the number and pickled result of each input of the Spark task."""
        prepare_worker()
        task, job = pickle.loads(self._task_and_job)  # noqa: S301
        for batch in batches:
            for number in batch.column(0).to_pylist():
                answer = _answer(task, job, pickle.loads(self._work[number]))  # noqa: S301
                give_back_memory()
                yield pa.record_batch([pa.array([number], pa.int64()), pa.array([answer], pa.binary())], schema=_ANSWER)


def _answer(task: Callable[[Any, Any], Any], job: Any, item: Any) -> bytes:
    try:
        return pickle.dumps(task(job, item))
    except OmniGraphError as error:
        if isinstance(error, StorageError) and _attempt() < _ATTEMPTS_ON_STORAGE - 1:
            raise
        return pickle.dumps(_RaisedError(error))


def _attempt() -> int:
    from pyspark import TaskContext  # noqa: PLC0415

    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0


def prepare_worker() -> None:
    """Prepare a Python worker for a task; the first statement of everything that runs in a worker.

    In another process, such as that of a driver, it changes nothing.
    """
    global _modules_frozen
    if not _is_worker():
        return
    use_one_thread()
    if len(sys.modules) > _modules_frozen:
        _modules_frozen = len(sys.modules)
        # Spark collects garbage after each task, which visits every object of the loaded modules: 40 ms. Frozen objects
        # are not visited.
        gc.freeze()


def _is_worker() -> bool:
    from pyspark import TaskContext  # noqa: PLC0415

    return TaskContext.get() is not None


def use_one_thread() -> None:
    """Limit the libraries of a worker to one thread; must run before they are loaded."""
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
