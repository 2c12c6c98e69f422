"""Throughput of two threads of one process compared with one."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

from bench.read.graph import SIZES, Data, make
from bench.read.systems import OmniGraph
from bench.read.workers import prepare
from bench.read.workloads import TRAVERSALS, Workload
from omnigraph.engine import kernels

MIX = ("2 hops distinct", "3 hops distinct", "reachable", "whole graph", "one city", "edge property", "group by")


def figures(size: str, folder: Path, seconds: float = 4.0) -> dict[str, float]:
    """Rounds of the traversal mix per second with one thread and with two, and their ratio."""
    data = make(SIZES[size], folder)
    home = folder / size / OmniGraph.name
    system = OmniGraph(home)
    prepare(system, data, home)
    kernels.load()
    mix = [workload for workload in TRAVERSALS if any(word in workload.name for word in MIX)]
    _round(system, mix, data, 0)
    one = max(_rounds(system, mix, data, 1, seconds) for _ in range(2))
    two = max(_rounds(system, mix, data, 2, seconds) for _ in range(2))
    return {"1 thread, rounds/s": one, "2 threads, rounds/s": two, "2 threads / 1 thread": two / one}


def _round(system: OmniGraph, mix: list[Workload], data: Data, number: int) -> None:
    for workload in mix:
        for place in range(4):
            start = {"start": data.starts[(number + place) % len(data.starts)]} if workload.keyed else {}
            system.ask(workload, start)


def _rounds(system: OmniGraph, mix: list[Workload], data: Data, threads: int, seconds: float) -> float:
    done = [0] * threads
    end = time.perf_counter() + seconds

    def work(own: int) -> None:
        while time.perf_counter() < end:
            _round(system, mix, data, done[own])
            done[own] += 1

    began = time.perf_counter()
    workers = [Thread(target=work, args=(own,)) for own in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done) / (time.perf_counter() - began)
