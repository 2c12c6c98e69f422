"""Runners execute the tasks of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from omnigraph.cancellation import check_cancelled

Job = TypeVar("Job")
Work = TypeVar("Work")
Done = TypeVar("Done")
Task = Callable[[Job, Work], Done]
"""Computes the result of one unit of work of a job."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of one step of a job."""

    step: str
    done: int
    total: int


Watch = Callable[[Progress], None]


class Runner(Protocol):
    """Executes each task at least once and returns the results in the order of the work."""

    @property
    def parallelism(self) -> int:
        """Number of tasks that run concurrently."""

    @property
    def on_this_machine(self) -> bool:
        """True if the tasks run on the machine of the driver, so that they share its files."""

    def run(
        self, step: str, task: Task[Job, Work, Done], job: Job, work: Sequence[Work], *, at_once: int | None = None
    ) -> Iterator[Done]:
        """Yield one result for each unit of work. `step` is the name that progress reports show.

        `at_once` limits the number of processes.
        """


def shares(items: Sequence[Work], runner: Runner) -> list[Sequence[Work]]:
    """Divide the items, in order, into one share per concurrent task: for work that is cheap compared to starting a
    task.
    """
    step = max(1, -(-len(items) // runner.parallelism))
    return [items[first : first + step] for first in range(0, len(items), step)]


def give_back_memory() -> None:
    """Return unused memory to the operating system. Without this, a process that runs many tasks keeps growing."""
    pa.default_memory_pool().release_unused()


class InlineRunner:
    """Runs tasks in a loop in this process."""

    parallelism = 1
    on_this_machine = True

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch

    def run(
        self, step: str, task: Task[Job, Work, Done], job: Job, work: Sequence[Work], *, at_once: int | None = None
    ) -> Iterator[Done]:
        """Run the tasks one after the other and report progress after each."""
        del at_once  # There is one process.
        for number, unit in enumerate(work, 1):
            check_cancelled()
            yield task(job, unit)
            give_back_memory()
            if self._watch is not None:
                self._watch(Progress(step, number, len(work)))
