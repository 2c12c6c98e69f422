"""Reads against SQLite on one generated graph, answers compared, times side by side.

A social graph: persons with an age and a city, and skewed `Knows` edges. Both systems answer from a warm
cache; every answer is checked against the other's before it is timed. `--full` takes 100,000 persons and
2,000,000 edges. SQLite is the peer that comes with Python, with indexes on both ends of an edge.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph as og
from bench.measure import medians_us
from omnigraph.storage.tables import Change
from omnigraph.versioning.transaction import write

Runner = Callable[[], Any]

SCHEMA = "node Person { key: String @key  age: I32  city: String }  edge Knows: Person -> Person { weight: F64 }"
START = "p777"

ONE = "match { $p: Person { key: $k } $p knows $a"
CASES: dict[str, tuple[str, str]] = {  # name → our match and return, their SQL; ? is the start
    "point lookup": (
        "match { $p: Person { key: $k } } return { $p.age }",
        "SELECT age FROM person WHERE key = ?",
    ),
    "filter scan": (
        'match { $p: Person { city: "c7" } $p.age > 60 } return { count($p) as n }',
        "SELECT count(*) FROM person WHERE city = 'c7' AND age > 60",
    ),
    "one hop": (
        ONE + " } return { count($a) as n }",
        "SELECT count(DISTINCT dst) FROM knows WHERE src = ?",
    ),
    "two hops, filtered": (
        ONE + " $a knows $b $b.age > 60 } return { count($b) as n }",
        "SELECT count(*) FROM (SELECT DISTINCT src, dst FROM knows WHERE src = ?) a "
        "JOIN (SELECT DISTINCT src, dst FROM knows) b ON b.src = a.dst JOIN person p ON p.key = b.dst WHERE p.age > 60",
    ),
    "reachable in 1..3": (
        "match { $p: Person { key: $k } $p knows{1,3} $q } return { count($q) as n }",
        "WITH RECURSIVE r(k, d) AS (SELECT ?1, 0 UNION SELECT dst, d + 1 FROM r JOIN knows ON src = k WHERE d < 3) "
        "SELECT count(DISTINCT k) FROM r WHERE k != ?1 OR EXISTS (SELECT 1 FROM knows WHERE src = ?1 AND dst = ?1)",
    ),
    "two hops, whole graph": (
        "match { $a: Person $a knows $b $b knows $c } return { count($c) as n }",
        "WITH k AS (SELECT DISTINCT src, dst FROM knows), o AS (SELECT src, count(*) n FROM k GROUP BY src) "
        "SELECT sum(o.n) FROM k JOIN o ON o.src = k.dst",
    ),
    "group by over a hop": (
        "match { $p: Person $p knows $q } return { $q.city, count($p) as n } order { n desc, $q.city } limit 1",
        "SELECT n FROM (SELECT p.city c, count(*) n FROM (SELECT DISTINCT src, dst FROM knows) k "
        "JOIN person p ON p.key = k.dst GROUP BY 1) ORDER BY n DESC, c LIMIT 1",
    ),
    "anti-join over two hops": (
        ONE + " $a knows $b not { $p knows $b } } return { count($b) as n }",
        "WITH k AS (SELECT DISTINCT src, dst FROM knows) SELECT count(*) FROM k a JOIN k b ON b.src = a.dst "
        "WHERE a.src = ?1 AND b.dst NOT IN (SELECT dst FROM k WHERE src = ?1)",
    ),
    "edge property, average": (
        "match { $p: Person $p $e:knows $q $e.weight > 0.9 } return { count($e.weight) as n }",
        "SELECT count(*) FROM knows WHERE weight > 0.9",
    ),
}


def figures(persons: int = 10_000, edges: int = 200_000, rounds: int = 7) -> dict[str, float]:
    """Microseconds of each workload here and there, and the ratio ours / theirs."""
    with tempfile.TemporaryDirectory() as folder:
        graph, peer = _build(Path(folder), persons, edges)
        found: dict[str, float] = {}
        for name, (ours, theirs) in CASES.items():
            mine, other = _runners(graph, peer, ours, theirs)
            a, b = mine(), other()
            if a != b:
                raise AssertionError(f"{name}: {a} here, {b} there")
            times = medians_us({"ours": mine, "sqlite": other}, rounds=rounds, calls=1)
            found[f"{name}, ours µs"] = times["ours"]
            found[f"{name}, sqlite µs"] = times["sqlite"]
            found[f"{name}, ratio"] = times["ours"] / times["sqlite"]
        peer.close()
    return found


def _runners(
    graph: og.Graph, peer: sqlite3.Connection, ours: str, theirs: str
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    keyed = "$k" in ours
    text = f"query q({'$k: String' if keyed else ''}) {{ {ours} }}"
    params = {"k": START} if keyed else None
    arguments = (START,) if "?" in theirs else ()

    def mine() -> Any:
        return list(graph.query(text, params=params).to_pylist()[0].values())[-1]

    def other() -> Any:
        return peer.execute(theirs, arguments).fetchone()[0]

    return mine, other


def _build(folder: Path, persons: int, edges: int) -> tuple[og.Graph, sqlite3.Connection]:
    rng = np.random.default_rng(7)
    keys = pa.array([f"p{n}" for n in range(persons)])
    people = pa.table(
        {
            "id": keys,
            "age": pa.array(rng.integers(18, 80, persons), pa.int32()),
            "city": pa.array([f"c{n}" for n in rng.integers(0, 50, persons)]),
            "key": keys,
        }
    )
    knows = pa.table(
        {
            "id": pa.array([f"e{n}" for n in range(edges)]),
            "src": keys.take(pa.array(rng.integers(0, persons, edges))),
            "dst": keys.take(pa.array((rng.zipf(1.4, edges) % persons).astype(np.int64))),
            "weight": pa.array(rng.random(edges)),
        }
    )
    graph = og.init(folder / "g", SCHEMA, sync=False)

    def fill(transaction: Any) -> None:
        transaction.change("node:Person", Change(append=people))
        transaction.change("edge:Knows", Change(append=knows))

    write(graph._repository, fill)
    peer = sqlite3.connect(":memory:")
    peer.execute("CREATE TABLE person (key TEXT PRIMARY KEY, age INTEGER, city TEXT)")
    peer.execute("CREATE TABLE knows (src TEXT, dst TEXT, weight REAL)")
    rows = zip(*(people[name].to_pylist() for name in ("key", "age", "city")), strict=True)
    peer.executemany("INSERT INTO person VALUES (?, ?, ?)", rows)
    links = zip(*(knows[name].to_pylist() for name in ("src", "dst", "weight")), strict=True)
    peer.executemany("INSERT INTO knows VALUES (?, ?, ?)", links)
    peer.executescript("CREATE INDEX a ON knows (src, dst); CREATE INDEX b ON knows (dst); ANALYZE;")
    return graph, peer


if __name__ == "__main__":
    sizes = {"persons": 100_000, "edges": 2_000_000, "rounds": 5} if "--full" in sys.argv else {}
    for figure, value in figures(**sizes).items():
        print(f"{figure:<38} {value:14,.2f}")
