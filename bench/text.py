"""Text search over many documents beside the full-text index of LanceDB.

Documents have about 900 bytes: words with a Zipf distribution, some of which the stemmer changes, and a number.
Measured are the build of the index, its size, the first query of a new process with its memory, and warm queries of one
to three words in turns. `python -m bench.text --documents 1000000` uses the size that the targets were set for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph as og
from omnigraph.engine import kernels

SCHEMA = "node Doc { key: String @key  text: String @index }"
RANKED = "query q($t: String) { match { $d: Doc } return { $d.key } order { bm25($d.text, $t) } limit 10 }"
WORDS = 50_000
WORDS_EACH = 125
_ROWS = 20_000
_ENDS = ("", "s", "ed", "ing", "er", "ation", "k", "o")
_TURNS = 7
_PROCESSES = 5

Figures = dict[str, float]


def vocabulary() -> list[str]:
    """Return distinct words, the frequent ones first."""
    random = np.random.default_rng(1)
    syllables = [a + b for a in "bcdfghklmnprstvz" for b in "aeiou"]
    words: dict[str, None] = {}
    while len(words) < WORDS:
        parts = random.integers(0, len(syllables), random.integers(1, 4))
        words["".join(syllables[part] for part in parts) + _ENDS[int(random.integers(len(_ENDS)))]] = None
    return list(words)


def batches(documents: int) -> Iterator[pa.Table]:
    """Yield the documents."""
    random = np.random.default_rng(2)
    words = np.array(vocabulary(), object)
    limits = np.cumsum(1 / np.arange(1, WORDS + 1))
    for start in range(0, documents, _ROWS):
        rows = range(start, min(start + _ROWS, documents))
        chosen = np.searchsorted(limits, random.random((len(rows), WORDS_EACH)) * limits[-1])
        texts = [f"{' '.join(some)}. Number {row}." for row, some in zip(rows, words[chosen], strict=True)]
        yield pa.table({"key": [f"d{row}" for row in rows], "text": texts})


def questions() -> list[str]:
    """Return texts of three, two and one word: a frequent, a common and a rare one."""
    random, words = np.random.default_rng(3), vocabulary()
    found: list[str] = []
    for number in range(12):
        ranks = (random.integers(5, 50), random.integers(50, 1_000), random.integers(1_000, 20_000))
        found.append(" ".join(words[rank] for rank in ranks[number % 3 :]))
    return found


def figures(documents: int = 20_000) -> Figures:
    """Build and ask both systems; the unit is at the end of each name."""
    kernels.load()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "Doc.parquet"
        with pq.ParquetWriter(source, next(batches(1)).schema) as writer:
            for batch in batches(documents):
                writer.write_table(batch)
        return {**_build(Path(folder), source), **_first_query(Path(folder)), **_warm_queries(Path(folder))}


def _build(folder: Path, source: Path) -> Figures:
    """Time the build of both indexes on finished tables."""
    import lancedb  # noqa: PLC0415 (a peer)
    from lancedb.index import FTS  # noqa: PLC0415

    graph = og.init(folder / "graph", SCHEMA, sync=False)
    graph.load(str(source), mode="append", engine="memory")
    _remove_cache(folder)
    table = lancedb.connect(folder / "lancedb").create_table("docs", pq.ParquetFile(source).iter_batches(_ROWS))
    graph = og.open(graph.uri, sync=False)
    started = time.perf_counter()
    graph.ensure_indices()
    ours = time.perf_counter() - started
    started = time.perf_counter()
    table.create_index("text", config=FTS(with_position=False, stem=True, remove_stop_words=True))
    theirs = time.perf_counter() - started
    stored, cached = (_bytes_in(folder / "graph" / name) for name in ("nodes", "__cache"))
    indexed = sum(_bytes_in(path) for path in (folder / "lancedb").rglob("_indices"))
    return {
        "build, omnigraph s": ours,
        "build, LanceDB s": theirs,
        "build, omnigraph / LanceDB": ours / theirs,
        "index, omnigraph MB": cached / 1e6,
        "index, LanceDB MB": indexed / 1e6,
        "index / data": cached / stored,
    }


def _first_query(folder: Path) -> Figures:
    """Ask in new processes; the figures are medians."""
    command = [sys.executable, "-m", "bench.text", "--first", str(folder / "graph")]
    found: list[Figures] = []
    for _ in range(_PROCESSES):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {name: median(one[name] for one in found) for name in found[0]}


def first_query(uri: str) -> Figures:
    """Open a graph and ask once; the memory is that above the imported libraries."""
    text = questions()[0]
    before = _peak()
    graph = og.open(uri, read_only=True)
    started, used = time.perf_counter(), time.process_time()
    graph.query(RANKED, params={"t": text}).to_rows()
    taken, used = time.perf_counter() - started, time.process_time() - used
    return {
        "first query ms": taken * 1e3,
        "first query, CPU ms": used * 1e3,
        "first query, peak MB": (_peak() - before) / 1e6,
    }


def _warm_queries(folder: Path) -> Figures:
    import lancedb  # noqa: PLC0415 (a peer)

    graph = og.open(folder / "graph", read_only=True)
    table = lancedb.connect(folder / "lancedb").open_table("docs")

    def ours(text: str) -> int:
        return len(graph.query(RANKED, params={"t": text}).to_rows())

    def theirs(text: str) -> int:
        return int(table.search(text, query_type="fts").select(["key", "_score"]).limit(10).to_arrow().num_rows)

    systems: dict[str, Callable[[str], int]] = {"omnigraph": ours, "LanceDB": theirs}
    taken: dict[str, list[float]] = {name: [] for name in systems}
    for text in questions():
        rounds: dict[str, list[float]] = {name: [] for name in systems}
        for _ in range(_TURNS):
            for name, ask in systems.items():
                started = time.perf_counter()
                ask(text)
                rounds[name].append(time.perf_counter() - started)
        for name, seconds in rounds.items():
            taken[name].append(median(seconds))
    times = {name: median(seconds) for name, seconds in taken.items()}
    ratios = [a / b for a, b in zip(taken["omnigraph"], taken["LanceDB"], strict=True)]
    return {
        **{f"warm query, {name} ms": seconds * 1e3 for name, seconds in times.items()},
        "warm query, omnigraph / LanceDB": median(ratios),
        "warm query, worst ratio": max(ratios),
    }


def _remove_cache(folder: Path) -> None:
    """Remove the derived structures that the load built."""
    for path in sorted((folder / "graph" / "__cache").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _peak() -> int:
    """Return the largest resident memory of this program; `getrusage` includes the program that started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError("the system does not tell the memory of a process")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.text", description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--first", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.first is not None:
        print(json.dumps(first_query(given.first)))
        return 0
    os.environ.setdefault("RUST_LOG", "error")
    for name, value in figures(given.documents).items():
        print(f"  {name:<34} {value:12,.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
