"""Purge of one subject: bytes written against the bytes of the files that contain it.

    python -m bench.purge                           20,000 nodes, 100,000 edges, 50 commits
    python -m bench.purge --nodes 1000000 --edges 5000000 --commits 1000

The graph is loaded in two loads. Each commit updates one node and adds one edge, a tenth of them of the subject.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import omnigraph as og

SCHEMA = """\
node Person {
  name: String @key
  age: I64?
  note: String?
}

edge Knows: Person -> Person {
  since: I64?
}
"""
SUBJECT = "p7"
_EVERY = 10


def build(root: Path, nodes: int, edges: int, commits: int) -> og.Graph:
    """Create a graph with a history."""
    graph = og.init(root, SCHEMA, sync=False)
    numbers = range(nodes)
    people = {"name": [f"p{n}" for n in numbers], "age": list(numbers), "note": [f"note {n % 977}" for n in numbers]}
    graph.load({"Person": pa.table(people)}, mode="append")
    ends = {
        "src": [f"p{n % nodes}" for n in range(edges)],
        "dst": [f"p{(n * 7919 + 1) % nodes}" for n in range(edges)],
        "since": list(range(edges)),
    }
    graph.load({"Knows": pa.table(ends)}, mode="append")
    for number in range(commits):
        name = SUBJECT if number % _EVERY == 0 else f"p{number * 31 % nodes}"
        graph.mutate(
            "query q($n: String, $m: String, $a: I64) {"
            " update Person set { age: $a } where name = $n insert Knows { from: $n, to: $m, since: $a } }",
            {"n": name, "m": f"p{(number + 1) % nodes}", "a": number},
        )
    return graph


class Clock:
    """The time since it was made, as text: elapsed, and used by the process."""

    def __init__(self) -> None:
        self._started = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        wall, cpu = self._started
        return f"{time.perf_counter() - wall:.1f} s ({time.process_time() - cpu:.1f} s of CPU)"


def size_of(root: Path) -> int:
    """Return the size of all files."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def main() -> None:
    """Build a graph, purge one subject and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=100_000)
    parser.add_argument("--commits", type=int, default=50)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="purge-"))
    try:
        clock = Clock()
        graph = build(folder / "graph", options.nodes, options.edges, options.commits)
        print(f"built in {clock}, {size_of(folder):,} bytes")
        clock = Clock()
        done = graph.purge("Person", [SUBJECT], edges=True, reason="benchmark")
        counted = ", ".join(f"{count} {key}" for key, count in done.rows.items())
        print(f"purged {counted} from {sum(done.versions.values())} versions in {clock}")
        data = [old for old, _ in done.rewritten if "/data/" in old]
        print(f"data files with the subject: {len(data)}, {done.bytes_read:,} bytes")
        print(f"written: {done.bytes_written:,} bytes of data, {done.bytes_manifests:,} bytes of manifests of versions")
        print(f"ratio of data: {done.bytes_written / max(done.bytes_read, 1):.2f}")
        for count in (0, 1, 1_000):
            clock = Clock()
            found = graph.purge_verify([f"person{number}@example.org" for number in range(count)])
            clean = "clean" if found.is_clean else "not clean"
            print(f"verified {found.bytes:,} bytes with {count:,} values in {clock}: {clean}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
