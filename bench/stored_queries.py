"""Open, list and call stored queries: a graph with many of them beside a graph with ten.

    python -m bench.stored_queries
    python -m bench.stored_queries --queries 1000 --turns 15

Each figure is the least time of all turns, in milliseconds; the graphs take turns, so that other processes affect both.
`open` is a new handle and its first read of the stored queries of `main`, `open and invoke` a new handle and its first
call, `list` and `invoke` use an open handle.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import omnigraph as og
from omnigraph.graph import Graph

SCHEMA = "node Person { name: String @key  age: I64? }"
FEW = 10
PEOPLE = 1_000

Figures = dict[str, float]


def build(folder: Path, queries: int) -> Graph:
    """Make a graph with people and stored queries, which differ in a constant."""
    graph = og.init(folder / f"{queries}.omni", SCHEMA, sync=False)
    people = ({"type": "Person", "data": {"name": f"p{n}", "age": n % 90}} for n in range(PEOPLE))
    graph.load(people, mode="append")
    graph.store_query("\n".join(map(text_of, range(queries))))
    return graph


def text_of(number: int) -> str:
    """Return the text of a query."""
    return (
        f'query q{number}($name: String) @description("A person of at least {number} years.") '
        f"{{ match {{ $p: Person {{ name: $name }} $p.age >= {number} }} return {{ $p.age as age }} }}"
    )


def calls(graph: Graph) -> dict[str, Callable[[], object]]:
    """Return the measured calls."""
    uri = graph.uri
    return {
        "open": lambda: og.open(uri, sync=False).queries("main", graph.head().commit_id)[:1],
        "open and invoke": lambda: og.open(uri, sync=False).invoke("q7", {"name": "p8"}),
        "list": graph.queries,
        "list per query": graph.queries,
        "invoke": lambda: graph.invoke("q7", {"name": "p8"}),
    }


def measure(graphs: list[Graph], turns: int) -> list[Figures]:
    """Return the least time of each call on each graph."""
    every = [calls(graph) for graph in graphs]
    figures: list[Figures] = [{} for _ in graphs]
    for _ in range(turns):
        for of_graph, found in zip(every, figures, strict=True):
            for name, call in of_graph.items():
                started = time.perf_counter()
                call()
                ms = (time.perf_counter() - started) * 1000
                found[name] = min(found.get(name, ms), ms)
    for graph, found in zip(graphs, figures, strict=True):
        found["list per query"] /= len(graph.queries())
    return figures


def main() -> None:
    """Print the figures and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        few, many = measure([build(Path(folder), count) for count in (FEW, given.queries)], given.turns)
    print(f"{'':<16} {FEW:>10} {given.queries:>10} {'ratio':>8}")
    for name, least in few.items():
        print(f"{name:<16} {least:>10.3f} {many[name]:>10.3f} {many[name] / least:>8.2f}")


if __name__ == "__main__":
    main()
