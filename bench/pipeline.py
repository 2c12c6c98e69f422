"""The cost of a bulk load compared with Spark alone, its growth, the cost of an upsert, and the break-even size of
Spark.

Every ratio compares two measurements of one run on one machine, on one Spark session with all cores:

- `load`: the whole load (every record decoded, typed and checked, endpoints looked up, fragments written, one commit)
  against Spark reading the same JSONL with a given schema and writing Parquet without any check (target 2.5); ten
  times the edges against the edges (target 12); the memory of the processes at both sizes, which must not grow;
- `upsert`: into a table ten times its size, against Spark rewriting the same table as Parquet without the replaced
  rows and with the new ones, unchecked: all columns given (target 1.5), and half of them absent, so that the committed
  values are kept (target 3). The ratio to a load of the same rows into an empty table and one scan of the table has no
  target: the commit of Lance alone looks at every row id of the table;
- `switch`: the same input loaded in memory, by the tasks in this process, and on Spark, at growing sizes;
- `start`: a first small load on Spark in a new process, from start to end (target 15 s).

`python -m bench.pipeline --full` uses the sizes of the targets: 1,000,000 nodes with 10,000,000 edges, and an upsert of
1,000,000 into 10,000,000 rows. The default is a hundredth. `--only upsert` measures one part; `--in` names a folder
that keeps the inputs between runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import omnigraph as og
from bench.storage import folder
from omnigraph.engine import tuning
from omnigraph.graph import Graph
from omnigraph.spark import open_session

SCHEMA = """\
node Person {
  name: String @key
  age: I32?
  city: String?
  score: F64?
  @range(age, 0..150)
  @check(name, "^[a-z0-9-]+$")
}

edge Knows: Person -> Person {
  since: Date?
  weight: F32?
}
"""
BARE = """
type string, edge string, `from` string, `to` string,
data struct<name: string, age: int, city: string, score: double, since: date, weight: float>
"""
CITIES = ("Accra", "Bergen", "Kyoto", "Lima", "Oslo", "Quito")
_AT_ONCE = 200_000
ROUNDS = 3


@dataclass(frozen=True)
class Sizes:
    """Sizes of the run."""

    nodes: int = 10_000
    edges: int = 100_000
    table: int = 100_000
    upsert: int = 10_000
    switch_mb: tuple[int, ...] = (8, 32)

    @classmethod
    def full(cls) -> Sizes:
        """The sizes of the targets."""
        return cls(1_000_000, 10_000_000, 10_000_000, 1_000_000, (32, 128, 512))


def write_nodes(path: Path, first: int, last: int, *, age: int = 0) -> Path:
    """Persons with consecutive numbers."""
    with path.open("a") as file:
        for start in range(first, last, _AT_ONCE):
            file.write(
                "".join(
                    f'{{"type":"Person","data":{{"name":"person-{n:08}","age":{(n + age) % 100},'
                    f'"city":"{CITIES[n % 6]}","score":{n / 8}}}}}\n'
                    for n in range(start, min(start + _AT_ONCE, last))
                )
            )
    return path


def write_edges(path: Path, count: int, nodes: int) -> Path:
    """Random edges between persons."""
    random = np.random.default_rng(7)
    with path.open("a") as file:
        for start in range(0, count, _AT_ONCE):
            ends = random.integers(0, nodes, (min(_AT_ONCE, count - start), 2)).tolist()
            file.write(
                "".join(
                    f'{{"edge":"Knows","from":"person-{a:08}","to":"person-{b:08}",'
                    f'"data":{{"since":"20{a % 24:02}-01-{b % 28 + 1:02}","weight":{a % 100 / 100}}}}}\n'
                    for a, b in ends
                )
            )
    return path


@dataclass(frozen=True)
class Process:
    """Figures of the operating system for a process."""

    pid: str
    parent: str
    name: str
    mb: int
    cpu_s: float


def family() -> list[Process]:
    """This process, its JVM, and the workers of the JVM."""
    found = list(_processes())
    pids = {_own()}
    for _ in range(4):
        pids |= {process.pid for process in found if process.parent in pids}
    return [process for process in found if process.pid in pids]


def _own() -> str:
    return str(os.getpid())


def _processes() -> Iterator[Process]:
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            head, _, rest = (entry / "stat").read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        cpu_s = sum(map(int, fields[11:13])) / tick
        yield Process(entry.name, fields[1], head.partition("(")[2], int(fields[21]) * page >> 20, cpu_s)


@dataclass
class Spent:
    """Wall-clock seconds, processor seconds, which depend less on other load, and peak memory in MB."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    driver_mb: int = 0
    jvm_mb: int = 0
    worker_mb: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)

    def named(self, name: str) -> dict[str, float]:
        """Two figures."""
        return {f"{name}_s": self.wall_s, f"{name}_cpu_s": self.cpu_s}

    def over(self, other: Spent, name: str) -> dict[str, float]:
        """Two ratios."""
        return {f"{name}_ratio": self.wall_s / other.wall_s, f"{name}_cpu_ratio": self.cpu_s / other.cpu_s}


