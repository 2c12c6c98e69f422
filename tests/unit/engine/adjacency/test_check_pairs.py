"""Checks of hops between bound nodes, from either side, compared with sets of pairs."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import Direction
from omnigraph.engine.adjacency.bfs import BoundedHops
from omnigraph.engine.adjacency.check_pairs import connected_rows
from omnigraph.engine.adjacency.csr import Csr, build
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.query.plan import ir
from support.writes import edge as edge_row
from support.writes import new_graph, node

Pairs = set[tuple[int, int]]


class Sides:
    """The adjacency of some pairs between two node tables."""

    def __init__(self, pairs: Pairs, near: int, far: int) -> None:
        self.asked: list[Direction] = []
        sources, targets = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
        self._csr = {"out": build(sources, targets, near), "in": build(targets, sources, far)}
        self._loops = np.array(sorted(a for a, b in pairs if a == b), np.int64)

    def neighbours(self, direction: Direction) -> Csr:
        self.asked.append(direction)
        return self._csr[direction]

    def loops(self, direction: Direction) -> np.ndarray:
        del direction
        return self._loops


def bound(sources: np.ndarray, targets: np.ndarray, near: int, far: int) -> BindingTable:
    tables = MemoryTable({}, near), MemoryTable({}, far)
    return BindingTable(len(sources), {"a": Binding(tables[0], sources), "b": Binding(tables[1], targets)})


def hop(least: int, most: int) -> ir.Expand:
    return ir.Expand("a", "b", "E", "out", "N", least, most, dst_bound=True)


def unlimited(rows: int) -> None:
    del rows


@pytest.mark.parametrize("seed", range(60))
def test_bounded_hops_are_checked_from_either_side(seed):
    random = Random(seed)
    count = random.randint(1, 9)
    pairs = {(random.randrange(count), random.randrange(count)) for _ in range(random.randrange(3 * count))}
    least = random.randint(1, 3)
    most = random.randint(max(least, 2), 5)
    sides = Sides(pairs, count, count)
    every = np.arange(count)
    at, nodes = BoundedHops(sides.neighbours("out"), sides.loops("out"), least, most).reach(every)
    expected = set(zip(at.tolist(), nodes.tolist(), strict=True))
    for ends, others in ((1, count), (count, 1), (count, count)):
        rows = [(random.randrange(ends), random.randrange(others)) for _ in range(20)]
        sources, targets = np.array(rows, np.int64).T
        found = connected_rows(hop(least, most), sides, bound(sources, targets, count, count), unlimited)
        assert found.tolist() == [row in expected for row in rows]


@pytest.mark.parametrize(("near", "far", "side"), [(3, 50, "in"), (50, 3, "out"), (9, 9, "out")])
def test_many_pairs_are_checked_from_the_side_with_more_nodes(near, far, side):
    random = Random(near)
    pairs = {(random.randrange(near), random.randrange(far)) for _ in range(40)}
    sides = Sides(pairs, near, far)
    rows = [(random.randrange(near), random.randrange(far)) for _ in range(200)]
    sources, targets = np.array(rows, np.int64).T
    with tuning.replaced(checked_rows_min=10):
        found = connected_rows(hop(1, 1), sides, bound(sources, targets, near, far), unlimited)
    assert found.tolist() == [row in pairs for row in rows]
    assert sides.asked == [side]


def test_few_pairs_do_not_load_the_other_side():
    sides = Sides({(0, 1)}, 1, 50)
    assert connected_rows(hop(1, 1), sides, bound(np.array([0]), np.array([1]), 1, 50), unlimited).tolist() == [True]
    assert sides.asked == ["out"]


@pytest.mark.parametrize("least", [1, 10**9])
@pytest.mark.parametrize("edge", ["$a $k:knows $b", "$b $k:knows $a", "$a $k:<knows> $b"])
def test_edges_between_bound_nodes(tmp_path, least, edge):
    """Parallel edges stay separate, whether the pairs are checked first or not."""
    names = [f"p{number}" for number in range(9)]
    pairs = [(a, (a * 5 + step) % 9) for a in range(9) for step in (0, 1, 1, 4)]
    rows = [node("P", name=name) for name in names]
    rows += [edge_row("Knows", names[a], names[b], at=at) for at, (a, b) in enumerate(pairs)]
    graph = new_graph(tmp_path, "node P { name: String @key }\nedge Knows: P -> P { at: I32 }\n", *rows)
    text = f"match {{ $a: P  $b: P  $a.name <= $b.name  {edge}  $k.at < 30 }} return {{ $a.name, $b.name, $k.at }}"
    with tuning.replaced(checked_rows_min=least):
        found = sorted(map(tuple, (row.values() for row in graph.query(text))))
    expected = []
    for at, (a, b) in enumerate(pairs[:30]):
        ways = {(a, b)} if edge.startswith("$a $k:k") else {(b, a)} if edge.startswith("$b") else {(a, b), (b, a)}
        expected += [(names[x], names[y], at) for x, y in ways if names[x] <= names[y]]
    assert found == sorted(expected)
