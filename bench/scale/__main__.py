"""Data larger than memory: one graph of many documents, measured in new processes beside peers.

`python -m bench.scale` generates a million documents (900 bytes of text, 256-dimensional vectors), loads and optimizes
them, and runs every measurement in a process of its own. The files of the graph are removed from the page cache before
a cold measurement. Memory is counted above that of a process that has imported the libraries and has read a graph of
one row. `--documents`, `--text` and `--dimensions` change the size, `--long` uses ten million documents of 300 bytes
and 64 dimensions, `--folder` keeps and reuses the data, `--only` runs some measurements, and `--memory` is the
budget of the graph. `text` and `nearest` need `lancedb`.

A measurement is a function of `MEASUREMENTS` that returns figures by name; further structures add their own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.measure import keeping_bytecode
from bench.scale import documents, edges, large_texts, peers
from bench.scale.corpus import Corpus, Figures, generate
from bench.scale.processes import peak

Measurement = Callable[[Corpus], Figures]

MEASUREMENTS: dict[str, Measurement] = {
    "build": documents.build,
    "point": documents.point,
    "get": documents.get,
    "bm25": documents.bm25,
    "contains": documents.contains,
    "text": peers.text,
    "nearest": peers.nearest,
    "large_texts": large_texts.large_texts,
    "build_edges": edges.build_edges,
    "hops": edges.hops,
    "cold_hops": edges.cold_hops,
}
"""Measurement → function. Each runs in a process of its own, in this order; its peak memory is added."""

TARGETS: dict[str, float] = {
    "first point read ms": 60,
    "first point read MB": 80,
    "first BM25 ms": 500,
    "first BM25 MB": 400,
    "BM25 / LanceDB": 1,
    "text build / LanceDB": 1.5,
    "kNN exact ms": 40,
    "kNN approx / LanceDB": 1,
    "contains cold / DuckDB": 1,
    "contains warm / DuckDB": 1,
    "first hop ms": 100,
    "three hops, first / warm": 5,
    "derived / data": 0.7,
    "peak MB": 3_000,
}
"""Figure → the largest value that is wanted for a million documents and 50 million edges."""

_DOCUMENTS = ("build", "point", "get", "bm25", "contains", "text", "nearest")


def run(corpus: Corpus, names: list[str]) -> dict[str, Figures]:
    """Run measurements, each in a new process, on existing data or on data that is generated first."""
    found: dict[str, Figures] = {}
    if any(name in _DOCUMENTS for name in names) and not corpus.uri.exists():
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
            cwd=Path(__file__).parents[2],
            env=keeping_bytecode(),
        )
        found[name] = json.loads(done.stdout.splitlines()[-1])
        print(report({name: found[name]}), flush=True)
    return found


def measure(name: str, corpus: Corpus) -> Figures:
    """Run one measurement in this process and add its peak memory."""
    return {**MEASUREMENTS[name](corpus), "peak MB": peak()}


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
    parser.add_argument("--edges", type=int, default=Corpus.edges)
    parser.add_argument("--long", action="store_true")
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
    corpus = Corpus(folder, given.documents, given.text, given.dimensions, given.memory, edges=given.edges)
    if given.long:
        corpus = replace(corpus, documents=10_000_000, text=300, dimensions=64)
    try:
        run(corpus, names)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
