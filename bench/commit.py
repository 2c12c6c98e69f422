"""Commits: requests on S3, fsyncs, CPU, branches, LanceDB, concurrency and growth, each beside its target.

Every row of the table shows a figure, its target, and a floor or a peer that the same run measured:

- `s3`: sequential and total requests of a commit, an open with a point read, a warm read and a new branch, on SeaweedFS
  behind a proxy that adds 20 ms (`--delay`) to each request (`bench.counting_proxy`). The floor is one
  `write_fragments` and one `LanceDataset.commit` with an open handle. The commits are repeated after 100 other branches
  wrote the same tables.
- `disk`: fsyncs, sequential barriers and files of a commit (`bench.fsyncs` defines a barrier), CPU on a small graph.
- `large`: a commit, an update and a delete with cascade on a graph of `bench.read`, alternating with LanceDB.
- `branches`: CPU of a commit and of a new branch with 20 tables and many branches, against a graph without branches.
- `rates`: commits per second of 64 threads and of 8 processes against one, on disk and on S3.
- `growth`: a commit after many commits against one after 50; files and bytes per commit; percentiles of all commits
  beside those of a control file that is written and synced before each commit.

Nothing is asserted. `python -m bench.commit --full` uses the sizes of the targets: graph M, 10,000 branches and 10,000
commits. The default takes a few minutes. `--only s3,disk` measures some parts; `--trace` prints every request and
fsync. LanceDB is optional (`pip install -e '.[bench]'`).
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Self

import numpy as np
from tests.support.s3 import seaweedfs

import omnigraph as og
from bench import fsyncs
from bench.commit_cost import LargeCosts, PlainLance, among_branches, costs, on_large_graph
from bench.commit_rates import Rate, of_threads, processes
from bench.counting_proxy import DELAY_S, Proxy, Recorded, proxy_to
from bench.storage import folder
from omnigraph.graph import Graph
from omnigraph.storage.files.location import locate

SMALL = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
SCHEMA = f"{SMALL}\nnode Post {{ name: String @key }}\nedge Wrote: Person -> Post"
_PERSON = "insert Person { name: $n, age: 1 }"
_KNOWS = 'insert Knows { from: $n, to: "hub" }'
ONE = f"query q($n: String) {{ {_PERSON} }}"
TWO = f"query q($n: String) {{ {_PERSON} {_KNOWS} }}"
FOUR = f"query q($n: String) {{ {_PERSON} {_KNOWS} insert Post {{ name: $n }} insert Wrote {{ from: $n, to: $n }} }}"
WRITES = {"one row": ONE, "node + edge": TWO, "4 tables": FOUR}
READ = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
PARTS = ("s3", "disk", "large", "branches", "rates", "growth")


@dataclass(frozen=True)
class Sizes:
    """Sizes of the run."""

    repeats: int = 3
    others: int = 100
    rounds: int = 40
    graph: str = "S"
    branches: tuple[int, ...] = (0, 1_000)
    branches_s: float = 90.0
    threads: int = 64
    processes: int = 8
    seconds: float = 3.0
    runs: int = 1
    commits: int = 2_000
    delay_s: float = DELAY_S


FULL = Sizes(
    repeats=7,
    rounds=100,
    graph="M",
    branches=(0, 1_000, 10_000),
    branches_s=3_600.0,
    seconds=6.0,
    runs=3,
    commits=10_000,
)


class Report:
    """Prints the rows of the table as they are measured."""

    def __init__(self, *, trace: bool = False) -> None:
        self.trace = trace
        self.row("what", "measured", "target", "floor or peer")

    def row(self, what: str, measured: str, target: str = "", floor: str = "") -> None:
        print(f"{what:<66} {measured:<48} {target:<12} {floor}".rstrip(), flush=True)

    def lines(self, title: str, lines: Sequence[str]) -> None:
        if self.trace:
            print("\n".join([f"    {title}", *(f"    {line}" for line in lines)]), flush=True)


# -- S3 ------------------------------------------------------------------------------------------------


@contextmanager
def object_store() -> Iterator[Proxy]:
    """SeaweedFS behind a proxy."""
    with folder() as root, seaweedfs(root) as store, proxy_to(store) as proxy:
        yield proxy


def middle(recorded: Sequence[Recorded]) -> Recorded:
    """The operation with the median number of sequential requests."""
    return sorted(recorded, key=lambda one: (one.sequential, one.total))[len(recorded) // 2]


def _counts(one: Recorded) -> str:
    after = f" (+ {len(one.after)} after)" if one.after else ""
    return f"{one.sequential} / {len(one.before)}{after}, {one.ms:.0f} ms"


def _open_and_read(uri: str, environ: Mapping[str, str], read_only: bool, told: Connection) -> None:
    start = time.monotonic()
    graph = og.open(uri, environ=environ, read_only=read_only)
    assert graph.query(READ, params={"n": "hub"}).to_pylist()
    told.send((start, time.monotonic()))


def _read_in_new_process(proxy: Proxy, uri: str, *, read_only: bool) -> Recorded:
    """The requests of an open and a point read in a new process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_open_and_read, args=(uri, proxy.environ, read_only, theirs))
    times: list[tuple[float, float]] = []

    def run() -> None:
        process.start()
        times.append(ours.recv())
        process.join()

    recorded = proxy.record(run)
    return replace(recorded, began=times[0][0], returned=times[0][1])


