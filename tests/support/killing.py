"""Tasks that terminate their process at the first run, importable by workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.splits import Split
from omnigraph.pipeline.stage_task import StagedSplit, stage

ONCE = "die-once"
"""In the graph's folder: who is to die, and whoever removes this file sees to it.

Empty is the worker itself, `executor` the JVM it works for, a number a process of that number.
"""


def stage_and_die(job: Job, split: Split) -> StagedSplit:
    """Stage a split; kill the process at the first run."""
    staged = stage(job, split)
    assert job.location.path is not None
    mark = job.location.path / ONCE
    if staged.tables and mark.exists():
        victim = mark.read_text()
        if _taken(mark):
            os.kill(_process(victim), signal.SIGKILL)
    return staged


def _taken(mark: Path) -> bool:
    try:
        mark.unlink()
    except FileNotFoundError:
        return False
    return True


def _process(victim: str) -> int:
    if victim == "executor":
        # A daemon started by the JVM forks the workers.
        fields = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        return int(fields[1])
    return int(victim) if victim else os.getpid()


class KillingRunner:
    """Runs the tasks of another runner, and lets one worker die after it has written its pieces."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.parallelism = runner.parallelism
        self.on_this_machine = runner.on_this_machine

    def run(self, step: str, task: Any, job: Any, work: Any, **more: Any) -> Any:
        """Run the tasks."""
        return self._runner.run(step, stage_and_die if task is stage else task, job, work, **more)
