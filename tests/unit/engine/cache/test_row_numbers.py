"""Tables with more rows than row numbers can count are refused, and deleted rows that are stored count as well."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.engine.cache.row_mapping import FragmentLayout, map_rows
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.errors import LimitReached
from omnigraph.graph import Graph
from support.writes import edge, new_graph, node, rows_of

SCHEMA = """
node P { name: String @key  text: String? @index }
node Q { name: String @key  text: String? @index }
edge To: P -> P
"""
QUERIES = {
    "a scan": "query q() { match { $p: P } return { $p.name } }",
    "a count": "query q() { match { $p: P } return { count($p) as n } }",
    "a key": 'query q() { match { $p: P { name: "p1" } } return { $p.name } }',
    "a search": 'query q() { match { $p: P } return { $p.name } order { bm25($p.text, "stone") } limit 2 }',
    "edges": "query q() { match { $p: P  $p to $o } return { $o.name } }",
    "a path": 'query q() { match { $p: P { name: "p1" }  $p to{1,3} $o } return { $o.name } }',
}


@pytest.fixture
def graph(tmp_path) -> Graph:
    people = [node(type_, name=f"{type_.lower()}{at}", text=f"stone {at}") for type_ in "PQ" for at in range(6)]
    return new_graph(tmp_path, SCHEMA, *people, *(edge("To", f"p{at}", "p0") for at in range(1, 6)))


def test_the_default_is_what_32_bits_hold():
    assert tuning.Tuning().row_numbers_max == 2**31 - 1


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_a_table_with_too_many_rows_is_refused(graph, tune, text):
    tune(row_numbers_max=5)
    with pytest.raises(LimitReached, match=r"node type 'P' has 6 rows; the engine numbers at most 5 rows") as caught:
        og.open(graph.uri, environ={}).query(text)
    assert (caught.value.resource, caught.value.limit, caught.value.actual) == ("rows", 5, 6)


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_a_table_with_as_many_rows_as_numbers_is_read(graph, tune, text):
    tune(row_numbers_max=6)
    assert len(og.open(graph.uri, environ={}).query(text))


def test_a_table_that_is_read_without_a_snapshot_is_refused(graph, tune):
    tune(row_numbers_max=5)
    data = DataCache().table(graph.snapshot().table("node:P"))
    with pytest.raises(LimitReached, match="has 6 rows"):
        assert data.row_count


def test_a_union_with_too_many_rows_is_refused(graph, tune):
    tune(row_numbers_max=11)
    fresh = og.open(graph.uri, environ={})
    assert len(fresh.query("query q() { match { $p: P } return { $p.name } }")) == 6
    with pytest.raises(LimitReached, match=r"the union '.*' has 12 rows"):
        fresh.query("query q() { match { $p: P|Q } return { $p.name } }")


def test_loads_and_exports_go_on(graph, tune):
    tune(row_numbers_max=5, segment_rows_min=1, postings_disk_rows_min=1, id_segments_rows_min=1)
    fresh = og.open(graph.uri, environ={})
    assert fresh.load([node("P", name=f"n{at}") for at in range(4)], mode="append").commit_id
    fresh.optimize()
    assert len(rows_of(fresh, "P")) == 10


def test_stored_rows_have_numbers_too(tmp_path, tune):
    graph = new_graph(tmp_path, SCHEMA, *(node("P", name=name) for name in "abcd"))
    cache = DataCache()

    def data(cache: DataCache) -> Any:
        return cache.table(graph.snapshot().table("node:P"))

    first = FragmentLayout.of(data(cache))
    graph.mutate('query q() { delete P where name = "b" }')
    graph.load([node("P", name="e")], mode="append")
    assert data(cache).row_count == 4
    assert map_rows(first, data(cache)) is not None
    tune(row_numbers_max=4)
    assert map_rows(first, data(DataCache())) is None


def test_segments_with_too_many_stored_rows_are_built_again(tmp_path, tune):
    tune(postings_disk_rows_min=0)
    texts = {"a": "stone", "b": "stone stone", "c": "river", "d": "stone river"}
    graph = new_graph(tmp_path, SCHEMA, *(node("P", name=name, text=text) for name, text in texts.items()))
    assert graph.query(QUERIES["a search"]).to_rows() == [{"p.name": "b"}, {"p.name": "a"}]
    graph.mutate('query q() { delete P where name = "b" }')
    graph.load([node("P", name="e", text="stone stone")], mode="append")
    tune(row_numbers_max=4)
    assert "built from 4 rows" in str(graph.profile(QUERIES["a search"])), "not extended by one row"
    assert graph.query(QUERIES["a search"]).to_rows() == [{"p.name": "e"}, {"p.name": "a"}]
