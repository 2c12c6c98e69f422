"""`python -m bench.forms --size M`: equivalent formulations of one query must take the same time.

Each query is written in several ways by `bench.formulations`. Results are compared first; then the formulations
alternate. A formulation that exceeds a limit counts as infinitely slow. The exit status is 1 if the slowest formulation
of a query takes more than `AT_MOST` times as long as the fastest. Times are CPU times: other load hardly affects them.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import omnigraph as og
from bench.form_queries import QUERIES, FormQuery, open_graph
from bench.formulations import formulations, read_text, text_of
from bench.read.graph import SIZES
from bench.read.systems import SUBJECT, normal

AT_MOST = 1.5
FORMS_MIN = 5
TIMEOUT_S = 3.0


class Disagreement(Exception):
    """Two formulations returned different results."""


@dataclass(frozen=True)
class Measured:
    """The CPU milliseconds of each formulation of a query."""

    query: FormQuery
    ms: dict[str, float]

    @property
    def best(self) -> float:
        """The time of the fastest formulation."""
        return min(self.ms.values())

    @property
    def ratio(self) -> float:
        """The slowest formulation relative to the fastest."""
        return max(self.ms.values()) / self.best


def measure(graph: og.Graph, query: FormQuery, seed: int, seconds: float) -> Measured:
    """Compare the results of all formulations of a query and time them."""
    forms = {
        name: read_text(form, query.rest, query.params)
        for name, form in formulations(query.clauses, SUBJECT, seed).items()
    }
    if len(forms) < FORMS_MIN:
        raise ValueError(f"{query.name}: only {len(forms)} formulations")
    expected: list[Any] | None = None
    refused: set[str] = set()
    for name, text in forms.items():
        try:
            graph.query(text, params=query.params, timeout=10 * TIMEOUT_S)  # builds what is built once
            graph.query(text, params=query.params, timeout=TIMEOUT_S)
        except og.errors.LimitReached:
            refused.add(name)
            continue
        rows = normal(graph.query(text, params=query.params).to_pylist(), ordered=query.ordered)
        if expected is not None and rows != expected:
            raise Disagreement(f"{query.name}, {name}: {str(rows)[:300]}, written: {str(expected)[:300]}\n{text}")
        expected = rows
    timed = {name: text for name, text in forms.items() if name not in refused}
    taken: dict[str, list[float]] = {name: [] for name in timed}
    until = perf_counter() + seconds * len(timed)
    gc.collect()
    gc.disable()
    try:
        while perf_counter() < until or len(next(iter(taken.values()))) < 3:
            for name, text in timed.items():
                started = thread_time()
                graph.query(text, params=query.params).to_pylist()
                taken[name].append((thread_time() - started) * 1000)
    finally:
        gc.enable()
    return Measured(query, {name: median(taken[name]) if name in taken else math.inf for name in forms})


def main(arguments: Sequence[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.forms", description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="S")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "omnigraph-bench")
    parser.add_argument("--only", default="", help="queries whose name holds this text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.1, help="per formulation")
    parser.add_argument("--verbose", action="store_true", help="print every formulation")
    given = parser.parse_args(arguments)
    graph = open_graph(given.size, given.folder)
    print(f"size {given.size}; CPU milliseconds of the fastest and of the slowest formulation")
    measured = []
    for query in QUERIES:
        if given.only in query.name:
            found = measure(graph, query, given.seed, given.seconds)
            measured.append(found)
            print(_line(found), flush=True)
            if given.verbose:
                for name, form in formulations(query.clauses, SUBJECT, given.seed).items():
                    print(f"    {found.ms[name]:9.3f}  {name}: {text_of(form)}")
    above = [found for found in measured if found.ratio > AT_MOST]
    print(f"{len(measured) - len(above)} of {len(measured)} queries within {AT_MOST}")
    return 1 if above else 0


def _line(found: Measured) -> str:
    worst = max(found.ms, key=lambda name: found.ms[name])
    mark = f"  {worst}" if found.ratio > AT_MOST else ""
    times = f"{found.best:9.3f} {found.ms[worst]:9.3f} {found.ratio:6.2f}"
    return f"  {found.query.name:<48} {len(found.ms):2} {times}{mark}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
