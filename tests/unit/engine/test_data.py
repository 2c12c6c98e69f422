"""Tables in memory: rows are found by id at every version, and what is kept is bounded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine import places
from omnigraph.engine.data import DataCache, TableData
from omnigraph.engine.places import Index, Places, find, hash_all, hash_one
from omnigraph.graph import Graph
from support.writes import new_graph, node

SCHEMA = "node P { name: String @key  n: I64? }\n"


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SCHEMA, *(node("P", name=f"p{number}", n=number) for number in range(40)))


def data(graph: Graph, cache: DataCache, **where: str) -> TableData:
    return cache.table(graph.snapshot(**where).table("node:P"))


def check(found: TableData) -> None:
    """Every id is found where it is, and nothing else is; often enough for a map to be made."""
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


def test_a_map_of_ids_grows_by_what_was_added(graph):
    cache = DataCache()
    check(data(graph, cache))
    graph.load([node("P", name="q1")], mode="append")
    later = data(graph, cache)
    assert find(later, "q1") == 40
    places = later.derived("places:id", lambda: pytest.fail("the map is made at the first lookup"))
    assert isinstance(places, Places)
    assert (len(places.base), places.added) == (40, {"q1": 40})


def test_a_map_of_ids_is_carried_over_changes(graph):
    cache = DataCache()
    check(data(graph, cache))
    first = cache.newest(data(graph, cache), "places:id")
    for text in ('update P set { n: 7 } where name = "p3"', 'delete P where name = "p4"'):
        graph.mutate(f"query q() {{ {text} }}")
        check(data(graph, cache))
        later = cache.newest(data(graph, cache), "places:id")
        assert later.base is first.base, "the map itself is not made again"


TEXTS = ["", "a", "b", "ab", "ba", "ä", "日本", "x" * 63, "x" * 64, "x" * 65, "x" * 66, "x" * 64 + "y", "0", "00"]


@pytest.mark.parametrize("start", [0, 3])
def test_one_hash_and_all_hashes_are_the_same(start):
    column = pa.array(TEXTS).slice(start)
    assert hash_all(column).tolist() == [hash_one(text) for text in TEXTS[start:]]
    assert hash_all(pa.array([""])).tolist() == [hash_one("")]
    assert hash_all(pa.array([], pa.utf8())).tolist() == []


def test_ids_whose_hashes_are_equal_are_told_apart(monkeypatch):
    monkeypatch.setattr(places, "hash_all", lambda ids: np.zeros(len(ids), np.uint64))
    monkeypatch.setattr(places, "hash_one", lambda _: 0)
    index = Index(pa.array(TEXTS))
    assert [index.find(text) for text in TEXTS] == list(range(len(TEXTS)))
    assert index.find("nobody") is None


def test_a_version_is_one_object_for_all_who_ask(graph):
    cache = DataCache()
    assert data(graph, cache) is data(graph, cache)
    first = data(graph, cache)
    graph.load([node("P", name="q1")], mode="append")
    assert data(graph, cache) is not first


def test_what_was_used_least_recently_goes_first(graph):
    cache = DataCache(bytes_max=2_000)
    found = data(graph, cache)
    for name in ("id", "name", "n", "id", "n"):
        found.column(name)
    assert 0 < cache.bytes <= 2_000
