"""Neighbours along several edge types: equal to one CSR of all of them, which small commits do not build again."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import omnigraph as og
from omnigraph.engine.adjacency import multi_edge
from omnigraph.engine.adjacency.csr import build
from omnigraph.engine.adjacency.joined_neighbours import JoinedNeighbours, NeighboursPart
from omnigraph.errors import LimitReached
from support.writes import edge, node

SCHEMA = """
interface Named { name: String }
node A implements Named { name: String @key  n: I64? }
node B implements Named { name: String @key  n: I64? }
edge Aa: A -> A
edge Ab: A -> B
edge Bb: B -> B
edge Also: A -> B
"""
ALONG = """
query q($n: String) {
  match { $x: Named { name: $n } $x -> $y } return { type($y) as t, id($y) as i } order { t, i }
}
"""


def ranges(*sizes: int) -> list[range]:
    ends = np.cumsum(sizes).tolist()
    return [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("overlaps", [False, True])
def test_the_parts_equal_one_csr(seed, overlaps):
    random = np.random.default_rng(seed)
    spaces = ranges(7, 1, 9, 0)
    count = 17
    ways = [(spaces[0], spaces[2]), (spaces[2], spaces[0]), (spaces[1], spaces[1]), (spaces[3], spaces[0])]
    ways += ways[:1] if overlaps else []
    parts, near, far = [], [], []
    for these, those in ways:
        ends = random.integers(0, [max(len(these), 1), len(those)], (30 if len(these) else 0, 2))
        parts.append(NeighboursPart(build(ends[:, 0], ends[:, 1], len(these)), these, those))
        near.append(ends[:, 0] + these.start)
        far.append(ends[:, 1] + those.start)
    whole = build(np.concatenate(near), np.concatenate(far), count)
    joined = JoinedNeighbours(parts, count, lambda: whole)
    assert (joined.count, joined.overlaps) == (count, overlaps)
    values = random.integers(0, 100, count)
    for sources in (random.integers(0, count, 40), np.arange(count), np.array([3]), np.zeros(0, np.int64)):
        pairs = [sorted(zip(*map(list, some.expand(sources)), strict=True)) for some in (joined, whole)]
        assert pairs[0] == pairs[1]
        assert sorted(joined.far(sources)) == sorted(whole.far(sources))
        assert joined.degrees(sources).tolist() == whole.degrees(sources).tolist()
        targets = random.integers(0, count, len(sources))
        assert joined.connected(sources, targets).tolist() == whole.connected(sources, targets).tolist()
    assert joined.totals(values).tolist() == whole.totals(values).tolist()
    assert joined.totals(None).tolist() == whole.totals(None).tolist()


def test_the_limit_counts_the_rows_of_all_parts():
    part = build(np.zeros(3, np.int64), np.arange(3), 1)
    joined = JoinedNeighbours([NeighboursPart(part, range(1), range(at, at + 3)) for at in (0, 3)], 1, lambda: part)

    def room(rows: int) -> None:
        if rows > 5:
            raise LimitReached("too many", resource="rows", limit=5, actual=rows)

    for follow in (joined.expand, joined.far):
        with pytest.raises(LimitReached):
            follow(np.zeros(1, np.int64), room)


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    graph.load([node(type_, name=f"n{at}", n=at) for type_ in "AB" for at in range(30)], mode="append")
    random = Random(1)
    graph.load(
        [
            edge(type_, f"n{random.randrange(30)}", f"n{random.randrange(30)}")
            for type_ in ("Aa", "Ab", "Bb", "Also")
            for _ in range(60)
        ],
        mode="append",
    )
    return graph


def test_hops_after_commits_combine_no_edges(graph, tune, monkeypatch):
    tune(joined_hop_edges=0)
    built = []
    monkeypatch.setattr(multi_edge, "build", lambda *ends: built.append(ends) or build(*ends))
    for number, change in enumerate(
        (
            'insert Aa { from: "n1", to: "n2" }',
            'insert A { name: "m", n: 1 } insert Ab { from: "m", to: "n3" }',
            'delete Ab where from = "n1"',
            'update B set { n: 70 } where name = "n3"',
            'delete B where name = "n4"',
        )
    ):
        graph.mutate(f"query m() {{ {change} }}")
        for name in ("n1", "n2", "m", "n3"):
            found = [tuple(row.values()) for row in graph.query(ALONG, {"n": name})]
            assert found == expected(graph, name), (number, change, name)
    assert not built


def expected(graph, name: str) -> list[tuple[str, str]]:
    """The neighbours of the nodes with a name, from the tables."""
    edges = {"Aa": "AA", "Ab": "AB", "Bb": "BB", "Also": "AB"}
    rows = {type_: graph.to_arrow(type_).to_pylist() for type_ in edges}
    found = {
        (near, far, row["dst"]) for type_, (near, far) in edges.items() for row in rows[type_] if row["src"] == name
    }
    return sorted((far, id_) for _, far, id_ in found)


def test_repeated_hops_of_one_version_combine_once(graph, tune, monkeypatch):
    tune(joined_hop_edges=100)  # 240 edges: the third hop pays
    built = []
    monkeypatch.setattr(multi_edge, "build", lambda *ends: built.append(ends) or build(*ends))
    found = [graph.query(ALONG, {"n": "n1"}).to_rows() for _ in range(6)]
    assert len(built) == 1
    assert all(rows == found[0] for rows in found)
