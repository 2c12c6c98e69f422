"""All systems: results are checked first, then the systems alternate."""

from __future__ import annotations

import gc
import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.search.corpus import LIMIT, Corpus, Question, generate, questions
from bench.search.systems import PEERS, WORKLOADS, System, build_graph, mean, ours, recall
from omnigraph.engine import kernels

OURS = "omnigraph"


def main(arguments: list[str]) -> int:
    """Print a table; `--full` uses 200,000 posts, names select the peers."""
    full = "--full" in arguments
    wanted = [name for name in arguments if not name.startswith("-")] or ["lancedb", "duckdb", "sqlite"]
    posts, asked, rounds = (200_000, 20, 60) if full else (10_000, 10, 20)
    with tempfile.TemporaryDirectory() as folder:
        times = _compare(Path(folder), posts, asked, rounds, wanted, print)
    names = list(dict.fromkeys(name for found in times.values() for name in found))
    print(f"{f'{posts:,} posts':<22}" + "".join(f"{name:>24}" for name in names))
    print(f"{'':<22}" + f"{'p50 / p95 ms (ratio)':>24}" * len(names))
    for workload, found in times.items():
        base = float(np.median(found[OURS]))
        print(f"{workload:<22}" + "".join(f"{_cell(found.get(name), base):>24}" for name in names))
    return 0


def figures(posts: int = 10_000, asked: int = 10, rounds: int = 20) -> dict[str, float]:
    """Milliseconds of every workload here, and the ratio to SQLite where it supports the workload."""
    with tempfile.TemporaryDirectory() as folder:
        times = _compare(Path(folder), posts, asked, rounds, ["sqlite"], lambda _: None)
    found: dict[str, float] = {}
    for workload, systems in times.items():
        for name, taken in systems.items():
            found[f"{workload}, {name} ms"] = float(np.median(taken))
    return found


def _compare(
    folder: Path, posts: int, asked: int, rounds: int, wanted: list[str], tell: Callable[[str], object]
) -> dict[str, dict[str, list[float]]]:
    """Workload → system → milliseconds of each query."""
    corpus = generate(posts, 128)
    asking = questions(corpus, asked)
    graph = build_graph(folder / "graph", corpus)
    systems = {OURS: ours(graph, corpus)} | _peers(wanted, folder, corpus, tell)
    started = time.perf_counter()
    systems[OURS]["hybrid RRF"](asking[0])
    tell(f"first hybrid question, everything built: {time.perf_counter() - started:.2f} s")
    kernels.load()
    _check(systems, corpus, asking, tell)
    return {
        workload: _times({n: s for n, s in systems.items() if workload in s}, workload, asking, rounds)
        for workload in WORKLOADS
    }


def _peers(wanted: list[str], folder: Path, corpus: Corpus, tell: Callable[[str], object]) -> dict[str, System]:
    found: dict[str, System] = {}
    for name in wanted:
        if name != "sqlite" and importlib.util.find_spec(name) is None:
            tell(f"{name}: not installed")
            continue
        started = time.perf_counter()
        try:
            place = folder / f"peer-{name}"
            place.mkdir()
            found[name] = PEERS[name](place, corpus)
            tell(f"{name}: loaded and indexed in {time.perf_counter() - started:.1f} s")
        except Exception as error:
            tell(f"{name}: {str(error).splitlines()[0]}")
    return found


def _check(systems: dict[str, System], corpus: Corpus, asking: list[Question], tell: Callable[[str], object]) -> None:
    """Our result must be exact, including ties; the recall of the others is reported."""
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
        tell(f"recall of {name}: {', '.join(shares)}")


def _times(systems: dict[str, System], workload: str, asking: list[Question], rounds: int) -> dict[str, list[float]]:
    """Milliseconds; systems alternate, so that other load affects all of them."""
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
