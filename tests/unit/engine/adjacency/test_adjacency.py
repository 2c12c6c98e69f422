"""Adjacency compared with reference implementations: sets of pairs, and breadth-first search from single nodes."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine import kernels
from omnigraph.engine.adjacency.adjacency import Adjacency, EdgeAdjacency
from omnigraph.engine.adjacency.bfs import BoundedHops
from omnigraph.engine.adjacency.csr import Csr, EdgeRows, Neighbours
from omnigraph.engine.adjacency.csr_overlay import CsrOverlay, Renumbering, SparseCsr, build_sparse
from omnigraph.engine.adjacency.joined_neighbours import JoinedNeighbours
from omnigraph.engine.adjacency.multi_edge import MultiEdgeAdjacency, UnionAdjacency
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.errors import Damaged
from omnigraph.graph import Graph
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write
from support.writes import edge, new_graph, node

SCHEMA = "node A { name: String @key }\nnode B { name: String @key }\nedge Loop: A -> A\nedge To: A -> B\n"
Pairs = list[tuple[int, int]]


def reference_csr(pairs: Pairs, count: int) -> Csr:
    """Reference implementation of neighbours with sets."""
    rows = [sorted({b for a, b in pairs if a == number}) for number in range(count)]
    offsets = np.cumsum([0, *map(len, rows)])
    return Csr(offsets, np.array([target for row in rows for target in row], np.int32))


def reference_sparse(pairs: Pairs, count: int) -> SparseCsr:
    near, far = np.array(pairs, np.int64).reshape(-1, 2).T
    return build_sparse(near, far, count)


def some_pairs(random: Random, count: int) -> Pairs:
    return [(random.randrange(count), random.randrange(count)) for _ in range(random.randrange(3 * count))]


def distances(pairs: Pairs, source: int) -> dict[int, int]:
    found, edge = {source: 0}, {source}
    while edge:
        edge = {b for a, b in pairs if a in edge} - found.keys()
        found |= dict.fromkeys(edge, max(found.values()) + 1)
    return found


def reference_hops(pairs: Pairs, count: int, least: int, most: int) -> set[tuple[int, int]]:
    """Return (source, far end) of a bounded hop, as the specification defines it."""
    loops = {a for a, b in pairs if a == b}
    return {
        (source, v)
        for source in range(count)
        for v, dist in distances(pairs, source).items()
        if (v != source and least <= dist <= most) or (v in loops and least <= dist + 1 <= most)
    }


def as_pairs(sources: np.ndarray, positions: np.ndarray, targets: np.ndarray) -> list[tuple[int, int]]:
    return sorted(zip(sources[positions].tolist(), targets.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(30))
def test_csr_equals_reference(seed):
    random = Random(seed)
    count = random.randint(1, 12)
    pairs = some_pairs(random, count)
    neighbours = reference_csr(pairs, count)
    sources = np.array([random.randrange(count) for _ in range(random.randrange(9))], np.int64)
    wanted = sorted((int(s), b) for s in sources for b in {b for a, b in pairs if a == s})
    assert as_pairs(sources, *neighbours.expand(sources)) == wanted
    assert neighbours.degrees(sources).tolist() == [len({b for a, b in pairs if a == s}) for s in sources]
    values = np.array([random.randrange(5) for _ in range(count)])
    totals = [sum(int(values[b]) for b in {b for a, b in pairs if a == number}) for number in range(count)]
    assert neighbours.totals(values).tolist() == totals
    assert neighbours.totals(None).tolist() == np.diff(neighbours.offsets).tolist()
    assert sorted(neighbours.far(sources).tolist()) == sorted(b for _, b in wanted)
    targets = np.array([random.randrange(count) for _ in sources], np.int64)
    assert neighbours.connected(sources, targets).tolist() == [
        pair in pairs for pair in zip(sources.tolist(), targets.tolist(), strict=True)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_overlay_equals_complete_csr(seed):
    random = Random(seed)
    known = random.randint(1, 8)
    count = known + random.randrange(4)
    before, added = some_pairs(random, known), some_pairs(random, count)
    fresh = [pair for pair in added if pair not in before]
    overlay = CsrOverlay(reference_csr(before, known), reference_sparse(fresh, count))
    whole = reference_csr(before + added, count)
    assert overlay.compacted().offsets.tolist() == whole.offsets.tolist()
    assert overlay.compacted().targets.tolist() == whole.targets.tolist()
    sources = np.arange(count)
    assert as_pairs(sources, *overlay.expand(sources)) == as_pairs(sources, *whole.expand(sources))
    assert overlay.degrees(sources).tolist() == whole.degrees(sources).tolist()
    values = np.array([random.randrange(5) for _ in range(count)])
    assert overlay.totals(values).tolist() == whole.totals(values).tolist()
    assert overlay.totals(None).tolist() == whole.totals(None).tolist()
    assert sorted(overlay.far(sources).tolist()) == sorted(whole.far(sources).tolist())
    assert overlay.count == reference_sparse(fresh, count).count == count
    for source in range(count):
        hits = overlay.connected(np.full(count, source), sources)
        assert hits.tolist() == whole.connected(np.full(count, source), sources).tolist()
    loops = np.array(sorted({a for a, b in before + added if a == b}), np.int64)
    positions, targets = BoundedHops(overlay, loops, 1, 3).reach(sources)
    assert as_pairs(sources, positions, targets) == sorted(reference_hops(before + added, count, 1, 3))


@pytest.mark.usefixtures("kernel_loader")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_overlay_with_renumbered_nodes_equals_complete_csr(seed, compiled):
    if compiled:
        assert kernels.load()
    random = Random(seed)
    known = random.randint(1, 12)
    count = known + random.randrange(3)
    places = random.sample(range(count), known)
    gone = {number for number in range(known) if random.random() < 0.2}
    now = [-1 if number in gone else place for number, place in enumerate(places)]
    then = [now.index(place) if place in now else -1 for place in range(count)]
    moved = Renumbering(np.array(now), np.array(then))
    before = sorted(set(some_pairs(random, known)))
    removed_rows = [pair for pair in before if gone & set(pair) or random.random() < 0.2]
    left = [(now[a], now[b]) for a, b in before if (a, b) not in removed_rows]
    alive = [place for place in range(count) if then[place] >= 0 or place not in places]
    added = [(random.choice(alive), random.choice(alive)) for _ in range(3)] if alive else []
    fresh = sorted({pair for pair in added if pair not in left})
    removed = reference_sparse(removed_rows, known) if removed_rows else None
    overlay = CsrOverlay(reference_csr(before, known), reference_sparse(fresh, count), removed, moved, moved)
    whole = reference_csr(left + fresh, count)
    sources = np.array([random.choice(alive) for _ in range(6)] if alive else [], np.int64)
    assert as_pairs(sources, *overlay.expand(sources)) == as_pairs(sources, *whole.expand(sources))
    assert sorted(overlay.far(sources).tolist()) == sorted(whole.far(sources).tolist())
    assert overlay.degrees(sources).tolist() == whole.degrees(sources).tolist()
    targets = np.array([random.choice(alive) for _ in sources], np.int64)
    assert overlay.connected(sources, targets).tolist() == whole.connected(sources, targets).tolist()
    loops = np.array(sorted({a for a, b in left + fresh if a == b}), np.int64)
    for source in sources[:3]:
        one = np.array([source])
        assert sorted(BoundedHops(overlay, loops, 1, 3).reach(one)[1].tolist()) == sorted(
            BoundedHops(whole, loops, 1, 3).reach(one)[1].tolist()
        )
    with pytest.raises(OverflowError):
        overlay.expand(sources, refuse)


def refuse(rows: int) -> None:
    raise OverflowError(rows)


def test_totals_are_zero_if_all_far_nodes_were_removed():
    gone = Renumbering(np.full(2, -1), np.zeros(0, np.int64))
    removed = reference_sparse([(0, 1), (1, 0)], 2)
    overlay = CsrOverlay(reference_csr([(0, 1), (1, 0)], 2), reference_sparse([], 2), removed, far_renumbered=gone)
    assert overlay.totals(np.zeros(0, np.int64)).tolist() == [0, 0]


def test_edge_rows():
    rows = EdgeRows(np.array([0, 2, 2, 3]), np.array([5, 1, 0], np.int32), np.array([2, 2, 0], np.int32))
    positions, edges, targets = rows.expand(np.array([2, 0, 1, 0]))
    assert positions.tolist() == [0, 1, 1, 3, 3]
    assert edges.tolist() == [0, 5, 1, 5, 1]
    assert targets.tolist() == [0, 2, 2, 2, 2]
    assert [part.tolist() for part in rows.expand(np.zeros(0, np.int64))] == [[], [], []]


@pytest.mark.parametrize("seed", range(120))
def test_bounded_hops_equal_reference(seed):
    random = Random(seed)
    count = random.randint(1, 9)
    pairs = some_pairs(random, count)
    least = random.randint(1, 4)
    most = random.randint(least, 6)
    loops = np.array(sorted({a for a, b in pairs if a == b}), np.int64)
    expected = reference_hops(pairs, count, least, most)
    forward, inward = reference_csr(pairs, count), reference_csr([(b, a) for a, b in pairs], count)
    all_pairs = np.arange(count)
    assert as_pairs(all_pairs, *BoundedHops(forward, loops, least, most).reach(all_pairs)) == sorted(expected)
    # A backward traversal gives the same pairs, reversed.
    turned = sorted((b, a) for a, b in expected)
    assert as_pairs(all_pairs, *BoundedHops(inward, loops, least, most, backward=True).reach(all_pairs)) == turned
    counts = [sum(a == number for a, _ in expected) for number in range(count)]
    assert BoundedHops(forward, loops, least, most).reach_counts(all_pairs).tolist() == counts
    for number in range(count):  # A single source uses a separate algorithm.
        source = np.array([number])
        assert as_pairs(source, *BoundedHops(forward, loops, least, most).reach(source)) == sorted(
            pair for pair in expected if pair[0] == number
        )
        assert as_pairs(source, *BoundedHops(inward, loops, least, most, backward=True).reach(source)) == [
            pair for pair in turned if pair[0] == number
        ]


def test_bounded_hops_without_sources():
    neighbours = reference_csr([(0, 1)], 2)
    positions, targets = BoundedHops(neighbours, np.zeros(0, np.int64), 1, 3).reach(np.zeros(0, np.int64))
    assert positions.tolist() == targets.tolist() == []


# -- from tables -------------------------------------------------------------------------------------


def adjacency(
    graph: Graph, edge_type: str, cache: DataCache, **where: str
) -> tuple[EdgeAdjacency, list[str], list[str]]:
    """Return the adjacency of an edge type, and the ids of the nodes at both ends by row number."""
    snapshot = graph.snapshot(**where)
    ends = graph.catalog(**where).edges[edge_type]
    edges, sources, targets = (
        cache.table(snapshot.table(key))
        for key in (f"edge:{edge_type}", f"node:{ends.from_type}", f"node:{ends.to_type}")
    )
    names = [data.column("id").to_pylist() for data in (sources, targets)]
    return EdgeAdjacency(edges, sources, targets, cache), names[0], names[1]


def all_id_pairs(graph: Graph, edge_type: str, direction: str, cache: DataCache, **where: str) -> list[tuple[str, str]]:
    """Return the (near, far) ids of all pairs."""
    of, sources, targets = adjacency(graph, edge_type, cache, **where)
    near, far = (targets, sources) if direction == "in" else (sources, targets)
    positions, found = of.neighbours(direction).expand(np.arange(len(near)))
    return sorted((near[a], far[b]) for a, b in zip(positions.tolist(), found.tolist(), strict=True))


@pytest.fixture
def graph(tmp_path):
    nodes = [node("A", name=name) for name in "abcd"] + [node("B", name=name) for name in "abz"]
    loops = [("a", "b"), ("a", "b"), ("b", "a"), ("c", "c"), ("c", "c"), ("d", "a")]
    to = [("a", "a"), ("a", "z"), ("b", "z")]
    records = [edge("Loop", *ends, id_=f"l{at}") for at, ends in enumerate(loops)]
    return new_graph(tmp_path, SCHEMA, *nodes, *records, *(edge("To", *ends) for ends in to))


def test_each_pair_occurs_once_in_every_direction(graph):
    cache = DataCache()
    out = [("a", "b"), ("b", "a"), ("c", "c"), ("d", "a")]
    assert all_id_pairs(graph, "Loop", "out", cache) == out
    assert all_id_pairs(graph, "Loop", "in", cache) == sorted((b, a) for a, b in out)
    assert all_id_pairs(graph, "Loop", "both", cache) == sorted({*out, *((b, a) for a, b in out)})
    assert all_id_pairs(graph, "To", "out", cache) == [("a", "a"), ("a", "z"), ("b", "z")]
    assert all_id_pairs(graph, "To", "in", cache) == [("a", "a"), ("z", "a"), ("z", "b")]
    of, names, _ = adjacency(graph, "Loop", cache)
    assert [names[number] for number in of.loops("out")] == ["c"]


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_edge_rows_contain_every_edge_at_its_ends(graph, direction):
    of, names, _ = adjacency(graph, "Loop", DataCache())
    stored = graph.to_arrow("Loop").to_pylist()
    positions, rows, targets = of.edge_rows(direction).expand(np.arange(len(names)))
    found = sorted((names[p], stored[r]["id"], names[t]) for p, r, t in zip(positions, rows, targets, strict=True))
    out = [(row["src"], row["id"], row["dst"]) for row in stored]
    turned = [(far, id_, near) for near, id_, far in out]
    # A loop occurs once, also in direction `both`.
    expected = {"out": out, "in": turned, "both": list({*out, *turned})}[direction]
    assert found == sorted(expected)


def test_versions_and_branches_have_separate_adjacency(graph):
    """An earlier adjacency is updated only if the later version extends it."""
    cache = DataCache()
    first = graph.commits()[0].id
    graph.branch_create("side")
    all_id_pairs(graph, "Loop", "out", cache)
    more = [edge("Loop", "d", "d"), node("A", name="e"), edge("Loop", "e", "a")]
    steps = [
        ("main", lambda: graph.load(more, mode="append")),
        ("side", lambda: graph.on("side").mutate('query q() { delete A where name = "d" }')),
        ("main", lambda: graph.mutate('query q() { delete A where name = "a" }')),
        ("main", lambda: graph.optimize()),
        ("main", lambda: graph.load([node("A", name="a"), edge("Loop", "a", "a", id_="l0")], mode="merge")),
        ("side", lambda: graph.on("side").load([edge("Loop", "c", "a", id_="l1")], mode="merge")),
    ]  # fmt: skip
    for branch, step in steps:
        step()
        for where in ({"branch": branch}, {"branch": "main"}, {"branch": "side"}, {"at": first}):
            pairs = {(row["src"], row["dst"]) for row in graph.to_arrow("Loop", **where).to_pylist()}
            for direction in ("out", "in", "both"):
                turned = {(b, a) for a, b in pairs}
                expected = {"out": pairs, "in": turned, "both": pairs | turned}[direction]
                assert all_id_pairs(graph, "Loop", direction, cache, **where) == sorted(expected)


def test_an_edge_to_a_missing_node_is_reported_as_damage(graph):
    def remove_node(transaction: Transaction) -> None:
        transaction.change("node:B", TableWrite(delete=["z"]))

    write(graph._repository, remove_node, WriteOptions())
    with pytest.raises(Damaged, match=r"2 edges of .* end at nodes that do not exist"):
        all_id_pairs(graph, "To", "out", DataCache())


@pytest.mark.parametrize("of", [Csr, SparseCsr, CsrOverlay, JoinedNeighbours])
def test_every_representation_implements_neighbours(of):
    methods = {name for name in dir(Neighbours) if not name.startswith("_")}
    assert methods <= {*dir(of), *getattr(of, "__dataclass_fields__", ())}


PROTOCOL = ("compacted", "for_scan", "has_neighbours", "loops", "neighbours")


@pytest.mark.parametrize("of", [MultiEdgeAdjacency, UnionAdjacency])
def test_multi_edge_adjacency_has_exactly_the_methods_of_the_protocol(of):
    assert tuple(sorted(name for name in dir(of) if not name.startswith("_"))) == PROTOCOL
    assert set(PROTOCOL) <= set(dir(Adjacency))


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_adjacency_of_several_edge_types(graph, direction):
    tables = {name: DataCache().table(graph.snapshot().table(f"node:{name}")) for name in ("A", "B")}
    cache = DataCache()
    loop, to = (cache.table(graph.snapshot().table(f"edge:{name}")) for name in ("Loop", "To"))
    own = EdgeAdjacency(loop, tables["A"], tables["A"], cache)
    other = EdgeAdjacency(to, tables["A"], tables["B"], cache)
    several = MultiEdgeAdjacency([own, own])
    count, size = tables["A"].row_count, tables["A"].row_count + tables["B"].row_count
    expected = own.compacted(direction)
    assert several.compacted(direction).targets.tolist() == expected.targets.tolist()
    for found in (several.neighbours(direction), several.for_scan(direction)):
        pairs = sorted(zip(*map(list, found.expand(np.arange(count))), strict=True))
        assert pairs == list(zip(*map(list, expected.all_pairs()), strict=True))
    assert several.loops(direction).tolist() == own.loops(direction).tolist()
    assert several.has_neighbours(direction, count).tolist() == own.has_neighbours(direction, count).tolist()

    ids = [*tables["A"].column("id").to_pylist(), *tables["B"].column("id").to_pylist()]
    space = MemoryTable.of(pa.table({"id": ids}))  # all nodes: A, then B
    mixed = UnionAdjacency([own, other], [(0, 0), (0, count)], space)
    out = [
        (a, b + shift)
        for part, shift in ((own, 0), (other, count))
        for a, b in zip(*map(list, part.ends()), strict=True)
    ]
    pairs = {"out": {*out}, "in": {(b, a) for a, b in out}}
    pairs["both"] = pairs["out"] | pairs["in"]
    positions, targets = mixed.compacted(direction).all_pairs()
    assert set(zip(positions.tolist(), targets.tolist(), strict=True)) == pairs[direction]
    linked = {a for a, _ in pairs[direction]}
    assert np.flatnonzero(mixed.has_neighbours(direction, size)).tolist() == sorted(linked)
    assert mixed.loops(direction).tolist() == own.loops(direction).tolist()
