"""Counting without materialising rows gives the same numbers as materialising them, with and without kernels."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from omnigraph.engine import kernels
from omnigraph.engine.adjacency import bfs
from omnigraph.engine.adjacency.csr import build
from omnigraph.engine.exec import cycle_count
from support.writes import edge, new_graph, node


def some(random: np.random.Generator, nodes: int, pairs: int):
    return build(random.integers(0, nodes, pairs), random.integers(0, nodes, pairs), nodes)


@pytest.mark.parametrize("seed", range(8))
def test_common_neighbours(kernel_loader, seed, tune):
    random = np.random.default_rng(seed)
    nodes = int(random.integers(1, 60))
    walked, closed = some(random, nodes, 300), some(random, nodes, int(random.integers(0, 300)))
    rows = int(random.integers(0, 200))
    walkers, closers = random.integers(0, nodes, rows), random.integers(0, nodes, rows)

    def ends(of, number):
        return set(of.targets[of.offsets[number] : of.offsets[number + 1]].tolist())

    expected = [len(ends(walked, w) & ends(closed, c)) for w, c in zip(walkers, closers, strict=True)]
    tune(cycle_expand_steps_max=-1, cycle_mark_cells=200, cycle_batch_steps=40)
    assert cycle_count.common_counts(walked, walkers, closed, closers, steps=0, size=nodes).tolist() == expected
    assert kernels.load()
    assert cycle_count.common_counts(walked, walkers, closed, closers, steps=0, size=nodes).tolist() == expected


@pytest.mark.parametrize("seed", range(8))
def test_reach_from_one_node(kernel_loader, seed, tune):
    random = np.random.default_rng(seed)
    nodes = int(random.integers(1, 400))
    neighbours = some(random, nodes, 900)
    own = np.flatnonzero(random.random(nodes) < 0.1)
    tune(bfs_small_frontier=0)
    asked = [(source, *sorted(random.integers(1, 6, 2).tolist())) for source in random.integers(0, nodes, 12).tolist()]

    def found():
        return [
            sorted(bfs.BoundedHops(neighbours, own, *hops).reach(np.array([source]))[1].tolist())
            for source, *hops in asked
        ]

    slow = found()
    assert kernels.load()
    assert found() == slow
    assert any(slow) or nodes < 3


# -- in queries --------------------------------------------------------------------------------------

SCHEMA = "node P { name: String @key  n: I64 }\nedge Knows: P -> P\nedge Likes: P -> P\n"
MATCHES = [
    "$a: P $a knows $b $b knows $c $a knows $c",
    "$a: P $a knows $b $b knows $c $c knows $a",
    "$a: P $a knows $b $b knows $c $c likes $a",
    "$a: P $a knows $b $b <knows> $c $a <likes> $c",
    "$a: P $a knows $b $b knows $c not { $a knows $c }",
    "$a: P $a knows $b $b knows $c not { $c likes $a }",
    "$a: P $a knows $b $b knows $c $b likes $c",
    "$a: P $a knows $b $c knows $b not { $a knows $c }",
    "$a: P $a knows $b $b knows $c $c likes $d $a knows $d",
    "$a: P $a knows $b $b knows{1,2} $c",
    "$a: P $a likes $b $c: P $c knows $b $c knows $a",
]


@pytest.mark.parametrize("match", MATCHES)
def test_counts_equal_the_number_of_materialised_rows(tmp_path, match):
    random = Random(match)
    names = [f"p{number}" for number in range(12)]
    pairs = [(random.choice(names), random.choice(names)) for _ in range(60)]
    graph = new_graph(
        tmp_path,
        SCHEMA,
        *(node("P", name=name, n=at % 3) for at, name in enumerate(names)),
        *(edge("Knows" if at % 2 else "Likes", *pair) for at, pair in enumerate(pairs)),
    )
    for more in ("q", "r"):
        rows = graph.query(f"query q() {{ match {{ {match} }} return {{ $a.n, $b.n }} }}").to_pylist()
        assert rows
        counted = graph.query(f"query q() {{ match {{ {match} }} return {{ count($b) as n }} }}").to_pylist()
        assert counted == [{"n": len(rows)}]
        groups = graph.query(
            f"query q() {{ match {{ {match} }} return {{ $a.n as n, count($b) as c }} order {{ n }} }}"
        )
        assert groups.to_pylist() == [
            {"n": n, "c": sum(row["a.n"] == n for row in rows)} for n in sorted({row["a.n"] for row in rows})
        ]
        # Again, with cached structures.
        graph.load([node("P", name=more, n=1), edge("Knows", "p1", more), edge("Knows", more, "p2")], mode="append")
