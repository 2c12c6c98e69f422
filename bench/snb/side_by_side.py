"""The workload on several systems: answers are compared first, then the systems take turns.

Every system runs in a process of its own and gets the same parameters. A ratio above 1 means that this project is
faster than the fastest peer.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import resource
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from bench.snb.compare import Disagreement, normal
from bench.snb.generate import Data, make
from bench.snb.mixed import copied, operations, report, run_mixed
from bench.snb.official import convert
from bench.snb.systems import MEMORY, SYSTEMS, OmniGraph, System
from bench.snb.workload import Parameters, Params, Query, queries

OURS = OmniGraph.name
ANSWER_S_MAX = 900
REPEAT_S = 0.04
"""Short queries are repeated for this time, so that the processes' turns do not dominate."""
_CONTEXT = multiprocessing.get_context("spawn")


class SystemFailed(RuntimeError):
    """A system answered a request with an error."""


@dataclass
class Line:
    """One query: the milliseconds of every call of each system, and the rows of its answers."""

    query: Query
    rows: float = 0.0
    calls: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """The error of each peer that could not answer."""

    def __str__(self) -> str:
        """The medians and the errors."""
        times = [f"{name} {self.ms(name):.2f}" for name in self.calls]
        return f"{self.query.name}: " + ", ".join(times + list(self.failures.values()))

    def ms(self, system: str) -> float:
        """The median of a system."""
        return median(self.calls[system])

    def p95(self, system: str) -> float:
        """The 95th percentile of a system over all sets of parameters."""
        return float(np.percentile(self.calls[system], 95))

    @property
    def ratio(self) -> float | None:
        """The time of the fastest peer as a multiple of ours; None without a peer."""
        peers = [self.ms(name) for name in self.calls if name != OURS]
        return min(peers) / self.ms(OURS) if peers else None


class Worker:
    """A system in a process of its own. Its errors are raised here."""

    def __init__(self, name: str, folder: Path, data: Data, memory: str = MEMORY) -> None:
        self.name = name
        self._here, there = _CONTEXT.Pipe()
        system = SYSTEMS[name](folder, memory)
        self._process = _CONTEXT.Process(target=_serve, args=(system, data, there), daemon=True)
        self._process.start()
        there.close()

    def call(self, *message: Any, patience_s: float = ANSWER_S_MAX) -> Any:
        """Send a request and return its answer."""
        self._here.send(message)
        if not self._here.poll(patience_s):
            raise TimeoutError(f"{self.name} did not answer {message[0]} within {patience_s} s")
        failed, value = self._here.recv()
        if failed:
            raise SystemFailed(f"{self.name}: {value}")
        return value

    def close(self) -> None:
        """End the process."""
        self._here.close()
        self._process.join(20)
        if self._process.is_alive():
            self._process.kill()


Source = float | Path
"""A scale of our generator, or a folder of files in the layout of LDBC's."""


def network(source: Source, folder: Path) -> Data:
    """The files of a network, generated or converted if missing."""
    if not isinstance(source, Path):
        return make(source, folder)
    data = Data(folder / f"snb-{source.name}" / "data")
    return data if (data.folder / "done").exists() else convert(source, data)


def run(
    source: Source,
    folder: Path,
    systems: Sequence[str],
    chosen: Sequence[Query],
    *,
    sets: int = 20,
    rounds: int = 3,
    budget_s: float = 20.0,
    memory: str = MEMORY,
) -> list[Line]:
    """The times of some queries; a query stops after `budget_s` seconds, but not before one call of each system."""
    data = network(source, folder)
    parameters = Parameters(data)
    workers = {name: Worker(name, data.folder.parent / name, data, memory) for name in systems}
    try:
        for name, worker in workers.items():
            print(f"{name} {worker.call('prepare', patience_s=7200)}", flush=True)
        lines = []
        for query in chosen:
            line = compare_and_time(query, workers, parameters.of(query.name, sets), rounds=rounds, budget_s=budget_s)
            print(f"  {line}", flush=True)
            lines.append(line)
        print("peak memory, MiB: " + ", ".join(f"{name} {w.call('peak'):,.0f}" for name, w in workers.items()))
        return lines
    finally:
        for worker in workers.values():
            worker.close()


def run_mix(source: Source, folder: Path, systems: Sequence[str], count: int, memory: str = MEMORY) -> str:
    """The throughput of a mix of reads and updates on copies of the loaded data; one system after the other."""
    data = network(source, folder)
    mix = operations(data, queries(), count)
    found = {}
    for name in systems:
        copy = copied(data.folder.parent / name)
        worker = Worker(name, copy, data, memory)
        try:
            worker.call("prepare")
            found[name] = worker.call("mixed", mix, patience_s=7200)
        finally:
            worker.close()
            shutil.rmtree(copy)
    return report(found)


