"""Time and CPU of single commits on a large graph, beside LanceDB, and among many branches; parts of `bench.commit`."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import fmean, median
from typing import Any

import lance
import pyarrow as pa

import omnigraph as og
from bench.read.graph import SIZES, Data, make
from bench.read.systems import OmniGraph

INSERT = 'query q($n: String) { insert Person { key: $n, age: 1, city: "c1" } }'
UPDATE = "query q($n: String, $a: I32) { update Person set { age: $a } where key = $n }"
DELETE = "query q($n: String) { delete Person where key = $n }"
TABLES = 20
ONE_IN = 10
"""One of so many branches makes a commit after its creation."""


@dataclass(frozen=True)
class Cost:
    """Milliseconds per call: the median time, and the median and mean CPU time of the whole process."""

    ms: float
    cpu: float
    mean_cpu: float


def costs(functions: Mapping[str, Callable[[int], object]], rounds: int) -> dict[str, Cost]:
    """The cost of each function, called with the number of the round; they alternate. The first two rounds warm up."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    for number in range(-2, rounds):
        for name, function in functions.items():
            start, cpu = time.perf_counter(), time.process_time()
            function(number)
            spent = time.perf_counter() - start, time.process_time() - cpu
            if number >= 0:
                taken[name].append(spent)
    found: dict[str, Cost] = {}
    for name, times in taken.items():
        walls, cpus = zip(*times, strict=True)
        found[name] = Cost(median(walls) * 1e3, median(cpus) * 1e3, fmean(cpus) * 1e3)
    return found


class PlainLance:
    """The floor: one `write_fragments` and one `LanceDataset.commit` with an open handle, per table."""

    def __init__(self, uri: str, options: Mapping[str, str] | None = None, tables: int = 1) -> None:
        self.options = dict(options) if options else None
        self.row = pa.table({"id": ["a"], "name": ["somebody"]})
        self.tables = [
            lance.write_dataset(self.row, f"{uri}/{number}", storage_options=self.options) for number in range(tables)
        ]

    def commit(self, _number: int = 0) -> None:
        for place, table in enumerate(self.tables):
            fragments = lance.fragment.write_fragments(self.row, table, mode="append", storage_options=self.options)
            append = lance.LanceOperation.Append(fragments)
            self.tables[place] = lance.LanceDataset.commit(table, append, read_version=table.version)


# -- the benchmark graph, and LanceDB ------------------------------------------------------------------


class LanceDb:
    """Persons and edges in LanceDB with an index on each column that a predicate uses."""

    def __init__(self, folder: Path, data: Data) -> None:
        db: Any = importlib.import_module("lancedb").connect(str(folder))
        self.person = db.create_table("person", data.read("person").select(["key", "age", "city"]))
        knows = data.read("knows")
        self.knows = db.create_table("knows", pa.table({"src": knows["from"], "dst": knows["to"]}))
        for table, column in ((self.person, "key"), (self.knows, "src"), (self.knows, "dst")):
            table.create_scalar_index(column)

    def add(self, number: int) -> None:
        row = {"key": [f"new{number}"], "age": pa.array([1], pa.int32()), "city": ["c1"]}
        self.person.add(pa.table(row))

    def update(self, key: str, age: int) -> None:
        self.person.update(where=f"key = '{key}'", values={"age": age})

    def delete(self, key: str) -> None:
        self.person.delete(f"key = '{key}'")
        self.knows.delete(f"src = '{key}' or dst = '{key}'")


@dataclass(frozen=True)
class LargeCosts:
    """Costs on the benchmark graph; the peer's are None if LanceDB is not installed."""

    size: str
    synced_insert: Cost
    ours: dict[str, Cost]
    peer: dict[str, Cost] | None


