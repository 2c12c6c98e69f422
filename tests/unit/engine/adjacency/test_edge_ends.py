"""Structures of graphs whose ids and edges do not fit the memory of a build."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import omnigraph as og
from omnigraph.engine.adjacency.adjacency import EdgeAdjacency
from omnigraph.engine.adjacency.csr import build, build_edge_rows, write_edge_rows, write_targets
from omnigraph.engine.adjacency.edge_ends import NodeIds, number_ends
from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.engine.expr import sort_keys
from omnigraph.errors import Damaged, LimitReached
from omnigraph.machine_memory import MemoryBudget
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write

SCHEMA = "node A { name: String @key }\nnode B { name: String @key }\nedge Loop: A -> A\nedge To: A -> B\n"


@pytest.fixture
def graph(tmp_path):
    random = Random(1)
    names = [f"{'long prefix ' * (at % 3)}{random.randrange(10**9)}-{at}" for at in range(300)]
    records = [{"type": kind, "data": {"name": name}} for kind in ("A", "B") for name in names]
    for kind in ("Loop", "To"):
        records += [{"edge": kind, "from": random.choice(names), "to": random.choice(names)} for _ in range(900)]
    random.shuffle(records)
    graph = og.init(tmp_path / "graph", SCHEMA, sync=False)
    graph.load(records, mode="append")
    return graph


def table(graph: og.Graph, key: str, cache: DataCache) -> TableData:
    return cache.table(graph._repository.snapshot("main").table(key))


def adjacency(graph: og.Graph, name: str, cache: DataCache) -> EdgeAdjacency:
    far = "node:A" if name == "Loop" else "node:B"
    keys = f"edge:{name}", "node:A", far
    return EdgeAdjacency.of(*(table(graph, key, cache) for key in keys), cache)


@pytest.mark.parametrize("memory", [1_000, 8_000, 20_000])
@pytest.mark.parametrize(("name", "end", "kind"), [("Loop", "dst", "A"), ("To", "src", "A"), ("To", "dst", "B")])
def test_ends_in_parts_equal_those_in_memory(graph, tmp_path, memory, name, end, kind):
    cache = DataCache()
    edges, nodes = table(graph, f"edge:{name}", cache), table(graph, f"node:{kind}", cache)
    found, expected = np.empty(900, np.int32), np.empty(900, np.int32)
    number_ends(edges, (end,), NodeIds(nodes, None), expected, tmp_path)
    ids = NodeIds(nodes, memory)
    assert ids.buckets > 1
    assert ids.column is None
    number_ends(edges, (end,), ids, found, tmp_path)
    assert found.tolist() == expected.tolist()
    assert nodes.take("id", found.astype(np.int64)).equals(edges.column(end))


def test_missing_nodes_are_found_in_parts(graph, tmp_path):
    def remove(transaction: Transaction) -> None:
        ids = table(graph, "node:A", DataCache()).column("id")
        transaction.change("node:A", TableWrite(delete=ids.slice(0, 5)))

    write(graph._repository, remove, WriteOptions())
    cache = DataCache()
    edges, nodes = table(graph, "edge:Loop", cache), table(graph, "node:A", cache)
    with pytest.raises(Damaged, match="end at nodes that do not exist"):
        number_ends(edges, ("src",), NodeIds(nodes, 1_000), np.empty(900, np.int32), tmp_path)


@pytest.mark.parametrize(
    ("name", "direction"), [("Loop", "out"), ("Loop", "in"), ("Loop", "both"), ("To", "out"), ("To", "in")]
)
def test_structures_written_in_parts_equal_those_in_memory(graph, tmp_path, tune, direction, name):
    expected = adjacency(graph, name, DataCache())
    tune(adjacency_disk_edges_min=1, adjacency_sorted_edges=100)
    cache = DataCache(folder=tmp_path / "kept", memory=MemoryBudget(40_000))
    found = adjacency(graph, name, cache)
    assert found.compacted(direction).offsets.tolist() == expected.compacted(direction).offsets.tolist()
    assert found.compacted(direction).targets.tolist() == expected.compacted(direction).targets.tolist()
    assert found.loops(direction).tolist() == expected.loops(direction).tolist()
    mine, others = found.edge_rows(direction), expected.edge_rows(direction)
    every = np.arange(300)
    for one, other in zip(mine.expand(every), others.expand(every), strict=True):
        assert one.tolist() == other.tolist()
    assert cache.bytes < 40_000, "the structures are mapped"
    assert not list((tmp_path / "kept").glob("*/.scratch"))


def test_a_structure_that_is_not_kept_on_disk_is_limited(graph):
    cache = DataCache(memory=MemoryBudget(2_000))
    with pytest.raises(LimitReached, match="the adjacency of 900 edges needs about 7,200 bytes"):
        adjacency(graph, "Loop", cache).neighbours("out")


@pytest.mark.parametrize("memory", [40, 1_000, 100_000])
def test_arrays_written_in_parts(memory):
    random = np.random.default_rng(2)
    near, far = random.integers(0, 50, 400).astype(np.int32), random.integers(0, 50, 400).astype(np.int32)
    parts: list[np.ndarray] = []
    offsets = write_targets([(near, far), (far, near)], 50, parts.append, memory)
    expected = build(np.concatenate([near, far]), np.concatenate([far, near]), 50)
    assert offsets.tolist() == expected.offsets.tolist()
    assert np.concatenate(parts).tolist() == expected.targets.tolist()
    rows: list[np.ndarray] = []
    edges = np.arange(400, dtype=np.int32)
    offsets = write_edge_rows(near, far, edges, 50, lambda some, _: rows.append(some), memory)
    complete = build_edge_rows(near, far, edges, 50)
    assert offsets.tolist() == complete.offsets.tolist()
    assert np.concatenate(rows).tolist() == complete.edges.tolist()


@pytest.mark.parametrize("memory", [4_000, 20_000])
def test_ids_are_ranked_in_ranges(graph, tune, memory):
    expected = sort_keys.id_ranks(table(graph, "node:A", DataCache()))
    tune(complete_column_rows=1)
    data = table(graph, "node:A", DataCache(bytes_max=100, memory=MemoryBudget(memory)))
    assert data.streams("id")
    assert sort_keys.id_ranks(data).tolist() == expected.tolist()
    assert data.known_column("id") is None