class Answering(Protocol):
    """What a worker does."""

    def call(self, *message: Any) -> Any:
        """Send a request and return its answer."""


def compare_and_time(
    query: Query, workers: Mapping[str, Answering], given: Sequence[Params], *, rounds: int, budget_s: float
) -> Line:
    """Compare the answers of all systems that can run a query, then time them. A peer that fails is left out."""
    line = Line(query)
    taking_part = [name for name, worker in workers.items() if worker.call("can", query)]
    for params in given:
        answers = {}
        for name in list(taking_part):
            try:
                answers[name] = normal(workers[name].call("ask", query, params)[0], query.ordered)
            except SystemFailed as error:
                if name == OURS:
                    raise
                line.failures[name] = str(error)
                taking_part.remove(name)
        line.rows += len(answers[OURS]) / len(given)
        for name, answer in answers.items():
            if answer != answers[OURS]:
                shown = f"{OURS} says {str(answers[OURS])[:300]}, {name} says {str(answer)[:300]}"
                raise Disagreement(f"{query.name} {params}: {shown}")
    line.calls = {name: [] for name in taking_part}
    started = time.perf_counter()
    for _ in range(rounds):
        for params in given:
            for name in taking_part:
                line.calls[name].append(workers[name].call("ask", query, params)[1])
            if time.perf_counter() - started > budget_s:
                return line
    return line


def _serve(system: System, data: Data, pipe: Connection) -> None:
    """Answer requests until the connection closes."""
    while True:
        try:
            what, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((False, _answer(system, data, what, *arguments)))
        except Exception as error:
            pipe.send((True, f"{type(error).__name__}: {error}"))


def _answer(system: System, data: Data, what: str, *arguments: Any) -> Any:
    match what:
        case "prepare":
            return _prepare(system, data)
        case "can":
            return system.can(arguments[0])
        case "ask":
            return _timed(system, *arguments)
        case "mixed":
            return run_mixed(system, *arguments)
        case _:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _timed(system: System, query: Query, params: Params) -> tuple[list[Any], float]:
    """The rows of a query, and the median of its milliseconds over as many calls as fit into a short time."""
    taken: list[float] = []
    gc.collect()
    gc.disable()
    try:
        begun = time.perf_counter()
        while not taken or time.perf_counter() - begun < REPEAT_S:
            started = time.perf_counter()
            rows = system.ask(query, params)
            taken.append((time.perf_counter() - started) * 1000)
        return rows, median(taken)
    finally:
        gc.enable()


def _prepare(system: System, data: Data) -> str:
    """Load the system if necessary, and open it; returns its version, size and load time."""
    folder = system.folder
    done = folder / "filled"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        started = time.perf_counter()
        system.fill(data)
        done.write_text(f"loaded in {time.perf_counter() - started:.0f} s")
    system.open()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return f"{system.version()}: {done.read_text()}, {size / 2**20:,.0f} MiB on disk"


def table(lines: Sequence[Line], systems: Sequence[str]) -> str:
    """The medians and 95th percentiles, the ratio to the fastest peer, and the geometric mean of each group."""
    others = [name for name in systems if name != OURS]
    rows = [f"{'ms':<6}{'rows':>7}" + "".join(f"{name:>12}{'p95':>9}" for name in [OURS, *others]) + f"{'ratio':>8}"]
    for line in lines:
        row = f"{line.query.name:<6}{line.rows:>7.1f}"
        for name in [OURS, *others]:
            timed, missing = name in line.calls, "failed" if name in line.failures else "–"
            row += f"{line.ms(name):>12.2f}{line.p95(name):>9.2f}" if timed else f"{missing:>12}{'–':>9}"
        rows.append(row + (f"{line.ratio:>8.2f}" if line.ratio is not None else f"{'–':>8}"))
    for group, mean in means(lines).items():
        rows.append(f"geometric mean of the {group} reads against the fastest peer: {mean:.2f}")
    return "\n".join(rows)


def means(lines: Sequence[Line]) -> dict[str, float]:
    """The geometric mean of the ratios of each group of queries."""
    found: dict[str, list[float]] = {}
    for line in lines:
        if line.ratio is not None:
            found.setdefault(line.query.group, []).append(math.log(line.ratio))
    return {group: math.exp(sum(logs) / len(logs)) for group, logs in found.items()}


def figures(scale: float = 0.003) -> dict[str, float]:
    """The geometric means of the ratios to DuckDB, and the milliseconds of the complex reads."""
    with tempfile.TemporaryDirectory() as folder:
        lines = run(scale, Path(folder), [OURS, "duckdb"], queries(), sets=3, rounds=2, budget_s=2)
    found = {f"{group} reads, DuckDB / omnigraph ×": mean for group, mean in means(lines).items()}
    return found | {f"{line.query.name} ms": line.ms(OURS) for line in lines if line.query.group == "complex"}
