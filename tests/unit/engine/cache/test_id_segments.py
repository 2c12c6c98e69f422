"""The id index of large tables: rows at every version, reuse of segments, damage, and what a lookup reads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache, id_segments
from omnigraph.engine.cache.id_index import find, find_all
from omnigraph.engine.cache.id_segments import IDS
from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.graph import Graph
from omnigraph.hashing import crc32_text
from support.writes import edge, new_graph, node

SCHEMA = "node P { name: String @key  n: I64? }\nedge Knows: P -> P\n"
LARGE = {
    "id_segments_rows_min": 1,
    "segment_rows_min": 5,
    "complete_column_rows": 0,
    "complete_column_bytes": 0,
    "take_row_cost": 0,
    "hot_column_share": 0.0,
    "column_share_max": 0.0,
}


@pytest.fixture(autouse=True)
def large_tables():
    with tuning.replaced(**LARGE):
        yield


@pytest.fixture
def graph(tmp_path) -> Graph:
    return new_graph(tmp_path, SCHEMA, *(node("P", name=f"p{number}", n=number) for number in range(40)))


def data(graph: Graph, cache: DataCache, **where: str) -> TableData:
    return cache.table(graph.snapshot(**where).table("node:P"))


def cache_of(graph: Graph) -> DataCache:
    return DataCache(folder=graph._context.cache.folder)


def check(found: TableData) -> None:
    """Check that every id, and no other, is found, and that no column was read in full."""
    ids = found.read("id").to_pylist()
    assert [find(found, id_) for id_ in ids] == list(range(len(ids)))
    assert find(found, "nobody") is None
    some = ids[::-3]
    rows = find_all(found, some)
    assert rows is not None
    assert [ids[row] for row in rows.tolist()] == some
    assert find_all(found, [*some, "nobody"]) is None
    assert found.cache.find((*found.key, found.column_key("id"))) is None


def test_rows_are_found_by_id_after_every_change(graph):
    cache = cache_of(graph)
    first = graph.commits()[0].id
    graph.branch_create("side")
    changes = [
        lambda: graph.load([node("P", name="q1"), node("P", name="q2")], mode="append"),
        lambda: graph.load([node("P", name=f"m{number}") for number in range(12)], mode="append"),
        lambda: graph.on("side").load([node("P", name="s1")], mode="append"),
        lambda: graph.mutate('query q() { update P set { n: 7 } where name = "p3" }'),
        lambda: graph.mutate('query q() { delete P where name = "p5" }'),
        lambda: graph.load([node("P", name="p5", n=1), node("P", name="p6", n=1)], mode="merge"),
        lambda: graph.mutate('query q() { delete P where name = "p5" }'),
        lambda: graph.mutate("query q() { delete P where n > 20 }"),
        lambda: graph.load([node("P", name=f"r{number}") for number in range(30)], mode="append"),
        lambda: graph.optimize(),
        lambda: graph.mutate('query q() { delete P where name = "r7" }'),
    ]
    check(data(graph, cache))
    for change in changes:
        change()
        check(data(graph, cache))
        check(data(graph, cache_of(graph)))
        check(data(graph, cache, branch="side"))
        check(data(graph, cache, at=first))
    assert find(data(graph, cache), "p5") is None
    assert find(data(graph, cache, at=first), "p5") == 5


def test_a_load_builds_the_index_and_another_process_maps_it(graph):
    folder = graph._context.cache.folder
    assert disk_cache.exists(folder, (IDS, data(graph, DataCache()).folder, "0", "0"))
    found = data(graph, cache_of(graph))
    check(found)
    entry = found.derived("id_segments", lambda: pytest.fail("the index is built"))
    assert all(isinstance(packed.base, np.memmap) for packed in entry._packed)
    assert entry.nbytes == 0


def test_a_few_new_rows_reuse_the_segment(graph):
    folder = graph._context.cache.folder
    before = sorted(path.name for path in folder.iterdir())
    graph.load([node("P", name="q1")], mode="append")
    check(data(graph, cache_of(graph)))
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_damaged_index_is_built_again(graph):
    folder = graph._context.cache.folder
    for path in folder.rglob("ids"):
        path.write_bytes(bytes(reversed(path.read_bytes())))
    check(data(graph, cache_of(graph)))
    assert not disk_cache.find_damaged(folder)


def test_ids_with_equal_hashes_are_distinguished(graph, monkeypatch):
    monkeypatch.setattr(id_segments, "crc32_texts", lambda ids, _: np.zeros(len(ids), np.uint32))
    found = data(graph, DataCache())
    index = id_segments.id_segments(found)
    assert [index.find(f"p{number}", 0) for number in range(40)] == list(range(40))
    assert index.find("nobody", 0) is None
    assert index.find_all(pa.array(["p9", "nobody", "p1"])).tolist() == [9, -1, 1]


def test_entries_are_found_near_their_expected_position():
    random = np.random.default_rng(3)
    even = np.sort(random.integers(0, 1 << 64, 50_000, np.uint64))
    uneven = np.sort(np.concatenate([even[:1_000] >> np.uint64(20), even[:100] | np.uint64(0xFFFF << 48), even[-3:]]))
    for packed in (even, uneven, even[:1], even[:0], np.sort(np.repeat(even[:7], 40))):
        hashes = [
            0,
            1,
            (1 << 32) - 1,
            *random.integers(0, 1 << 32, 300).tolist(),
            *(packed[:300] >> np.uint64(32)).tolist(),
        ]
        for hashed in hashes:
            expected = int(packed.searchsorted(np.uint64(hashed << 32)))
            assert id_segments._position_of(packed, hashed) == expected


def test_ids_with_a_long_common_prefix_have_own_hashes(tmp_path):
    prefix = "https://example.org/" * 5
    graph = new_graph(tmp_path, SCHEMA, *(node("P", name=f"{prefix}{number}") for number in range(40)))
    index = id_segments.id_segments(data(graph, DataCache()))
    for number in range(40):
        hashed = crc32_text(f"{prefix}{number}", id_segments.HASHED_BYTES)
        assert index.find(f"{prefix}{number}", hashed) == number
        assert index._candidates(hashed) == [number]


def test_without_a_folder_the_index_is_in_memory(graph):
    found = data(graph, DataCache())
    check(found)
    assert found.derived("id_segments", lambda: pytest.fail("the index is built")).nbytes == 40 * 8


def test_queries_and_get_find_rows_by_the_index(graph):
    other = omnigraph.open(graph.uri)
    query = "query q($k: String) { match { $p: P { name: $k } } return { $p.name, $p.n } }"
    assert other.query(query, params={"k": "p17"}).to_pylist() == [{"p.name": "p17", "p.n": 17}]
    assert other.query(query, params={"k": "nobody"}).to_pylist() == []
    assert other.get("P", "p17") == graph.get("P", "p17")
    assert other.get("P", "nobody") is None
    found = data(other, other._context.cache)
    assert found.cache.find((*found.key, found.column_key("id"))) is None


def test_new_edges_find_their_nodes_by_the_index(graph):
    graph.load([edge("Knows", f"p{number}", f"p{number + 1}") for number in range(39)], mode="append")
    query = 'query q() { match { $p: P { name: "p3" }  $p knows $o } return { $o.name } }'
    assert graph.query(query).to_pylist() == [{"o.name": "p4"}]
    graph.load([edge("Knows", "p3", "p20")], mode="append")
    assert sorted(row["o.name"] for row in graph.query(query)) == ["p20", "p4"]
