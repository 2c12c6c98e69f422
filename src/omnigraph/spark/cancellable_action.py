"""One action of Spark, watched and cancellable.

The action runs in a thread of its own: a main thread that waits inside PySpark hears Ctrl-C, but the job goes on. Here
an interrupt, or the end of a query's time, cancels what the action started, waits until its tasks are gone, and goes on
its way.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import uuid4

from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.exec.integer_sums import overflow
from omnigraph.errors import OmniGraphError, SparkError
from omnigraph.pipeline.runner import Progress, Watch
from omnigraph.spark.aggregates import overflow_type
from omnigraph.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answer = TypeVar("Answer")

_POLL_S = 0.25
_WAIT_S = 0.02
_CANCEL_S = 15.0
"""How long tasks get to end after a cancel; Spark kills a Python worker that does not stop by itself in two."""

_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)(?:: .*)?$")


def run_action(
    spark: SparkSession, step: str, action: Callable[[], Answer], *, total: int = 0, watch: Watch | None = None
) -> Answer:
    """What the action gives; `SparkError` when Spark could not run it.

    `total` is the number of tasks where it is known; otherwise it is taken from the stages as they appear.
    """
    from pyspark import inheritable_thread_target  # noqa: PLC0415

    told = _Told(step, total, watch)
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
        # Not `join`: an interrupt would have to wait for it.
        while thread.is_alive():
            time.sleep(_WAIT_S)
            checkpoint()
            if watch is not None and time.monotonic() - polled >= _POLL_S:
                polled = time.monotonic()
                told.add_note(*job.tasks())
    except BaseException:
        _cancel(job, thread)
        raise
    if failure:
        raise _explained(step, failure[0]) from failure[0]
    told.add_note(total or told.seen_total, total or told.seen_total)
    return outcome[0]


class _Told:
    """Tells who watches, when there is news."""

    def __init__(self, step: str, total: int, watch: Watch | None) -> None:
        self._step = step
        self._total = total
        self._watch = watch
        self._last: tuple[int, int] | None = None
        self.seen_total = 0

    def add_note(self, done: int, total: int) -> None:
        """Pass on how many tasks are done."""
        self.seen_total = max(self.seen_total, total)
        news = (done, self._total or total)
        if self._watch is not None and news != self._last and news[1]:
            self._last = news
            self._watch(Progress(self._step, *news))


class _Job(Protocol):
    """What an action started on Spark; a block of it covers the action, in the action's thread."""

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...

    def tasks(self) -> tuple[int, int]:
        """How many tasks are done, and how many there are so far."""

    def cancel(self) -> None:
        """Stop all of it."""

    def is_idle(self) -> bool:
        """Whether no task of it runs any more."""


class _ClassicJob:
    """By a job group, which is a property of the thread."""

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
        """See `_Job`."""
        stages = self._stages()
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    def cancel(self) -> None:
        """See `_Job`."""
        self._context.cancelJobGroup(self._group)

    def is_idle(self) -> bool:
        """See `_Job`."""
        return not any(stage.numActiveTasks for stage in self._stages())


class _ConnectJob:
    """By a tag of the thread; the server reports to a handler, which must never raise."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._tag = f"omnigraph-{uuid4().hex}"
        self._counts = (0, 0)
        self._thread = 0

    def __enter__(self) -> object:
        self._thread = threading.get_ident()
        self._spark.addTag(self._tag)
        self._spark.registerProgressHandler(self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        self._spark.removeProgressHandler(self._heard)

    def _heard(self, stages: Any = None, **_: Any) -> None:
        """Called in the thread of the action; a session may have others."""
        if threading.get_ident() == self._thread and stages is not None:
            known = list(stages)
            self._counts = sum(s.num_completed_tasks for s in known), sum(s.num_tasks for s in known)

    def tasks(self) -> tuple[int, int]:
        """See `_Job`."""
        return self._counts

    def cancel(self) -> None:
        """See `_Job`."""
        self._spark.interruptTag(self._tag)

    def is_idle(self) -> bool:
        """See `_Job`; the server ends the action's thread only when the job is gone."""
        return True


def _cancel(job: _Job, thread: threading.Thread) -> None:
    """Cancel, and wait until nothing of it runs; a second interrupt ends the wait."""
    until = time.monotonic() + _CANCEL_S
    job.cancel()
    while (thread.is_alive() or not job.is_idle()) and time.monotonic() < until:
        time.sleep(_WAIT_S)


def _explained(step: str, error: BaseException) -> BaseException:
    """An error of Spark in our words: the last thing that was raised says most."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    if isinstance(error, OmniGraphError) or not isinstance(error, PySparkException | Py4JError):
        return error
    overflowed = overflow_type(str(error))
    if overflowed is not None:
        return overflow(overflowed)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.match(line)]
    reason = raised[-1] if raised else lines[0] if lines else type(error).__name__
    return SparkError(
        f"'{step}' failed on Spark: {reason}",
        code="spark_job_failed",
        hint="nothing was published; Spark's own report is the cause of this error",
    )
