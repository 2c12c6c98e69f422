"""Processes that start at the same time, and the invariants afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from omnigraph.graph import Graph
from support.store import Worker, check_sound, start_together


@contextmanager
def racing(
    folder: Path, uri: str, *requests: dict[str, Any], environ: Mapping[str, str] | None = None
) -> Iterator[list[Worker]]:
    """One worker per request, all started at the same time, terminated at the end of the block."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Worker(folder, uri, name=f"racer{number}", wait=True, environ=environ, **request))
            for number, request in enumerate(requests)
        ]
        start_together(workers)
        yield workers


def race(
    folder: Path,
    uri: str,
    *requests: dict[str, Any],
    timeout_s: float = 120,
    environ: Mapping[str, str] | None = None,
) -> list[Worker]:
    """Run all workers to their end."""
    with racing(folder, uri, *requests, environ=environ) as workers:
        return [worker.finish(timeout_s) for worker in workers]


def acknowledged(workers: list[Worker]) -> list[str]:
    """The keys of all acknowledged commits."""
    return [key for worker in workers for key in worker.wrote()]


def on_one_branch(
    graph: Graph,
    folder: Path,
    processes: int,
    commits: int,
    timeout_s: float = 120,
    environ: Mapping[str, str] | None = None,
) -> float:
    """Many processes on one branch; returns the duration in seconds."""
    started = time.monotonic()
    requests = [{"do": "commits", "count": commits, "seconds": timeout_s}] * processes
    workers = race(folder, graph.uri, *requests, timeout_s=timeout_s, environ=environ)
    took = time.monotonic() - started
    assert [error for worker in workers for error in worker.errors()] == []
    keys = acknowledged(workers)
    assert len(keys) == processes * commits
    assert len(check_sound(graph, keys)) == 1 + processes * commits
    return took


def on_many_branches(
    graph: Graph,
    folder: Path,
    processes: int,
    commits: int,
    timeout_s: float = 120,
    environ: Mapping[str, str] | None = None,
) -> float:
    """Each process on its own branch; returns the duration in seconds."""
    branches = [f"branch/{number}" for number in range(processes)]
    for branch in branches:
        graph.branch_create(branch)
    requests = [{"do": "commits", "count": commits, "seconds": timeout_s, "branch": branch} for branch in branches]
    started = time.monotonic()
    workers = race(folder, graph.uri, *requests, timeout_s=timeout_s, environ=environ)
    took = time.monotonic() - started
    for branch, worker in zip(branches, workers, strict=True):
        assert worker.errors() == []
        assert len(check_sound(graph, worker.wrote(), branch=branch)) == 1 + commits
    check_sound(graph, [])
    versions = [commit.manifest_version for branch in branches for commit in graph.commits(branch, commits)]
    assert len(set(versions)) == processes * commits, "publishes of all branches are one line"
    return took
