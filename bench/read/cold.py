"""A new process: time to its first result, and the cost of the next read after a commit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import omnigraph as og
from bench.read.graph import SIZES, make
from bench.read.systems import OmniGraph
from bench.read.workers import prepare

TWO_HOPS = "query q($k: String) { match { $p: Person { key: $k } $p knows{1,2} $q } return { count($q) as n } }"
ONE_HOP = "query q($k: String) { match { $p: Person { key: $k } $p knows $q } return { $q.key } }"
_CHILD = """
import sys
import omnigraph as og
graph = og.open(sys.argv[1])
print(graph.query(sys.argv[2], params={"k": sys.argv[3]}).to_pylist()[0]["n"])
"""
_BRANCH = "bench-cold"


def figures(size: str, folder: Path) -> dict[str, float]:
    """Seconds of a new process without and with cached adjacency, imports included; milliseconds after one insert."""
    data = make(SIZES[size], folder)
    home = folder / size / OmniGraph.name
    prepare(OmniGraph(home), data, home)
    start = data.starts[0]
    shutil.rmtree(home / "graph" / "__cache", ignore_errors=True)
    without, expected = _new_process(home / "graph", start)
    found: dict[str, float] = {"new process, nothing kept, s": without}
    kept: list[float] = []
    for _ in range(3):
        took, answer = _new_process(home / "graph", start)
        assert answer == expected
        kept.append(took)
    found["new process, adjacency kept, s"] = sorted(kept)[1]
    return found | _after_insert(home / "graph", data.starts)


def _new_process(graph: Path, start: str) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(graph), TWO_HOPS, start], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - began, done.stdout.strip()


def _after_insert(path: Path, starts: list[str]) -> dict[str, float]:
    """Add one edge on a branch, so that the graph stays the same."""
    graph = og.open(path)
    if _BRANCH in graph.branches():
        graph.branch_delete(_BRANCH, force=True)
    graph.branch_create(_BRANCH)
    side = graph.on(_BRANCH)
    source = starts[0]
    known = {row["q.key"] for row in side.query(ONE_HOP, params={"k": source})}
    inserts: list[float] = []
    hops: list[float] = []
    for target in [start for start in starts[1:] if start not in known][:5]:
        began = time.perf_counter()
        side.load([{"edge": "Knows", "from": source, "to": target, "data": {"weight": 0.5}}], mode="append")
        inserts.append(time.perf_counter() - began)
        began = time.perf_counter()
        rows = side.query(ONE_HOP, params={"k": source}).to_pylist()
        hops.append(time.perf_counter() - began)
        assert target in {row["q.key"] for row in rows}
    graph.branch_delete(_BRANCH, force=True)
    return {
        "insert of one edge, ms": sorted(inserts)[len(inserts) // 2] * 1000,
        "first 1 hop after one insert, worst ms": max(hops) * 1000,
    }
