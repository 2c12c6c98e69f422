"""Codes of keys with several columns."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.engine.expr.key_codes import combine_codes, dense_codes, first_rows

INT64 = np.iinfo(np.int64)


@pytest.mark.parametrize(
    "codes",
    [
        [],
        [5],
        [3, 3, 0],
        [-1, 4, -1, 0],
        [INT64.min, INT64.max, 0],
        [INT64.min, INT64.min + 5],
        [10**12, 5, 10**12],
        [0.5, -1.5, 0.5],
    ],
)
def test_dense_codes_keep_the_order_and_have_no_gaps(codes):
    array = np.array(codes, np.float64 if any(isinstance(code, float) for code in codes) else np.int64)
    distinct = sorted(set(codes))
    found, count = dense_codes(array)
    assert found.tolist() == [distinct.index(code) for code in codes]
    assert count == len(distinct)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("high", [3, 1_000_000, 2**62])
def test_combined_codes_sort_like_tuples(seed, high):
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 200))
    columns = [random.choice(random.integers(-1, high, 6), rows) for _ in range(int(random.integers(1, 5)))]
    tuples = list(zip(*(column.tolist() for column in columns), strict=True))
    distinct = sorted(set(tuples))
    codes, count = combine_codes(columns)
    assert codes.tolist() == [distinct.index(key) for key in tuples]
    assert count == len(distinct)
    assert first_rows(codes, count).tolist() == [tuples.index(key) for key in distinct]


def test_unsigned_codes_beyond_the_signed_range():
    codes, count = dense_codes(np.array([2**64 - 1, 0, 2**63], np.uint64))
    assert (codes.tolist(), count) == ([2, 0, 1], 3)
