"""Samples of columns and the estimates from them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import TableData
from omnigraph.engine.statistics import sampling
from omnigraph.engine.statistics.degree_statistics import DegreeStatistics
from omnigraph.engine.statistics.sampling import (
    estimated_total,
    ids_sample,
    sample_of,
    sample_positions,
    sampled,
    sampled_columns,
    sampled_ids,
)
from omnigraph.engine.statistics.value_hashes import hash_numbers, hash_texts, unique_sorted
from support.writes import new_graph, node

SCHEMA = "node P { name: String @key  n: I64?  text: String?  tags: [String]? }\n"


@pytest.mark.parametrize(("rows", "most"), [(0, 8), (7, 8), (8, 8), (9, 8), (1_000, 64), (2**40, 512)])
def test_positions_are_ascending_rows_of_the_table(rows, most):
    found = sample_positions(rows, most)
    assert len(found) == rows if rows <= most else most / 2 <= len(found) <= most
    assert (np.diff(found) > 0).all()
    assert not len(found) or (found[0] >= 0 and found[-1] < rows)
    assert np.array_equal(found, sample_positions.__wrapped__(rows, most))


def test_distinct_values_of_a_sample_are_extrapolated():
    assert estimated_total(0, 3, 10, 100, 1_000) == 10
    assert estimated_total(5, 0, 5, 5, 50) == 50  # all different
    assert estimated_total(5, 2, 8, 100, 100) == 8  # the sample is complete


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_degrees_of_a_sample_agree_with_the_table(order):
    random = np.random.default_rng(1)
    degrees = np.minimum((3 / random.random(20_000) ** 0.6).astype(int), 500)
    ends = np.repeat(np.arange(20_000), degrees)
    ends = random.permutation(ends) if order == "shuffled" else ends
    column = pa.array(ends).cast(pa.string())
    exact = DegreeStatistics.of(column, len(ends), 20_000)
    assert (exact.linked, exact.largest) == (1.0, degrees.max())
    assert exact.biased == pytest.approx(float((degrees.astype(float) ** 2).sum() / degrees.sum()))
    found = DegreeStatistics.of(ids_sample(column), len(ends), 20_000)
    assert len(ids_sample(column)) < len(ends) / 10
    assert found.mean == exact.mean
    assert found.biased == pytest.approx(exact.biased, rel=0.25)
    assert found.linked == pytest.approx(1.0, abs=0.3)
    assert found.largest <= 2 * exact.largest


def test_scaled_degrees_follow_the_mean():
    known = DegreeStatistics(100, 1_000, 0.9, 21.0, 50)
    assert known.scaled(1_000, 100) is known
    double = known.scaled(2_000, 100)
    assert (double.mean, double.biased) == (20.0, 41.0)
    assert known.scaled(2_000, 200).biased == known.biased
    assert DegreeStatistics(0, 0, 0.0, 0.0, 0).scaled(5, 5).skew == 1.0


def test_hashes_depend_on_values_alone():
    texts = ["", "a", "ab", "a" * 8, "b" * 24, "b" * 23 + "c", "é" * 30]
    column = pa.array(texts)
    assert len(set(hash_texts(column).tolist())) == len(texts)
    assert np.array_equal(hash_texts(pa.array(["x", *texts])[1:]), hash_texts(column))
    assert np.array_equal(hash_texts(column.cast(pa.large_string())), hash_texts(column))
    assert not len(hash_texts(pa.array([], pa.string())))
    assert hash_numbers(np.array([0.0])) == hash_numbers(np.array([-0.0]))
    assert hash_numbers(np.array([2**64 - 1], np.uint64)) != hash_numbers(np.array([1], np.uint64))


def test_unique_sorted_counts():
    for numbers in ([], [3, 1, 3], [5]):
        found, counts = unique_sorted(np.array(numbers, np.uint64))
        expected = np.unique(np.array(numbers, np.uint64), return_counts=True)
        assert [found.tolist(), counts.tolist()] == [part.tolist() for part in expected]


def test_large_texts_are_sampled_by_size():
    column = pa.array(["x" * 20_000] * 3_000)
    assert 256 >= len(sample_of(column)) > 100
    assert len(sample_of(pa.array(["x"] * 3_000))) == 3_000


@pytest.fixture
def table(tmp_path):
    rows = [node("P", name=f"p{at:04}", n=at, text=f"t{at}", tags=["a"]) for at in range(300)]
    graph = new_graph(tmp_path, SCHEMA, *rows)
    graph.mutate("query q() { delete P where n < 100 }")
    context = graph._context
    return context.cache.table(graph.snapshot().table("node:P"))


@pytest.mark.parametrize("name", ["n", "text", "tags"])
def test_rows_are_looked_up_like_a_sample_of_the_column(table, name, monkeypatch):
    reads = []
    for method in ("read", "column"):
        monkeypatch.setattr(TableData, method, lambda _, one, method=method: reads.append((method, one)))
    few = {"statistics_rows_max": 8, "statistics_text_rows_max": 8, "statistics_other_rows_max": 8}
    with tuning.replaced(**few):
        found = sampled(table, name)
    assert not reads, "a large column is not read as a whole"
    monkeypatch.undo()
    assert found.to_pylist() == table.column(name).take(pa.array(sample_positions(200, 8))).to_pylist()
    with tuning.replaced(**few):
        assert sampled(table, name).equals(found), "a column in memory gives the same sample"


@pytest.mark.parametrize("bytes_max", [1, 100, 1 << 20])
def test_columns_that_are_read_together_have_the_same_samples(table, bytes_max, monkeypatch):
    monkeypatch.setattr(sampling, "_PILOT_ROWS", 3)
    few = {"statistics_rows_max": 10, "statistics_text_rows_max": 4, "statistics_other_rows_max": 2}
    names = ["n", "text", "tags"]
    with tuning.replaced(**few, statistics_bytes_max=bytes_max):
        found = sampled_columns(table, names, ["name"])
        assert found.keys() == {*names, "name"}
        assert all(found[name].equals(sampled(table, name)) for name in names)
        assert found["name"].equals(sampled_ids(table, "name"))
    whole = sampled_columns(table, names, ["name"])
    assert all(len(column) == 200 for column in whole.values())
