"""Spark actions with progress reports and cancellation.

An action runs in its own thread. A thread that waits inside PySpark receives Ctrl-C, but the Spark job continues. Here
an interrupt or a timeout cancels the job, waits until its tasks have ended, and is then raised again.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import uuid4

from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.exec.integer_sums import overflow
from omnigraph.errors import OmniGraphError, SparkError
from omnigraph.pipeline.runner import Progress, Watch
from omnigraph.spark.aggregates import overflow_type
from omnigraph.spark.session import is_connect, is_of_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Answer = TypeVar("Answer")

_POLL_S = 0.25
_WAIT_S = 0.02
_CANCEL_S = 15.0
"""Maximum wait for tasks to end after a cancellation; Spark kills a Python worker that does not stop within 2 s."""

_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)(?:: .*)?$")


def run_action(
    spark: SparkSession, step: str, action: Callable[[], Answer], *, total: int = 0, watch: Watch | None = None
) -> Answer:
    """Run an action and return its result; raises `SparkError` if Spark fails or has stopped.

    `total` is the number of tasks, if known; otherwise it is taken from the stages as they appear.
    """
    try:
        return _run(spark, step, action, total, watch)
    except Exception as error:
        if isinstance(error, OmniGraphError) or not is_of_spark(error):
            raise
        raise _explained(step, error) from error


def _run(spark: SparkSession, step: str, action: Callable[[], Answer], total: int, watch: Watch | None) -> Answer:
    from pyspark import inheritable_thread_target  # noqa: PLC0415

    if not is_connect(spark) and spark.sparkContext._jsc is None:
        # PySpark fails with an assertion when it starts a thread.
        raise _failed(step, "the session was stopped")
    progress = _ProgressReporter(step, total, watch)
    job = _ConnectJob(spark) if is_connect(spark) else _ClassicJob(spark, step)
    outcome: list[Answer] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            with job:
                outcome.append(action())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=inheritable_thread_target(spark)(work), name=f"spark-{step}", daemon=True)
    thread.start()
    try:
        polled = time.monotonic()
        # `join` would delay an interrupt until the thread ends.
        while thread.is_alive():
            time.sleep(_WAIT_S)
            checkpoint()
            if watch is not None and time.monotonic() - polled >= _POLL_S:
                polled = time.monotonic()
                progress.report(*job.tasks())
    except BaseException:
        _cancel(job, thread)
        raise
    if failure:
        raise failure[0]
    progress.report(total or progress.seen_total, total or progress.seen_total)
    return outcome[0]


@dataclass(frozen=True)
class Actions:
    """Cancellable actions on the DataFrames of one session."""

    spark: SparkSession
    step: str
    watch: Watch | None = None

    def checkpoint(self, frame: DataFrame) -> DataFrame:
        """Compute a DataFrame, keep its rows on the cluster and drop its lineage."""
        return run_action(self.spark, self.step, frame.localCheckpoint, watch=self.watch)

    def count(self, frame: DataFrame) -> int:
        """Return the number of rows."""
        return run_action(self.spark, self.step, frame.count, watch=self.watch)

    def is_empty(self, frame: DataFrame) -> bool:
        """True if there are no rows."""
        return run_action(self.spark, self.step, frame.isEmpty, watch=self.watch)

    def to_arrow(self, frame: DataFrame) -> pa.Table:
        """Collect the rows as an Arrow table."""
        return run_action(self.spark, self.step, frame.toArrow, watch=self.watch)


class _ProgressReporter:
    """Reports the number of finished tasks to a watch when it changes."""

    def __init__(self, step: str, total: int, watch: Watch | None) -> None:
        self._step = step
        self._total = total
        self._watch = watch
        self._last: tuple[int, int] | None = None
        self.seen_total = 0

    def report(self, done: int, total: int) -> None:
        """Report `done` of `total` tasks, unless that was the last report."""
        self.seen_total = max(self.seen_total, total)
        counts = (done, self._total or total)
        if self._watch is not None and counts != self._last and counts[1]:
            self._last = counts
            self._watch(Progress(self._step, *counts))


class _SparkJob(Protocol):
    """The Spark job of one action; its context manager encloses the action, in the thread of the action."""

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...

    def tasks(self) -> tuple[int, int]:
        """Return the number of finished tasks and of tasks known so far."""

    def cancel(self) -> None:
        """Cancel the job."""

    def is_idle(self) -> bool:
        """True if no task of the job is running."""


class _ClassicJob:
    """Job on a classic session, identified by the job group of its thread."""

    def __init__(self, spark: SparkSession, step: str) -> None:
        self._context: Any = spark.sparkContext
        self._group = f"omnigraph-{uuid4().hex}"
        self._step = step

    def __enter__(self) -> object:
        self._context.setJobGroup(self._group, self._step, interruptOnCancel=True)
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def _stages(self) -> list[Any]:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        infos = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return [info for info in infos if info is not None]

    def tasks(self) -> tuple[int, int]:
        """Return the number of finished tasks and of tasks known so far."""
        stages = self._stages()
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    def cancel(self) -> None:
        """Cancel the job."""
        self._context.cancelJobGroup(self._group)

    def is_idle(self) -> bool:
        """True if no task of the job is running."""
        return not any(stage.numActiveTasks for stage in self._stages())


class _ConnectJob:
    """Job on Spark Connect, identified by a tag of its thread. The progress handler must not raise."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._tag = f"omnigraph-{uuid4().hex}"
        self._counts = (0, 0)
        self._thread = 0

    def __enter__(self) -> object:
        self._thread = threading.get_ident()
        self._spark.addTag(self._tag)
        self._spark.registerProgressHandler(self._on_progress)
        return self

    def __exit__(self, *_: object) -> None:
        self._spark.removeProgressHandler(self._on_progress)

    def _on_progress(self, stages: Any = None, **_: Any) -> None:
        """Store the task counts; ignores reports about other threads of the session."""
        if threading.get_ident() == self._thread and stages is not None:
            known = list(stages)
            self._counts = sum(s.num_completed_tasks for s in known), sum(s.num_tasks for s in known)

    def tasks(self) -> tuple[int, int]:
        """Return the number of finished tasks and of tasks known so far."""
        return self._counts

    def cancel(self) -> None:
        """Cancel the job."""
        self._spark.interruptTag(self._tag)

    def is_idle(self) -> bool:
        """Always true: the server ends the thread of the action only after the job has ended."""
        return True


def _cancel(job: _SparkJob, thread: threading.Thread) -> None:
    """Cancel a job and wait until it has ended; a second interrupt ends the wait."""
    until = time.monotonic() + _CANCEL_S
    job.cancel()
    while (thread.is_alive() or not job.is_idle()) and time.monotonic() < until:
        time.sleep(_WAIT_S)


def _explained(step: str, error: Exception) -> OmniGraphError:
    """Convert an error of Spark to `SparkError`; the last exception in its report is the most specific."""
    overflowed = overflow_type(str(error))
    if overflowed is not None:
        return overflow(overflowed)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.match(line)]
    reason = raised[-1] if raised else lines[0] if lines else type(error).__name__
    return _failed(step, reason, "; the report of Spark is attached as the cause of this error")


def _failed(step: str, reason: str, more: str = "") -> SparkError:
    return SparkError(
        f"'{step}' failed on Spark: {reason}", code="spark_job_failed", hint=f"nothing was published{more}"
    )
