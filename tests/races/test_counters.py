"""Real processes increment one property concurrently, and no increment is lost.

There are two ways to increment, which may be mixed: read the value at a commit and write it back bound to that commit,
reading again if the branch has moved (`if_commit`); or rely on `write`, which starts over by itself.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import PreconditionFailed
from omnigraph.graph import Graph
from support.store import COUNTER, increment, new_graph, repository_of

INSERT = f'query q() {{ insert Item {{ name: "{COUNTER}", count: 0 }} }}'
UPDATE = "query q($name: String, $count: I64) { update Item set { count: $count } where name = $name }"
_TESTS = Path(__file__).parents[1]


# -- in the worker process ---------------------------------------------------------------------------


def read_count(graph: Graph, commit_id: str, *, whole: bool) -> int:
    """Return the counter at a commit, by either way of reading."""
    if whole:
        rows = graph.to_arrow("Item", columns=["name", "count"], at=commit_id).to_pylist()
        return next(row["count"] for row in rows if row["name"] == COUNTER)
    row = graph.entity_at("Item", COUNTER, commit_id)
    assert row is not None
    return int(row["count"])


def set_count(graph: Graph, count: int, *, if_commit: str) -> None:
    result = graph.mutate(UPDATE, params={"name": COUNTER, "count": count}, if_commit=if_commit)
    assert result.affected_nodes == 1


def count_bound(graph: Graph, times: int) -> int:
    """Increment bound to the commit that was read; return the number of lost races."""
    lost = 0
    for number in range(times):
        while True:
            commit_id = graph.snapshot().commit_id
            count = read_count(graph, commit_id, whole=number % 2 == 0)
            try:
                set_count(graph, count + 1, if_commit=commit_id)
                break
            except PreconditionFailed as error:
                assert error.expected == commit_id != error.actual  # noqa: PT017 (a worker, not a test)
                lost += 1
                time.sleep(random.uniform(0, 0.02))
    return lost


def count_retried(graph: Graph, times: int) -> int:
    """Increment with writes that start over by themselves."""
    for _ in range(times):
        increment(repository_of(graph))
    return 0


def race_on_commits(graph: Graph) -> None:
    """For each line of input, which is a commit id, try to write on top of exactly that commit."""
    for line in sys.stdin:
        commit_id = line.strip()
        try:
            set_count(graph, read_count(graph, commit_id, whole=False) + 1, if_commit=commit_id)
            print("won", flush=True)  # noqa: T201
        except PreconditionFailed:
            print("lost", flush=True)  # noqa: T201


def work(request: dict[str, Any]) -> None:
    graph = og.open(request["uri"])
    print("ready", flush=True)  # noqa: T201
    if request["do"] == "race_on_commits":
        race_on_commits(graph)
        return
    sys.stdin.readline()
    count = count_bound if request["do"] == "bound" else count_retried
    print(count(graph, request["times"]), flush=True)  # noqa: T201


# -- in the test process -----------------------------------------------------------------------------


@contextmanager
def process(uri: str, do: str, times: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Start a worker that has opened the graph and waits for input; it ends with the block."""
    worker = subprocess.Popen(
        [sys.executable, __file__, json.dumps({"uri": uri, "do": do, "times": times})],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
    )
    try:
        assert read_line(worker) == "ready"
        yield worker
    finally:
        worker.kill()
        worker.communicate()


def send_line(worker: subprocess.Popen[str], word: str) -> None:
    assert worker.stdin is not None
    worker.stdin.write(word + "\n")
    worker.stdin.flush()


def read_line(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    return worker.stdout.readline().strip()


def count_up(folder: Path, ways: Sequence[str], times: int) -> str:
    """Run one process per way, each with a number of increments; return a summary."""
    graph = new_graph(folder / "graph")
    graph.mutate(INSERT)
    with ExitStack() as stack:
        workers = [stack.enter_context(process(graph.uri, do, times)) for do in ways]
        started = time.monotonic()
        for worker in workers:
            send_line(worker, "go")
        lost = [int(read_line(worker)) for worker in workers]
        took = time.monotonic() - started
        assert [worker.wait() for worker in workers] == [0] * len(ways)
    commits = graph.commits()
    assert len(commits) == 2 + len(ways) * times
    counts = [read_count(graph, commit.id, whole=False) for commit in reversed(commits[:-1])]
    assert counts == list(range(1 + len(ways) * times)), "every commit is one more than the one before"
    assert graph.verify() == []
    return f"{len(ways)} processes x {times}: {took:.1f} s, {len(ways) * times / took:.1f}/s, {sum(lost)} read anew"


def race_pairs(folder: Path, rounds: int) -> list[list[str]]:
    """Let two processes write on the same commit repeatedly; return their outputs."""
    graph = new_graph(folder / "graph")
    graph.mutate(INSERT)
    said: list[list[str]] = []
    with process(graph.uri, "race_on_commits") as one, process(graph.uri, "race_on_commits") as other:
        for _ in range(rounds):
            commit_id = graph.snapshot().commit_id
            pair = random.sample([one, other], 2)
            for worker in pair:
                send_line(worker, commit_id)
            said.append(sorted(read_line(worker) for worker in pair))
            assert len(graph.commits()) == 2 + len(said)
    assert read_count(graph, graph.snapshot().commit_id, whole=True) == rounds
    return said


def test_increments_bound_to_a_commit_are_not_lost(tmp_path):
    count_up(tmp_path, ["bound"] * 3, 10)


def test_increments_that_start_over_are_not_lost(tmp_path):
    count_up(tmp_path, ["retried"] * 3, 10)


def test_mixed_increments_are_not_lost(tmp_path):
    count_up(tmp_path, ["bound", "retried"], 10)


def test_exactly_one_of_two_writers_wins(tmp_path):
    assert race_pairs(tmp_path, 10) == [["lost", "won"]] * 10


@pytest.mark.long
@pytest.mark.parametrize(
    "ways", [["bound"] * 8, ["retried"] * 8, ["bound", "retried"] * 4], ids=lambda ways: "-".join(sorted(set(ways)))
)
def test_increments_are_not_lost_long(tmp_path, ways, record_property):
    figures = count_up(tmp_path, ways, 50)
    record_property("figures", figures)
    print(figures)  # noqa: T201 (shown with -s)


@pytest.mark.long
def test_exactly_one_of_two_writers_wins_long(tmp_path):
    assert race_pairs(tmp_path, 200) == [["lost", "won"]] * 200


if __name__ == "__main__":
    work(json.loads(sys.argv[1]))
