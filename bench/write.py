"""The cost of a checked, versioned write compared with its bare parts, and its growth with the table.

Every ratio compares two measurements of one run on one machine:

- a keyed insert through `mutate` against the bare two-table commit of `bench.storage`: two bare Lance appends and
  one bare manifest append, synced in the same way (target 2); also shown: a two-table commit of the store;
- a load of nodes and edges from JSONL, every rule checked, against `pyarrow.json` reading the same file and a bare
  Lance write of the same columns (target 4);
- the rules of that load alone, on rows in memory, against reading the file with `pyarrow.json` (target 1);
- update and delete by key in a large table against the same in a small one, both indexed (target 2), and the same
  without an index, where every id is read.

`python -m bench.write --full` uses the sizes of the targets: 200,000 nodes and 500,000 edges, and a table of 1,000,000
rows against one of 10,000. The default sizes are smaller.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

import lance
import pyarrow as pa
import pyarrow.json

import omnigraph as og
from bench.storage import Bare, commit_pair, folder, medians_ms, new_graph
from omnigraph.engine.write.constraints import violations
from omnigraph.engine.write.delta import Delta, TableDelta
from omnigraph.engine.write.overlay import CommittedRows
from omnigraph.graph import Graph
from omnigraph.storage.files.fsync import sync_tree

SCHEMA = """\
node Person {
  name: String @key
  age: I32?
  city: String?
  score: F64?
  @range(age, 0..150)
}

