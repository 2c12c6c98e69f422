"""One process per system: two systems cannot share one, and peak memory is measured per system."""

from __future__ import annotations

import gc
import multiprocessing
import resource
import shutil
import time
from collections.abc import Sequence
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.read.graph import VERSION, Data, is_done
from bench.read.systems import SYSTEMS, System, normal
from bench.read.workloads import Rows, Workload

ANSWER_S_MAX = 600
_CONTEXT = multiprocessing.get_context("spawn")


class Asked:
    """Client of a worker process. Errors of the worker are raised here."""

    def __init__(self, name: str, here: Connection) -> None:
        self.name = name
        self._here = here

    def prepare(self) -> dict[str, Any]:
        """Load the system if necessary, and open it; returns its version and the seconds of the load."""
        return dict(self._call("prepare", patience_s=3600))

    def answers(self, place: int) -> list[Rows] | None:
        """The results of a workload, one per start node; None if unsupported."""
        found: list[Rows] | None = self._call("answers", place)
        return found

    def time(self, place: int, seconds: float) -> list[float]:
        """Seconds of each call, as many as fit into the time."""
        return list(self._call("time", place, seconds))

    def peak_mib(self) -> float:
        """Peak memory."""
        return float(self._call("peak"))

    def _call(self, *message: Any, patience_s: float = ANSWER_S_MAX) -> Any:
        self._here.send(message)
        if not self._here.poll(patience_s):
            raise TimeoutError(f"{self.name} did not answer {message} within {patience_s} s")
        failed, value = self._here.recv()
        if failed:
            raise RuntimeError(f"{self.name}: {value}")
        return value


class Worker(Asked):
    """A system in a separate process."""

    def __init__(self, name: str, data: Data, workloads: Sequence[Workload]) -> None:
        here, there = _CONTEXT.Pipe()
        super().__init__(name, here)
        self.is_graph = SYSTEMS[name].is_graph
        folder = data.folder.parent / name
        self._process = _CONTEXT.Process(target=serve, args=(name, folder, data, tuple(workloads), there), daemon=True)
        self._process.start()
        there.close()

    def close(self) -> None:
        """Terminate the process."""
        self._here.close()
        self._process.join(20)
        if self._process.is_alive():
            self._process.kill()


def serve(name: str, folder: Path, data: Data, workloads: tuple[Workload, ...], pipe: Connection) -> None:
    """Serve requests until the connection closes."""
    system = SYSTEMS[name](folder)
    while True:
        try:
            message = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((False, _handle(system, data, workloads, folder, *message)))
        except Exception as error:
            pipe.send((True, f"{type(error).__name__}: {error}"))


def _handle(
    system: System, data: Data, workloads: tuple[Workload, ...], folder: Path, what: str, *arguments: Any
) -> Any:
    match what:
        case "prepare":
            return prepare(system, data, folder)
        case "answers":
            workload = workloads[arguments[0]]
            if not system.can(workload):
                return None
            asked = [system.ask(workload, given) for given in params_of(workload, data)]
            return [normal(rows, ordered=workload.ordered) for rows in asked]
        case "time":
            return _time(system, workloads[arguments[0]], data, arguments[1])
        case _:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def prepare(system: System, data: Data, folder: Path) -> dict[str, Any]:
    """Load a system if necessary, and open it; returns its version and the seconds of the load."""
    done = folder / "filled"
    took = None
    if not is_done(done):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        started = time.perf_counter()
        system.fill(data)
        took = time.perf_counter() - started
        done.write_text(VERSION)
    system.open()
    return {"version": system.version(), "fill_s": took}


def params_of(workload: Workload, data: Data) -> list[dict[str, Any]]:
    """The parameters of each call of a workload."""
    if workload.asks:
        return [{name: one[name] for name in workload.asks} | workload.params for one in data.questions]
    starts = [{"start": start} for start in data.starts] if workload.keyed else [{}]
    return [start | workload.params for start in starts]


def _time(system: System, workload: Workload, data: Data, seconds: float) -> list[float]:
    """Call repeatedly, over all start nodes, until the time is up; at least once."""
    given = cycle(params_of(workload, data))
    taken: list[float] = []
    gc.collect()
    gc.disable()
    try:
        end = time.perf_counter() + seconds
        while not taken or time.perf_counter() < end:
            params = next(given)
            started = time.perf_counter()
            system.ask(workload, params)
            taken.append(time.perf_counter() - started)
    finally:
        gc.enable()
    return taken