def on_s3(report: Report, sizes: Sizes, proxy: Proxy) -> None:
    """Requests of single operations."""
    uri, environ, names = proxy.new_place(), proxy.environ, count()
    report.row(f"S3, {sizes.delay_s * 1e3:.0f} ms per request: sequential / total requests, time", "")
    print("  sequential: the longest chain of requests in which each began after the previous response had ended")
    og.init(uri, SCHEMA, environ=environ).mutate(ONE, params={"n": "hub"})
    graph, other = (og.open(uri, environ=environ) for _ in range(2))

    def insert(text: str) -> Callable[[], object]:
        return lambda: graph.mutate(text, params={"n": f"n{next(names)}"})

    def measured(operation: Callable[[], object], before: Callable[[], object] = lambda: None) -> Recorded:
        found: list[Recorded] = []
        for _ in range(sizes.repeats):
            proxy.set_delay(0.0)
            before()
            proxy.set_delay(sizes.delay_s)
            found.append(proxy.record(operation))
        return middle(found)

    def show(what: str, one: Recorded, target: str, floor: str = "") -> None:
        report.row(f"  {what}", _counts(one), target, floor)
        report.lines(what, one.trace())

    for _ in range(2):
        insert(FOUR)()
    options = locate(uri, environ).storage_options
    floors: dict[int, str] = {}
    for tables in (1, 2):
        plain = PlainLance(f"{uri}-plain-{tables}", options, tables)
        plain.commit()
        one = measured(plain.commit)
        floors[tables] = f"{one.sequential} / {one.total}"
        report.lines(f"floor: {tables} table(s) with plain Lance, in turn", one.trace())
    floor = f"Lance: one table {floors[1]}, two in turn {floors[2]}"
    for name, text in WRITES.items():
        show(name, measured(insert(text)), "≤ 9", floor)
    show("branch create", measured(lambda: graph.branch_create(f"new-{next(names)}")), "≤ 5")
    for read_only in (False, True):
        proxy.set_delay(sizes.delay_s)
        found = [_read_in_new_process(proxy, uri, read_only=read_only) for _ in range(sizes.repeats)]
        how = ", read-only" if read_only else ""
        show(f"open + point read in a new process{how}", middle(found), "≤ 10 / ≤ 16")

    def read() -> object:
        return graph.query(READ, params={"n": "hub"}).to_pylist()

    show("warm read", measured(read, read), "≤ 1 / ≤ 1")
    proxy.set_delay(0.0)
    branches = [f"b{number}" for number in range(sizes.others)]
    for branch in branches:
        other.branch_create(branch)
        other.mutate(FOUR, params={"n": f"n{next(names)}"}, branch=branch)
    turns = iter(branches * 10)

    def write_elsewhere() -> None:
        other.mutate(FOUR, params={"n": f"n{next(names)}"}, branch=next(turns))

    how = f"{sizes.others} branches, one wrote the tables before"
    for name, text in WRITES.items():
        show(f"{name}, {how}", measured(insert(text), write_elsewhere), "≤ 12", floor)
    show(f"branch create, {how}", measured(lambda: graph.branch_create(f"new-{next(names)}"), write_elsewhere), "≤ 5")


