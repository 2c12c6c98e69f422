"""First reads of a new machine on a graph in a bucket: bytes, requests and time.

A graph of documents and links is loaded into SeaweedFS and optimised, so that its search structures are in the bucket.
Then each read runs in a new process with an empty cache folder, through a proxy that counts requests and adds a delay
to each (`bench.counting_proxy`). The bytes are those of the read alone, not of opening the graph, and are divided into
those of search structures and those of tables. `later` is the same read in later processes of the same machine, the
median of three.

`--before FOLDER` also runs the reads with the code of another checkout, in turns. Answers are compared. The processor
time is that of the process during the read; on a busy machine it says more than the time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.support.s3 import seaweedfs

import omnigraph as og
from bench.counting_proxy import DELAY_S, Proxy, Request, proxy_to
from bench.storage import folder
from omnigraph.engine.cache.user_folder import VARIABLE

SCHEMA = """
node Doc { key: String @key  text: String @index  meaning: Vector(64) @index }
edge Link: Doc -> Doc
"""
_KEY = "query q($k: String) { match { $a: Doc { key: $k } } return { $a.key as key } }"
_HOP = "query q($k: String) { match { $a: Doc { key: $k }  $a link $b } return { $b.key as key } order { $b.key } }"
_FAR = "query q($k: String) { match { $a: Doc { key: $k }  $a link{1,2} $b } return { count($b) as n } }"
_ALL = "query q() { match { $a: Doc  $a link $b } return { count($b) as n } }"
_TEXT = "query q($t: String) { match { $a: Doc } return { $a.key as key } order { bm25($a.text, $t) } limit 10 }"
_NEAR = (
    "query q($v: Vector(64)) { match { $a: Doc } return { $a.key as key } "
    "order { nearest($a.meaning, $v, approx) } limit 10 }"
)
_EXACT = _NEAR.replace(", approx", "")
_DIM = 64
_GROUPS = 1_000
_WORDS = 30
_VOCABULARY = 200_000


@dataclass(frozen=True)
class Read:
    """A read of the table."""

    name: str
    query: str
    params: dict[str, Any]


def vectors(count: int, seed: int) -> Any:
    """Vectors around some directions."""
    random = np.random.default_rng(seed)
    groups = np.random.default_rng(2).standard_normal((_GROUPS, _DIM), np.float32)
    return groups[random.integers(0, _GROUPS, count)] + 0.5 * random.standard_normal((count, _DIM), np.float32)


def reads(documents: int) -> list[Read]:
    """Return the measured reads."""
    key = f"doc{documents // 3}"
    vector = vectors(1, 3)[0].tolist()
    return [
        Read("key lookup", _KEY, {"k": key}),
        Read("hop", _HOP, {"k": key}),
        Read("two hops", _FAR, {"k": key}),
        Read("BM25, rare words", _TEXT, {"t": "w5001 w8002"}),
        Read("BM25, a common word", _TEXT, {"t": "w3 w5001"}),
        Read("count of all edges", _ALL, {}),
        Read("approximate kNN", _NEAR, {"v": vector}),
        Read("exact kNN", _EXACT, {"v": vector}),
    ]


_PROCESS = """
import json, resource, sys, time
uri, environ, query, params = json.loads(sys.stdin.readline())
import omnigraph as og
graph = og.open(uri, environ=environ)
print("open", flush=True)
sys.stdin.readline()
began, used = time.perf_counter(), time.process_time()
rows = graph.query(query, params).to_pylist()
print(json.dumps([rows, time.perf_counter() - began, time.process_time() - used]), flush=True)
"""


@dataclass(frozen=True)
class Measured:
    """A read in a new process."""

    rows: Any
    time_s: float
    cpu_s: float
    requests: list[Request]

    def bytes_of(self, *, cache: bool) -> int:
        """The bytes of search structures, or of everything else."""
        return sum(one.size for one in self.requests if ("__cache/" in one.path) == cache)

    def cells(self) -> list[str]:
        """The cells of a row of the table."""
        sizes = [f"{self.bytes_of(cache=cache) / 1e6:.2f}" for cache in (True, False)]
        return [*sizes, str(len(self.requests)), f"{self.time_s * 1e3:.0f}", f"{self.cpu_s * 1e3:.0f}"]


def load(uri: str, environ: dict[str, str], documents: int, links: int) -> None:
    """Load the graph and build its search structures."""
    random = np.random.default_rng(1)
    # Words by a power law: a few are in many documents.
    ranks = (random.pareto(0.6, (documents, _WORDS)) * 3).astype(np.int64) % _VOCABULARY
    texts = [" ".join(f"w{word}" for word in row) for row in ranks.tolist()]
    keys = [f"doc{at}" for at in range(documents)]
    places = random.integers(0, documents, (2, links)).tolist()
    graph = og.init(uri, SCHEMA, environ=environ)
    meanings = pa.FixedSizeListArray.from_arrays(pa.array(vectors(documents, 4).ravel()), _DIM)
    graph.load({"Doc": pa.table({"key": keys, "text": texts, "meaning": meanings})}, mode="append")
    ends = [[keys[at] for at in some] for some in places]
    graph.load({"Link": pa.table({"src": ends[0], "dst": ends[1]})}, mode="append")
    graph.query(_NEAR, {"v": vectors(1, 5)[0].tolist()})  # builds the clusters
    graph.optimize()


def measure(proxy: Proxy, uri: str, cache: Path, read: Read, source: Path | None) -> Measured:
    """Run a read in a new process."""
    environ = {**proxy.environ, VARIABLE: str(cache)}
    paths = {"PYTHONPATH": str((source or Path(__file__).parents[1]) / "src")}
    process = subprocess.Popen(
        [sys.executable, "-c", _PROCESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **paths},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(json.dumps([uri, environ, read.query, read.params]) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "open\n"
        found: list[str] = []

        def run() -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            found.append(process.stdout.readline())

        recorded = proxy.record(run)
    return Measured(*json.loads(found[0]), recorded.before)


def rows(proxy: Proxy, uri: str, root: Path, documents: int, before: Path | None) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    sources = {"now": None, **({"before": before} if before is not None else {})}
    for number, read in enumerate(reads(documents)):
        answers: list[Any] = []
        for name, source in sources.items():
            cache = root / f"machine-{name}-{number}"
            found = [measure(proxy, uri, cache, read, source) for _ in range(4)]
            answers += [one.rows for one in found]
            yield [read.name, name, "new", *found[0].cells()]
            yield [read.name, name, "later", *sorted(found[1:], key=lambda one: one.cpu_s)[1].cells()]
        assert answers == [answers[0]] * len(answers), f"the answers to '{read.name}' differ"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=300_000)
    parser.add_argument("--links", type=int, default=1_000_000)
    parser.add_argument("--delay", type=float, default=DELAY_S * 1e3, help="milliseconds per request")
    parser.add_argument(
        "--before", type=Path, help="another checkout of the project, which is measured beside this one"
    )
    given = parser.parse_args()
    with folder() as root, seaweedfs(root) as store, proxy_to(store) as proxy:
        uri = proxy.new_place()
        load(uri, {**store.environ, VARIABLE: str(root / "writer")}, given.documents, given.links)
        proxy.set_delay(given.delay / 1e3)
        print("| read | code | process | structures, MB | other, MB | requests | ms | processor ms |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for row in rows(proxy, uri, root, given.documents, given.before):
            print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
