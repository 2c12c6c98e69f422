"""Reads under a visibility beside the same reads without one.

A tenant sees half of the people, and friendships between two of them, so that its reads also return fewer rows. An
auditor has a condition that all people pass: the difference is the cost of the visibility. Each workload runs in turns
without a visibility and with both. Measured are the times with warm masks, the first read of a new digest whose columns
are in memory, and the memory that a digest needs. The least time of all turns is taken: other processes only add to
it. `python -m bench.visibility --people 1000000` uses the size that the targets were set for.

`python -m bench.visibility --digests 1000 --people 10000000 --memory 1GiB` reads a table under many different
visibilities and measures the memory that their masks take.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph as og
from omnigraph.engine import kernels
from omnigraph.graph import Graph
from omnigraph.graph_handle import cache_of, context_of
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility

SCHEMA = """
node Person { key: String @key  tenant: String  level: I64  age: I64  city: String }
edge Knows: Person -> Person {}
"""
TENANTS, CITIES, FRIENDS = 2, 50, 4
TURNS = 15
MIB = 1024**2

WORKLOADS = {
    "point lookup": "query q($k: String) { match { $p: Person { key: $k } } return { $p.age, $p.city } }",
    "two hops": (
        "query q($k: String) { match { $p: Person { key: $k } $p knows $f $f knows $g } return distinct { $g.key } }"
    ),
    "aggregate": "query q() { match { $p: Person } return { count($p) as n, sum($p.age) as s } }",
    "filtered aggregate": "query q() { match { $p: Person $p.age > 50 } return { count($p) as n, avg($p.age) as s } }",
    "group": "query q() { match { $p: Person } return { $p.city, count($p) as n } }",
    "count over a hop": "query q() { match { $p: Person $p knows $f } return { count($f) as n } }",
}  # fmt: skip

Figures = dict[str, float]


def build(folder: str, people: int) -> Graph:
    """Load the people and their friendships."""
    random = np.random.default_rng(1)
    numbers = np.arange(people)
    keys = pa.array([f"p{number}" for number in numbers])
    nodes = {
        "key": keys,
        "tenant": pa.array([f"t{one}" for one in numbers % TENANTS]),
        "level": random.integers(0, 10, people),
        "age": random.integers(0, 100, people),
        "city": pa.array([f"city{one}" for one in random.integers(0, CITIES, people)]),
    }
    near, far = (random.integers(0, people, people * FRIENDS) for _ in range(2))
    edges = {"from": keys.take(pa.array(near)), "to": keys.take(pa.array(far))}
    graph = og.init(folder, SCHEMA, sync=False)
    assert isinstance(graph, Graph)
    graph.load({"Person": pa.table(nodes), "Knows": pa.table(edges)}, mode="append", engine="memory")
    return graph


def tenant(name: str, level: int = 10) -> Visibility:
    """Return what a tenant sees."""
    own = ir.Compare("=", ir.Prop(ROW, "tenant", ir.STRING), ir.Const(name, ir.STRING))
    below = ir.Compare("<=", ir.Prop(ROW, "level", ir.I64), ir.Const(level, ir.I64))
    return Visibility({"node:Person": ir.Logic("and", (own, below))})


def auditor() -> Visibility:
    """Return what an actor sees whose condition all people pass."""
    return Visibility({"node:Person": ir.Compare("<=", ir.Prop(ROW, "level", ir.I64), ir.Const(10, ir.I64))})


def figures(people: int = 20_000) -> Figures:
    """Measure all workloads; the unit is at the end of each name."""
    kernels.load()
    found: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        graph = build(f"{folder}/graph", people)
        seen = Graph(context_of(graph).with_visibility(tenant("t0")))
        all_seen = Graph(context_of(graph).with_visibility(auditor()))
        for name, text in WORKLOADS.items():
            params = {"k": f"p{people // 3 * 2}"} if "$k" in text else None
            every, some, audited = _in_turns(
                lambda text=text, params=params: graph.query(text, params).to_pylist(),
                lambda text=text, params=params: seen.query(text, params).to_pylist(),
                lambda text=text, params=params: all_seen.query(text, params).to_pylist(),
            )
            found[f"{name} ms"] = every * 1000
            found[f"{name}, seen ms"] = some * 1000
            found[f"{name}, all seen ms"] = audited * 1000
            found[f"{name}, ratio"] = some / every
            found[f"{name}, ratio if all is seen"] = audited / every
        found["point lookup, more µs"] = (found["point lookup, all seen ms"] - found["point lookup ms"]) * 1000
        found |= _cold(graph, people)
    return found


def _in_turns(*calls: Callable[[], Any]) -> list[float]:
    """Return the least time of each call."""
    times: list[list[float]] = [[] for _ in calls]
    repeats, least = 1, 1.0
    for turn in range(TURNS + 4):
        for at, call in enumerate(calls):
            started = time.perf_counter()
            for _ in range(repeats):
                call()
            taken = (time.perf_counter() - started) / repeats
            if turn >= 4:
                times[at].append(taken)
            least = min(least, taken)
        if turn == 3:
            repeats = max(1, min(200, int(0.01 / max(least, 1e-6))))
    return [min(each) for each in times]


def _cold(graph: Graph, people: int) -> Figures:
    """Measure the first aggregate of new digests: the time beyond a warm one, and the memory of a digest."""
    text = WORKLOADS["aggregate"]
    cache = cache_of(graph)
    more: list[float] = []
    used: list[float] = []
    for level in range(8):
        handle = Graph(context_of(graph).with_visibility(tenant("t1", level)))
        handle.explain(text)
        before, started = cache.bytes, time.perf_counter()
        handle.query(text)
        first = time.perf_counter() - started
        used.append((cache.bytes - before) / people)
        started = time.perf_counter()
        handle.query(text)
        more.append(first - (time.perf_counter() - started))
    return {"aggregate, first more ms": median(more) * 1000, "memory of a digest bytes per row": median(used)}


def digest_figures(rows: int, digests: int, memory: str) -> Figures:
    """Measure reads of a table under many visibilities with different digests, and the memory that they take."""
    with tempfile.TemporaryDirectory() as folder:
        graph = og.init(f"{folder}/graph", "node Reading { level: I64  value: I64 }", sync=False)
        columns = {"level": np.arange(rows) % digests, "value": np.ones(rows, np.int64)}
        graph.load({"Reading": pa.table(columns)}, mode="append", engine="memory")
        del columns, graph
        opened = og.open(f"{folder}/graph", memory=memory)
        assert isinstance(opened, Graph)
        cache, before, largest = cache_of(opened), _resident_bytes(), 0
        times: list[float] = []
        peak = 0
        for limit in range(1, digests + 1):
            level = ir.Prop(ROW, "level", ir.I64)
            visibility = Visibility({"node:Reading": ir.Compare("<", level, ir.Const(limit, ir.I64))})
            handle = Graph(context_of(opened).with_visibility(visibility))
            started = time.perf_counter()
            found = handle.query("query q() { match { $r: Reading } return { count($r) as n } }").to_pylist()
            times.append(time.perf_counter() - started)
            assert found == [{"n": (rows // digests) * limit + min(rows % digests, limit)}]
            largest, peak = max(largest, cache.bytes), max(peak, _resident_bytes())
        return {
            "first read of a digest ms": median(times) * 1000,
            "masks of all digests MiB": rows * digests / MIB,
            "bound of the cache MiB": cache.bytes_max / MIB,
            "largest size of the cache MiB": largest / MIB,
            "resident memory, more MiB": (peak - before) / MIB,
        }


def _resident_bytes() -> int:
    with Path("/proc/self/statm").open() as stream:
        return int(stream.read().split()[1]) * resource.getpagesize()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--digests", type=int, help="Measure the memory of so many visibilities instead.")
    parser.add_argument("--memory", default="1GiB", help="The memory budget of --digests.")
    given = parser.parse_args()
    found = (
        figures(given.people) if given.digests is None else digest_figures(given.people, given.digests, given.memory)
    )
    for name, value in found.items():
        print(f"{name:<40} {value:10.3f}")


if __name__ == "__main__":
    main()
