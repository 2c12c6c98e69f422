"""The cost of merge and diff, and how it grows: with the change, not with the graph.

A graph of `large` nodes and five times as many edges is compared with one of a tenth of that. Both have branches with
1,000 changed rows each (nodes inserted and updated, edges inserted and deleted). main has changes too, so every merge
is a three-way merge in both tables. Measured in a separate process, so that its memory is that of the merge:

- a merge in the large graph against the same in the small one (target 3), its diff likewise (target 3);
- the peak memory of the process (target 1 GiB);
- rows per second of one merge of many changed rows without a conflict.

`python -m bench.merge --full` uses the sizes of the targets: 1,000,000 nodes, 5,000,000 edges, 100,000 changed rows.
The default sizes are smaller.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

import omnigraph as og
from bench.storage import folder
from omnigraph.graph import Graph

SCHEMA = """\
node Person {
  name: String @key
  age: I32?
  city: String?
  score: F64?
}

edge Knows: Person -> Person {
  since: Date?
}
"""
EDGES_PER_NODE = 5


@dataclass(frozen=True)
class Sizes:
    """Sizes of the run."""

    large: int = 100_000
    changed: int = 1_000
    many: int = 10_000
    rounds: int = 3

    @property
    def small(self) -> int:
        """A tenth."""
        return self.large // 10


FULL = Sizes(large=1_000_000, many=100_000, rounds=5)


def names(numbers: np.ndarray) -> pa.Array:
    return pa.array([f"person-{number:08}" for number in numbers.tolist()])


def people(numbers: np.ndarray, age: int) -> pa.Table:
    count = len(numbers)
    return pa.table(
        {
            "name": names(numbers),
            "age": pa.array(np.full(count, age, np.int32)),
            "city": pa.array([f"city-{number % 500}" for number in numbers.tolist()]),
            "score": pa.array(numbers / 7),
        }
    )


def knows(sources: np.ndarray, targets: np.ndarray) -> pa.Table:
    days = pa.array(np.full(len(sources), 19_000, np.int32)).cast(pa.date32())
    return pa.table({"from": names(sources), "to": names(targets), "since": days})


def build(root: Path, nodes: int, sizes: Sizes, *, many: bool) -> Graph:
    """A graph whose branches `b0`, `b1`, … and main have their own changes."""
    graph = og.init(root, SCHEMA, sync=False)
    random = np.random.default_rng(7)
    numbers = np.arange(nodes)
    ends = random.integers(0, nodes, nodes * EDGES_PER_NODE)
    graph.load({"Person": people(numbers, 30)}, mode="append")
    graph.load({"Knows": knows(np.repeat(numbers, EDGES_PER_NODE), ends)}, mode="append")
    graph.optimize()
    free = random.permutation(nodes)
    for number in range(sizes.rounds + 1):
        branch = f"b{number}" if number < sizes.rounds else "main"
        if branch != "main":
            graph.branch_create(branch)
        change(graph.on(branch), free[number * sizes.changed :], nodes * (2 + number), sizes.changed)
    if many:
        graph.branch_create("many")
        rows = free[(sizes.rounds + 1) * sizes.changed :][: sizes.many]
        graph.load({"Person": people(np.sort(rows), 77)}, mode="merge", branch="many")
        change(graph, free[-sizes.changed :], nodes * 50, sizes.changed)
    return graph


def change(graph: Graph, free: np.ndarray, fresh: int, count: int) -> None:
    """40 % updates, 20 % new nodes, 30 % new edges, the rest deleted edges."""
    updated, new = free[: count * 4 // 10], fresh + np.arange(count * 2 // 10)
    linked = free[: count * 3 // 10]
    tables = {"Person": people(np.concatenate([updated, new]), 44), "Knows": knows(linked, np.roll(linked, 1))}
    graph.load(tables, mode="merge", branch=graph.branch)
    for source in free[count * 4 // 10 :][: count // 10 // EDGES_PER_NODE].tolist():
        graph.mutate(f'query q() {{ delete Knows where from = "person-{source:08}" }}', branch=graph.branch)


def timed_ms(work: Iterator[object]) -> float:
    start = time.perf_counter()
    for _ in work:
        pass
    return (time.perf_counter() - start) * 1e3


def measure(roots: list[Path], rounds: int) -> dict[str, float]:
    """In this process: median times of diffs and merges in each graph, alternating, and the memory used."""
    graphs = [og.open(root, sync=False) for root in roots]
    found: dict[str, list[float]] = {}
    for number in range(rounds):
        for root, graph in zip(roots, graphs, strict=True):
            branch = f"b{number}"
            found.setdefault(f"diff_{root.name}_ms", []).append(timed_ms(iter(graph.diff("main", branch))))
            found.setdefault(f"merge_{root.name}_ms", []).append(timed_ms(graph.merge(branch) for _ in range(1)))
    for graph in graphs:
        assert [commit.kind for commit in graph.commits(limit=rounds)] == ["merge"] * rounds
    figures = {what: median(times) for what, times in found.items()}
    figures["many_rows_merge_s"] = timed_ms(graphs[-1].merge("many") for _ in range(1)) / 1e3
    figures["merge_memory_mib"] = most_memory_mib()
    return figures


def most_memory_mib() -> float:
    """Peak memory of this process; `ru_maxrss` would include the memory of its parent at the fork."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def in_a_process(roots: list[Path], rounds: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.merge", "--measure", str(rounds), *map(str, roots)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def figures(sizes: Sizes | None = None) -> dict[str, float]:
    sizes = sizes or Sizes()
    with folder() as root:
        roots = [root / "small", root / "large"]
        for path, nodes in zip(roots, (sizes.small, sizes.large), strict=True):
            build(path, nodes, sizes, many=path.name == "large")
        found = in_a_process(roots, sizes.rounds)
    for what in ("diff", "merge"):
        found[f"{what}_growth_ratio"] = found[f"{what}_large_ms"] / found[f"{what}_small_ms"]
    found["rows_per_s"] = sizes.many / found["many_rows_merge_s"]
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure([Path(path) for path in sys.argv[3:]], int(sys.argv[2]))))
    else:
        for figure, value in figures(FULL if "--full" in sys.argv[1:] else Sizes()).items():
            print(f"{figure:<36} {value:12,.3f}")
