"""Cost of statistics: share of the time of a load, of a small commit, and of the first plan in a new process.

Times of one run are compared. The statistics are a part of the load, and their share of it is the median of some loads.
A first plan is made by a new handle of the graph, with stored statistics and without; modules are imported before.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import omnigraph as og
from omnigraph import graph_io
from omnigraph.engine.cache.disk_cache import FOLDER
from omnigraph.engine.statistics import summaries, table_statistics
from omnigraph.operations.requests import QueryText

PERSONS, KNOWS = 100_000, 900_000
LOADS, COMMITS, PLANS = 5, 40, 9
SCHEMA = """
node Person { key: String @key  age: I32?  city: String?  score: F64?  about: String? }
edge Knows: Person -> Person { weight: F64? }
"""
QUERY = QueryText("""
query q() {
  match { $a: Person  $a.city = "c7"  $b: Person  $b.age > 70  $a knows $b  $c knows $b }
  return { count($c) as n }
}
""")


class _Stopwatch:
    """The time that some functions take in total."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **named: Any) -> Any:
            start = perf_counter()
            try:
                return function(*args, **named)
            finally:
                self.seconds += perf_counter() - start

        return timed


@contextmanager
def _timed_statistics() -> Iterator[_Stopwatch]:
    watch = _Stopwatch()
    with (
        patch.object(graph_io, "store_load_statistics", watch.of(graph_io.store_load_statistics)),
        patch.object(summaries.LoadedSample, "of", watch.of(summaries.LoadedSample.of)),
    ):
        yield watch


def _rows() -> dict[str, pa.Table]:
    random = np.random.default_rng(1)
    keys = pa.array([f"p{number}" for number in range(PERSONS)])
    persons = {
        "key": keys,
        "age": pa.array(random.integers(0, 80, PERSONS), pa.int32()),
        "city": pa.array([f"c{number % 50}" for number in range(PERSONS)]),
        "score": random.random(PERSONS),
        "about": pa.array([f"{number} likes long walks and short queries" for number in range(PERSONS)]),
    }
    ends = [keys.take(pa.array((PERSONS * random.random(KNOWS) ** power).astype(np.int64))) for power in (1, 2)]
    return {
        "Person": pa.table(persons),
        "Knows": pa.table({"from": ends[0], "to": ends[1], "weight": random.random(KNOWS)}),
    }


def _first_plan_ms(path: Path, *, stored: bool) -> float:
    if not stored:
        shutil.rmtree(path / FOLDER, ignore_errors=True)
    graph = og.open(path)
    snapshot = graph.snapshot()
    for key in snapshot.tables:
        snapshot.table(key)
    start = perf_counter()
    graph._context.plans.get_read(snapshot, QUERY)
    return (perf_counter() - start) * 1000


def _commit_us(path: Path) -> dict[str, float]:
    """Times of a small commit, of comparing its version with the statistics, and of the next plan."""
    graph = og.open(path)
    graph._context.plans.get_read(graph.snapshot(), QUERY)
    commits, compared = [], []
    for number in range(COMMITS):
        start = perf_counter()
        graph.mutate(f'query q() {{ insert Person {{ key: "new{number}", age: 5 }} }}')
        commits.append(perf_counter() - start)
        cache = graph._context.cache
        data = cache.table(graph.snapshot().table("node:Person"))
        assert data.fragments
        start = perf_counter()
        known = table_statistics.known_statistics(cache, data)
        assert known is not None
        assert known.change(data).is_small
        compared.append(perf_counter() - start)
    return {"small_commit_us": median(commits) * 1e6, "statistics_of_small_commit_us": median(compared) * 1e6}


def figures() -> dict[str, float]:
    """Measure all figures."""
    rows = _rows()
    shares, loads = [], []
    with tempfile.TemporaryDirectory(prefix="bench-statistics-") as folder:
        path = Path(folder) / "0"
        for number in range(LOADS):
            path = Path(folder) / str(number)
            graph = og.init(path, SCHEMA)
            with _timed_statistics() as watch:
                start = perf_counter()
                graph.load(rows, mode="append")
                taken = perf_counter() - start
            loads.append(taken - watch.seconds)
            shares.append(watch.seconds / loads[-1])
        stored = [_first_plan_ms(path, stored=True) for _ in range(PLANS)]
        entries = [file.parent for file in (path / FOLDER).rglob("about.json") if '"statistics"' in file.read_text()]
        size = sum(file.stat().st_size for entry in entries for file in entry.iterdir())
        computed = [_first_plan_ms(path, stored=False) for _ in range(PLANS)]
        _first_plan_ms(path, stored=True)
        return {
            "load_s": median(loads),
            "statistics_of_load_percent": 100 * median(shares),
            "stored_statistics_kib": size / 1024,
            **_commit_us(path),
            "first_plan_stored_ms": median(stored),
            "first_plan_computed_ms": median(computed),
            "first_plan_computed_by_stored_ratio": median(computed) / median(stored),
        }
