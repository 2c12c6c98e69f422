"""Nearest neighbours in a large vector column: exact and approximate search beside LanceDB's IVF_FLAT and IVF_PQ.

`python -m bench.vectors [VECTORS]` uses clustered vectors of 256 numbers; the targets are for 1,000,000 of them. The
peers probe as few partitions as reach a recall of 0.95. Systems alternate, so that their times can be compared. Two
kinds of queries are asked: vectors like the stored ones, and random directions.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph as og
from omnigraph.engine import kernels

DIM, LIMIT, RECALL = 256, 10, 0.95
BATCH = 100_000
PROBES = (1, 2, 4, 8, 16, 32, 64, 128)
TEXT = (
    f"query q($v: Vector({DIM})) {{ match {{ $d: Doc }} return {{ $d.key as key }} "
    f"order {{ nearest($d.vec, $v%s) }} limit {LIMIT} }}"
)
Vector = np.ndarray[Any, Any]
Ask = Callable[[Vector], list[str]]


def figures(vectors: int = 60_000, asked: int = 10, rounds: int = 5) -> dict[str, float]:
    """Seconds of the builds, and for each kind of query and system the recall and the milliseconds of a query."""
    with tempfile.TemporaryDirectory() as folder:
        return _compare(Path(folder), vectors, asked, rounds)


def _compare(folder: Path, vectors: int, asked: int, rounds: int) -> dict[str, float]:
    random = np.random.default_rng(1)
    centers = random.normal(size=(max(vectors // 1_000, 10), DIM)).astype(np.float32)

    def near(count: int) -> Vector:
        noise = 0.7 * random.normal(size=(count, DIM))
        return (centers[random.integers(0, len(centers), count)] + noise).astype(np.float32)

    graph = og.init(folder / "graph", f"node Doc {{ key: String @key  vec: Vector({DIM}) }}", sync=False)
    tables = []
    for start in range(0, vectors, BATCH):
        count = min(BATCH, vectors - start)
        values = pa.FixedSizeListArray.from_arrays(pa.array(near(count).reshape(-1)), DIM)
        tables.append(pa.table({"key": [f"d{at}" for at in range(start, start + count)], "vec": values}))
        graph.load({"Doc": tables[-1]}, mode="append")
    kernels.load()
    found: dict[str, float] = {}
    exact, approx = _ours(graph, ""), _ours(graph, ", approx")
    exact(centers[0])
    started = time.process_time()
    approx(centers[0])
    found["index, omnigraph, CPU s"] = time.process_time() - started
    peers = _peers(folder / "lancedb", pa.concat_tables(tables), found)
    for kind, queries in {"near": near(asked), "random": random.normal(size=(asked, DIM)).astype(np.float32)}.items():
        expected = [set(exact(query)) for query in queries]
        systems: dict[str, Ask] = {"exact": exact, "approx": approx}
        for name, make in peers.items():
            systems[name] = next((ask for p in PROBES if _recall(ask := make(p), queries, expected) >= RECALL), ask)
        for name, ask in systems.items():
            found[f"{kind}, {name}, recall"] = _recall(ask, queries, expected)
        for name, taken in _times(systems, queries, rounds).items():
            found[f"{kind}, {name}, ms"] = float(np.median(taken)) * 1000
    return found


def _ours(graph: og.Graph, word: str) -> Ask:
    text = TEXT % word
    return lambda query: [row["key"] for row in graph.query(text, params={"v": query.tolist()}).to_rows()]


def _peers(folder: Path, table: pa.Table, found: dict[str, float]) -> dict[str, Callable[[int], Ask]]:
    """Return, for each index of LanceDB, a function from a number of probes to the search."""
    if importlib.util.find_spec("lancedb") is None:
        return {}
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb  # noqa: PLC0415
    from lancedb.index import IvfFlat, IvfPq  # noqa: PLC0415

    db = lancedb.connect(str(folder))
    parts = max(round(table.num_rows**0.5), 1)
    configs: dict[str, Any] = {
        "IVF_FLAT": IvfFlat(distance_type="cosine", num_partitions=parts),
        "IVF_PQ": IvfPq(distance_type="cosine", num_partitions=parts, num_sub_vectors=64),
    }
    peers: dict[str, Callable[[int], Ask]] = {}
    for name, config in configs.items():
        data = db.create_table(name, table)
        started = time.process_time()
        data.create_index("vec", config=config)
        found[f"index, {name}, CPU s"] = time.process_time() - started
        peers[name] = _searching(data, refined=name == "IVF_PQ")
    return peers


def _searching(data: Any, *, refined: bool) -> Callable[[int], Ask]:
    def make(probes: int) -> Ask:
        def ask(query: Vector) -> list[str]:
            search = data.search(query).distance_type("cosine").nprobes(probes).limit(LIMIT)
            search = search.refine_factor(10) if refined else search
            return [row["key"] for row in search.select(["key", "_distance"]).to_arrow().to_pylist()]

        return ask

    return make


def _recall(ask: Ask, queries: Vector, expected: list[set[str]]) -> float:
    return float(np.mean([len(set(ask(query)) & rows) / LIMIT for query, rows in zip(queries, expected, strict=True)]))


def _times(systems: dict[str, Ask], queries: Vector, rounds: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for query in queries:
            for name, ask in systems.items():
                started = time.perf_counter()
                ask(query)
                taken[name].append(time.perf_counter() - started)
    return taken


if __name__ == "__main__":
    for figure, value in figures(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000).items():
        print(f"{figure:<40} {value:12,.3f}")