# -- disk ----------------------------------------------------------------------------------------------


def contents(root: Path) -> tuple[int, int]:
    """The number of files below a folder and their bytes."""
    found = [Path(base) / name for base, _, files in os.walk(root) for name in files]
    return len(found), sum(path.stat().st_size for path in found if path.exists())


def on_disk(report: Report, sizes: Sizes) -> None:
    """Fsyncs, files and CPU of commits to a small graph."""
    with folder() as root, fsyncs.recording() as calls:
        graph, names = og.init(root / "graph", SCHEMA), count()
        graph.mutate(ONE, params={"n": "hub"})
        report.row("disk: fsyncs / sequential barriers per commit, files left by it", "")
        print("  barriers: the longest chain of fsync calls in which each began after the previous one had ended")
        for name, text in WRITES.items():
            counted: list[tuple[int, int]] = []
            files, size = contents(root)
            for number in range(sizes.rounds + 2):
                calls.clear()
                graph.mutate(text, params={"n": f"n{next(names)}"})
                time.sleep(0.002)  # calls after the return count
                counted.append((len(calls.calls), calls.barriers))
                if number == 1:
                    report.lines(name, calls.trace(root / "graph"))
            more, grown = (after - before for after, before in zip(contents(root), (files, size), strict=True))
            made = len(counted)
            figures = f"{_range([one for one, _ in counted])} / {_range([two for _, two in counted])}"
            target = "≤ 10 / ≤ 4" if text == ONE else ""
            report.row(
                f"  {name}", f"{figures}, {more / made:.1f} files, {grown / made / 1024:.1f} KiB", target, "Lance: 0"
            )
    with folder() as root:
        graph = og.init(root / "graph", SMALL)
        plain = PlainLance(str(root / "plain"), tables=2)
        found = costs(
            {"ours": lambda number: graph.mutate(ONE, params={"n": f"n{number}"}), "plain": plain.commit},
            3 * sizes.rounds,
        )
    report.row(
        "CPU of a one-row commit, small graph",
        _cpu(found["ours"].cpu, found["ours"].mean_cpu, found["ours"].ms),
        "≤ 6 ms",
        f"two Lance commits {found['plain'].cpu:.1f} ms",
    )


def _range(values: Sequence[int]) -> str:
    return f"{median(values):.0f} (max {max(values)})"


def _cpu(cpu: float, mean: float, wall: float) -> str:
    return f"{cpu:.1f} ms (mean {mean:.1f}; time {wall:.1f})"


# -- the benchmark graph and many branches -------------------------------------------------------------


def on_large(report: Report, sizes: Sizes) -> None:
    """One-row changes of a large graph beside LanceDB."""
    with folder() as root:
        data = Path(tempfile.gettempdir()) / "omnigraph-bench" if sizes.graph != "S" else root / "data"
        found = on_large_graph(sizes.graph, root, data, sizes.rounds)
    insert = found.synced_insert
    report.row(f"CPU of a one-row commit, graph {found.size}", _cpu(insert.cpu, insert.mean_cpu, insert.ms), "≤ 7 ms")
    ours, peer = found.ours, found.peer
    against = (
        f"{ours['insert'].ms / peer['insert'].ms:.1f} ×, CPU {ours['insert'].cpu / peer['insert'].cpu:.1f} ×"
        if peer
        else f"{ours['insert'].ms:.1f} ms"
    )
    report.row(f"one-row commit on {found.size} / LanceDB add, no fsync", against, "≤ 3 ×", _peer(found, "insert"))
    for name, what, target in (("update", "update by key", "≤ 10 ms"), ("delete", "delete with cascade", "≤ 25 ms")):
        measured = f"{ours[name].ms:.1f} ms (CPU {ours[name].cpu:.1f})"
        report.row(f"{what} on {found.size}, no fsync", measured, target, _peer(found, name))


def _peer(found: LargeCosts, name: str) -> str:
    if found.peer is None:
        return "LanceDB is not installed"
    return f"LanceDB {found.peer[name].ms:.1f} ms (CPU {found.peer[name].cpu:.1f})"