edge Knows: Person -> Person {
  since: Date?
}
"""
INSERT = "query q($n: String, $a: I32) { insert Person { name: $n, age: $a } }"
UPSERT = "query q($n: String, $a: I32) { upsert Person { name: $n, age: $a } }"
INSERT_BOTH = """query q($n: String, $a: I32, $b: String) {
  insert Person { name: $n, age: $a }
  insert Knows { from: $n, to: $b }
}"""
UPDATE = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
DELETE = "query q($n: String) { delete Person where name = $n }"


@dataclass(frozen=True)
class Sizes:
    """Sizes of the run."""

    rounds: int = 40
    nodes: int = 20_000
    edges: int = 50_000
    loads: int = 3
    small: int = 2_000
    large: int = 50_000


FULL = Sizes(rounds=100, nodes=200_000, edges=500_000, loads=5, small=10_000, large=1_000_000)


def person(number: int) -> str:
    return f"person-{number:08}"


# -- one row -------------------------------------------------------------------------------------------


def one_row(sizes: Sizes) -> dict[str, float]:
    with folder() as root:
        graph = og.init(root / "graph", SCHEMA)
        bare, store = Bare(root / "bare", sync=True), new_graph(root / "store", sync=True)
        graph.mutate(INSERT, params={"n": "hub", "a": 1})
        times = medians_ms(
            {
                "insert": lambda number: graph.mutate(INSERT, params={"n": f"a{number}", "a": 7}),
                "both": lambda number: graph.mutate(INSERT_BOTH, params={"n": f"b{number}", "a": 7, "b": "hub"}),
                "replace": lambda _: graph.mutate(UPSERT, params={"n": "hub", "a": 2}),
                "bare": bare.commit,
                "store": lambda number: commit_pair(store, number),
            },
            sizes.rounds,
        )
    return {
        "keyed_insert_ms": times["insert"],
        "keyed_replace_ms": times["replace"],
        "node_and_edge_insert_ms": times["both"],
        "bare_two_table_commit_ms": times["bare"],
        "store_two_table_commit_ms": times["store"],
        "keyed_insert_to_bare_ratio": times["insert"] / times["bare"],
        "keyed_replace_to_bare_ratio": times["replace"] / times["bare"],
        "node_and_edge_to_bare_ratio": times["both"] / times["bare"],
        "node_and_edge_to_store_ratio": times["both"] / times["store"],
    }


# -- loads ---------------------------------------------------------------------------------------------


def write_records(path: Path, nodes: int, edges: int) -> None:
    """Nodes, then edges, one record per line."""
    random = Random(7)
    with path.open("w", encoding="utf-8") as file:
        for number in range(nodes):
            data = {"name": person(number), "age": number % 90, "city": f"city-{number % 500}", "score": number / 7}
            file.write(json.dumps({"type": "Person", "data": data}) + "\n")
        for _ in range(edges):
            ends = {"from": person(random.randrange(nodes)), "to": person(random.randrange(nodes))}
            since = f"20{random.randrange(10, 30)}-0{random.randrange(1, 10)}-1{random.randrange(10)}"
            file.write(json.dumps({"edge": "Knows", **ends, "data": {"since": since}}) + "\n")


def bare_tables(parsed: pa.Table) -> dict[str, pa.Table]:
    """The columns of nodes and edges as read by `pyarrow.json`."""
    nodes = parsed.filter(parsed["type"].is_valid())["data"].combine_chunks().flatten()
    names = [field.name for field in parsed.schema.field("data").type]
    edges = parsed.filter(parsed["edge"].is_valid())
    people = pa.table(dict(zip(names, nodes, strict=True))).drop_columns("since")
    knows = pa.table({"src": edges["from"], "dst": edges["to"], "since": edges["data"].combine_chunks().field("since")})
    return {"nodes": people, "edges": knows}


def bare_write(root: Path, tables: dict[str, pa.Table]) -> None:
    for name, table in tables.items():
        lance.write_dataset(table, str(root / name), mode="create")
        sync_tree(root / name)


def timed_s(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def loads(sizes: Sizes) -> dict[str, float]:
    taken: dict[str, list[float]] = {"parse": [], "write": [], "load": [], "rules": []}
    with folder() as root:
        path = root / "records.jsonl"
        write_records(path, sizes.nodes, sizes.edges)
        for turn in range(sizes.loads):
            here = root / str(turn)
            here.mkdir()
            parsed: list[pa.Table] = []
            taken["parse"].append(timed_s(lambda parsed=parsed: parsed.append(pyarrow.json.read_json(path))))
            tables = bare_tables(parsed[0])
            taken["write"].append(timed_s(lambda here=here, tables=tables: bare_write(here / "bare", tables)))
            graph = og.init(here / "graph", SCHEMA)
            empty = CommittedRows(graph.snapshot())
            taken["load"].append(timed_s(lambda graph=graph: graph.load(path, mode="append")))
            people, knows = graph.to_arrow("Person"), graph.to_arrow("Knows")
            assert (people.num_rows, knows.num_rows) == (sizes.nodes, sizes.edges)
            delta = Delta({"node:Person": TableDelta(people), "edge:Knows": TableDelta(knows)}, empty)
            catalog = graph.catalog()
            taken["rules"].append(timed_s(lambda c=catalog, d=delta: [*violations(c, d)] == [] or sys.exit("unsound")))
    seconds = {name: median(times) for name, times in taken.items()}
    bare = seconds["parse"] + seconds["write"]
    return {
        "load_s": seconds["load"],
        "parse_with_pyarrow_s": seconds["parse"],
        "bare_lance_write_s": seconds["write"],
        "rules_alone_s": seconds["rules"],
        "records_per_s": (sizes.nodes + sizes.edges) / seconds["load"],
        "load_to_parse_and_write_ratio": seconds["load"] / bare,
        "rules_to_parse_ratio": seconds["rules"] / seconds["parse"],
    }


# -- by key --------------------------------------------------------------------------------------------


def people(rows: int) -> pa.Table:
    return pa.table(
        {
            "name": [person(number) for number in range(rows)],
            "age": pa.array([number % 90 for number in range(rows)], pa.int32()),
            "city": [f"city-{number % 500}" for number in range(rows)],
            "score": pa.array([number / 7 for number in range(rows)]),
        }
    )


def knows(rows: int) -> pa.Table:
    ends = [person(number % rows) for number in range(rows + 1)]
    return pa.table({"from": ends[:rows], "to": ends[1:], "since": pa.array([None] * rows, pa.date32())})


def built(root: Path, rows: int, *, indexed: bool) -> Graph:
    graph = og.init(root, SCHEMA)
    graph.load({"Person": people(rows), "Knows": knows(rows)}, mode="overwrite")
    if indexed:
        graph.optimize()
    return graph


def by_key(sizes: Sizes, *, indexed: bool) -> dict[str, float]:
    rounds = sizes.rounds if indexed else max(5, sizes.rounds // 4)
    with folder() as root:
        graphs = {rows: built(root / str(rows), rows, indexed=indexed) for rows in (sizes.small, sizes.large)}

        def update(rows: int) -> Callable[[int], object]:
            def run(number: int) -> None:
                result = graphs[rows].mutate(UPDATE, params={"n": person(number * 7 % rows), "a": number % 100})
                assert result.affected_nodes == 1

            return run

        def delete(rows: int) -> Callable[[int], object]:
            def run(number: int) -> None:
                result = graphs[rows].mutate(DELETE, params={"n": person(rows - 1 - 3 * number)})
                assert (result.affected_nodes, result.affected_edges) == (1, 2)

            return run

        times = medians_ms(
            {(what, rows): make(rows) for what, make in (("update", update), ("delete", delete)) for rows in graphs},
            rounds,
        )
    how = "indexed" if indexed else "fresh"
    found = {f"{what}_{how}_{rows}_rows_ms": taken for (what, rows), taken in times.items()}
    for what in ("update", "delete"):
        found[f"{what}_{how}_growth_ratio"] = times[what, sizes.large] / times[what, sizes.small]
    return found


def figures(sizes: Sizes | None = None) -> dict[str, float]:
    sizes = sizes or Sizes()
    return {**one_row(sizes), **loads(sizes), **by_key(sizes, indexed=True), **by_key(sizes, indexed=False)}


if __name__ == "__main__":
    for name, value in figures(FULL if "--full" in sys.argv[1:] else Sizes()).items():
        print(f"{name:<36} {value:12,.3f}")
