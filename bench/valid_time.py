"""Reads at an instant of a table with many periods per key beside the same reads of a table with one period.

Both graphs have the same people and friendships at every instant; in one of them, each person and each friendship has
consecutive periods. Every turn reads another instant, so nothing is kept from the turn before except the structures of
the table versions. Both graphs are read in turns, and the least
time of all turns is taken: other processes only add to it.
`python -m bench.valid_time --people 20000 --periods 50` uses the size that the target, a ratio of 2, was set for.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph as og
from omnigraph.graph import Graph

SCHEMA = """
node Person @valid(from: started, to: ended) {
    name: String @key
    age: I64
    city: String
    started: Date
    ended: Date?
}
node Town { name: String @key }
edge Knows: Person -> Person @valid(from: since, to: until) { since: Date  until: Date? }
edge Near: Town -> Town @valid(from: since, to: until) { since: Date  until: Date? }
"""
FRIENDS, CITIES = 4, 50
FIRST, SPAN = 10_000, 5_000
"""The first day, and the number of days that the periods cover."""
TURNS, WARM_UP = 21, 12

WORKLOADS = {
    "point lookup": "match { $p: Person { name: $k } } return { $p.age, $p.city }",
    "two hops": "match { $p: Person { name: $k } $p knows $f $f knows $g } return distinct { $g.name }",
    "aggregate": "match { $p: Person } return { count($p) as n, sum($p.age) as s }",
    "filtered aggregate": "match { $p: Person $p.age > 50 } return { count($p) as n, avg($p.age) as s }",
    "group": "match { $p: Person } return { $p.city, count($p) as n }",
    "count over a hop": "match { $p: Person $p knows $f } return { count($f) as n }",
    "shortest path": "match { $p: Person { name: $k } $w: shortest { $p knows{1,2} $q } } return { count($q) as n }",
    "edges of plain nodes": "match { $t: Town { name: $k } $t near $u $u near $v } return { count($v) as n }",
    "count over plain nodes": "match { $t: Town $t near $u } return { count($u) as n }",
}


def build(folder: str, people: int, periods: int) -> Graph:
    """Load people, towns and their edges, each with some consecutive periods."""
    random = np.random.default_rng(1)
    length = SPAN // periods
    keys = np.array([f"p{number}" for number in range(people)])
    ages, cities = random.integers(0, 100, people), random.integers(0, CITIES, people)
    src, dst = np.repeat(np.arange(people), FRIENDS), random.integers(0, people, people * FRIENDS)

    def dates(rows: int, names: tuple[str, str]) -> dict[str, pa.Array]:
        """The periods of rows, of which each is repeated for every period; the last one is open."""
        start = np.tile(np.arange(periods) * length + FIRST, rows)
        is_last = np.tile(np.arange(periods) == periods - 1, rows)
        ends = pa.array(start + length, pa.int32(), mask=is_last)
        return {names[0]: pa.array(start, pa.int32()).cast(pa.date32()), names[1]: ends.cast(pa.date32())}

    def repeated(values: np.ndarray) -> pa.Array:
        return pa.array(np.repeat(values, periods))

    persons = {"name": repeated(keys), "age": repeated(ages), "city": repeated(np.char.add("c", cities.astype(str)))}
    edges = {"from": repeated(keys[src]), "to": repeated(keys[dst]), **dates(len(src), ("since", "until"))}
    graph = og.init(Path(folder) / f"with-{periods}", SCHEMA, sync=False)
    graph.load({"Person": pa.table({**persons, **dates(people, ("started", "ended"))})}, mode="append")
    graph.load({"Town": pa.table({"name": pa.array(keys)})}, mode="append")
    graph.load({"Knows": pa.table(edges), "Near": pa.table(edges)}, mode="append")
    return graph


def figures(people: int = 2_000, periods: int = 50, turns: int = TURNS) -> dict[str, tuple[float, float]]:
    """Return for each workload the milliseconds with one period and with many periods."""
    random = np.random.default_rng(2)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        graphs = [build(folder, people, number) for number in (1, periods)]
        for name, text in WORKLOADS.items():
            times: list[list[float]] = [[], []]
            head = "query q($k: String, $t: Date) { valid at $t " + text + " }"
            for turn in range(turns + WARM_UP):
                params = {
                    "k": f"p{random.integers(people)}",
                    "t": str(np.datetime64(int(FIRST + random.integers(SPAN)), "D")),
                }
                rows = []
                for graph, measured in zip(graphs, times, strict=True):
                    started = time.perf_counter()
                    rows.append(graph.query(head, params=params).to_rows())
                    if turn >= WARM_UP:
                        measured.append((time.perf_counter() - started) * 1000)
                assert sorted(map(str, rows[0])) == sorted(map(str, rows[1])), name
            found[name] = (min(times[0]), min(times[1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=2_000)
    parser.add_argument("--periods", type=int, default=50)
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args()
    print(f"{given.people:,} keys, {given.periods} periods; milliseconds")
    for name, (one, many) in figures(given.people, given.periods, given.turns).items():
        print(f"{name:<26} {one:>9.3f} {many:>9.3f}   ratio {many / one:.2f}")


if __name__ == "__main__":
    main()