def on_branches(report: Report, sizes: Sizes) -> None:
    """CPU of a commit and of a new branch among many branches."""
    with folder() as root:
        found = among_branches(root, sizes.branches, sizes.rounds // 2, sizes.branches_s)
    for wanted, one in zip(sizes.branches, found, strict=True):
        of = f" of {wanted:,}" if one.branches < wanted else ""
        made = f", created in {one.created_in_s:.0f} s" if one.branches else ""
        title = f"20 tables, {one.branches:,}{of} branches{made}"
        for what, cost, alone in (("commit", one.commit, one.alone), ("branch create", one.create, one.create_alone)):
            report.row(
                f"CPU of a {what}, {title}",
                f"{cost.cpu:.1f} ms, {cost.cpu / alone.cpu:.2f} × (time {cost.ms:.1f})",
                "≤ 1.3 ×",
                f"0 branches {alone.cpu:.1f} ms (time {alone.ms:.1f})",
            )


# -- concurrency ---------------------------------------------------------------------------------------


def on_rates(report: Report, sizes: Sizes, proxy: Proxy) -> None:
    """Commits per second of threads and processes."""
    eight = [f"b{number}" for number in range(sizes.processes)]
    with folder() as root, processes(sizes.processes) as workers:
        for where, uri, environ in (("disk", str(root / "graph"), None), ("S3", proxy.new_place(), proxy.environ)):
            seconds = sizes.seconds * (1 if environ is None else 2)
            proxy.set_delay(0.0)
            graph = og.init(uri, SMALL, environ=environ)
            for branch in eight:
                graph.branch_create(branch)
            proxy.set_delay(sizes.delay_s)
            _threads_row(report, sizes, where, graph, seconds)
            ways = {"one": ["main"], "one branch": ["main"] * len(eight), "eight branches": eight}
            taken: dict[str, list[Rate]] = {way: [] for way in ways}
            for _ in range(sizes.runs):
                for way, branches in ways.items():
                    taken[way].append(workers.rate(uri, environ, branches, seconds))
            one = _middle_rate(taken["one"])
            targets = {"one branch": "≥ 1.5 ×", "eight branches": "≥ 1.7 ×"} if where == "disk" else {}
            for way in ("one branch", "eight branches"):
                many = _middle_rate(taken[way])
                report.row(
                    f"{where}: {len(eight)} processes on {way} / one process",
                    f"{many.per_s / max(one.per_s, 1e-9):.2f} ×, {many}",
                    targets.get(way, "≥ 3 ×"),
                    f"one process {one}",
                )


def _threads_row(report: Report, sizes: Sizes, where: str, graph: Graph, seconds: float) -> None:
    names = count()
    of_threads(graph, 1, 0.3, names)
    taken: dict[int, list[Rate]] = {1: [], sizes.threads: []}
    for _ in range(sizes.runs):
        for threads, rates in taken.items():
            rates.append(of_threads(graph, threads, seconds, names))
    one, many = (_middle_rate(rates) for rates in taken.values())
    report.row(
        f"{where}: {sizes.threads} threads on one branch / one thread",
        f"{many.per_s / max(one.per_s, 1e-9):.2f} ×, {many}",
        "≥ 5 ×" if where == "disk" else "≥ 10 ×",
        f"one thread {one}",
    )


def _middle_rate(rates: Sequence[Rate]) -> Rate:
    return Rate(median(rate.per_s for rate in rates), sum(rate.failed for rate in rates))


class _FullCollections:
    """Measures full collections of the interpreter. They visit every object of the process.

    A server freezes its objects after the start; an application can do the same with `gc.freeze`.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._seconds = 0.0

    def __enter__(self) -> Self:
        gc.callbacks.append(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._called)

    def _called(self, phase: str, info: Mapping[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self._seconds += time.perf_counter() - self._began

    def take(self) -> float:
        """Return the seconds since the last call."""
        taken, self._seconds = self._seconds, 0.0
        return taken


# -- growth --------------------------------------------------------------------------------------------


def on_growth(report: Report, sizes: Sizes) -> None:
    """Many one-row commits to one graph, each after a write and fsync of a control file."""
    young_at, tail = 50, 100
    kinds = (
        "commits",
        "commits without their fsyncs",
        "the same without full garbage collections",
        "CPU of the commits",
        "control file",
    )
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    with folder() as root:
        young = og.init(root / "young", SMALL)
        for number in range(young_at):
            young.mutate(ONE, params={"n": f"n{number}"})
        old = og.init(root / "old", SMALL)
        before = (0, 0)
        with (
            fsyncs.recording() as calls,
            _FullCollections() as collections,
            (root / "control").open("wb", buffering=0) as control,
        ):
            for number in range(sizes.commits):
                if number == sizes.commits - tail:
                    before = contents(root / "old")
                start = time.perf_counter()
                control.write(bytes(4096))
                os.fsync(control)
                times["control file"].append(time.perf_counter() - start)
                calls.clear()
                collections.take()
                start, cpu = time.perf_counter(), time.process_time()
                old.mutate(ONE, params={"n": f"n{number}"})
                taken = time.perf_counter() - start
                times["CPU of the commits"].append(time.process_time() - cpu)
                times["commits"].append(taken)
                times["commits without their fsyncs"].append(taken - calls.seconds)
                times["the same without full garbage collections"].append(taken - calls.seconds - collections.take())
        files, size = contents(root / "old")
        found = costs(
            {
                "old": lambda number: old.mutate(ONE, params={"n": f"more{number}"}),
                "young": lambda number: young.mutate(ONE, params={"n": f"more{number}"}),
            },
            sizes.rounds,
        )
    report.row(
        f"commit at {sizes.commits:,} commits / at {young_at}",
        f"{found['old'].ms / found['young'].ms:.2f} ×, CPU {found['old'].cpu / found['young'].cpu:.2f} ×",
        "≤ 1.2 ×",
        f"at {young_at}: {found['young'].ms:.1f} ms (CPU {found['young'].cpu:.1f})",
    )
    report.row(
        f"files and bytes per commit after {sizes.commits:,}",
        f"{files / sizes.commits:.1f} files, {size / sizes.commits / 1024:.1f} KiB",
        "",
        f"last {tail}: {(files - before[0]) / tail:.1f} files, {(size - before[1]) / tail / 1024:.1f} KiB",
    )
    for name, all_times in times.items():
        p50, p99, p999, most = (float(value) * 1e3 for value in np.percentile(all_times, [50, 99, 99.9, 100]))
        report.row(
            f"{name}: p50 / p99 / p99.9 / max",
            f"{p50:.1f} / {p99:.1f} / {p999:.1f} / {most:.1f} ms",
            "" if name == "control file" else "≤ 10 ×",
            f"p99.9 / p50 {p999 / p50:.1f} ×",
        )


# -- the run -------------------------------------------------------------------------------------------


def run(sizes: Sizes, parts: Sequence[str] = PARTS, *, trace: bool = False) -> None:
    """Measure parts and print their rows."""
    report = Report(trace=trace)
    alone: dict[str, Callable[[Report, Sizes], None]] = {
        "disk": on_disk,
        "large": on_large,
        "branches": on_branches,
        "growth": on_growth,
    }
    stored: dict[str, Callable[[Report, Sizes, Proxy], None]] = {"s3": on_s3, "rates": on_rates}
    for part in parts:
        start = time.perf_counter()
        if part in stored:
            with object_store() as proxy:
                stored[part](report, sizes, proxy)
        else:
            alone[part](report, sizes)
        print(f"  ({part}: {time.perf_counter() - start:.0f} s)", flush=True)


def figures() -> dict[str, float]:
    """Print the table of the short form; there are no other figures."""
    run(Sizes())
    return {}


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.commit", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the sizes of the targets")
    parser.add_argument("--only", default="", help=f"comma-separated parts: {', '.join(PARTS)}")
    parser.add_argument(
        "--trace", action="store_true", help="print every request and fsync of one operation of each kind"
    )
    parser.add_argument("--delay", type=float, default=DELAY_S * 1e3, help="milliseconds added to each request")
    given: Any = parser.parse_args(arguments)
    parts = [part for part in given.only.split(",") if part] or list(PARTS)
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)}")
    run(replace(FULL if given.full else Sizes(), delay_s=given.delay / 1e3), parts, trace=given.trace)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
