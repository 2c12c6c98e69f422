"""Processes write the log of the same proposals and are killed anywhere: a model of the log describes the result."""

from __future__ import annotations

import random
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.proposal_log import check_logs
from support.store import Worker, new_graph, start_together


def write_logs(folder: Path, *, processes: int, kills: int, changes: int, seed: int) -> None:
    """Let processes change two proposals at the same time; some die at a random call of the store."""
    choose = random.Random(seed)
    graph = new_graph(folder / "graph", 1)
    graph.branch_create("source")
    proposals = [graph.propose("source", title=title, draft=True, actor="ana").id for title in ("one", "two")]
    with ExitStack() as stack:
        workers = []
        for number in range(processes):
            request = {"proposals": proposals, "seed": choose.randrange(10**6), "count": changes, "wait": True}
            if number < kills:
                request["die_at"] = choose.randrange(3 * changes)
            workers.append(stack.enter_context(Worker(folder, graph.uri, "log", name=f"p{number}", **request)))
        start_together(workers)
        codes = {worker.name: worker.end() for worker in workers}
    killed = {name for name, code in codes.items() if code == -signal.SIGKILL}
    assert set(codes.values()) <= {0, -signal.SIGKILL}, [worker.trouble() for worker in workers]
    assert killed
    assert {f"p{number}" for number in range(kills, processes)}.isdisjoint(killed)
    check_logs(graph.uri, proposals, workers, killed)
    assert graph.verify() == []


def test_a_model_describes_the_logs_of_killed_processes(tmp_path):
    write_logs(tmp_path, processes=4, kills=2, changes=12, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_model_describes_the_logs_of_killed_processes_long(tmp_path, seed):
    write_logs(tmp_path, processes=8, kills=5, changes=60, seed=seed)
