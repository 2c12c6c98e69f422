"""An aged graph: reads when fresh, after many small commits and deletions, and after `optimize`."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from statistics import median

import omnigraph as og
from bench.read.graph import SIZES, Data, make
from bench.read.systems import OmniGraph
from bench.read.workloads import TRAVERSALS

COMMITS = 1_000
_SLOWEST = "triangles"
"""Excluded: it would take most of the time without additional information."""
_INSERT = "query q($from: String, $to: String, $w: F64) { insert Knows { from: $from, to: $to, weight: $w } }"
_UPDATE = "query q($k: String, $age: I32) { update Person set { age: $age } where key = $k }"
_PERSON = 'query q($k: String, $age: I32) { insert Person { key: $k, age: $age, city: "c7" } }'
_DELETE = "query q() { delete Knows where weight < 0.1 }"


def figures(size: str, folder: Path, commits: int = COMMITS) -> dict[str, float]:
    """Median slowdown of the workloads against the fresh graph: aged, and optimized."""
    data = make(SIZES[size], folder)
    home = folder / size / "aged"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    system = OmniGraph(home)
    system.fill(data)
    system.open()
    try:
        fresh = _times(system, data)
        began = time.perf_counter()
        _live_in(system.graph, data, commits)
        lived = time.perf_counter() - began
        aged = _times(system, data)
        began = time.perf_counter()
        system.graph.optimize()
        took = time.perf_counter() - began
        optimized = _times(system, data)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    found = {f"{name}, aged / fresh": aged[name] / fresh[name] for name in fresh}
    found |= {f"{name}, optimized / fresh": optimized[name] / fresh[name] for name in fresh}
    return found | {
        f"{commits} commits and deletes, s": lived,
        "optimize, s": took,
        "median of aged / fresh": median(aged[name] / fresh[name] for name in fresh),
        "median of optimized / fresh": median(optimized[name] / fresh[name] for name in fresh),
    }


def _live_in(graph: og.Graph, data: Data, commits: int) -> None:
    """One-row commits of inserts, updates and new nodes, then the deletion of a tenth of the edges."""
    chance = random.Random(7)
    persons = data.size.persons
    for number in range(commits):
        some, other = (f"p{chance.randrange(persons)}" for _ in range(2))
        match number % 4:
            case 0:
                graph.mutate(_UPDATE, params={"k": some, "age": chance.randrange(18, 80)})
            case 1:
                graph.mutate(_PERSON, params={"k": f"new{number}", "age": 33})
            case _:
                graph.mutate(_INSERT, params={"from": some, "to": other, "w": chance.random()})
    graph.mutate(_DELETE)


def _times(system: OmniGraph, data: Data) -> dict[str, float]:
    """Median milliseconds of every workload with a warm cache."""
    found: dict[str, float] = {}
    for workload in TRAVERSALS:
        if workload.name == _SLOWEST:
            continue
        given = [{"start": start} for start in data.starts] if workload.keyed else [{}]
        for params in given * 2:
            system.ask(workload, params)
        taken: list[float] = []
        end = time.perf_counter() + 0.3
        while time.perf_counter() < end or len(taken) < 3:
            began = time.perf_counter()
            system.ask(workload, given[len(taken) % len(given)])
            taken.append(time.perf_counter() - began)
        found[workload.name] = median(taken) * 1000
    return found
