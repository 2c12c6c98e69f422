"""Many edges: the first hop and three hops of a new process beside warm ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph as og
from bench.scale.corpus import Corpus, Figures
from bench.scale.processes import REPEATS, bytes_in, forget, import_libraries, median_taken, resident, seconds, taken

SCHEMA = "node Person { key: String @key }\nedge Knows: Person -> Person\n"
HOP = "query q($k: String) { match { $p: Person { key: $k }  $p knows $q } return { $q.key } }"
THREE = (
    "query q($k: String) { match { $p: Person { key: $k }  $p knows $q  $q knows $r  $r knows $s } "
    "return { count(distinct $s) as n } }"
)
_DEGREE = 10
_ROWS = 1_000_000


def build_edges(corpus: Corpus) -> Figures:
    """Load and optimize the graph of edges; existing data is used."""
    folder = Path(corpus.folder) / "edges"
    if folder.exists():
        return {}
    files = [_write(corpus, "Person", _people(corpus)), _write(corpus, "Knows", _knows(corpus))]
    started = time.perf_counter()
    graph = og.init(folder, SCHEMA, sync=False, memory=corpus.memory)
    for file in files:
        graph.load(str(file), mode="append", engine="memory")
    loaded = time.perf_counter()
    graph.optimize()
    ended = time.perf_counter()
    for file in files:
        file.unlink()
    stored, derived = graph.snapshot().table("edge:Knows").stored_bytes, bytes_in(folder / "__cache")
    return {
        "edges load s": loaded - started,
        "edges optimize s": ended - loaded,
        "bytes per edge, table": stored / corpus.edges,
        "bytes per edge, derived": derived / corpus.edges,
    }


def hops(corpus: Corpus) -> Figures:
    """The first hop of a new process, then three hops, first and warm; the files are in the page cache."""
    return _hops(corpus, "first")


def cold_hops(corpus: Corpus) -> Figures:
    """The same after the files were removed from the page cache: every page that is touched is read from the disk."""
    forget(Path(corpus.folder) / "edges")
    return _hops(corpus, "cold")


def _hops(corpus: Corpus, kind: str) -> Figures:
    before = import_libraries()
    graph = og.open(Path(corpus.folder) / "edges", memory=corpus.memory)
    people = max(corpus.edges // _DEGREE, 1)

    def ask(text: str, number: int) -> None:
        assert graph.query(text, params={"k": _key(number * 7_919 % people)}).to_pylist()

    first = seconds(lambda: ask(HOP, 1))
    memory = resident() - before
    three = taken(lambda: ask(THREE, 2))
    warm_hop, warm = (median_taken(lambda at, text=text: ask(text, at)) for text in (HOP, THREE))
    # A text with other blanks is another query: it is compiled and planned, and walks as the warm one does.
    compiled = median_taken(lambda at: ask(THREE + " " * at, at), REPEATS).processor_s - warm.processor_s
    return {
        f"{kind} hop ms": first * 1e3,
        f"{kind} hop MB": memory / 1e6,
        "warm hop ms": warm_hop.seconds * 1e3,
        f"{kind} three hops ms": three.seconds * 1e3,
        "warm three hops ms": warm.seconds * 1e3,
        f"three hops, {kind} / warm": three.seconds / warm.seconds,
        f"{kind} three hops, processor ms": three.processor_s * 1e3,
        "warm three hops, processor ms": warm.processor_s * 1e3,
        f"three hops, {kind} / warm, processor": three.processor_s / warm.processor_s,
        "compile and plan, processor ms": compiled * 1e3,
        "without it, / warm, processor": (three.processor_s - compiled) / warm.processor_s,
    }


def _key(number: int) -> str:
    return f"p{number:08}"


def _people(corpus: Corpus) -> Iterator[pa.Table]:
    people = max(corpus.edges // _DEGREE, 1)
    for start in range(0, people, _ROWS):
        yield pa.table({"key": [_key(number) for number in range(start, min(start + _ROWS, people))]})


def _knows(corpus: Corpus) -> Iterator[pa.Table]:
    """Yield edges of random people; the target is skewed to few people."""
    random = np.random.default_rng(9)
    people = max(corpus.edges // _DEGREE, 1)
    names = pa.array([_key(number) for number in range(people)])
    for start in range(0, corpus.edges, _ROWS):
        count = min(_ROWS, corpus.edges - start)
        src = (np.arange(start, start + count) // _DEGREE).clip(max=people - 1)
        dst = (random.random(count) ** 2 * people).astype(np.int64)
        yield pa.table({"src": names.take(pa.array(src)), "dst": names.take(pa.array(dst))})


def _write(corpus: Corpus, name: str, tables: Iterator[pa.Table]) -> Path:
    path = Path(corpus.folder) / f"{name}.parquet"
    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
    return path
