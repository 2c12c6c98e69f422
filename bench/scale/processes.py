"""The process of one measurement: its memory, its page cache, its times."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import omnigraph as og
from bench.scale.corpus import POINT

REPEATS = 5


class Taken(NamedTuple):
    """The time of a call, and the processor time of this process during it, which depends less on the load."""

    seconds: float
    processor_s: float


def import_libraries() -> int:
    """Read a graph of one row; return the resident memory after it."""
    with tempfile.TemporaryDirectory() as folder:
        graph = og.init(f"{folder}/graph", "node Doc { key: String @key  text: String  year: I32 }\n", sync=False)
        graph.load([{"type": "Doc", "data": {"key": "a", "text": "b", "year": 1}}], mode="append")
        graph = og.open(graph.uri)
        assert graph.get("Doc", "a") is not None
        assert graph.query(POINT, params={"k": "a"}).to_pylist() == [{"d.year": 1, "d.text": "b"}]
    return resident()


def resident() -> int:
    """Return the resident memory of this process."""
    with Path("/proc/self/statm").open("rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> float:
    """Return the largest resident memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def forget(folder: Path) -> None:
    """Remove the files of a folder from the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bytes_in(folder: Path) -> int:
    """Return the size of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def seconds(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def median_seconds(call: Callable[[int], object]) -> float:
    """Return the median seconds of a call with different numbers."""
    return median(seconds(lambda number=number: call(number + 1)) for number in range(4 * REPEATS))


def taken(call: Callable[[], object]) -> Taken:
    """Return the time and the processor time of one call."""
    started, processor = time.perf_counter(), time.process_time()
    call()
    ended = time.process_time()
    return Taken(time.perf_counter() - started, ended - processor)


def median_taken(call: Callable[[int], object], count: int = 4 * REPEATS) -> Taken:
    """Return the medians of a call with different numbers."""
    calls = [taken(lambda number=number: call(number + 1)) for number in range(count)]
    return Taken(median(one.seconds for one in calls), median(one.processor_s for one in calls))


def in_turns(calls: dict[str, Callable[[int], object]], count: int, rounds: int = REPEATS) -> dict[str, list[float]]:
    """Return, for each system, the median seconds of `count` different calls; the systems alternate."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(count):
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                taken[name].append(seconds(lambda call=call, number=number: call(number)))
        for name, times in taken.items():
            found[name].append(median(times))
    return found
