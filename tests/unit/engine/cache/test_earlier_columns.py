"""Columns after small commits: values come from the column of an earlier version; only added rows are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.storage.lance.tables import Table
from support.writes import new_graph, node

SCHEMA = "node P { name: String @key  n: I64?  text: String? }\n"
ROWS = 400


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SCHEMA, *(node("P", name=f"p{at}", n=at, text=f"text {at}") for at in range(ROWS)))


@pytest.fixture
def rows_read(monkeypatch):
    """The numbers of rows that each read of a table returned."""
    counts: list[int] = []
    batches, take = Table.batches, Table.take

    def counted(self, *args, **options):
        for batch in batches(self, *args, **options):
            counts.append(batch.num_rows)
            yield batch

    def counted_take(self, *args):
        found = take(self, *args)
        counts.append(found.num_rows)
        return found

    monkeypatch.setattr(Table, "batches", counted)
    monkeypatch.setattr(Table, "take", counted_take)
    return counts


CHANGES = {
    "insert": 'insert P { name: "q", n: 1, text: "new" }',
    "delete": 'delete P where name = "p7"',
    "update": 'update P set { text: "changed" } where name = "p9"',
    "several": 'insert P { name: "r", n: 2 } update P set { n: 5 } where name = "p11"',
}


def data(graph, cache: DataCache) -> TableData:
    return cache.table(graph.snapshot().table("node:P"))


def check(graph, cache: DataCache) -> None:
    """Compare every value, read in small and in large portions, with those of a cache without earlier versions."""
    found, fresh = data(graph, cache), data(graph, DataCache())
    for name in ("id", "n", "text"):
        values = fresh.column(name).to_pylist()
        for numbers in (*np.array_split(np.arange(len(values)), 60), np.array([len(values) - 1, 0, 5, 5])):
            assert found.take(name, numbers).to_pylist() == [values[at] for at in numbers]
            columns = found.take_columns(["n", name], numbers)
            assert columns[name].to_pylist() == [values[at] for at in numbers]
        assert found.column(name).to_pylist() == values


@pytest.mark.parametrize("whole", [True, False])
def test_values_equal_those_of_the_table_after_every_commit(graph, tune, whole):
    tune(complete_column_rows=0, complete_column_bytes=0, joined_take_rows=0)
    cache = DataCache()
    check(graph, cache)
    for change in CHANGES.values():
        graph.mutate(f"query m() {{ {change} }}")
        if whole:
            check(graph, cache)
    check(graph, cache)
    graph.optimize()
    check(graph, cache)


@pytest.mark.parametrize("change", CHANGES)
def test_a_commit_reads_only_its_rows(graph, tune, rows_read, change):
    tune(complete_column_rows=0, joined_take_rows=0)
    cache = DataCache()
    for name in ("n", "text"):
        data(graph, cache).column(name)
    graph.mutate(f"query m() {{ {CHANGES[change]} }}")
    later = data(graph, cache)
    del rows_read[:]
    for numbers in (np.array([3]), np.array([later.row_count - 1, 8, 20]), np.arange(5, 20)):
        later.take_columns(["n", "text"], numbers)
    assert sum(rows_read) <= 2 * 2, "at most two added rows, once for each column"
    later.column("text")
    assert sum(rows_read) <= 2 * 2, "a complete column is assembled from the earlier one"


def test_added_rows_are_read_once_for_all_versions(graph, tune, rows_read):
    tune(complete_column_rows=0, joined_take_rows=0)
    cache = DataCache()
    data(graph, cache).column("n")
    for at in range(30):
        graph.mutate(f'query m() {{ insert P {{ name: "q{at}", n: {at} }} }}')
        later = data(graph, cache)
        assert later.take("n", np.array([0, ROWS + at])).to_pylist() == [0, at]
    assert sum(rows_read) == ROWS + 30


def test_a_column_that_is_used_often_is_assembled(graph, tune):
    tune(complete_column_rows=0, joined_take_rows=ROWS // 4)
    cache = DataCache()
    data(graph, cache).column("n")
    graph.mutate('query m() { insert P { name: "q", n: 1 } }')
    later = data(graph, cache)
    for _ in range(3):
        later.take("n", np.array([5]))
        assert later.known_column("n") is None
    for _ in range(3):
        later.take("n", np.array([5]))
    assert later.known_column("n") is not None


def test_a_renamed_column_keeps_its_values(graph, tune):
    tune(complete_column_rows=0, joined_take_rows=0)
    cache = DataCache()
    data(graph, cache).column("n")
    graph.mutate('query m() { insert P { name: "q", n: 1 } }')
    assert data(graph, cache).take("n", np.array([ROWS, 3])).to_pylist() == [1, 3]
    graph.apply_schema(SCHEMA.replace("n: I64?", 'm: I64? @rename_from("n")'))
    graph.mutate('query m() { insert P { name: "r", m: 2 } }')
    assert data(graph, cache).take("m", np.array([ROWS + 1, ROWS, 3])).to_pylist() == [2, 1, 3]


def test_a_field_id_of_another_type_is_read_again(graph):
    """An overwritten table numbers its fields again: an earlier version has another column under the id."""
    cache = DataCache()
    before = data(graph, cache)
    cache.get((*before.key, before.column_key("n")), lambda: pa.array(["other"] * ROWS))
    graph.mutate(CHANGES["insert"])
    assert data(graph, cache).column("n").to_pylist() == data(graph, DataCache()).column("n").to_pylist()
