"""Graph algorithms on Spark beside those in process: `python -m bench.algorithms_on_spark [--nodes N] [--edges N]`.

The graph is that of `bench.algorithms`, stored in a folder. Both forms read it from there. Seconds of the process and
its children (JVM, Python workers) are CPU time; a small job runs before the clock starts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph as og
from bench.algorithms import random_edges
from omnigraph.spark import SessionOptions, open_session

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"


def stored_graph(folder: Path, nodes: int, edges: int) -> og.Graph:
    """Store the graph of `bench.algorithms`."""
    listed = random_edges(nodes, edges)
    names = np.char.add("p", np.arange(nodes).astype(str))
    graph = og.init(folder / "graph.omni", SCHEMA, sync=False, environ={})
    graph.load({"Person": pa.table({"name": names})}, mode="append")
    graph.load({"Knows": pa.table({"src": names[listed.sources], "dst": names[listed.targets]})}, mode="append")
    return graph


def cpu_seconds() -> float:
    """Return the CPU time of this process and its descendants, the ended ones included."""
    ticks, parents = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # ended since it was listed
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    total, ours = 0, [os.getpid()]
    while ours:
        one = ours.pop()
        total += ticks.get(one, 0)
        ours += [child for child, parent in parents.items() if parent == one]
    return total / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--only", default="communities,label_propagation", help="algorithms, separated by commas")
    asked = parser.parse_args()
    print(f"{asked.nodes:,} nodes, {asked.edges:,} edges")
    with tempfile.TemporaryDirectory() as folder, open_session(SessionOptions(master="local[2,4]")) as spark:
        graph = stored_graph(Path(folder), asked.nodes, asked.edges)
        graph.analyze("degrees", engine="spark", spark=spark)
        for name in asked.only.split(","):
            found = {}
            for engine in ("memory", "spark"):
                wall, cpu = time.perf_counter(), cpu_seconds()
                found[engine] = graph.analyze(name, engine=engine, spark=spark if engine == "spark" else None)
                took, used = time.perf_counter() - wall, cpu_seconds() - cpu
                print(f"{name:20} {engine:7} {took:8.1f} s, {used:8.1f} s CPU", flush=True)
            here, there = (found[engine].tables["Person"] for engine in ("memory", "spark"))
            print(f"{name:20} {'equal' if here.equals(there) else 'different'} values {found['memory'].stats}")


if __name__ == "__main__":
    main()
