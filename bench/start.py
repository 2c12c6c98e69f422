"""Duration of a command from the shell: `--help`, and a read of one node, with its parts.

Every run is a new process, as at a terminal. The parts are processor time within one process: imports of libraries,
imports of our modules, and the query.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from omnigraph.demo.build import build_demo

RUNS = 7
READ = ["read", "--alias", "project", "harbour-watch", "--format", "csv"]
SPLIT = """
import io, json, sys, time
from contextlib import redirect_stdout
laps, last = {}, time.process_time()
def lap(name):
    global last
    now = time.process_time(); laps[name] = (now - last) * 1000; last = now
laps["interpreter_ms"] = last * 1000
from omnigraph.cli.main import run; lap("command_line_ms")
import numpy, pyarrow, pyarrow.compute, pyarrow.dataset, lance, yaml; lap("libraries_ms")
import omnigraph.graph; lap("our_modules_ms")
with redirect_stdout(io.TextIOWrapper(io.BytesIO())):
    assert run(WORDS) == 0
lap("query_ms")
print(json.dumps(laps))
"""


def figures() -> dict[str, float]:
    """Medians; the limits are 300 ms for help and 1,200 ms for a read on an idle machine."""
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "demo"
        build_demo(demo, notes=500, environ={})
        walls = {"help_ms": _wall(["--help"], demo), "point_read_ms": _wall(READ, demo)}
        split = [_split(demo) for _ in range(RUNS)]
    return {**walls, **{name: statistics.median(run[name] for run in split) for name in split[0]}}


def _wall(words: list[str], folder: Path) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        command = [sys.executable, "-m", "omnigraph", *words]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def _split(folder: Path) -> dict[str, float]:
    code = SPLIT.replace("WORDS", repr(READ))
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True)
    laps: dict[str, float] = json.loads(done.stdout)
    return laps
