"""Summaries of columns: figures, shares, merging."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.statistics.column_statistics import ColumnStatistics


def summary(values, type_=None) -> ColumnStatistics:
    return ColumnStatistics.of(pa.array(values, type_))


def test_figures_of_numbers():
    found = summary([3, 1, None, 1, 2])
    assert (found.rows, found.nulls, found.low, found.high, found.distinct) == (5, 1, 1, 3, 3)
    assert found.known_share == 0.8
    assert found.share_equal(1) == pytest.approx(0.4)
    assert found.share_equal(2) == pytest.approx(0.2)
    assert found.share_equal(9) == found.share_equal(None) == 0
    assert found.share_below(2, inclusive=False) == pytest.approx(0.4)
    assert found.share_below(2, inclusive=True) == pytest.approx(0.6)
    assert found.share_equal_any() == pytest.approx(0.8 / 3)


def test_figures_of_texts_dates_and_booleans():
    texts = summary(["b", "a", "a", None])
    assert (texts.low, texts.high, texts.distinct, texts.share_equal("a")) == ("a", "b", 2, 0.5)
    assert texts.share_where(lambda text: text == "b") == 0.25
    days = summary([date(2020, 1, 1), date(2020, 1, 2)])
    assert (days.low, days.high) == (18262, 18263)
    assert summary([True, True, False, True]).share_equal(True) == pytest.approx(0.75)


def test_columns_without_values_or_order():
    assert summary([], pa.int64()).share_equal(1) == 0
    assert summary([None, None], pa.string()).share_equal("a") == 0
    lists = summary([[1], None], pa.list_(pa.int64()))
    assert (lists.rows, lists.nulls, lists.sample) == (2, 1, ())
    assert summary([float("nan")], pa.float64()).sample == ()


@pytest.mark.parametrize("distinct", [10, 500, 20_000, 100_000])
def test_distinct_numbers_are_estimated(distinct):
    numbers = np.random.default_rng(1).permutation(np.arange(100_000) % distinct)
    assert summary(numbers).distinct == pytest.approx(distinct, rel=0.25)


@pytest.mark.parametrize("distinct", [10, 20_000, 500_000])
def test_distinct_numbers_of_long_columns_are_estimated(distinct):
    numbers = np.random.default_rng(1).permutation(np.arange(500_000) % distinct)
    found = summary(numbers)
    assert found.hashed <= 100_000
    assert found.distinct == pytest.approx(distinct, rel=0.25)


def test_distinct_texts_are_estimated():
    assert summary([f"t{number % 50}" for number in range(20_000)]).distinct == pytest.approx(50, rel=0.1)
    assert summary([f"t{number}" for number in range(20_000)]).distinct == pytest.approx(20_000, rel=0.2)


def test_common_values_have_their_share():
    numbers = [7] * 5_000 + list(range(10_000, 15_000))
    found = summary(np.random.default_rng(2).permutation(numbers))
    assert set(found.common) == {7}
    assert found.share_equal(7) == pytest.approx(0.5, abs=0.05)
    assert found.share_equal(12_345) == pytest.approx(1 / 10_000, rel=0.5)


def test_merged_summary_describes_all_rows():
    random = np.random.default_rng(3)
    values = random.integers(0, 3_000, 9_000)
    whole = summary(values)
    parts = summary(values[:6_000]).merged(summary(values[6_000:]))
    assert (parts.rows, parts.nulls, parts.low, parts.high) == (whole.rows, whole.nulls, whole.low, whole.high)
    assert np.array_equal(parts.hashes, whole.hashes)
    assert parts.share_below(1_500, inclusive=True) == pytest.approx(0.5, abs=0.1)
    assert len(parts.sample) <= 1_026


def test_merged_samples_keep_the_shares_of_their_rows():
    long, short = summary(["z" * 900] * 2_000), summary([f"a{number:04}" for number in range(2_000)])
    assert len(long.sample) < 100 < len(short.sample)
    for found in (long.merged(short), short.merged(long)):
        assert found.share_equal("z" * 900) == pytest.approx(0.5, abs=0.05)


def test_merging_with_an_empty_column_keeps_the_summary():
    known = summary([1, 2, 3])
    for found in (known.merged(summary([None], pa.int64())), summary([None], pa.int64()).merged(known)):
        assert (found.rows, found.nulls, found.low, found.high, found.distinct) == (4, 1, 1, 3, 3)
