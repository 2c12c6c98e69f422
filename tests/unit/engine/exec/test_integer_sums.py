"""Exact sums of integers of any size, with groups and weights."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from omnigraph.engine.exec.integer_sums import sum_of, sums_of
from omnigraph.errors import InputError

TYPES = [np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("weighted", [None, 3, 2**40])
@pytest.mark.parametrize("bits", [8, 30, 54, 64])
def test_sums_equal_python_sums(kind, weighted, bits):
    random = Random(f"{kind}{weighted}{bits}")
    scalar = "U64" if kind is np.uint64 else "I64"
    info = np.iinfo(kind)
    low, high = (0, 2**64 - 1) if scalar == "U64" else (-(2**63), 2**63 - 1)
    for count in (0, 1, 2, 40):
        drawn = [random.randrange(max(info.min, -(2**bits)), min(info.max, 2**bits) + 1) for _ in range(count)]
        drawn += [-value for value in drawn if info.min <= -value <= info.max]  # most totals are in range
        values = np.array(drawn, kind)
        groups = np.array([random.randrange(3) for _ in drawn], np.int64)
        weight = None if weighted is None else np.array([random.randrange(weighted) for _ in drawn], np.int64)
        times = [1] * len(drawn) if weight is None else weight.tolist()
        expected = [sum(v * t for v, t, g in zip(drawn, times, groups, strict=True) if g == k) for k in range(3)]
        if all(low <= total <= high for total in expected):
            assert sums_of(values, groups, weight, 3, scalar).tolist() == expected
        else:
            with pytest.raises(InputError, match="overflows"):
                sums_of(values, groups, weight, 3, scalar)
        total = sum(drawn)
        if low <= total <= high:
            assert sum_of(values, scalar) == total
        else:
            with pytest.raises(InputError, match="overflows"):
                sum_of(values, scalar)
