"""Who executes the tasks of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from omnigraph.cancellation import check_cancelled

Job = TypeVar("Job")
Work = TypeVar("Work")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a step of a job is."""

    step: str
    done: int
    total: int


Watch = Callable[[Progress], None]


class Runner(Protocol):
    """Executes tasks, each at least once, and gives their results in the order of the work."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at a time."""

    def run(
        self,
        step: str,
        task: Callable[[Job, Work], Done],
        job: Job,
        work: Sequence[Work],
        *,
        at_once: int | None = None,
    ) -> Iterator[Done]:
        """One result for each piece of work; `step` is what people call it.

        With `at_once`, so many processes at most do all of it.
        """


def shares(items: Sequence[Work], runner: Runner) -> list[Sequence[Work]]:
    """The items in order, a share for each task that can run at a time: for work that is small beside its start."""
    step = max(1, -(-len(items) // runner.parallelism))
    return [items[first : first + step] for first in range(0, len(items), step)]


def give_back_memory() -> None:
    """Return to the system what a task freed, or a process that runs many grows for a while yet."""
    pa.default_memory_pool().release_unused()


class InlineRunner:
    """A loop in this process: for unit tests, and for who wants no cluster."""

    parallelism = 1

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch

    def run(
        self,
        step: str,
        task: Callable[[Job, Work], Done],
        job: Job,
        work: Sequence[Work],
        *,
        at_once: int | None = None,  # noqa: ARG002 (there is one process)
    ) -> Iterator[Done]:
        """See `Runner`."""
        for number, piece in enumerate(work, 1):
            check_cancelled()
            yield task(job, piece)
            give_back_memory()
            if self._watch is not None:
                self._watch(Progress(step, number, len(work)))
