"""Documents of several megabytes: a text column above 2 GiB and every shape of query on it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph as og
from bench.scale.corpus import Corpus, Figures, word

SCHEMA = "node Doc { key: String @key  year: I32  text: String @index }\nedge Cites: Doc -> Doc\n"
_BATCH = 20
_WORDS = 5_000
SHAPES = {
    "point": 'match { $d: Doc { key: "d7" } } return { $d.text }',
    "filter": "match { $d: Doc  $d.year = 1957 } return { $d.key, $d.text }",
    "contains": 'match { $d: Doc  $d.text contains "mark-7 " } return { $d.key }',
    "starts with": 'match { $d: Doc  $d.text starts_with "mark-7 " } return { $d.key }',
    "equal": "match { $d: Doc  $e: Doc  $d.key = $e.key  $d.text = $e.text } return { count($d) as n }",
    "function": "match { $d: Doc } return { max(length($d.text)) as n }",
    "order": "match { $d: Doc } return { $d.key } order { $d.year, $d.key } limit 5",
    "order by text": "match { $d: Doc } return { $d.key } order { $d.text } limit 5",
    "group": "match { $d: Doc } return { $d.year, count($d) as n }",
    "group by text": "match { $d: Doc } return { $d.text, count($d) as n } order { n desc, $d.text } limit 3",
    "distinct texts": "match { $d: Doc } return { count(distinct $d.text) as n }",
    "least text": "match { $d: Doc } return { $d.year, min($d.text) as least } order { $d.year } limit 3",
    "hop": 'match { $d: Doc { key: "d7" }  $d cites $e } return { $e.key, $e.text }',
    "two hops": "match { $d: Doc  $d cites $e  $e cites $f } return { count(distinct $f) as n }",
    "not exists": "match { $d: Doc  not { $d cites $e } } return { $d.key }",
    "search": 'match { $d: Doc  search($d.text, "mark") } return { count($d) as n }',
    "bm25": 'match { $d: Doc } return { $d.key } order { bm25($d.text, "seven") } limit 3',
    "all texts": "match { $d: Doc  $d.year < 1960 } return { $d.text }",
}
"""Name → body of a query. Rows whose texts exceed the budget together are returned batch by batch, groups are not."""


def large_texts(corpus: Corpus) -> Figures:
    """Load and optimize the documents, then run every shape in a new handle."""
    folder = Path(corpus.folder) / "large"
    shutil.rmtree(folder, ignore_errors=True)
    graph = og.init(folder, SCHEMA, sync=False, memory=corpus.memory)
    started = time.perf_counter()
    for table in _batches(corpus):
        graph.load({"Doc": table}, mode="append")
    ends = [f"d{number}" for number in range(corpus.large_texts)]
    graph.load({"Cites": pa.table({"src": ends[1:], "dst": ends[:-1]})}, mode="append")
    graph.optimize()
    found = {"large texts load s": time.perf_counter() - started}
    for name, body in SHAPES.items():
        graph = og.open(folder, memory=corpus.memory)
        started = time.perf_counter()
        rows = graph.query(f"query q() {{ {body} }}").to_rows()
        found[f"large texts {name} ms"] = (time.perf_counter() - started) * 1e3
        assert rows, name
    shutil.rmtree(folder)
    return {**found, "large texts, shapes": len(SHAPES)}


def _batches(corpus: Corpus) -> Iterator[pa.Table]:
    random = np.random.default_rng(5)
    words = [word(number) for number in range(_WORDS)]
    for start in range(0, corpus.large_texts, _BATCH):
        rows = range(start, min(start + _BATCH, corpus.large_texts))
        texts = [_text(words, row, corpus.large_text, random) for row in rows]
        years = pa.array([1950 + row % 50 for row in rows], pa.int32())
        yield pa.table({"key": [f"d{row}" for row in rows], "year": years, "text": pa.array(texts, pa.large_string())})


def _text(words: list[str], row: int, size: int, random: np.random.Generator) -> str:
    """Return a text of `size` characters: a mark, and one random paragraph again and again."""
    paragraph = " ".join(words[number] for number in random.integers(0, len(words), 2_000))
    head = f"mark-{row} {'seven ' * (row % 7 == 0)}"
    return (head + f"{paragraph}. " * (size // len(paragraph) + 1))[:size]
