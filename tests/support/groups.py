"""Group commits on demand: calls that are queued behind each other and then run as one group."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from omnigraph.graph import Graph
from omnigraph.versioning.write.repository import Repository
from support.store import repository_of

WAIT_S = 60.0


def grouped(graph: Graph, calls: Sequence[Callable[[], Any]], branch: str = "main") -> list[Any]:
    """Run calls that each make one small write, as a group in this order; return their results or exceptions."""
    return run_as_group(repository_of(graph), calls, branch)


def run_as_group(repository: Repository, calls: Sequence[Callable[[], Any]], branch: str = "main") -> list[Any]:
    """Do what `grouped` does, for writes of a repository."""
    queue = repository.queue
    outcomes: list[Any] = [None] * len(calls)
    release = threading.Event()
    holds = threading.Thread(
        target=lambda: queue.run(branch, None, lambda _: _until(release.is_set), lambda: None), daemon=True
    )
    holds.start()
    _until(lambda: queue.length(branch) == 1)

    def run(position: int) -> None:
        try:
            outcomes[position] = calls[position]()
        except BaseException as error:
            outcomes[position] = error

    threads: list[threading.Thread] = []
    for position in range(len(calls)):
        threads.append(threading.Thread(target=run, args=(position,), daemon=True))
        threads[-1].start()
        _until(lambda: queue.length(branch) == len(threads) + 1 or not threads[-1].is_alive())
    release.set()
    for thread in (holds, *threads):
        thread.join(WAIT_S)
        assert not thread.is_alive(), "a write did not end"
    return outcomes


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError("the condition did not hold in time")
