"""The documents of a run: their file, their graph and their peer in one folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
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
ROWS = 10_000
"""Rows that are generated at a time."""
_CLUSTER = 1_000
"""Documents with similar vectors."""
_NOISE = 0.7

Figures = dict[str, float]


@dataclass(frozen=True)
class Corpus:
    """The size of a run and the folder that contains its data."""

    folder: str
    documents: int = 1_000_000
    text: int = 900
    dimensions: int = 256
    memory: str = "2GiB"
    large_texts: int = 500
    large_text: int = 4_500_000
    edges: int = 50_000_000

    @property
    def file(self) -> Path:
        """The input."""
        return Path(self.folder) / "Doc.parquet"

    @property
    def uri(self) -> Path:
        """The graph."""
        return Path(self.folder) / "graph"

    @property
    def peer(self) -> Path:
        """The database of LanceDB."""
        return Path(self.folder) / "lancedb"

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


def word(number: int) -> str:
    """Return a word by its rank; the first is the most frequent."""
    return f"w{np.base_repr(number, 36).lower()}"


def questions(count: int = 12) -> list[str]:
    """Return texts of three, two and one word: a frequent, a common and a rare one."""
    random = np.random.default_rng(3)
    found: list[str] = []
    for number in range(count):
        ranks = (random.integers(5, 50), random.integers(50, 1_000), random.integers(1_000, WORDS))
        found.append(" ".join(word(int(rank)) for rank in ranks[number % 3 :]))
    return found


def vectors(corpus: Corpus, count: int, random: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return vectors of clusters that are the same in every call."""
    clusters = max(corpus.documents // _CLUSTER, 10)
    centers = np.random.default_rng(7).standard_normal((clusters, corpus.dimensions), np.float32)
    noise = random.standard_normal((count, corpus.dimensions), np.float32)
    return centers[random.integers(0, clusters, count)] + np.float32(_NOISE) * noise


def batches(corpus: Corpus) -> Iterator[pa.Table]:
    """Yield the documents: words with a Zipf distribution, and clustered vectors."""
    random = np.random.default_rng(1)
    words = np.array([word(number) for number in range(WORDS)], object)
    limits = np.cumsum(1 / np.arange(1, WORDS + 1))
    count = corpus.text // 4
    for start in range(0, corpus.documents, ROWS):
        rows = min(ROWS, corpus.documents - start)
        chosen = np.searchsorted(limits, random.random((rows, count)) * limits[-1])
        embedding = pa.array(vectors(corpus, rows, random).ravel())
        yield pa.table(
            {
                "key": [corpus.key(start + row) for row in range(rows)],
                "year": pa.array(random.integers(1950, 2025, rows), pa.int32()),
                "topic": [f"t{number}" for number in random.integers(0, 50, rows)],
                "text": [" ".join(words[row])[: corpus.text] for row in chosen],
                "embedding": pa.FixedSizeListArray.from_arrays(embedding, corpus.dimensions),
            }
        )


def generate(corpus: Corpus) -> None:
    """Write the input file."""
    made = batches(corpus)
    first = next(made)
    part = corpus.file.with_suffix(".part")
    with pq.ParquetWriter(part, first.schema, compression="none", use_dictionary=False) as writer:
        writer.write_table(first)
        for batch in made:
            writer.write_table(batch)
    part.rename(corpus.file)
