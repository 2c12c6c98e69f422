"""Rows by their numbers: the choice between complete columns and single rows, and equal results of both."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine import tuning
from omnigraph.engine.cache.column_access import ColumnUse
from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.graph import Graph
from support.writes import edge, new_graph, node

SCHEMA = """
interface Named { name: String }
node P implements Named { key: String @key  name: String  n: I64?  f: F64?  tags: [String]?  v: Vector(3)? }
node Q implements Named { key: String @key  name: String }
edge Knows: P -> P { since: I32? }
"""
SINGLE_ROWS = {
    "complete_column_rows": 0,
    "complete_column_bytes": 0,
    "take_row_cost": 0,
    "hot_column_share": 0.0,
    "column_share_max": 0.0,
}
"""Rows of columns that are not in memory are always read by their numbers."""


def rows() -> list:
    people = [
        node(
            "P",
            key=f"p{number:02}",
            name=f"name {number % 7}",
            n=number if number % 3 else None,
            f=number / 4,
            tags=[f"t{number % 2}"] if number % 5 else None,
            v=[float(number), 1.0, 0.0] if number % 4 else None,
        )
        for number in range(60)
    ]
    others = [node("Q", key=f"p{number:02}", name=f"name {number}") for number in range(20)]
    knows = [
        edge("Knows", f"p{number:02}", f"p{(number * 7 + step) % 60:02}", since=2000 + number)
        for number in range(60)
        for step in (1, 2)
    ]
    return [*people, *others, *knows]


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Graph:
    made = new_graph(tmp_path_factory.mktemp("g"), SCHEMA, *rows())
    made.mutate('query q() { delete P where key = "p05" }')
    made.mutate('query q() { update P set { n: 700, name: "changed" } where key = "p09" }')
    made.load([node("P", key="p90", name="added", n=1)], mode="append")
    return made


def data(graph: Graph, cache: DataCache) -> TableData:
    return cache.table(graph.snapshot().table("node:P"))


def in_memory(found: TableData, name: str) -> bool:
    return found.cache.find((*found.key, found.column_key(name))) is not None


QUERIES = [
    "$p: P { key: 'p12' } } return { $p.name, $p.n, $p.f, $p.tags }",
    "$p: P { key: 'p09' } } return { $p }",
    "$p: P { key: 'p05' } } return { $p.name }",
    "$p: P { key: 'p01' }  $p knows $o } return { $p.name, $o.key, $o.n, $o.tags } order { $o.key desc }",
    "$p: P { key: 'p01' }  $p knows $o  $o knows $z  $z.n > 20 } return { $z.name, count($z) as c }",
    "$p: P { key: 'p01' }  $p knows $o  $o.name = 'name 1' } return { $o }",
    "$p: P { key: 'p01' }  $p $k: knows $o  $k.since >= 2001 } return { $k.since, $o.f }",
    "$p: P { key: 'p02' }  optional { $p knows $o  $o.n > 1000 } } return { $p.key, $o.name, $o.n }",
    "$p: P { key: 'p03' }  $p knows{1,3} $o } return { sum($o.n) as s, min($o.f) as f, collect($o.name) as names }",
    "$x: Named  $x.name = 'name 3' } return { $x.key, $x.name } order { $x.key }",
    "$p: P  $p.name contains '3' } return { $p.key, $p.v } order { $p.key } limit 5",
    "$p: P  $p.n >= 10 } return { $p.name, count($p) as c, avg($p.f) as a } order { $p.name }",
]


@pytest.mark.parametrize("match", QUERIES)
def test_single_rows_give_the_same_results_as_complete_columns(graph, match):
    query = f"query q() {{ match {{ {match} }}".replace("'", '"')
    expected = graph.query(query).to_arrow()
    with tuning.replaced(**SINGLE_ROWS):
        alone = omnigraph.open(graph.uri, read_only=True)
        found = alone.query(query).to_arrow()
    assert found.num_rows == expected.num_rows
    assert found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_returned_in_the_order_of_their_numbers(graph, seed):
    numbers = np.random.default_rng(seed).integers(0, 60, 30)
    with tuning.replaced(**SINGLE_ROWS, take_batch_rows=7):
        found = data(graph, DataCache())
        taken = found.take_columns(["id", "n", "tags", "v"], numbers)
        assert not in_memory(found, "id")
    for name, values in taken.items():
        assert values.to_pylist() == [found.column(name).to_pylist()[row] for row in numbers.tolist()]
        assert values.type == found.column(name).type


def test_no_row_is_no_value(graph):
    with tuning.replaced(**SINGLE_ROWS):
        found = data(graph, DataCache()).take("name", np.zeros(0, np.int64))
    assert found.to_pylist() == []


def test_a_point_read_reads_no_complete_column(graph):
    with tuning.replaced(**SINGLE_ROWS):
        cache = DataCache()
        found = data(graph, cache)
        assert found.take("name", np.array([3])).to_pylist() == ["name 3"]
        assert not in_memory(found, "name")
        assert cache.column_use(found.folder, found.column_key("name")).rows == 1


def test_a_column_in_memory_is_used(graph):
    found = data(graph, DataCache())
    column = found.column("name")
    with tuning.replaced(**SINGLE_ROWS):
        assert found.column_for("name", 1) is column


def test_columns_of_small_tables_are_read_in_full(graph):
    found = data(graph, DataCache())
    assert found.take("name", np.array([3])).to_pylist() == ["name 3"]
    assert in_memory(found, "name")


def test_a_column_is_read_in_full_for_many_rows(graph):
    with tuning.replaced(complete_column_rows=0, complete_column_bytes=0, take_row_cost=16):
        found = data(graph, DataCache())
        assert found.column_for("name", 1) is None
        assert found.column_for("name", 10) is not None


def test_a_column_that_does_not_fit_the_cache_is_never_read_in_full(graph):
    with tuning.replaced(complete_column_rows=0, complete_column_bytes=0, take_row_cost=16):
        found = data(graph, DataCache(bytes_max=1_000))
        assert found.column_for("name", 10) is None
        assert len(found.take("name", np.arange(50))) == 50
        assert not in_memory(found, "name")


def test_a_column_that_is_read_often_is_read_in_full(graph):
    with tuning.replaced(complete_column_rows=0, complete_column_bytes=0):
        found = data(graph, DataCache())
        for row in range(5):
            found.take("name", np.array([row]))
        assert in_memory(found, "name"), "few reads of rows take as long as reading so small a column"


def test_numbers_are_known_to_be_small_before_they_are_read(graph):
    with tuning.replaced(complete_column_rows=0, complete_column_bytes=8 * 60):
        found = data(graph, DataCache())
        assert found.column_for("n", 1) is not None
        assert found.column_for("name", 1) is None, "the size of texts is not known"


def test_the_size_of_a_column_is_estimated_from_rows_that_were_read():
    use = ColumnUse()
    assert use.column_bytes(pa.int32(), 100) == 400
    assert use.column_bytes(pa.list_(pa.float32(), 4), 100) == 1_600
    assert use.column_bytes(pa.utf8(), 100) is None
    use.add(pa.array(["x" * 96] * 10))
    assert use.column_bytes(pa.utf8(), 1_000) == pytest.approx(100_000, rel=0.02)


def test_types_without_rows_are_not_read(graph):
    text = 'match { $x: P|Q  $x.name = "changed" } return { $x.key, $x.name }'
    with tuning.replaced(**SINGLE_ROWS):
        fresh = omnigraph.open(graph.uri)
        assert fresh.query(text).to_pylist() == [{"x.key": "p09", "x.name": "changed"}]
        shown = str(omnigraph.open(graph.uri).profile(text))
    assert "1 rows of" in shown
    assert " 0 rows of" not in shown


def long_texts(count: int) -> list[str]:
    """Return texts of about a megabyte that are small on disk."""
    words = " ".join(f"{number * 7919 % 10_007:x}x" for number in range(2_000))
    return [f"{number % 7} " + f"{number} {words}. " * 80 for number in range(count)]


def test_long_texts_that_repeat_themselves_are_not_taken_for_small_ones(tmp_path):
    texts = long_texts(100)
    graph = omnigraph.init(tmp_path / "graph", "node D { key: String @key  text: String }", sync=False)
    graph.load({"D": pa.table({"key": [f"d{number}" for number in range(100)], "text": texts})}, mode="append")
    table = graph.snapshot().table("node:D")
    decoded = sum(map(len, texts))
    assert table.stored_bytes * 20 < decoded <= table.largest_bytes
    sizes = [batch.num_rows for batch in table.batches(["text"])]
    assert sum(sizes) == 100
    assert max(sizes) * decoded < 100 * 70e6
    assert table.batch_rows(["text"]) * decoded < 100 * 70e6
    found = DataCache(bytes_max=decoded // 2).table(table)
    assert found.take("text", np.array([7])).to_pylist() == [texts[7]]
    assert found.streams("text")
    assert not in_memory(found, "text")


def test_expressions_of_long_texts_are_evaluated_in_batches(tmp_path):
    texts = long_texts(100)
    keys = [f"d{number}" for number in range(100)]
    graph = omnigraph.init(tmp_path / "graph", "node D { key: String @key  text: String @index }", sync=False)
    graph.load({"D": pa.table({"key": keys, "text": texts})}, mode="append")
    graph.optimize()
    assert any((tmp_path / "graph" / "__cache").glob("*/about.json")), "the index of few long texts is kept"
    graph = omnigraph.open(graph.uri, memory="128MiB")
    equal = graph.query("match { $d: D  $e: D  $d.key = $e.key  $d.text = $e.text } return { count($d) as n }")
    assert equal.to_rows() == [{"n": 100}]
    longest = graph.query("match { $d: D } return { max(length($d.text)) as n }")
    assert longest.to_rows() == [{"n": max(map(len, texts))}]
    first = graph.query("match { $d: D } return { $d.key } order { $d.text, $d.key } limit 2")
    assert first.to_rows() == [{"d.key": "d0"}, {"d.key": "d14"}]
    found = graph.query('match { $d: D  search($d.text, "99") } return { count($d) as n }')
    assert found.to_rows() == [{"n": 1}]
    assert graph.query('match { $d: D  $d.text starts_with "6 " } return { count($d) as n }').to_rows() == [{"n": 14}]
