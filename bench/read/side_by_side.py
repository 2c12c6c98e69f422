"""Every workload on every system: results are compared first, then the systems alternate."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.read.graph import SIZES, make
from bench.read.report import OURS, Line, Timing
from bench.read.workers import Worker
from bench.read.workloads import PATTERNS, SEARCHES, TRAVERSALS, Rows, Workload

WORKLOADS: tuple[Workload, ...] = (*TRAVERSALS, *PATTERNS, *SEARCHES)


class Disagreement(Exception):
    """Two systems returned different results: nothing is timed."""


def run(
    size: str,
    folder: Path,
    systems: Sequence[str],
    workloads: Sequence[Workload] = WORKLOADS,
    *,
    rounds: int = 5,
    seconds: float = 0.2,
) -> tuple[list[Line], dict[str, float], frozenset[str]]:
    """The timings, the peak memory of each system in MiB, and which systems are graph databases."""
    data = make(SIZES[size], folder)
    workers = {name: Worker(name, data, workloads) for name in systems}
    try:
        for name, worker in workers.items():
            ready = worker.prepare()
            filled = f", filled in {ready['fill_s']:.1f} s" if ready["fill_s"] is not None else ""
            print(f"{name} {ready['version']}{filled}", flush=True)
        lines = [_line(place, workload, workers, rounds, seconds) for place, workload in enumerate(workloads)]
        peaks = {name: worker.peak_mib() for name, worker in workers.items()}
        return lines, peaks, frozenset(name for name, worker in workers.items() if worker.is_graph)
    finally:
        for worker in workers.values():
            worker.close()


def compare(workload: Workload, name: str, expected: list[Rows], given: list[Rows]) -> None:
    """Raise Disagreement if the answers of a peer differ from ours."""
    if workload.overlap is None and given != expected:
        raise Disagreement(f"{workload.name}: {OURS} says {str(expected)[:300]}, {name} says {str(given)[:300]}")
    if workload.overlap is not None:
        shares = [len({*ours} & {*theirs}) / len(ours) for ours, theirs in zip(expected, given, strict=True)]
        share = sum(shares) / len(shares)
        print(f"  {workload.name}: {name} returns {share:.0%} of our rows", flush=True)
        if share < workload.overlap:
            raise Disagreement(f"{workload.name}: {name} returns only {share:.0%} of our rows")


def figures(size: str = "S") -> dict[str, float]:
    """Milliseconds of each workload here and in SQLite, which is part of Python."""
    with tempfile.TemporaryDirectory() as folder:
        lines, _, _ = run(size, Path(folder), [OURS, "sqlite"], rounds=3, seconds=0.1)
    return {f"{line.workload.name}, {name} ms": timing.p50 for line in lines for name, timing in line.timings.items()}


def _line(place: int, workload: Workload, workers: dict[str, Worker], rounds: int, seconds: float) -> Line:
    expected = workers[OURS].answers(place)
    assert expected is not None
    taking_part = [OURS]
    for name, worker in workers.items():
        given = worker.answers(place) if name != OURS else None
        if given is not None:
            compare(workload, name, expected, given)
            taking_part.append(name)
    taken: dict[str, list[float]] = {name: [] for name in taking_part}
    for _ in range(rounds):
        for name in taking_part:
            taken[name] += workers[name].time(place, seconds)
    line = Line(workload, {name: Timing.of(times) for name, times in taken.items()})
    print(f"  {workload.name}: " + ", ".join(f"{n} {t.p50:.3f}" for n, t in line.timings.items()), flush=True)
    return line
