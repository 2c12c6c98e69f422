"""The table cache: lookup of rows by id at every version, and eviction."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.cache import id_index
from omnigraph.engine.cache.id_index import IdHashIndex, IdIndex, find
from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.engine.search.inverted_index import WORDS
from omnigraph.graph import Graph
from support.writes import edge, new_graph, node

SCHEMA = "node P { name: String @key  n: I64? }\n"


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SCHEMA, *(node("P", name=f"p{number}", n=number) for number in range(40)))


def data(graph: Graph, cache: DataCache, **where: str) -> TableData:
    return cache.table(graph.snapshot(**where).table("node:P"))


def check(found: TableData) -> None:
    """Check that every id, and no other, is found; often enough for an index to be built."""
    ids = found.column("id").to_pylist()
    assert [find(found, id_) for id_ in ids] == list(range(len(ids)))
    assert find(found, "nobody") is None


def test_rows_are_found_by_id_after_every_change(graph):
    cache = DataCache()
    first = graph.commits()[0].id
    graph.branch_create("side")
    changes = [
        lambda: graph.load([node("P", name="q1"), node("P", name="q2")], mode="append"),
        lambda: graph.load([node("P", name="q3")], mode="append"),
        lambda: graph.on("side").load([node("P", name="s1")], mode="append"),
        lambda: graph.mutate('query q() { update P set { n: 7 } where name = "p3" }'),
        lambda: graph.mutate('query q() { delete P where name = "p5" }'),
        lambda: graph.load([node("P", name="p5", n=1), node("P", name="p6", n=1)], mode="merge"),
        lambda: graph.mutate('query q() { delete P where name = "p5" }'),
        lambda: graph.load([node("P", name=f"r{number}") for number in range(30)], mode="append"),
        lambda: graph.optimize(),
    ]
    check(data(graph, cache))
    for change in changes:
        change()
        check(data(graph, cache))
        check(data(graph, cache, branch="side"))
        check(data(graph, cache, at=first))
    assert find(data(graph, cache), "p5") is None
    assert find(data(graph, cache, at=first), "p5") == 5


def test_the_id_index_is_extended_by_new_rows(graph):
    cache = DataCache()
    check(data(graph, cache))
    graph.load([node("P", name="q1")], mode="append")
    later = data(graph, cache)
    assert find(later, "q1") == 40
    index = later.derived("id_index", lambda: pytest.fail("the index is built by the first lookup"))
    assert isinstance(index, IdIndex)
    assert (len(index.base), index.added) == (40, {"q1": 40})


def test_the_id_index_is_reused_after_updates_and_deletes(graph):
    cache = DataCache()
    check(data(graph, cache))
    first = cache.newest(data(graph, cache), "id_index")
    for text in ('update P set { n: 7 } where name = "p3"', 'delete P where name = "p4"'):
        graph.mutate(f"query q() {{ {text} }}")
        check(data(graph, cache))
        later = cache.newest(data(graph, cache), "id_index")
        assert later.base is first.base, "the hash index is reused"


TEXTS = ["", "a", "b", "ab", "ba", "ä", "日本", "x" * 63, "x" * 64, "x" * 65, "x" * 66, "x" * 64 + "y", "0", "00"]


def test_ids_with_equal_hashes_are_distinguished(monkeypatch):
    monkeypatch.setattr(id_index, "_hashes", lambda ids: np.zeros(len(ids), np.uint64))
    monkeypatch.setattr(id_index, "_hash", lambda _: 0)
    index = IdHashIndex(pa.array(TEXTS))
    assert [index.find(text) for text in TEXTS] == list(range(len(TEXTS)))
    assert index.find("nobody") is None


def test_a_version_has_one_data_object(graph):
    cache = DataCache()
    assert data(graph, cache) is data(graph, cache)
    first = data(graph, cache)
    graph.load([node("P", name="q1")], mode="append")
    assert data(graph, cache) is not first


def test_the_least_recently_used_entry_is_evicted_first(graph):
    cache = DataCache(bytes_max=2_000)
    found = data(graph, cache)
    for name in ("id", "name", "n", "id", "n"):
        found.column(name)
    assert 0 < cache.bytes <= 2_000


# -- eviction ----------------------------------------------------------------------------------------


def kilobytes(count: int) -> np.ndarray:
    return np.zeros(count * 1024, np.uint8)


def test_eviction_removes_single_entries():
    cache = DataCache(bytes_max=100 * 1024)
    cache.set_base(("words", "a"), (kilobytes(20),))
    cache.set_base(("words", "b"), (kilobytes(20),))
    cache.get(("folder", "version", "column"), lambda: kilobytes(40))
    assert cache.base(("words", "a")) is not None
    cache.get(("folder", "version", "other"), lambda: kilobytes(30))
    assert cache.base(("words", "a")) is not None, "used last"
    assert cache.base(("words", "b")) is None, "the least recently used entry is evicted"
    assert cache.find(("folder", "version", "other")) is not None
    assert cache.bytes <= 100 * 1024


def test_structures_shared_by_versions_count_towards_the_limit():
    cache = DataCache()
    cache.set_base(("words", "a"), (kilobytes(20), kilobytes(5)))
    first = cache.bytes
    assert first >= 25 * 1024
    cache.set_base(("words", "a"), (kilobytes(10),))
    assert 10 * 1024 <= cache.bytes < first


def test_adjacency_and_text_indexes_count_towards_the_limit(tmp_path):
    schema = "node P { name: String @key  note: String }\nedge K: P -> P {}\n"
    rows = [node("P", name=f"p{at}", note=f"word{at}") for at in range(200)]
    graph = new_graph(tmp_path, schema, *rows, *(edge("K", f"p{at}", f"p{at + 1}") for at in range(199)))
    cache = graph._context.cache
    graph.query("query q() { match { $a: P  $a k $b } return { count($a) as n } }")
    graph.query('query q() { match { $a: P  search($a.note, "word7") } return { count($a) as n } }')
    table, edges = graph.snapshot().table("node:P"), graph.snapshot().table("edge:K")
    field = str(table.field_ids["note"])
    words = cache.base((WORDS, table.folder, field))
    made = cache.base(("adjacency", edges.folder, table.folder, table.folder, "out"))
    assert sum(part.nbytes for part in words) > 200 * 4
    assert made.nbytes > 199 * 4
    assert cache.bytes > made.nbytes + sum(part.nbytes for part in words)


def test_threads_evict_and_replace_entries():
    cache = DataCache(bytes_max=64 * 1024)

    def work(thread: int) -> None:
        for number in range(300):
            cache.set_base(("base", str(number % 5)), (kilobytes(number % 9),))
            cache.get(("folder", str(thread), str(number % 7)), lambda: kilobytes(3))
            cache.base(("base", str(thread)))

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, thread) for thread in range(4)]:
            done.result()
    assert cache.bytes == sum(size for _, size in cache._entries.values()) <= 64 * 1024


def test_no_rows_are_taken_without_a_read(graph, monkeypatch):
    found = data(graph, DataCache())
    none = np.zeros(0, np.int64)
    reads: list[tuple[str, ...]] = []
    read = type(found._table).take
    monkeypatch.setattr(
        type(found._table), "take", lambda table, names, rows: (reads.append(tuple(names)), read(table, names, rows))[1]
    )
    assert found._take(["name", "n"], none) == {"name": pa.array([], pa.utf8()), "n": pa.array([], pa.int64())}
    assert not reads
    assert found._take(["n"], np.array([3]))["n"].to_pylist() == [3]
    assert reads == [("n",)]
