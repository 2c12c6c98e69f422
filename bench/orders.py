"""`python -m bench.orders`: estimated cost and measured time of random orders of random queries.

Each query runs in the order of its text, in the chosen order and in random orders on a random graph with skewed
degrees. All orders must return equal results. The figures: the rank correlation of estimate and CPU time within a
query, and the CPU time of the chosen order relative to the fastest of all.

The long form is 2,000 queries: `--queries 500` with the seeds 201 to 204, three to ten minutes each.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from time import thread_time
from typing import Any

import numpy as np

import omnigraph as og
from omnigraph.engine.exec.cancellation import watching
from omnigraph.engine.exec.context import ExecutionContext, Limits
from omnigraph.engine.exec.executor import Execution
from omnigraph.engine.optimizer.candidate_plans import Candidate, candidate_plans
from omnigraph.engine.plan.prepared_query import prepare
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.errors import LimitReached
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir

SCHEMA = """
node A { key: String @key  n: I64  tag: String }
node B { key: String @key  n: I64  tag: String }
edge Aa: A -> A { w: F64 }
edge Ab: A -> B
edge Bb: B -> B
"""
EDGES = {"aa": ("A", "A"), "ab": ("A", "B"), "bb": ("B", "B")}
ORDERS = 20
REPEATS = 5
_ROWS_MAX = 3_000_000
_SECONDS_MAX = 0.1
"""A plan that took so long is not run again."""
_TIMEOUT_S = 5.0
"""A plan whose first run takes longer is left out. Timed runs have no such limit: it is wall time."""


def make_graph(folder: Path, seed: int, nodes: int = 3_000, degree: int = 6) -> og.Graph:
    """Load a random graph with skewed degrees."""
    random = np.random.default_rng(seed)
    sizes = {"A": nodes, "B": max(nodes // 5, 1)}
    records: list[dict[str, Any]] = []
    for name, size in sizes.items():
        tags = (20 * random.random(size) ** 3).astype(int)
        for at in range(size):
            data = {"key": f"{name}{at}", "n": int(random.integers(0, 1000)), "tag": f"t{tags[at]}"}
            records.append({"type": name, "data": data})
    for word, (source, target) in EDGES.items():
        count = nodes * degree
        src = (sizes[source] * random.random(count) ** 2).astype(int)
        dst = (sizes[target] * random.random(count) ** 1.5).astype(int)
        for start, end in sorted({*zip(src.tolist(), dst.tolist(), strict=True)}):
            edge = {"edge": word.capitalize(), "from": f"{source}{start}", "to": f"{target}{end}"}
            records.append(edge | ({"data": {"w": float(random.random())}} if word == "aa" else {"data": {}}))
    graph = og.init(folder, SCHEMA, sync=False)
    graph.load(records, mode="append")
    return graph


def random_query(random: Random) -> str:
    """Return a connected pattern of two to five nodes with conditions, as a query that counts or lists rows."""
    types = {"v0": random.choice("AB")}
    clauses: list[str] = []
    for _ in range(random.randint(1, 4)):
        near = random.choice([*types])
        word, (source, target) = random.choice([one for one in EDGES.items() if types[near] in one[1]])
        forward = source == types[near] and (target != types[near] or random.random() < 0.5)
        others = [var for var, type_ in types.items() if type_ == (target if forward else source) and var != near]
        far = random.choice(others) if others and random.random() < 0.25 else f"v{len(types)}"
        types.setdefault(far, target if forward else source)
        left, right = (near, far) if forward else (far, near)
        clauses.append(f"${left} {word} ${right}")
    conditions = []
    for var, type_ in types.items():
        kind = random.random()
        if kind < 0.12:
            conditions.append(f'${var}.key = "{type_}{random.randrange(50)}"')
        elif kind < 0.35:
            conditions.append(f'${var}.tag = "t{random.randrange(20)}"')
        elif kind < 0.55:
            conditions.append(f"${var}.n < {random.choice([5, 50, 300])}")
    bindings = [f"${var}: {type_}" for var, type_ in types.items()]
    result = random.choice(["count($v0) as n", "count(distinct $v1) as n", "$v0.key as a, $v1.key as b"])
    return f"query q() {{ match {{ {' '.join([*bindings, *clauses, *conditions])} }} return {{ {result} }} }}"


@dataclass(frozen=True)
class Compared:
    """The orders of one query."""

    text: str
    correlation: float | None
    """The rank correlation of estimate and time; None for fewer than eight orders."""
    slowdown: float
    """The time of the chosen order relative to the fastest."""
    orders: int = 0


class Disagreement(Exception):
    """Two orders returned different results."""


def compare(graph: og.Graph, text: str, seed: int) -> Compared | None:
    """Run a query in several orders; None if no order stays within the limits."""
    context, snapshot = graph._context, graph.snapshot()
    catalog = context.catalogs.of(snapshot)
    logical = compile_query(catalog, text)
    assert isinstance(logical, ir.QueryIR)
    plans = candidate_plans(logical, GraphStatistics(catalog, snapshot, context.cache), ORDERS, Random(seed))
    expected: list[Any] | None = None
    within: list[Candidate] = []
    # All orders run once before the first is measured, so that each finds the same structures in memory.
    for candidate in (Candidate(logical, 0.0), *plans):
        try:
            rows = _rows(graph, candidate)
        except LimitReached:
            if candidate is plans[0]:
                return None
            continue
        if expected is not None and rows != expected:
            raise Disagreement(f"{text}\n{candidate.plan.pipeline}")
        expected = rows
        if candidate.plan is not logical:
            within.append(candidate)
    times = [_seconds(graph, candidate) for candidate in within]
    costs = [candidate.cost for candidate in within]
    correlation = spearman(costs, times) if len(times) >= 8 and max(times) > 1.2 * min(times) else None
    return Compared(text, correlation, times[0] / min(times), len(times))


def _runnable(graph: og.Graph, candidate: Candidate, timeout_s: float | None = None) -> Callable[[], Any]:
    """Return a function that runs a plan as a query does, without the compilation."""
    context, snapshot = graph._context, graph.snapshot()
    prepared = prepare(candidate.plan, context.catalogs.of(snapshot))
    limits = Limits(rows_max=_ROWS_MAX, timeout_s=timeout_s)

    def once() -> Any:
        # Compiled chains run as they do in a query.
        run = ExecutionContext(prepared.catalog, snapshot, context.cache, limits)
        if prepared.chain is not None:
            with watching(run.watch):
                found = prepared.chain.run(run, {})
            if found is not None:
                return found
        return Execution(prepared, run, {}, now_ms=0).run()

    return once


def _rows(graph: og.Graph, candidate: Candidate) -> list[Any]:
    """Return the rows of a plan in a fixed order."""
    result = _runnable(graph, candidate, _TIMEOUT_S)()
    table = result.to_table() if hasattr(result, "to_table") else result.table() if hasattr(result, "table") else result
    return sorted(map(tuple, (row.values() for row in table.to_pylist())))


def _seconds(graph: og.Graph, candidate: Candidate) -> float:
    """Return the least CPU time of several runs of a plan."""
    once = _runnable(graph, candidate)
    taken: list[float] = []
    gc.disable()
    try:
        for _ in range(REPEATS):
            started = thread_time()
            once()
            taken.append(thread_time() - started)
            if sum(taken) > _SECONDS_MAX:
                break
    finally:
        gc.enable()
    return min(taken)


def spearman(one: list[float], other: list[float]) -> float:
    """Return the rank correlation of two lists; equal values share their mean rank."""
    ranks = [_ranks(np.array(values)) for values in (one, other)]
    centred = [values - values.mean() for values in ranks]
    scale = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / scale if scale else 0.0


def _ranks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def compared(queries: int, seed: int, folder: Path, per_graph: int = 40) -> Iterator[Compared]:
    """Yield the comparison of random queries on random graphs."""
    random = Random(seed)
    graph: og.Graph | None = None
    asked = 0
    while asked < queries:
        if graph is None or asked % per_graph == 0:
            size, degree = random.choice([(500, 8), (3_000, 6), (10_000, 4)])
            graph = make_graph(folder / f"g{asked}", seed + asked, size, degree)
        asked += 1
        found = compare(graph, random_query(random), asked)
        if found is not None:
            yield found


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.orders", description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worst", type=int, default=5, help="queries to print")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = list(compared(given.queries, given.seed, Path(folder)))
    known = [one.correlation for one in found if one.correlation is not None]
    slow = sorted(found, key=lambda one: -one.slowdown)
    print(f"{len(found)} queries; median correlation of {len(known)}: {median(known):.2f}")
    print(f"chosen order beside the fastest: median {median(one.slowdown for one in found):.2f}, worst:")
    for one in slow[: given.worst]:
        print(f"  {one.slowdown:6.2f}  {one.text}")
    return 0 if median(known) >= 0.6 and slow[0].slowdown <= 5 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
