"""Documents: load, first and next reads of a new process, and `contains` beside DuckDB."""

from __future__ import annotations

import time
from statistics import median

import omnigraph as og
from bench.scale.corpus import CONTAINS, POINT, RANKED, SCHEMA, Corpus, Figures, word
from bench.scale.processes import REPEATS, bytes_in, forget, import_libraries, median_seconds, resident


def build(corpus: Corpus) -> Figures:
    """Load and optimize the graph."""
    started = time.perf_counter()
    graph = og.init(corpus.uri, SCHEMA.replace("DIM", str(corpus.dimensions)), sync=False, memory=corpus.memory)
    graph.load(str(corpus.file), mode="append", engine="memory")
    loaded = time.perf_counter()
    graph.optimize()
    ended = time.perf_counter()
    derived = bytes_in(corpus.uri / "__cache")
    stored = graph.snapshot().table("node:Doc").stored_bytes
    return {"load s": loaded - started, "optimize s": ended - loaded, "derived / data": derived / max(stored, 1)}


def point(corpus: Corpus) -> Figures:
    """The first point read of a process, and the next ones."""
    before = import_libraries()
    forget(corpus.uri)

    def read(number: int) -> None:
        key = corpus.key(number * 997 % corpus.documents)
        assert len(graph.query(POINT, params={"k": key}).to_pylist()) == 1

    started = time.perf_counter()
    graph = corpus.open()
    opened = time.perf_counter()
    read(corpus.documents // 2)
    first = time.perf_counter() - opened
    memory = resident() - before
    return {
        "open ms": (opened - started) * 1e3,
        "first point read ms": first * 1e3,
        "first point read MB": memory / 1e6,
        "next point read ms": median_seconds(read) * 1e3,
    }


def get(corpus: Corpus) -> Figures:
    """The first `Graph.get` of a process."""
    import_libraries()
    forget(corpus.uri)
    graph = corpus.open()
    started = time.perf_counter()
    assert graph.get("Doc", corpus.key(corpus.documents // 2)) is not None
    return {"first get ms": (time.perf_counter() - started) * 1e3}


def bm25(corpus: Corpus) -> Figures:
    """The first ranked query of a process, and the next ones."""
    before = import_libraries()
    forget(corpus.uri)
    graph = corpus.open()

    def ask(number: int) -> None:
        text = f"{word(20 + number)} {word(200 + number)} {word(3_000 + number)}"
        assert graph.query(RANKED, params={"t": text}).to_pylist()

    started = time.perf_counter()
    ask(0)
    first = time.perf_counter() - started
    return {
        "first BM25 ms": first * 1e3,
        "first BM25 MB": (resident() - before) / 1e6,
        "next BM25 ms": 1e3 * median_seconds(ask),
    }


def contains(corpus: Corpus) -> Figures:
    """`contains` over all texts beside DuckDB over the same Lance column, in turns."""
    import duckdb  # noqa: PLC0415 (memory of the other measurements)
    import lance  # noqa: PLC0415

    import_libraries()
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
    for turn in range(2 * REPEATS):
        cold = turn < 2
        for name, call in (("ours", ours), ("DuckDB", theirs)):
            if cold:
                forget(corpus.uri)
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
