"""What a bulk load costs beside Spark alone, how it grows, what an upsert costs, and where Spark begins to pay.

Every ratio compares two things of one run on one machine, on one Spark session with all its cores:

- the whole load (every record decoded, typed and checked, endpoints looked up, fragments written, one commit) against
  Spark reading the same JSONL with a given schema and writing Parquet, with no check at all (target 2.5);
- ten times the edges against the edges (target 12), and the memory of the processes at both sizes: it must not grow;
- an upsert into a table ten times its size against a load of the same rows into an empty table and one scan of the
  table (target 1.5);
- the same input loaded in memory, by the tasks in this process, and on Spark, at growing sizes: where the switch is.

`python -m bench.pipeline --full` uses the sizes the targets were set for: 1,000,000 nodes with 10,000,000 edges, and an
upsert of 1,000,000 into 10,000,000 rows. Without it they are a hundredth. `--start` measures a first small load in a
new process.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import omnigraph as og
from bench.storage import folder
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


@dataclass(frozen=True)
class Sizes:
    """How large everything is."""

    nodes: int = 10_000
    edges: int = 100_000
    table: int = 100_000
    upsert: int = 10_000
    switch_mb: tuple[int, ...] = (8, 32)

    @classmethod
    def full(cls) -> Sizes:
        """The sizes the targets were set for."""
        return cls(1_000_000, 10_000_000, 10_000_000, 1_000_000, (32, 128, 512))


def write_nodes(path: Path, first: int, last: int, *, age: int = 0) -> Path:
    """Persons by number."""
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
    """Edges between persons at random."""
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


@dataclass
class Peaks:
    """The most memory each kind of process had, in MB, while a block ran."""

    driver: int = 0
    jvm: int = 0
    worker: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    @classmethod
    @contextmanager
    def watched(cls) -> Iterator[Peaks]:
        """Look at the processes every now and then."""
        peaks = cls()
        thread = threading.Thread(target=peaks._watch, daemon=True)
        thread.start()
        try:
            yield peaks
        finally:
            peaks._stop.set()
            thread.join()

    def _watch(self) -> None:
        own = Path("/proc/self").resolve().name
        while not self._stop.wait(0.2):
            family = {own}
            found = list(_processes())
            for _ in range(4):
                family |= {pid for pid, parent, _, _ in found if parent in family}
            for pid, _, mb, name in found:
                if pid == own:
                    self.driver = max(self.driver, mb)
                elif pid in family and name == "java":
                    self.jvm = max(self.jvm, mb)
                elif pid in family:
                    self.worker = max(self.worker, mb)


def _processes() -> Iterator[tuple[str, str, int, str]]:
    for folder_ in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(
                line.split(":\t", 1) for line in (folder_ / "status").read_text().splitlines() if ":\t" in line
            )
        except OSError:
            continue
        yield folder_.name, status.get("PPid", ""), int(status.get("VmRSS", "0 kB").split()[0]) // 1024, status["Name"]


def timed(run: Callable[[], Any]) -> float:
    """Seconds it takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def new_graph(root: Path, name: str) -> Graph:
    """An empty graph; what is written waits for the disk, as by default."""
    return og.init(root / name, SCHEMA, environ={})


def bare(spark: Any, source: Path, out: Path) -> None:
    """Spark by itself, with nothing checked."""
    spark.read.schema(BARE).json(str(source)).write.parquet(str(out))


