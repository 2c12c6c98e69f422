"""Duration of a command from the shell: `--help`, and a read of one node, with its parts.

Every run is a new process, as at a terminal. The floor is `python -c 'import pyarrow, lance'`: the libraries of a read.
It is measured with pandas, which `pyarrow.dataset` imports if it is installed, and without. A read hides pandas
from these imports, so both forms take the same time. Commands and floors alternate; the ratios are of one run.
The parts are processor time within one process: imports of libraries, imports of our modules, and the query.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import keeping_bytecode
from omnigraph.demo.build import build_demo

RUNS = 9
READ = ["read", "--alias", "project", "harbour-watch", "--format", "csv"]
HIDE_PANDAS = """
import sys
class NoPandas:
    def find_spec(name, *_):
        if name == "pandas": raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, NoPandas)
"""
PROGRAM = "import sys; from omnigraph.cli.main import main; sys.argv[1:] = WORDS; main()"
SPLIT = """
import io, json, sys, time
from contextlib import redirect_stdout
laps, last = {}, time.process_time()
def lap(name):
    global last
    now = time.process_time(); laps[name] = (now - last) * 1000; last = now
laps["interpreter_ms"] = last * 1000
from omnigraph.cli.main import run; lap("command_line_ms")
from omnigraph.cli.process_settings import own_process; own_process()
from omnigraph.large_modules import importing_large_modules
with importing_large_modules(pandas=False):
    import numpy, pyarrow, pyarrow.compute, pyarrow.dataset, lance, yaml
lap("libraries_ms")
import omnigraph.graph_open, omnigraph.query.compile; lap("our_modules_ms")
with redirect_stdout(io.TextIOWrapper(io.BytesIO())):
    assert run(WORDS) == 0
lap("query_ms")
print(json.dumps(laps))
"""


KERNELS = """
import time
import numpy
from omnigraph.engine import kernels
start = time.perf_counter()
assert kernels.load()
print((time.perf_counter() - start) * 1000)
"""


def figures() -> dict[str, float]:
    """Medians; the limits on an idle machine are 300 ms for help, 450 ms for a read, 550 ms with pandas, 150 ms for a
    read in a warm server, and 100 ms for the load of compiled kernels.
    """
    program = PROGRAM.replace("WORDS", repr(READ))
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "demo"
        build_demo(demo, notes=500, environ={})
        walls = _walls(
            {
                "help_ms": ["-m", "omnigraph", "--help"],
                "point_read_ms": ["-m", "omnigraph", *READ],
                "point_read_without_pandas_ms": ["-c", HIDE_PANDAS + program],
                "libraries_floor_ms": ["-c", "import pyarrow, lance"],
                "libraries_floor_without_pandas_ms": ["-c", HIDE_PANDAS + "import pyarrow, lance"],
            },
            demo,
        )
        with _warm_server(demo) as environ:
            read = ["-m", "omnigraph", *READ]
            walls |= _walls({"point_read_warm_ms": read}, demo, environ)
        split = [_split(demo) for _ in range(RUNS)]
    ratios = {
        "point_read_warm_to_floor_ratio": walls["point_read_warm_ms"] / walls["libraries_floor_ms"],
        "point_read_to_floor_ratio": walls["point_read_ms"] / walls["libraries_floor_ms"],
        "point_read_to_floor_without_pandas_ratio": walls["point_read_without_pandas_ms"]
        / walls["libraries_floor_without_pandas_ms"],
    }
    kernels = {"compiled_kernels_load_ms": _kernels()}
    return {**walls, **ratios, **kernels, **{name: statistics.median(run[name] for run in split) for name in split[0]}}


@contextmanager
def _warm_server(folder: Path) -> Iterator[dict[str, str]]:
    """Run a warm server; yield the environment of its commands."""
    with tempfile.TemporaryDirectory(prefix="og") as runtime:
        environ = {**keeping_bytecode(), "XDG_RUNTIME_DIR": runtime, "OMNIGRAPH_WARM": "on"}
        command = [sys.executable, "-m", "omnigraph", "serve", "--warm"]
        process = subprocess.Popen(command, cwd=folder, env=environ, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                if list(Path(runtime).glob("omnigraph/*.sock")):
                    break
                time.sleep(0.05)
            yield environ
        finally:
            process.terminate()
            process.wait()


def _walls(commands: dict[str, list[str]], folder: Path, environ: dict[str, str] | None = None) -> dict[str, float]:
    """Return the median duration of each command; the commands take turns. By default no warm server is used."""
    environ = environ or {**keeping_bytecode(), "OMNIGRAPH_WARM": "off"}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(RUNS + 1):
        for name, words in commands.items():
            start = time.perf_counter()
            command = [sys.executable, *words]
            subprocess.run(command, cwd=folder, env=environ, check=True, stdout=subprocess.DEVNULL)
            if number:  # the first round fills the caches of files and of bytecode
                times[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(values) for name, values in times.items()}


def _split(folder: Path) -> dict[str, float]:
    code = SPLIT.replace("WORDS", repr(READ))
    command, environ = [sys.executable, "-c", code], keeping_bytecode()
    done = subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True, text=True)
    laps: dict[str, float] = json.loads(done.stdout)
    return laps


def _kernels() -> float:
    """Return the median time to load compiled kernels in a new process; the first one may compile them."""
    command = [sys.executable, "-c", KERNELS]
    environ = keeping_bytecode()
    done = [subprocess.run(command, env=environ, check=True, capture_output=True, text=True) for _ in range(RUNS + 1)]
    return statistics.median(float(one.stdout) for one in done[1:])
