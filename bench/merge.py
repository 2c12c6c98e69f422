"""What merge and diff cost, and how they grow: with the change, not with the graph.

A graph of `large` nodes and five times as many edges stands beside one of a tenth of that. Both have branches with
1,000 changed rows each (nodes inserted and updated, edges inserted and deleted), and main has changes of its own, so
that every merge is a three-way one in both tables. Measured in a process of its own, whose memory is the merge's:

- a merge in the large graph against the same in the small one (target 3), its diff likewise (target 3);
- the most memory the process ever had (target 1 GiB);
- rows per second of one merge of many changed rows without a conflict.

`python -m bench.merge --full` uses the sizes the targets were set for: 1,000,000 nodes and 5,000,000 edges, and 100,000
changed rows. Without it the sizes are smaller.
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
    """How large everything is."""

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
    """A graph whose branches `b0`, `b1`, … have changes of their own, as has main."""
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
    """Four tenths updates, two tenths new nodes, three tenths new edges; what is left are edges that go."""
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
    """In this process: the medians of diffs and merges in each graph, which take turns; the memory they took."""
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
    """The most memory this process had; `ru_maxrss` would count what its parent had when it was started."""
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
