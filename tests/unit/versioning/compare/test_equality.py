"""Equality is typed, and the same for whole columns and for single values."""

from __future__ import annotations

import math
from datetime import date

import pyarrow as pa
import pytest

from omnigraph.versioning.compare.equality import differing, same_column, same_row, same_rows, same_value

NAN = math.nan
CASES = {
    "text": (pa.utf8(), ["", None, "a", "ä"]),
    "integers": (pa.int64(), [0, None, 1, -1]),
    "bools": (pa.bool_(), [False, None, True]),
    "floats": (pa.float64(), [0.0, -0.0, None, NAN, 1.5, math.inf, -math.inf]),
    "single floats": (pa.float32(), [0.0, -0.0, None, NAN, 1.5]),
    "dates": (pa.date32(), [date(1970, 1, 1), None, date(2024, 2, 29)]),
    "bytes": (pa.large_binary(), [b"", None, b"\0", b"a"]),
    "lists": (pa.list_(pa.utf8()), [[], None, [None], [""], ["a"], ["a", "b"], ["b", "a"]]),
    "lists of floats": (pa.list_(pa.float64()), [[], None, [0.0], [-0.0], [NAN], [1.0, None], [None, 1.0]]),
    "vectors": (pa.list_(pa.float32(), 2), [None, [0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_value_equals_itself_and_nothing_else(name):
    type_, values = CASES[name]
    pairs = [(x, y) for x in range(len(values)) for y in range(len(values))]
    left = pa.array([values[x] for x, _ in pairs], type_)
    right = pa.array([values[y] for _, y in pairs], type_)
    expected = [x == y for x, y in pairs]
    assert same_column(left, right).tolist() == expected
    assert [same_value(values[x], values[y]) for x, y in pairs] == expected
    # The same for slices of larger columns, whose buffers have an offset.
    assert same_column(left.slice(3, 5), right.slice(3, 5)).tolist() == expected[3:8]


def test_a_column_only_one_side_has_must_be_null_there():
    a = pa.table({"id": ["x", "y"], "old": [1, None]})
    b = pa.table({"id": ["x", "y"], "new": pa.array([None, None], pa.int64())})
    assert same_rows(a, b).tolist() == [False, True]
    assert same_rows(b, a).tolist() == [False, True]
    assert differing({"id": "x", "old": 1}, {"id": "x", "new": None}) == ["old"]


def test_a_missing_row_equals_only_a_missing_row():
    assert same_row(None, None)
    assert not same_row(None, {})
    assert not same_row({"a": None}, None)
    assert same_row({"a": None}, {})


def test_columns_of_different_types_are_compared_by_value():
    assert same_column(pa.array([1, 2, None]), pa.array([1.0, 3.0, None])).tolist() == [True, False, True]
