"""Time to plan a match of five and of twelve hops, and to answer a point lookup whose plan is cached.

The statistics are in memory and the text is compiled before: the figures are those of the optimizer alone. The patterns
are a chain, a star, a tree, a cycle and a clique, with conditions of different selectivity. Times are CPU times, the
least of several rounds. The limits are 300 µs for five hops, 3,000 µs for twelve, and 22 µs for the lookup.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import thread_time

import omnigraph as og
from bench.orders import make_graph
from omnigraph.engine.optimizer.optimize import optimize
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir

ROUNDS, CALLS = 40, 20
PATTERNS = {
    "chain_5": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
    "star_5": [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)],
    "tree_5": [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)],
    "cycle_5": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "clique_5": [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3)],
    "chain_12": [(at, at + 1) for at in range(12)],
    "star_12": [(0, at) for at in range(1, 13)],
    "tree_12": [(at // 2, at + 1) for at in range(12)],
    "cycle_12": [(at, (at + 1) % 12) for at in range(12)],
}
"""Hops as pairs of variables; every second one follows the edge back."""
CONDITIONS = ('$v0.tag = "t3"', "$v2.n < 300", "$v3.n < 50")
LOOKUP = "query q($k: String) { match { $a: A { key: $k } } return { $a.n } }"


def text_of(hops: list[tuple[int, int]]) -> str:
    """Return a query of a pattern."""
    ends = [pair if at % 2 else pair[::-1] for at, pair in enumerate(hops)]
    clauses = [f"$v{source} aa $v{target}" for source, target in ends]
    bindings = [f"$v{at}: A" for at in range(max(map(max, hops)) + 1)]
    return f"query q() {{ match {{ {' '.join([*bindings, *clauses, *CONDITIONS])} }} return {{ $v0.n, $v1.n }} }}"


def figures() -> dict[str, float]:
    """Measure all patterns on one graph."""
    with tempfile.TemporaryDirectory() as folder:
        graph = make_graph(Path(folder) / "graph", 1)
        found = {f"plan_{name}_us": _least_us(_planner(graph, hops)) for name, hops in PATTERNS.items()}
        return found | {"cached_lookup_us": _least_us(lambda: graph.query(LOOKUP, params={"k": "A7"}))}


def _planner(graph: og.Graph, hops: list[tuple[int, int]]) -> Callable[[], object]:
    context, snapshot = graph._context, graph.snapshot()
    catalog = context.catalogs.of(snapshot)
    logical = compile_query(catalog, text_of(hops))
    assert isinstance(logical, ir.QueryIR)
    return lambda: optimize(logical, GraphStatistics(catalog, snapshot, context.cache))


def _least_us(function: Callable[[], object]) -> float:
    """Return the CPU microseconds of a call: the least mean of a round."""
    for _ in range(CALLS):
        function()  # reads statistics and fills caches
    taken: list[float] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            started = thread_time()
            for _ in range(CALLS):
                function()
            taken.append((thread_time() - started) / CALLS)
    finally:
        gc.enable()
    return min(taken) * 1e6


if __name__ == "__main__":
    for name, value in figures().items():
        print(f"{name:<24} {value:10.2f}")
