"""The generated social graph: persons who know persons, work at companies and
write posts. Generated once per size, stored as Parquet.

There are no self-loops and no parallel edges, so systems with and without parallel edges give equal results. In-degrees
are skewed, out-degrees less so.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]
SEED = 7
CITIES = 50
WORDS = 5_000
WORDS_PER_POST = 40
DIMENSIONS = 128
STARTS = 16
COMPANIES = 500
TABLES = ("person", "company", "knows", "works", "post", "wrote", "question")
VERSION = "2"
"""Changed with the generated graph: what was stored before is generated again."""


@dataclass(frozen=True)
class Size:
    """Row counts of a size."""

    name: str
    persons: int
    knows: int
    posts: int


SIZES = {
    size.name: size
    for size in (
        Size("XS", 400, 4_000, 300),
        Size("S", 10_000, 200_000, 20_000),
        Size("M", 100_000, 2_000_000, 200_000),
        Size("L", 1_000_000, 20_000_000, 100_000),
    )
}


@dataclass(frozen=True)
class Data:
    """The files of one graph."""

    size: Size
    folder: Path

    def path(self, table: str) -> Path:
        """The path of a table."""
        return self.folder / f"{table}.parquet"

    def read(self, table: str) -> pa.Table:
        """The rows of a table."""
        return pq.read_table(self.path(table)).combine_chunks()

    @property
    def starts(self) -> list[str]:
        """The start nodes of queries, spread over the graph, without extremes."""
        persons = self.size.persons
        return [f"p{number}" for number in np.random.default_rng(SEED + 1).integers(persons // 20, persons, STARTS)]

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The vectors and words of searches; both resemble those of posts."""
        return [dict(row) for row in self.read("question").to_pylist()]


def make(size: Size, folder: Path) -> Data:
    """The graph of a size, generated if missing."""
    data = Data(size, folder / size.name / "data")
    if not is_done(data.folder / "done"):
        data.folder.mkdir(parents=True, exist_ok=True)
        for name, table in _tables(size):
            pq.write_table(table, data.path(name))
        (data.folder / "done").write_text(VERSION)
    return data


def is_done(marker: Path) -> bool:
    """True if the marker of this version exists."""
    return marker.exists() and marker.read_text() == VERSION


def _tables(size: Size) -> list[tuple[str, pa.Table]]:
    rng = np.random.default_rng(SEED)
    persons = pa.table(
        {
            "number": pa.array(np.arange(size.persons)),
            "key": _keys("p", size.persons),
            "age": pa.array(rng.integers(18, 80, size.persons), pa.int32()),
            "city": _keys("c", CITIES).take(pa.array(rng.integers(0, CITIES, size.persons))),
        }
    )
    src, dst = _pairs(rng, size)
    knows = pa.table(
        {
            "from": persons["key"].combine_chunks().take(pa.array(src)),
            "to": persons["key"].combine_chunks().take(pa.array(dst)),
            "weight": pa.array(rng.random(size.knows)),
            "src": pa.array(src),
            "dst": pa.array(dst),
        }
    )
    topics = rng.standard_normal((64, DIMENSIONS)).astype(np.float32)
    topic = rng.integers(0, len(topics), size.posts)
    vectors = topics[topic] + 0.7 * rng.standard_normal((size.posts, DIMENSIONS)).astype(np.float32)
    post = pa.table(
        {
            "number": pa.array(np.arange(size.posts)),
            "key": _keys("t", size.posts),
            "text": _texts(rng, topic),
            "likes": pa.array(rng.integers(0, 1000, size.posts), pa.int32()),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS),
        }
    )
    author = rng.integers(0, size.persons, size.posts)
    wrote = pa.table(
        {
            "from": persons["key"].combine_chunks().take(pa.array(author)),
            "to": post["key"],
            "src": pa.array(author),
            "dst": pa.array(np.arange(size.posts)),
        }
    )
    tables = {"person": persons, "knows": knows, "post": post, "wrote": wrote} | _employers(persons)
    tables["question"] = _questions(post, vectors)
    return [(name, tables[name]) for name in TABLES]


def _questions(post: pa.Table, vectors: Array) -> pa.Table:
    rng = np.random.default_rng(SEED + 3)
    chosen = rng.integers(0, len(post), STARTS)
    near = vectors[chosen] + 0.3 * rng.standard_normal((STARTS, DIMENSIONS)).astype(np.float32)
    words = [" ".join(text.split()[:2]) for text in post["text"].take(pa.array(chosen)).to_pylist()]
    return pa.table({"vector": [[float(value) for value in row] for row in near], "words": words})


def _employers(persons: pa.Table) -> dict[str, pa.Table]:
    """Companies of skewed size; every person works at one."""
    rng = np.random.default_rng(SEED + 2)
    keys = _keys("e", COMPANIES)
    company = pa.table(
        {"number": pa.array(np.arange(COMPANIES)), "key": keys, "sector": [f"s{at % 10}" for at in range(COMPANIES)]}
    )
    employer = (COMPANIES * rng.random(len(persons)) ** 2).astype(np.int64)
    columns = {"from": persons["key"], "to": keys.take(pa.array(employer)), "src": persons["number"]}
    return {"company": company, "works": pa.table(columns | {"dst": pa.array(employer)})}


def _keys(prefix: str, count: int) -> pa.Array:
    return pa.array([f"{prefix}{number}" for number in range(count)])


def _pairs(rng: np.random.Generator, size: Size) -> tuple[Array, Array]:
    """Distinct random pairs with skewed degrees; in-degree hubs and out-degree hubs are different persons."""
    other = rng.permutation(size.persons)
    found = np.zeros(0, np.uint64)
    while len(found) < size.knows:
        count = int((size.knows - len(found)) * 1.1) + 1000
        src = other[(size.persons * rng.random(count) ** 1.3).astype(np.int64)]
        dst = (size.persons * rng.random(count) ** 2).astype(np.int64)
        packed = (src.astype(np.uint64) << np.uint64(32)) | dst.astype(np.uint64)
        found = np.unique(np.concatenate([found, packed[src != dst]]))
    chosen = rng.permutation(found)[: size.knows]
    return (chosen >> np.uint64(32)).astype(np.int64), (chosen & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _texts(rng: np.random.Generator, topic: Array) -> pa.Array:
    """Texts of generated words; a topic prefers some words, and few words are frequent."""
    letters = np.array(list("bcdfghklmnprstvz")), np.array(list("aeiou"))
    syllables = rng.integers(0, 16, (WORDS, 4)), rng.integers(0, 5, (WORDS, 4))
    words = [
        "".join(f"{letters[0][c]}{letters[1][v]}" for c, v in zip(*pair, strict=True))
        for pair in zip(*syllables, strict=True)
    ]
    vocabulary = np.array(words)
    texts: list[str] = []
    for start in range(0, len(topic), 10_000):
        some = topic[start : start + 10_000]
        drawn = (WORDS * rng.random((len(some), WORDS_PER_POST)) ** 3).astype(np.int64)
        own = rng.random(drawn.shape) < 0.2
        drawn = np.where(own, (some[:, None] * 37 + drawn % 40) % WORDS, drawn)
        texts += [" ".join(row) for row in vocabulary[drawn]]
    return pa.array(texts)
