"""`python -m bench.search [--full] [peer …]`: every system side by side, answers checked first."""

from __future__ import annotations

import gc
import importlib.util
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.search.corpus import LIMIT, Corpus, Question, generate, questions
from bench.search.systems import PEERS, WORKLOADS, System, build_graph, mean, ours, recall
from omnigraph.engine import kernels

OURS = "omnigraph"


def main(arguments: list[str]) -> int:
    full = "--full" in arguments
    wanted = [name for name in arguments if not name.startswith("-")] or ["lancedb", "duckdb", "sqlite"]
    posts, asked, rounds = (200_000, 20, 60) if full else (10_000, 10, 20)
    corpus = generate(posts, 128)
    asking = questions(corpus, asked)
    with tempfile.TemporaryDirectory() as folder:
        graph = build_graph(Path(folder) / "graph", corpus)
        systems = {OURS: ours(graph, corpus)} | _peers(wanted, Path(folder), corpus)
        started = time.perf_counter()
        systems[OURS]["hybrid RRF"](asking[0])
        print(f"first hybrid question, everything built: {time.perf_counter() - started:.2f} s")
        kernels.load()
        _check(systems, corpus, asking)
        print(f"{'':<22}" + "".join(f"{name:>24}" for name in systems))
        print(f"{posts:,} posts{'':<9}" + f"{'p50 / p95 ms (ratio)':>24}" * len(systems))
        for workload in WORKLOADS:
            times = _times({n: s for n, s in systems.items() if workload in s}, workload, asking, rounds)
            base = np.median(times[OURS])
            cells = [_cell(times.get(name), base) for name in systems]
            print(f"{workload:<22}" + "".join(f"{cell:>24}" for cell in cells))
    return 0


def _peers(wanted: list[str], folder: Path, corpus: Corpus) -> dict[str, System]:
    found: dict[str, System] = {}
    for name in wanted:
        if name != "sqlite" and importlib.util.find_spec(name) is None:
            print(f"{name}: not installed")
            continue
        started = time.perf_counter()
        try:
            place = folder / f"peer-{name}"
            place.mkdir()
            found[name] = PEERS[name](place, corpus)
            print(f"{name}: loaded and indexed in {time.perf_counter() - started:.1f} s")
        except Exception as error:
            print(f"{name}: {str(error).splitlines()[0]}")
    return found


def _check(systems: dict[str, System], corpus: Corpus, asking: list[Question]) -> None:
    """Ours must be the exact answer, ties and all; of the others the share of it is told."""
    exact: dict[str, list[list[int]]] = {
        "kNN 10": [corpus.nearest(q, LIMIT) for q in asking],
        "kNN 10, filtered": [corpus.nearest(q, LIMIT, filtered=True) for q in asking],
        "BM25 top 10": [corpus.relevant(q)[:LIMIT] for q in asking],
        "hybrid RRF": [corpus.fused(q) for q in asking],
    }
    exact["hybrid RRF, one hop"] = exact["hybrid RRF"]
    for name, system in systems.items():
        shares = []
        for workload, answer in system.items():
            found = [answer(question) for question in asking]
            if name == OURS and found != exact[workload]:
                raise AssertionError(f"{workload}: {found} instead of {exact[workload]}")
            shares.append(f"{workload} {mean([recall(f, e) for f, e in zip(found, exact[workload], strict=True)]):.3f}")
        print(f"recall of {name}: {', '.join(shares)}")


def _times(systems: dict[str, System], workload: str, asking: list[Question], rounds: int) -> dict[str, list[float]]:
    """Milliseconds; systems take turns, so that a slow moment of the machine falls on all of them."""
    taken: dict[str, list[float]] = {name: [] for name in systems}
    gc.collect()
    gc.disable()
    try:
        for at in range(rounds):
            for name, system in systems.items():
                started = time.perf_counter()
                system[workload](asking[at % len(asking)])
                taken[name].append((time.perf_counter() - started) * 1000)
    finally:
        gc.enable()
    return taken


def _cell(times: list[float] | None, base: Any) -> str:
    if times is None:
        return "–"
    median = np.median(times)
    return f"{median:.2f} / {np.percentile(times, 95):.2f} ({median / base:.1f} ×)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
