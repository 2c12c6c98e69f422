"""Threads share one open graph: reads stay correct while other threads write, optimize and clean up.

`OMNIGRAPH_THREADS_S` sets the duration of the long form in seconds (600 by default).
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.versioning.upkeep.maintenance import cleanup
from support.store import repository_of

SCHEMA = """\
node Item {
  name: String @key
  note: String @index
}

edge Link: Item -> Item {}
"""
ROWS = 200
SHORT_S = 3.0
LONG_S = float(os.environ.get("OMNIGRAPH_THREADS_S", "600"))

COUNT = "query q() { match { $i: Item } return { count($i) as n } }"
POINT = "query q($name: String) { match { $i: Item { name: $name } } return { $i.note } }"
LINKED = "query q() { match { $a: Item  $a link $b } return { count($a) as n } }"
SEARCH = 'query q() { match { $i: Item  search($i.note, "seed") } return { count($i) as n } }'
INSERT = "query q($name: String, $note: String) { insert Item { name: $name, note: $note } }"

TOLERATED = {"version_reclaimed", "head_moved", "conflict"}
"""A reader that is older than the grace of a cleanup, or a writer that lost every race."""


class Threads:
    """Eight threads on one graph and their observations."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.started = 0
        self.finished = 0
        self.failures: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._end = 0.0

    def run(self, seconds: float) -> None:
        """Run all threads for a time."""
        self._end = time.monotonic() + seconds
        jobs = [self.count, self.count, self.point, self.linked, self.search, self.write, self.optimize, self.cleanup]
        threads = [threading.Thread(target=self._repeat, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _repeat(self, job: Callable[[], None]) -> None:
        while time.monotonic() < self._end:
            try:
                job()
                self.calls[job.__name__] += 1
            except OmniGraphError as error:
                if error.code not in TOLERATED:
                    self.failures[f"{job.__name__}: {error.code}: {error.message}"] += 1
            except Exception as error:
                self.failures[f"{job.__name__}: {type(error).__name__}: {error}"] += 1

    def _number(self, query: str) -> int:
        return int(next(iter(self.graph.query(query)))["n"])

    def count(self) -> None:
        low = self.finished
        found = self._number(COUNT)
        assert ROWS + low <= found <= ROWS + self.started, (low, found, self.started)

    def point(self) -> None:
        found = list(self.graph.query(POINT, params={"name": "n7"}))
        assert found == [{"i.note": "seed 7"}], found

    def linked(self) -> None:
        assert self._number(LINKED) == ROWS - 1

    def search(self) -> None:
        assert self._number(SEARCH) == ROWS

    def write(self) -> None:
        self.started += 1
        self.graph.mutate(INSERT, params={"name": f"w{self.started}", "note": "later"})
        self.finished += 1

    def optimize(self) -> None:
        self.graph.optimize()

    def cleanup(self) -> None:
        cleanup(repository_of(self.graph), keep=2, confirm=True, grace=timedelta(seconds=5))


def run(path: Path, seconds: float) -> Threads:
    graph = og.init(path, SCHEMA)
    records = [{"type": "Item", "data": {"name": f"n{i}", "note": f"seed {i}"}} for i in range(ROWS)]
    records += [{"edge": "Link", "from": f"n{i}", "to": f"n{i + 1}"} for i in range(ROWS - 1)]
    graph.load(records, mode="append")
    threads = Threads(graph)
    threads.run(seconds)
    assert not threads.failures, threads.failures
    assert len(threads.calls) == 7, threads.calls
    assert not graph.verify()
    return threads


def test_reads_during_optimize_and_cleanup(tmp_path):
    run(tmp_path / "graph", SHORT_S)


@pytest.mark.long
def test_reads_during_optimize_and_cleanup_long(tmp_path, record_property):
    threads = run(tmp_path / "graph", LONG_S)
    record_property("calls", str(dict(threads.calls)))
