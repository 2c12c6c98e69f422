"""Text and vector search beside LanceDB on the same documents.

The peer probes as few partitions as reach a recall of 0.95. Queries are vectors like the stored ones.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bench.scale.corpus import RANKED, ROWS, Corpus, Figures, questions, vectors
from bench.scale.processes import forget, import_libraries, in_turns, seconds
from omnigraph.engine.search.inverted_index import WORDS

LIMIT, RECALL = 10, 0.95
ASKED = 10
PROBES = (1, 2, 4, 8, 16, 32, 64, 128)
_SUB_VECTOR = 4
"""Dimensions of a vector that the product quantization of the peer codes together."""

Ask = Callable[[int], list[str]]


def text(corpus: Corpus) -> Figures:
    """Build both text indexes on finished tables and ask both in turns."""
    table = _table(corpus)
    from lancedb.index import FTS  # noqa: PLC0415 (a peer)

    config = FTS(with_position=False, stem=True, remove_stop_words=True)
    theirs = seconds(lambda: table.create_index("text", config=config, replace=True))
    built = seconds(lambda: _build_again(corpus, WORDS))
    graph, texts = corpus.open(), questions()

    def ask(number: int) -> int:
        return len(graph.query(RANKED, params={"t": texts[number]}).to_rows())

    def ask_peer(number: int) -> int:
        search = table.search(texts[number], query_type="fts").select(["key", "_score"]).limit(LIMIT)
        return int(search.to_arrow().num_rows)

    taken = in_turns({"ours": ask, "LanceDB": ask_peer}, len(texts))
    ratios = [ours / peer for ours, peer in zip(taken["ours"], taken["LanceDB"], strict=True)]
    return {
        "text build s": built,
        "text build LanceDB s": theirs,
        "text build / LanceDB": built / theirs,
        **{f"BM25 {name} ms": median(times) * 1e3 for name, times in taken.items()},
        "BM25 / LanceDB": median(ratios),
        "BM25 / LanceDB, worst question": max(ratios),
    }


def nearest(corpus: Corpus) -> Figures:
    """Exact and approximate search beside both indexes of the peer."""
    table = _table(corpus)
    from lancedb.index import IvfFlat, IvfPq  # noqa: PLC0415 (a peer)

    import_libraries()
    graph = corpus.open()
    queries = vectors(corpus, ASKED, np.random.default_rng(11))

    def ours(word: str) -> Ask:
        text = (
            f"query q($v: Vector({corpus.dimensions})) {{ match {{ $d: Doc }} return {{ $d.key as key }} "
            f"order {{ nearest($d.embedding, $v{word}) }} limit {LIMIT} }}"
        )
        return lambda number: [
            row["key"] for row in graph.query(text, params={"v": queries[number].tolist()}).to_rows()
        ]

    def peer(probes: int, refine: int) -> Ask:
        def ask(number: int) -> list[str]:
            search = table.search(queries[number]).distance_type("cosine").nprobes(probes).limit(LIMIT)
            search = search.refine_factor(refine) if refine else search
            return [row["key"] for row in search.select(["key", "_distance"]).to_arrow().to_pylist()]

        return ask

    exact, approx = ours(""), ours(", approx")
    forget(corpus.uri)
    found = {"first kNN ms": seconds(lambda: exact(0)) * 1e3}
    found["first approximate kNN ms"] = seconds(lambda: approx(0)) * 1e3
    expected = [set(exact(number)) for number in range(ASKED)]
    found["recall"] = recall(approx, expected)
    partitions = max(round(corpus.documents**0.5), 1)
    configs: dict[str, tuple[Any, int]] = {
        "IVF_FLAT": (IvfFlat(distance_type="cosine", num_partitions=partitions), 0),
        "IVF_PQ": (
            IvfPq(
                distance_type="cosine",
                num_partitions=partitions,
                num_sub_vectors=max(corpus.dimensions // _SUB_VECTOR, 1),
            ),
            10,
        ),
    }
    ratios: list[float] = []
    for name, (config, refine) in configs.items():
        found[f"{name} build s"] = seconds(
            lambda config=config: table.create_index("embedding", config=config, replace=True)
        )
        makes = (peer(probes, refine) for probes in PROBES)
        ask = next((ask for ask in makes if recall(ask, expected) >= RECALL), peer(PROBES[-1], refine))
        found[f"{name} recall"] = recall(ask, expected)
        taken = in_turns({"approx": approx, "exact": exact, name: ask}, ASKED)
        found.update({f"kNN {one} ms": median(times) * 1e3 for one, times in taken.items()})
        ratios.append(median(a / b for a, b in zip(taken["approx"], taken[name], strict=True)))
        found[f"kNN approx / {name}"] = ratios[-1]
    return {**found, "kNN approx / LanceDB": max(ratios)}


def recall(ask: Ask, expected: list[set[str]]) -> float:
    """Return the share of the nearest rows that a search finds."""
    return float(np.mean([len(set(ask(number)) & rows) / LIMIT for number, rows in enumerate(expected)]))


def _table(corpus: Corpus) -> Any:
    """Return the table of the peer; it is written from the input at first use."""
    os.environ.setdefault("RUST_LOG", "error")
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb  # noqa: PLC0415 (a peer)

    if not corpus.peer.exists():
        part = corpus.peer.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        file = pq.ParquetFile(corpus.file)
        lancedb.connect(str(part)).create_table("docs", file.iter_batches(ROWS), schema=file.schema_arrow)
        part.rename(corpus.peer)
    return lancedb.connect(str(corpus.peer)).open_table("docs")


def _build_again(corpus: Corpus, kind: str) -> None:
    """Remove the structures of a kind and build what is missing."""
    for about in (corpus.uri / "__cache").glob("*/about.json"):
        if json.loads(about.read_bytes())["entry"]["what"][0] == kind:
            shutil.rmtree(about.parent)
    corpus.open().ensure_indices()