def spent(run: Callable[[], Any]) -> Spent:
    """Measure a block; processes are sampled periodically because workers come and go."""
    found, stop = Spent(), threading.Event()
    first = {process.pid: process.cpu_s for process in family()}
    last = dict(first)

    def look() -> None:
        for process in family():
            last[process.pid] = process.cpu_s
            kind = "driver_mb" if process.pid == _own() else "jvm_mb" if process.name == "java" else "worker_mb"
            setattr(found, kind, max(getattr(found, kind), process.mb))

    def watch() -> None:
        while not stop.wait(0.2):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start = time.perf_counter()
    try:
        run()
    finally:
        found.wall_s = time.perf_counter() - start
        stop.set()
        watcher.join()
    look()
    found.cpu_s = sum(seconds - first.get(pid, 0.0) for pid, seconds in last.items())
    return found


def new_graph(root: Path, name: str) -> Graph:
    """An empty graph; writes are synced, as by default."""
    shutil.rmtree(root / name, ignore_errors=True)
    return og.init(root / name, SCHEMA, environ={})


def bare(spark: Any, source: Path, out: Path) -> None:
    """Spark alone, without checks."""
    spark.read.schema(BARE).json(str(source)).write.mode("overwrite").parquet(str(out))


def made(path: Path, make: Callable[[Path], object]) -> Path:
    """The content of a path, created atomically if missing."""
    if not path.exists():
        new = path.with_name(f"{path.name}.new")
        if new.is_dir():
            shutil.rmtree(new)
        new.unlink(missing_ok=True)
        make(new)
        new.rename(path)
    return path


def edges_and_nodes(root: Path, nodes: int, edges: int) -> Path:
    """A file of nodes, then edges between them."""
    return made(root / f"{nodes}-{edges}.jsonl", lambda path: write_edges(write_nodes(path, 0, nodes), edges, nodes))


@dataclass(frozen=True)
class Bench:
    """Folder, sizes and session of a run."""

    root: Path
    sizes: Sizes
    spark: Any

    def load(self, graph: Graph, path: Path, mode: str = "append", **more: Any) -> Spent:
        """Measure a load on Spark."""
        return spent(lambda: graph.load(path, mode=mode, engine="spark", spark=self.spark, **more))


