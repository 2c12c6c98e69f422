"""Processor seconds of the lookup of the ends of edges among the ids of many nodes, for `bench.scale_model`.

A task that numbers edges hashes the ids of all nodes, whatever its share of the edges. Ids that exceed its memory are
read from files by hash, and the ends of its edges are written to such files first.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph as og
from bench.storage import folder
from omnigraph.engine import tuning
from omnigraph.engine.adjacency.edge_ends import IdFiles, NodeIds, bucket_count, number_ends, write_ids
from omnigraph.engine.adjacency.parallel_build import ENDS
from omnigraph.engine.cache.table_cache import DataCache

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
_MEMORY = 20
"""Bytes per node of a task: about a quarter of what the ids need, so they are in four files."""


def lookup_constants(root: Path, nodes: int) -> dict[str, float]:
    """The constants of a graph with as many edges as nodes, in seconds per million."""
    names = np.char.add("person-", np.char.zfill(np.arange(nodes).astype(str), 10))
    ends = names[np.random.default_rng(7).integers(0, nodes, (2, nodes))]
    graph = og.init(root / "graph", SCHEMA, environ={}, sync=False)
    with tuning.replaced(segment_rows_min=2 * nodes):
        graph.load({"Person": pa.table({"name": pa.array(names)})}, mode="append")
        graph.load({"Knows": pa.table({"from": pa.array(ends[0]), "to": pa.array(ends[1])})}, mode="append")
    del names, ends
    cache = DataCache(0)
    edges, persons = (cache.table(graph.snapshot().table(key)) for key in ("edge:Knows", "node:Person"))
    memory = _MEMORY * nodes
    files = IdFiles((root / "ids",), bucket_count(persons, memory))
    written = _cpu_s(lambda: write_ids(persons, root / "ids", files.buckets, memory))

    def number(rows: int, known: NodeIds) -> float:
        numbers = np.empty(2 * rows, np.int32)
        (root / "scratch").mkdir()
        spent = _cpu_s(lambda: number_ends(edges, ENDS, known, numbers, root / "scratch", range(rows)))
        shutil.rmtree(root / "scratch")
        return spent

    in_files, in_memory = NodeIds(persons, memory, files), NodeIds(persons, None)
    hashed, held = number(1, in_files), number(1, in_memory)
    added = number(nodes, in_files) - hashed - (number(nodes, in_memory) - held)
    millions = nodes / 1_000_000
    return {"ids_written_s": written / millions, "ids_hashed_s": hashed / millions, "spilled_s": added / millions}


def _cpu_s(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main(arguments: list[str]) -> int:
    """Print the constants of this machine."""
    parser = argparse.ArgumentParser("python -m bench.scale_lookup")
    parser.add_argument("--nodes", type=int, default=10_000_000)
    given = parser.parse_args(arguments)
    with folder() as root:
        for name, value in lookup_constants(root, given.nodes).items():
            print(f"  {name:<20} {value:10.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
