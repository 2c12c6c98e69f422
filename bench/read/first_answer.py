"""The first answer of a new process: from the end of its imports to the first rows, with the stored graph.

The first process of a workload reports the modules that it imported. Later ones import these before the clock starts:
for every system the time is that of opening the graph and of the query, without process start and Python imports.
Files are in the cache of the operating system.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Any

from bench.measure import keeping_bytecode
from bench.read.graph import Data
from bench.read.systems import SYSTEMS, normal
from bench.read.workers import params_of
from bench.read.workloads import Rows, Workload


class FirstAnswers:
    """Runs workloads in new processes."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._modules: dict[tuple[str, str], list[str]] = {}

    def run(self, name: str, workload: Workload) -> tuple[float, Rows]:
        """Return the seconds to the first answer of a new process, and its rows."""
        key = (name, workload.name)
        if key not in self._modules:
            self._modules[key] = self._process(name, workload, [])["modules"]
        found = self._process(name, workload, self._modules[key])
        return found["seconds"], [tuple(row) for row in found["rows"]]

    def _process(self, name: str, workload: Workload, modules: list[str]) -> dict[str, Any]:
        folder = self._data.folder.parent / name
        given = pickle.dumps((name, folder, workload, params_of(workload, self._data)[0], modules))
        command = [sys.executable, "-m", "bench.read.first_answer"]
        done = subprocess.run(command, input=given, env=keeping_bytecode(), capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name}, {workload.name}: {done.stderr.decode()[-2000:]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def _importable() -> list[str]:
    """The modules of this process that can be imported by name."""
    specs = {name: getattr(module, "__spec__", None) for name, module in sys.modules.items()}
    return [name for name, spec in specs.items() if spec is not None and spec.name == name]


def _answer() -> None:
    name, folder, workload, params, modules = pickle.load(sys.stdin.buffer)
    before = _importable()
    for module in modules:
        with suppress(ModuleNotFoundError):  # one that the system loaded from a file of its own
            import_module(module)
    system = SYSTEMS[name](folder)
    started = time.perf_counter()
    system.open()
    rows = system.ask(workload, params)
    seconds = time.perf_counter() - started
    imported = [module for module in _importable() if module not in before]
    rows = normal(rows, ordered=workload.ordered)
    print(json.dumps({"seconds": seconds, "rows": rows, "modules": imported}))


if __name__ == "__main__":
    _answer()
