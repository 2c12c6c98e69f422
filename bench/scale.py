"""Data larger than memory: one graph of many documents, measured in new processes beside peers.

`python -m bench.scale` generates a million documents (900 bytes of text, 256-dimensional vectors), loads and optimizes
them, and runs every measurement in a process of its own. The files of the graph are removed from the page cache before
a cold measurement. Memory is counted above that of a process that has imported the libraries and has read a graph of
one row. `--documents`, `--text` and `--dimensions` change the size, `--folder` keeps and reuses the data, `--only` runs
some measurements, and `--memory` is the budget of the graph.

A measurement is a function of `MEASUREMENTS` that returns figures by name; further structures add their own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph as og

SCHEMA = """
node Doc {
    key: String @key
    year: I32
    topic: String
    text: String @index
    embedding: Vector(DIM)
}
"""
POINT = "query q($k: String) { match { $d: Doc { key: $k } } return { $d.year, $d.text } }"
RANKED = "query q($t: String) { match { $d: Doc } return { $d.key } order { bm25($d.text, $t) } limit 10 }"
CONTAINS = "query q($t: String) { match { $d: Doc  $d.text contains $t } return { count($d) as c } }"
WORDS = 20_000
_ROWS = 10_000
"""Rows that are generated at a time."""
_REPEATS = 5


@dataclass(frozen=True)
class Corpus:
    """The documents of a run and the folder that contains their file and their graph."""

    folder: str
    documents: int = 1_000_000
    text: int = 900
    dimensions: int = 256
    memory: str = "2GiB"

    @property
    def file(self) -> Path:
        """The input."""
        return Path(self.folder) / "Doc.parquet"

    @property
    def uri(self) -> Path:
        """The graph."""
        return Path(self.folder) / "graph"

    @property
    def table(self) -> str:
        """The Lance table of the documents."""
        return str(next((self.uri / "nodes").iterdir()))

    def open(self) -> og.Graph:
        """Open the graph with the budget of the run."""
        return og.open(self.uri, memory=self.memory)

    def key(self, number: int) -> str:
        """Return the key of a document."""
        return f"d{number:08}"

    def words(self, number: int) -> str:
        """Return two words that follow one another in a document."""
        text: str = next(iter(self.open().query(POINT, params={"k": self.key(number)})))["d.text"]
        return " ".join(text.split()[5:7])


Figures = dict[str, float]
Measurement = Callable[[Corpus], Figures]


# -- data --------------------------------------------------------------------------------------------


def batches(corpus: Corpus) -> Iterator[pa.Table]:
    """Yield the documents: words with a Zipf distribution, and random vectors."""
    random = np.random.default_rng(1)
    words = np.array([_word(number) for number in range(WORDS)], object)
    weights = 1 / np.arange(1, WORDS + 1)
    count = corpus.text // 4
    for start in range(0, corpus.documents, _ROWS):
        rows = min(_ROWS, corpus.documents - start)
        chosen = random.choice(WORDS, size=(rows, count), p=weights / weights.sum())
        vectors = random.standard_normal((rows, corpus.dimensions), np.float32)
        yield pa.table(
            {
                "key": [corpus.key(start + row) for row in range(rows)],
                "year": pa.array(random.integers(1950, 2025, rows), pa.int32()),
                "topic": [f"t{number}" for number in random.integers(0, 50, rows)],
                "text": [" ".join(words[row])[: corpus.text] for row in chosen],
                "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), corpus.dimensions),
            }
        )


def _word(number: int) -> str:
    """Return a word by its rank; the first is the most frequent."""
    return f"w{np.base_repr(number, 36).lower()}"


def generate(corpus: Corpus) -> None:
    """Write the input file."""
    writer: pq.ParquetWriter | None = None
    for batch in batches(corpus):
        if writer is None:
            writer = pq.ParquetWriter(corpus.file, batch.schema, compression="none", use_dictionary=False)
        writer.write_table(batch)
    assert writer is not None
    writer.close()


# -- measurements ------------------------------------------------------------------------------------


def build(corpus: Corpus) -> Figures:
    """Load and optimize the graph."""
    started = time.perf_counter()
    graph = og.init(corpus.uri, SCHEMA.replace("DIM", str(corpus.dimensions)), sync=False, memory=corpus.memory)
    graph.load(str(corpus.file), mode="append", engine="memory")
    loaded = time.perf_counter()
    graph.optimize()
    ended = time.perf_counter()
    derived = _bytes_in(corpus.uri / "__cache")
    stored = _bytes_in(corpus.uri / "nodes")
    return {"load s": loaded - started, "optimize s": ended - loaded, "derived / data": derived / max(stored, 1)}


def point(corpus: Corpus) -> Figures:
    """The first point read of a process, and the next ones."""
    before = _import_libraries()
    _forget(corpus)
    started = time.perf_counter()
    graph = corpus.open()
    opened = time.perf_counter()
    assert len(graph.query(POINT, params={"k": corpus.key(corpus.documents // 3)}).to_pylist()) == 1
    first = time.perf_counter() - opened
    memory = _resident() - before
    return {
        "open ms": (opened - started) * 1e3,
        "first point read ms": first * 1e3,
        "first point read MB": memory / 1e6,
        "next point read ms": 1e3
        * _median(lambda at: graph.query(POINT, params={"k": corpus.key(at * 997 % corpus.documents)}).to_pylist()),
    }


def get(corpus: Corpus) -> Figures:
    """The first `Graph.get` of a process."""
    _import_libraries()
    _forget(corpus)
    graph = corpus.open()
    started = time.perf_counter()
    assert graph.get("Doc", corpus.key(corpus.documents // 2)) is not None
    return {"first get ms": (time.perf_counter() - started) * 1e3}


def bm25(corpus: Corpus) -> Figures:
    """The first ranked query of a process, and the next ones. `bench.text` has the peer and the build."""
    before = _import_libraries()
    _forget(corpus)
    graph = corpus.open()

    def ask(number: int) -> None:
        text = f"{_word(20 + number)} {_word(200 + number)} {_word(3_000 + number)}"
        assert graph.query(RANKED, params={"t": text}).to_pylist()

    started = time.perf_counter()
    ask(0)
    first = time.perf_counter() - started
    return {
        "first BM25 ms": first * 1e3,
        "first BM25 MB": (_resident() - before) / 1e6,
        "next BM25 ms": 1e3 * _median(ask),
    }


def contains(corpus: Corpus) -> Figures:
    """`contains` over all texts beside DuckDB over the same Lance column, in turns."""
    import duckdb  # noqa: PLC0415 (memory of the other measurements)
    import lance  # noqa: PLC0415

    _import_libraries()
    text = corpus.words(corpus.documents // 2)
    graph, dataset = corpus.open(), lance.dataset(corpus.table)
    database = duckdb.connect()
    database.register("documents", dataset)

    def ours() -> int:
        return int(next(iter(graph.query(CONTAINS, params={"t": text})))["c"])

    def theirs() -> int:
        found = database.execute("SELECT count(*) FROM documents WHERE contains(text, ?)", [text]).fetchone()
        assert found is not None
        return int(found[0])

    assert dataset.count_rows() == corpus.documents
    seconds: dict[str, list[float]] = {}
    for turn in range(2 * _REPEATS):
        cold = turn < 2
        for name, call in (("ours", ours), ("DuckDB", theirs)):
            if cold:
                _forget(corpus)
            started = time.perf_counter()
            rows = call()
            seconds.setdefault(f"{name} {'cold' if cold else 'warm'}", []).append(time.perf_counter() - started)
            assert rows > 0
    times = {name: median(taken) for name, taken in seconds.items()}
    return {
        **{f"contains {name} ms": taken * 1e3 for name, taken in times.items()},
        "contains cold / DuckDB": times["ours cold"] / times["DuckDB cold"],
        "contains warm / DuckDB": times["ours warm"] / times["DuckDB warm"],
    }


MEASUREMENTS: dict[str, Measurement] = {"build": build, "point": point, "get": get, "bm25": bm25, "contains": contains}
"""Measurement → function. Each runs in a process of its own, in this order; its peak memory is added."""

TARGETS: dict[str, float] = {
    "first point read ms": 60,
    "first point read MB": 80,
    "first BM25 ms": 500,
    "first BM25 MB": 400,
    "contains cold / DuckDB": 1,
    "contains warm / DuckDB": 1,
    "derived / data": 0.7,
    "peak MB": 3_000,
}
"""Figure → the largest value that is wanted for a million documents."""


# -- processes ---------------------------------------------------------------------------------------


def run(corpus: Corpus, names: list[str]) -> dict[str, Figures]:
    """Run measurements, each in a new process, on existing data or on data that is generated first."""
    found: dict[str, Figures] = {}
    if not corpus.uri.exists():
        if not corpus.file.exists():
            generate(corpus)
        names = ["build", *(name for name in names if name != "build")]
    for name in names:
        if name == "build" and corpus.uri.exists():
            continue
        given = json.dumps({"name": name, "corpus": asdict(corpus)})
        done = subprocess.run(
            [sys.executable, "-m", "bench.scale", "--measure", given],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        found[name] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(name: str, corpus: Corpus) -> Figures:
    """Run one measurement in this process and add its peak memory."""
    figures = MEASUREMENTS[name](corpus)
    return {**figures, "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}


def _import_libraries() -> int:
    """Read a graph of one row; return the resident memory after it."""
    with tempfile.TemporaryDirectory() as folder:
        graph = og.init(f"{folder}/graph", "node Doc { key: String @key  text: String  year: I32 }\n", sync=False)
        graph.load([{"type": "Doc", "data": {"key": "a", "text": "b", "year": 1}}], mode="append")
        graph = og.open(graph.uri)
        assert graph.get("Doc", "a") is not None
        assert graph.query(POINT, params={"k": "a"}).to_pylist() == [{"d.year": 1, "d.text": "b"}]
    return _resident()


def _resident() -> int:
    """Return the resident memory of this process."""
    with Path("/proc/self/statm").open("rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _forget(corpus: Corpus) -> None:
    """Remove the files of the graph from the page cache."""
    for path in corpus.uri.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _median(call: Callable[[int], object]) -> float:
    """Return the median seconds of a call with different numbers."""
    taken: list[float] = []
    for number in range(4 * _REPEATS):
        started = time.perf_counter()
        call(number + 1)
        taken.append(time.perf_counter() - started)
    return median(taken)


def report(found: Mapping[str, Figures]) -> str:
    """Return the figures beside their targets."""
    lines: list[str] = []
    for name, figures in found.items():
        lines.append(name)
        for figure, value in figures.items():
            target = TARGETS.get(figure)
            lines.append(f"  {figure:<32} {value:12,.2f}" + ("" if target is None else f"   target {target:,.2f}"))
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--documents", type=int, default=Corpus.documents)
    parser.add_argument("--text", type=int, default=Corpus.text)
    parser.add_argument("--dimensions", type=int, default=Corpus.dimensions)
    parser.add_argument("--memory", default=Corpus.memory)
    parser.add_argument("--folder")
    parser.add_argument("--only", default=",".join(MEASUREMENTS))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.measure is not None:
        order: dict[str, Any] = json.loads(given.measure)
        print(json.dumps(measure(order["name"], Corpus(**order["corpus"]))))
        return 0
    names = [name for name in given.only.split(",") if name]
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        print(f"no such measurement: {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}", file=sys.stderr)
        return 2
    folder = given.folder or tempfile.mkdtemp(prefix="omnigraph-scale-")
    Path(folder).mkdir(parents=True, exist_ok=True)
    try:
        corpus = Corpus(folder, given.documents, given.text, given.dimensions, given.memory)
        print(report(run(corpus, names)))
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