def _load(bench: Bench) -> dict[str, float]:
    root, sizes = bench.root, bench.sizes
    small = edges_and_nodes(root, sizes.nodes // 10, sizes.edges // 10)
    large = edges_and_nodes(root, sizes.nodes, sizes.edges)
    found: dict[str, float] = {"input_mb": large.stat().st_size / 1e6}
    few = bench.load(new_graph(root, "few"), small)
    many = bench.load(new_graph(root, "many"), large)
    unchecked = spent(lambda: bare(bench.spark, large, root / "bare.parquet"))
    found |= many.named("load") | unchecked.named("spark_json_to_parquet")
    found |= many.over(unchecked, "load_over_spark") | many.over(few, "ten_times_the_input")
    for name in ("driver_mb", "jvm_mb", "worker_mb"):
        found |= {f"small_{name}": getattr(few, name), f"large_{name}": getattr(many, name)}
    return found


def rewrite(spark: Any, table: Path, rows: Path, out: Path) -> None:
    """Replace rows of a Parquet table by Spark alone, without checks."""
    new = spark.read.schema(BARE).json(str(rows)).select("data.name", "data.age", "data.city", "data.score")
    old = spark.read.parquet(str(table))
    old.join(new, "name", "left_anti").unionByName(new).write.mode("overwrite").parquet(str(out))


UPSERTS = {"upsert": ',"city":"Oslo","score":0.5', "upsert_half": ""}
"""Name of an upsert and the text of the properties that its records give beside `name` and `age`."""


def write_upsert(path: Path, sizes: Sizes, given: str) -> None:
    """Records of which 90 % exist, spread over the whole table."""
    step = max(1, sizes.table // sizes.upsert)
    with path.open("w") as file:
        for n in range(0, sizes.table, step):
            number = n if n // step % 10 else sizes.table + n
            file.write(f'{{"type":"Person","data":{{"name":"person-{number:08}","age":7{given}}}}}\n')


def _upsert(bench: Bench) -> dict[str, float]:
    root, sizes, spark = bench.root, bench.sizes, bench.spark

    def write_table(path: Path) -> None:
        bench.load(new_graph(path.parent, path.name), table_rows())

    def write_parquet(path: Path) -> None:
        columns = ("data.name", "data.age", "data.city", "data.score")
        spark.read.schema(BARE).json(str(table_rows())).select(*columns).write.parquet(str(path))

    def table_rows() -> Path:
        return made(root / f"table-{sizes.table}.jsonl", lambda path: write_nodes(path, 0, sizes.table))

    graph = og.open(made(root / f"table-{sizes.table}", write_table), environ={})
    parquet = made(root / f"table-{sizes.table}.parquet", write_parquet)
    inputs = {
        name: made(root / f"{name}-{sizes.upsert}.jsonl", partial(write_upsert, sizes=sizes, given=given))
        for name, given in UPSERTS.items()
    }
    found: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        rows = inputs["upsert"]
        rewritten = spent(partial(rewrite, spark, parquet, rows, root / "rewritten.parquet"))
        # The workers ended while Spark rewrote the table without them.
        bench.load(new_graph(root, "warm"), edges_and_nodes(root, sizes.nodes // 10, sizes.edges // 10))
        fresh = bench.load(new_graph(root, "fresh"), rows)
        scan = spent(lambda: sum(batch.num_rows for batch in graph.snapshot().table("node:Person").batches()))
        figures = rewritten.named("spark_rewrite") | fresh.named("fresh") | scan.named("scan")
        for name, path in inputs.items():
            # On a branch, so that the table stays the same for the next run.
            branch = f"{name}-{number}"
            graph.branch_create(branch)
            upsert = bench.load(graph, path, "merge", branch=branch)
            written = graph.snapshot(branch).table("node:Person").row_count
            assert written == sizes.table + sizes.upsert // 10
            graph.branch_delete(branch, force=True)
            figures |= upsert.named(name) | upsert.over(rewritten, f"{name}_over_spark")
            figures |= upsert.over(fresh + scan, f"{name}_over_load_and_scan")
        for name, value in figures.items():
            found.setdefault(name, []).append(value)
    return {name: median(values) for name, values in found.items()}


def _switch(bench: Bench) -> dict[str, float]:
    """The three ways at growing sizes; an edge has about 110 bytes."""
    found: dict[str, float] = {}
    for mb in bench.sizes.switch_mb:
        edges = mb * 1_000_000 // 110
        path = edges_and_nodes(bench.root, max(edges // 10, 1), edges)
        for name, engine in (("memory", "memory"), ("tasks", "auto")):
            limits = {"memory_load_bytes_max": 0, "spark_bytes_min": 1 << 60} if name == "tasks" else {}
            graph = new_graph(bench.root, "switch")
            with tuning.replaced(**limits):
                found[f"{name}_{mb}mb_s"] = spent(partial(graph.load, path, mode="append", engine=engine)).wall_s
        found[f"spark_{mb}mb_s"] = bench.load(new_graph(bench.root, "switch"), path).wall_s
    return found


def _start(root: Path) -> dict[str, float]:
    path = edges_and_nodes(root, 1_000, 1_000)
    found: dict[str, float] = {}
    for number in (1, 2):
        graph = new_graph(root, "start")
        command = [sys.executable, "-m", "omnigraph", "load", "--data", str(path), "--mode", "append"]
        command += ["--engine", "spark", graph.uri]
        ran = spent(partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL))
        found[f"first_small_load_{number}_s"] = ran.wall_s
    return found


ON_SPARK: dict[str, Callable[[Bench], dict[str, float]]] = {"load": _load, "upsert": _upsert, "switch": _switch}
PARTS = (*ON_SPARK, "start")


def measured(sizes: Sizes, parts: Sequence[str], root: Path) -> Iterator[tuple[str, float]]:
    """The figures of the selected parts, as soon as each is known."""
    wanted = [part for part in parts if part in ON_SPARK]
    if wanted:
        with open_session() as spark:
            bench = Bench(root, sizes, spark)
            # Run once before timing: load classes, start workers, fill caches.
            small = edges_and_nodes(root, sizes.nodes // 10, sizes.edges // 10)
            bench.load(new_graph(root, "warm"), small)
            bare(spark, small, root / "warm.parquet")
            for part in wanted:
                yield from ON_SPARK[part](bench).items()
    if "start" in parts:
        yield from _start(root).items()


def figures() -> dict[str, float]:
    """The figures at a hundredth of the sizes of the targets."""
    with folder() as root:
        return dict(measured(Sizes(), PARTS, root))


def main(arguments: list[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser("python -m bench.pipeline")
    parser.add_argument("--full", action="store_true", help="the sizes the targets were set for")
    parser.add_argument("--only", choices=PARTS, action="append", help="just this part; may be repeated")
    parser.add_argument("--in", dest="root", type=Path, help="a folder that keeps what is read from run to run")
    given = parser.parse_args(arguments)
    with nullcontext(given.root) if given.root else folder() as root:
        root.mkdir(parents=True, exist_ok=True)
        for name, value in measured(Sizes.full() if given.full else Sizes(), given.only or PARTS, root):
            print(f"  {name:<50} {value:12,.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