def on_large_graph(size: str, folder: Path, data_folder: Path, rounds: int) -> LargeCosts:
    """Insert, update and delete on a graph of `bench.read` and in LanceDB, alternating, without fsync."""
    data = make(SIZES[size], data_folder)
    OmniGraph(folder).fill(data)
    graph = og.open(folder / "graph", sync=False)
    few = max(5, rounds // 3)
    peer = LanceDb(folder / "lancedb", data) if importlib.util.find_spec("lancedb") else None

    def updated(number: int) -> str:
        return f"p{data.size.persons // 2 + number}"

    def deleted(number: int) -> str:
        return f"p{data.size.persons // 4 + number}"

    found = costs(
        {"ours": lambda number: graph.mutate(INSERT, params={"n": f"new{number}"})}
        | ({"peer": peer.add} if peer else {}),
        rounds,
    )
    ours, theirs = {"insert": found["ours"]}, {"insert": found["peer"]} if peer else {}

    def update(number: int) -> None:
        assert graph.mutate(UPDATE, params={"n": updated(number), "a": 20 + number}).affected_nodes == 1

    def delete(number: int) -> None:
        result = graph.mutate(DELETE, params={"n": deleted(number)})
        assert result.affected_nodes == 1
        assert result.affected_edges

    changes: dict[str, tuple[Callable[[int], object], Callable[[int], object] | None]] = {
        "update": (update, (lambda number: peer.update(updated(number), 20 + number)) if peer else None),
        "delete": (delete, (lambda number: peer.delete(deleted(number))) if peer else None),
    }
    for name, (change, other) in changes.items():
        found = costs({"ours": change} | ({"peer": other} if other else {}), few)
        ours[name] = found["ours"]
        if peer:
            theirs[name] = found["peer"]
    synced = og.open(folder / "graph")
    insert = costs({"insert": lambda number: synced.mutate(INSERT, params={"n": f"synced{number}"})}, rounds)
    return LargeCosts(size, insert["insert"], ours, theirs or None)


# -- many branches -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BranchCosts:
    """Costs with a number of branches and, measured alternately, without branches."""

    branches: int
    created_in_s: float
    commit: Cost
    alone: Cost
    create: Cost
    create_alone: Cost


def _many_tables() -> str:
    kinds = range(TABLES // 2)
    nodes = "\n".join(f"node T{kind} {{ name: String @key }}" for kind in kinds)
    return nodes + "\n" + "\n".join(f"edge E{kind}: T{kind} -> T{kind}" for kind in kinds)


def among_branches(folder: Path, numbers: tuple[int, ...], rounds: int, at_most_s: float) -> list[BranchCosts]:
    """Costs at growing numbers of branches; the creation of branches stops after `at_most_s`."""
    insert = "query q($n: String) { insert T0 { name: $n } }"
    alone = og.init(folder / "alone", _many_tables(), sync=False)
    crowded = og.init(folder / "crowded", _many_tables(), sync=False)
    names = count()
    found: list[BranchCosts] = []
    made = 0
    for number in numbers:
        start = time.perf_counter()
        while made < number and time.perf_counter() - start < at_most_s:
            crowded.branch_create(f"task-{made}")
            if made % ONE_IN == 0:
                crowded.mutate(insert, params={"n": f"x{next(names)}"}, branch=f"task-{made}")
            made += 1
        seconds = time.perf_counter() - start
        commit = costs(
            {
                "crowded": lambda _: crowded.mutate(insert, params={"n": f"x{next(names)}"}),
                "alone": lambda _: alone.mutate(insert, params={"n": f"x{next(names)}"}),
            },
            rounds,
        )
        few = max(5, rounds // 3)
        create = costs(
            {
                "crowded": lambda _: crowded.branch_create(f"more-{next(names)}"),
                "alone": lambda _: alone.branch_create(f"more-{next(names)}"),
            },
            few,
        )
        for branch in alone.branches():
            if branch != "main":
                alone.branch_delete(branch)
        found.append(BranchCosts(made, seconds, commit["crowded"], commit["alone"], create["crowded"], create["alone"]))
    return found
