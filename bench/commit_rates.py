"""Commits per second of threads and of processes that insert single rows; a part of `bench.commit`."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

import omnigraph as og
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import Cancelled, OmniGraphError
from omnigraph.graph import Graph

INSERT = "query q($n: String) { insert Person { name: $n, age: 1 } }"
_START_S = 0.3
_ANSWER_S = 300.0


@dataclass(frozen=True)
class Rate:
    """Commits per second, and the number of writes that failed."""

    per_s: float
    failed: int = 0

    def __str__(self) -> str:
        return f"{self.per_s:.1f}/s" + (f" ({self.failed} failed)" if self.failed else "")


def of_threads(graph: Graph, threads: int, seconds: float, names: Iterator[int]) -> Rate:
    """The rate of threads on one branch: the commits that returned in `seconds`, after a start of a quarter of that."""
    counts: Counter[str] = Counter()
    lock = threading.Lock()
    cancel = Cancellation()
    ready = threading.Barrier(threads + 1)

    def commit() -> None:
        ready.wait()
        while not cancel.cancelled:
            with lock:
                name = next(names)
            outcome = "made"
            try:
                graph.mutate(INSERT, params={"n": f"t{name}"}, cancel=cancel)
            except Cancelled:
                return
            except OmniGraphError:
                outcome = "failed"
            if not cancel.cancelled:
                with lock:
                    counts[outcome] += 1

    running = [threading.Thread(target=commit) for _ in range(threads)]
    for one in running:
        one.start()
    ready.wait()
    time.sleep(seconds / 4)
    with lock:
        counts.clear()
    time.sleep(seconds)
    cancel.cancel()
    for one in running:
        one.join()
    return Rate(counts["made"] / seconds, counts["failed"])


# -- processes -----------------------------------------------------------------------------------------


class Processes:
    """Processes that keep their graphs open between runs."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections

    def rate(self, uri: str, environ: Mapping[str, str] | None, branches: Sequence[str], seconds: float) -> Rate:
        """The rate of one process per branch; each opens the graph and makes one commit before the measurement."""
        taking_part = self._connections[: len(branches)]
        for connection, branch in zip(taking_part, branches, strict=True):
            connection.send(("prepare", uri, environ, branch))
        _answers(taking_part)
        start = time.time() + _START_S
        for connection in taking_part:
            connection.send(("run", start, seconds))
        outcomes = _answers(taking_part)
        return Rate(sum(made for made, _ in outcomes) / seconds, sum(failed for _, failed in outcomes))


def _answers(connections: Sequence[Connection]) -> list[Any]:
    answers: list[Any] = []
    for connection in connections:
        if not connection.poll(_ANSWER_S):
            raise TimeoutError("a process of the benchmark does not answer")
        answers.append(connection.recv())
    return answers


@contextmanager
def processes(number: int) -> Iterator[Processes]:
    """Start processes; the end of the block ends them."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(number)]
    running = [context.Process(target=_commit_as_told, args=(pipe[1],), daemon=True) for pipe in pipes]
    for process in running:
        process.start()
    try:
        yield Processes([pipe[0] for pipe in pipes])
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.join()


def _commit_as_told(told: Connection) -> None:
    graphs: dict[str, Graph] = {}
    graph: Graph | None = None
    branch = ""
    numbers = count()
    origin = f"{os.getpid()}-{time.time_ns()}"

    def commit() -> bool:
        assert graph is not None
        try:
            graph.mutate(INSERT, params={"n": f"{branch}-{origin}-{next(numbers)}"}, branch=branch)
        except OmniGraphError:
            return False
        return True

    while True:
        what, *arguments = told.recv()
        if what == "prepare":
            uri, environ, branch = arguments
            if uri not in graphs:
                graphs[uri] = og.open(uri, environ=environ)
            graph = graphs[uri]
            commit()
            told.send(None)
            continue
        start, seconds = arguments
        time.sleep(max(0.0, start - time.time()))
        counts: Counter[bool] = Counter()
        while time.time() < start + seconds:
            succeeded = commit()
            counts[succeeded] += time.time() < start + seconds
        told.send((counts[True], counts[False]))
