"""Incremental maintenance of adjacency: after any commit it equals a new build, without one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from omnigraph.engine.adjacency import adjacency as module
from omnigraph.engine.adjacency import incremental
from omnigraph.engine.adjacency.adjacency import EdgeAdjacency
from omnigraph.engine.adjacency.bfs import BoundedHops
from omnigraph.engine.cache import row_mapping
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.graph import Graph
from support.writes import edge, new_graph, node

SCHEMA = "node A { name: String @key  n: I64? }\nnode B { name: String @key }\nedge Loop: A -> A\nedge To: A -> B\n"
DIRECTIONS = ("out", "in", "both")


class ChangingGraph:
    """A graph with random small changes."""

    def __init__(self, graph: Graph, random: Random) -> None:
        self.graph = graph
        self.random = random
        self.made = 0

    def names(self, type_name: str) -> list[str]:
        return self.graph.to_arrow(type_name, columns=["id"])["id"].to_pylist()

    def some(self, type_name: str) -> str:
        return self.random.choice(self.names(type_name))

    def step(self) -> str:
        what = self.random.choice(["edge", "edge", "edges", "again", "node", "update", "remove", "drop", "drop"])
        self.made += 1
        a, b = self.some("A"), self.some("A")
        match what:
            case "edge":
                self.graph.load([edge("Loop", a, b), edge("To", a, self.some("B"))], mode="append")
            case "edges":
                self.graph.load([edge("Loop", a, self.some("A")) for _ in range(4)], mode="append")
            case "again":
                self.graph.load([edge("Loop", a, b), edge("Loop", a, b)], mode="append")
            case "node":
                new = f"new{self.made}"
                self.graph.load([node("A", name=new), node("B", name=new), edge("Loop", new, a)], mode="append")
            case "update":
                self.graph.load([node("A", name=a, n=self.made), node("A", name=b, n=self.made)], mode="merge")
            case "remove":
                self.graph.mutate(f'query q() {{ delete A where name = "{a}" }}')
            case "drop":
                self.graph.mutate(f'query q() {{ delete Loop where from = "{a}" }}')
        return what


def check(graph: Graph, cache: DataCache, edge_type: str) -> None:
    snapshot = graph.snapshot()
    ends = graph.catalog().edges[edge_type]
    keys = (f"edge:{edge_type}", f"node:{ends.from_type}", f"node:{ends.to_type}")
    edges, sources, targets = (cache.table(snapshot.table(key)) for key in keys)
    of = EdgeAdjacency(edges, sources, targets, cache)
    names = [data.column("id").to_pylist() for data in (sources, targets)]
    stored = graph.to_arrow(edge_type).to_pylist()
    src, dst = of.ends()
    assert [(names[0][a], names[1][b]) for a, b in zip(src, dst, strict=True)] == [
        (row["src"], row["dst"]) for row in stored
    ]
    pairs = {(row["src"], row["dst"]) for row in stored}
    loops = {a for a, b in pairs if a == b and ends.from_type == ends.to_type}
    for direction in DIRECTIONS if ends.from_type == ends.to_type else DIRECTIONS[:2]:
        near, far = names[::-1] if direction == "in" else names
        turned = {(b, a) for a, b in pairs}
        expected = sorted({"out": pairs, "in": turned, "both": pairs | turned}[direction])
        neighbours = of.neighbours(direction)
        all_pairs = np.arange(len(near))
        assert neighbours.count == len(near)
        for found in (neighbours.expand(all_pairs), of.compacted(direction).expand(all_pairs)):
            assert (
                sorted((near[a], far[b]) for a, b in zip(*(part.tolist() for part in found), strict=True)) == expected
            )
        check_edge_rows(of, direction, near, far, stored)
        degrees = [sum(a == name for a, _ in expected) for name in near]
        assert neighbours.degrees(all_pairs).tolist() == neighbours.totals(None).tolist() == degrees
        assert sorted(neighbours.far(all_pairs).tolist()) == sorted(neighbours.expand(all_pairs)[1].tolist())
        values = np.arange(len(far)) + 1
        totals = [sum(far.index(b) + 1 for a, b in expected if a == name) for name in near]
        assert neighbours.totals(values).tolist() == totals
        for number, name in enumerate(near):
            hits = neighbours.connected(np.full(len(far), number), np.arange(len(far)))
            assert [far[at] for at in np.flatnonzero(hits)] == [b for b in far if (name, b) in expected]
        if ends.from_type == ends.to_type:
            assert {near[number] for number in of.loops(direction)} == loops
            reached = BoundedHops(neighbours, of.loops(direction), 1, 2).reach(all_pairs)
            assert len(reached[0]) == len(set(zip(*(part.tolist() for part in reached), strict=True)))


def check_edge_rows(of: EdgeAdjacency, direction: str, near: list[str], far: list[str], stored: list[dict]) -> None:
    ways = {"out": [("src", "dst")], "in": [("dst", "src")], "both": [("src", "dst"), ("dst", "src")]}[direction]
    expected = {(row[a], number, row[b]) for a, b in ways for number, row in enumerate(stored)}
    rows = of.edge_rows(direction)
    nodes = np.arange(len(near))[::-1]
    positions, edges, targets = (part.tolist() for part in rows.expand(nodes))
    found = [(near[nodes[at]], edge, far[end]) for at, edge, end in zip(positions, edges, targets, strict=True)]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert list(zip(positions, edges, strict=True)) == sorted(zip(positions, edges, strict=True))
    assert rows.degrees(nodes).tolist() == [sum(a == near[node] for a, _, _ in expected) for node in nodes]


@pytest.mark.parametrize("seed", range(4))
def test_small_changes_update_the_adjacency(tmp_path, seed, monkeypatch):
    random = Random(seed)
    names = [f"n{number}" for number in range(14)]
    records = [node("A", name=name) for name in names] + [node("B", name=name) for name in names[:5]]
    records += [edge("Loop", random.choice(names), random.choice(names)) for _ in range(40)]
    records += [edge("To", random.choice(names), random.choice(names[:5])) for _ in range(15)]
    graph = new_graph(tmp_path, SCHEMA, *records)
    built: list[int] = []
    plain = module.build
    monkeypatch.setattr(module, "build", lambda *parts: built.append(1) or plain(*parts))
    cache = DataCache()
    changing = ChangingGraph(graph, random)
    done = ["start"]
    for number in range(11):
        for edge_type in ("Loop", "To"):
            check(graph, cache, edge_type)
        if number == 0:
            first = len(built)
        if number == 7:
            graph.optimize()
            cache = DataCache()
            built.clear()
            first = 5
        done.append(changing.step())
    assert len(built) <= first, f"rebuilt after {done}"


def test_a_large_change_rebuilds_the_adjacency(tmp_path, tune):
    graph = new_graph(
        tmp_path, SCHEMA, *(node("A", name=f"n{number}") for number in range(4)), edge("Loop", "n0", "n1")
    )
    cache = DataCache()
    check(graph, cache, "Loop")
    tune(adjacency_changed_edges_min=2)
    graph.load([edge("Loop", "n0", "n2"), edge("Loop", "n3", "n2"), edge("Loop", "n3", "n3")], mode="append")
    check(graph, cache, "Loop")
    graph.mutate('query q() { delete Loop where from = "n3" }')
    check(graph, cache, "Loop")


def test_the_next_process_updates_the_adjacency_on_disk(tmp_path, monkeypatch, tune):
    tune(adjacency_disk_edges_min=1)
    names = [f"n{number}" for number in range(6)]
    pairs = [(a, b) for a in names[:3] for b in names[2:]]
    graph = new_graph(tmp_path, SCHEMA, *(node("A", name=name) for name in names), *(edge("Loop", *p) for p in pairs))
    graph.mutate('query q() { delete Loop where from = "n1" }')
    folder = tmp_path / "kept"
    check(graph, DataCache(folder=folder), "Loop")
    plain = module.build
    for about in folder.glob("*/about.json"):  # an entry in another format is not used
        written = about.read_text()
        about.write_text(written.replace('"pieces"', '"parts"'))
        check(graph, DataCache(folder=folder), "Loop")
        assert '"pieces"' in about.read_text(), "the entry is written again"
    monkeypatch.setattr(module, "build", lambda *_: pytest.fail("rebuilt although it is on disk"))
    check(graph, DataCache(folder=folder), "Loop")
    graph.load([node("A", name="n3", n=1), edge("Loop", "n3", "n0")], mode="merge")
    graph.mutate('query q() { delete Loop where from = "n2" }')
    check(graph, DataCache(folder=folder), "Loop")
    monkeypatch.setattr(module, "build", plain)
    graph.mutate("query q() { delete A where n = 1 }")
    check(graph, DataCache(folder=folder), "Loop")


def test_edge_types_share_the_row_mapping_of_their_nodes(tmp_path, monkeypatch):
    schema = "node A { name: String @key }\n" + "".join(f"edge E{at}: A -> A\n" for at in range(4))
    rows = [node("A", name=f"a{at}") for at in range(30)]
    edges = [edge(f"E{at % 4}", f"a{at % 30}", f"a{at * 7 % 30}") for at in range(200)]
    graph = new_graph(tmp_path, schema, *rows, *edges)
    hops = " ".join(f"$x e{at} $y{at}" for at in range(4))
    text = f'query q() {{ match {{ $x: A {{ name: "a1" }} {hops} }} return {{ count($x) as n }} }}'
    graph.query(text)
    mapped, numbered = [], []
    monkeypatch.setattr(row_mapping, "_mapped", counted(row_mapping._mapped, mapped))
    monkeypatch.setattr(incremental, "_renumbered", counted(incremental._renumbered, numbered))
    graph.mutate('query m() { delete A where name = "a29" }')
    graph.query(text)
    assert len(numbered) == 1
    assert len([data for _, data in mapped if data.folder.startswith("nodes")]) <= 1


def counted(call, calls: list):
    """A function that also lists the arguments of its calls."""

    def counting(*arguments):
        calls.append(arguments)
        return call(*arguments)

    return counting
