"""`python -m bench.read --forms`: the fastest and the slowest formulation of each workload beside the peers.

Three ratios are asked: warm against the fastest of DuckDB, Kuzu, Ladybug and LanceDB; warm against SQLite; and against
the fastest of those four in a new process (`bench.read.first_answer`), where SQLite is shown only. Answers of all
formulations and systems are compared first. Times are the best of several rounds in which formulations and systems
alternate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from bench.formulations import formulations
from bench.read.first_answer import FirstAnswers
from bench.read.graph import SIZES, Data, make
from bench.read.report import OURS
from bench.read.side_by_side import Disagreement, compare
from bench.read.systems import SUBJECT
from bench.read.workers import Worker
from bench.read.workloads import Workload

SQLITE = "sqlite"
WARM_MIN = 2.0
SQLITE_MIN = {"point lookup by key": 0.4, "range and equality filter scan": 0.4, "1 hop from a key": 0.4}
"""Workloads for which less than `WARM_MIN` is asked against SQLite."""
FIRST_MIN = 1.0


@dataclass
class Accepted:
    """The milliseconds of one workload."""

    name: str
    forms: dict[str, float]
    """Formulation → warm."""
    peers: dict[str, float]
    """Peer → warm."""
    first: dict[str, float] = field(default_factory=dict)
    """System → first answer of a new process."""

    @property
    def best(self) -> float:
        """The fastest formulation."""
        return min(self.forms.values())

    @property
    def worst(self) -> float:
        """The slowest formulation."""
        return max(self.forms.values())

    @property
    def peer(self) -> float | None:
        """The fastest peer without SQLite."""
        return min((ms for name, ms in self.peers.items() if name != SQLITE), default=None)

    @property
    def first_peer(self) -> float | None:
        """The fastest peer without SQLite in a new process."""
        return min((ms for name, ms in self.first.items() if name not in (OURS, SQLITE)), default=None)

    def short(self) -> Iterator[str]:
        """The requirements that the fastest formulation misses."""
        if self.peer is not None and self.peer < WARM_MIN * self.best:
            yield "peers"
        if SQLITE in self.peers and self.peers[SQLITE] < SQLITE_MIN.get(self.name, WARM_MIN) * self.best:
            yield "SQLite"
        if self.first_peer is not None and self.first_peer < FIRST_MIN * self.first[OURS]:
            yield "new process"


def accept(
    size: str,
    folder: Path,
    systems: Sequence[str],
    workloads: Sequence[Workload],
    *,
    rounds: int,
    seconds: float,
    runs: int,
    seed: int = 1,
) -> list[Accepted]:
    """Measure the workloads; `runs` new processes for each system."""
    data = make(SIZES[size], folder)
    variants = {workload.name: _variants(workload, seed) for workload in workloads}
    listed = [variant for group in variants.values() for variant in group.values()]
    workers = {name: Worker(name, data, listed if name == OURS else workloads) for name in systems}
    try:
        for name, worker in workers.items():
            print(f"{name} {worker.prepare()['version']}", flush=True)
        found = []
        for place, workload in enumerate(workloads):
            places = {form: listed.index(variant) for form, variant in variants[workload.name].items()}
            one = _warm(place, workload, places, workers, rounds, seconds)
            found.append(one)
            print(f"  {workload.name}: {_listed({OURS: one.best} | one.peers)}", flush=True)
    finally:
        for worker in workers.values():
            worker.close()
    for workload, one in zip(workloads, found, strict=True):
        one.first = _first(data, workload, [OURS, *one.peers], runs)
        print(f"  {workload.name}, new process: {_listed(one.first)}", flush=True)
    return found


def _variants(workload: Workload, seed: int) -> dict[str, Workload]:
    return {
        form: replace(workload, name=f"{workload.name} [{form}]", clauses=clauses)
        for form, clauses in formulations(workload.clauses, SUBJECT, seed).items()
    }


def _warm(
    place: int, workload: Workload, places: dict[str, int], workers: dict[str, Worker], rounds: int, seconds: float
) -> Accepted:
    ours = workers[OURS]
    answers = {form: ours.answers(at) for form, at in places.items()}
    expected = answers["written"]
    assert expected is not None
    for form, given in answers.items():
        if given != expected:
            raise Disagreement(f"{workload.name}, {form}: {str(given)[:300]}, as written {str(expected)[:300]}")
    peers: dict[str, list[float]] = {}
    for name, worker in workers.items():
        given = worker.answers(place) if name != OURS else None
        if given is not None:
            compare(workload, name, expected, given)
            peers[name] = []
    forms: dict[str, list[float]] = {form: [] for form in places}
    for _ in range(rounds):
        for form, at in places.items():
            forms[form].append(median(ours.time(at, seconds)))
        for name, taken in peers.items():
            taken.append(median(workers[name].time(place, seconds)))
    return Accepted(
        workload.name,
        {form: min(taken) * 1000 for form, taken in forms.items()},
        {name: min(taken) * 1000 for name, taken in peers.items()},
    )


def _first(data: Data, workload: Workload, systems: Sequence[str], runs: int) -> dict[str, float]:
    answers = FirstAnswers(data)
    taken: dict[str, list[float]] = {name: [] for name in systems}
    expected = None
    for _ in range(runs):
        for name in systems:
            took, rows = answers.run(name, workload)
            taken[name].append(took * 1000)
            expected = rows if expected is None else expected
            if workload.overlap is None and rows != expected:
                raise Disagreement(f"{workload.name}, new process of {name}: {str(rows)[:300]}")
    return {name: min(times) for name, times in taken.items() if times}


def table(found: Sequence[Accepted]) -> str:
    """The figures as a table."""
    width = max(len(one.name) for one in found) + 2
    head = (
        f"{'ms':<{width}}{'best':>9}{'worst':>9}{'peer':>10}{'ratio':>7}{'worst':>7}{'SQLite':>10}{'ratio':>7}"
        f"{'first':>9}{'peer':>9}{'ratio':>7}{'SQLite':>9}"
    )
    lines = [head]
    for one in found:
        peer, sqlite = one.peer, one.peers.get(SQLITE)
        row = f"{one.name:<{width}}{one.best:>9.3f}{one.worst:>9.3f}{_ms(peer)}"
        row += _ratio(peer, one.best) + _ratio(peer, one.worst) + _ms(sqlite) + _ratio(sqlite, one.best)
        if one.first:
            row += _first_ms(one.first[OURS]) + _first_ms(one.first_peer) + _ratio(one.first_peer, one.first[OURS])
            row += _first_ms(one.first.get(SQLITE))
        missed = ", ".join(one.short())
        lines.append(row + (f"  SHORT: {missed}" if missed else ""))
    return "\n".join(lines)


def _listed(times: dict[str, float]) -> str:
    return ", ".join(f"{name} {ms:.3f}" for name, ms in times.items())


def _ms(value: float | None) -> str:
    return f"{'–':>10}" if value is None else f"{value:>10.3f}"


def _first_ms(value: float | None) -> str:
    return f"{'–':>9}" if value is None else f"{value:>9.1f}"


def _ratio(other: float | None, ours: float) -> str:
    return f"{'–':>7}" if other is None else f"{other / ours:>7.2f}"