def figures(sizes: Sizes | None = None) -> dict[str, float]:
    """The figures, targets in the module's text."""
    sizes = sizes or Sizes()
    found: dict[str, float] = {}
    with folder() as root, open_session() as spark:
        small = write_edges(
            write_nodes(root / "small.jsonl", 0, sizes.nodes // 10), sizes.edges // 10, sizes.nodes // 10
        )
        # Everything is loaded once before the clock starts: classes, workers, caches.
        new_graph(root, "warm").load(small, mode="append", engine="spark", spark=spark)
        bare(spark, small, root / "warm.parquet")
        found |= _against_spark(root, spark, sizes, small)
        found |= _upsert(root, spark, sizes)
        for mb in sizes.switch_mb:
            found |= _switch(root, spark, mb)
    return found


def _against_spark(root: Path, spark: Any, sizes: Sizes, small: Path) -> dict[str, float]:
    large = write_edges(write_nodes(root / "large.jsonl", 0, sizes.nodes), sizes.edges, sizes.nodes)
    found: dict[str, float] = {"input_mb": large.stat().st_size / 1e6}
    with Peaks.watched() as before:
        few = timed(lambda: new_graph(root, "few").load(small, mode="append", engine="spark", spark=spark))
    with Peaks.watched() as after:
        many = timed(lambda: new_graph(root, "many").load(large, mode="append", engine="spark", spark=spark))
    unchecked = timed(lambda: bare(spark, large, root / "bare.parquet"))
    found |= {
        "load_s": many,
        "spark_json_to_parquet_s": unchecked,
        "load_over_spark_ratio": many / unchecked,
        "ten_times_the_input_ratio": many / few,
    }
    for name in ("driver", "jvm", "worker"):
        found[f"{name}_peak_mb_small"] = getattr(before, name)
        found[f"{name}_peak_mb_large"] = getattr(after, name)
    large.unlink()
    return found


def _upsert(root: Path, spark: Any, sizes: Sizes) -> dict[str, float]:
    graph = new_graph(root, "upsert")
    base = write_nodes(root / "base.jsonl", 0, sizes.table)
    graph.load(base, mode="append", engine="spark", spark=spark)
    base.unlink()
    # Nine of ten rows are there already, spread over the whole table.
    rows = root / "rows.jsonl"
    step = max(1, sizes.table // sizes.upsert)
    with rows.open("w") as file:
        for n in range(0, sizes.table, step):
            number = n if n // step % 10 else sizes.table + n
            file.write(f'{{"type":"Person","data":{{"name":"person-{number:08}","age":7,"city":"Oslo"}}}}\n')
    fresh = timed(lambda: new_graph(root, "fresh").load(rows, mode="append", engine="spark", spark=spark))
    scan = timed(lambda: sum(batch.num_rows for batch in graph.snapshot().table("node:Person").batches()))
    upsert = timed(lambda: graph.load(rows, mode="merge", engine="spark", spark=spark))
    rows.unlink()
    return {"fresh_s": fresh, "scan_s": scan, "upsert_s": upsert, "upsert_ratio": upsert / (fresh + scan)}


def _switch(root: Path, spark: Any, mb: int) -> dict[str, float]:
    """The three ways at one size; an edge has about 110 bytes."""
    edges = mb * 1_000_000 // 110
    nodes = max(edges // 10, 1)
    path = write_edges(write_nodes(root / f"{mb}.jsonl", 0, nodes), edges, nodes)
    from omnigraph import bulk  # noqa: PLC0415

    found: dict[str, float] = {}
    kept = bulk.MEMORY_BYTES, bulk.SPARK_BYTES
    for name, engine in (("memory", "memory"), ("tasks", "auto"), ("spark", "spark")):
        bulk.MEMORY_BYTES, bulk.SPARK_BYTES = (0, 1 << 60) if name == "tasks" else kept
        session = spark if name == "spark" else None
        graph = new_graph(root, f"{name}-{mb}")
        found[f"{name}_{mb}mb_s"] = timed(
            lambda graph=graph, engine=engine, session=session: graph.load(
                path, mode="append", engine=engine, spark=session
            )
        )
    bulk.MEMORY_BYTES, bulk.SPARK_BYTES = kept
    path.unlink()
    return found


def start_s() -> float:
    """A first small load on Spark in a process of its own, from its start to its end."""
    with folder() as root:
        path = write_edges(write_nodes(root / "x.jsonl", 0, 1_000), 1_000, 1_000)
        graph = new_graph(root, "g")
        script = "import omnigraph as og, sys; og.open(sys.argv[1]).load(sys.argv[2], mode='append', engine='spark')"
        command = [sys.executable, "-c", script, graph.uri, str(path)]
        return timed(lambda: subprocess.run(command, check=True))


def main(arguments: list[str]) -> int:
    """Print the figures."""
    if "--start" in arguments:
        for number in (1, 2):
            print(f"  first small load, run {number:<28} {start_s():12,.2f} s")
        return 0
    for name, value in figures(Sizes.full() if "--full" in arguments else Sizes()).items():
        print(f"  {name:<50} {value:12,.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
