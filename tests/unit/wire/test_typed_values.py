"""Typed JSON values keep the type of every stored value."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.scalar_types.written_value import WrittenValue
from omnigraph.wire.document import encoder
from omnigraph.wire.typed_values import typed_value, untyped_value

NAMES = st.text(max_size=8) | st.sampled_from(["$date", "$int", "$object", "$bytes", "$", "id"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats()
    | st.text(max_size=12)
    | st.binary(max_size=12)
    | st.dates()
    | st.datetimes(timezones=st.just(UTC) | st.none())
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)


def same(one: Any, other: Any) -> bool:
    """True if two values have the same types and are equal; NaN equals NaN, and zeros have signs."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or repr(one) == repr(other)
    return bool(one == other)


@given(VALUES)
def test_a_value_is_the_same_after_json(value: Any) -> None:
    assert same(untyped_value(msgspec.json.decode(encoder.encode(typed_value(value)))), value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": 1, "b": [True, None]}, {"a": 1, "b": [True, None]}),
        (2**53 - 1, 2**53 - 1),
        (-(2**53), {"$int": "-9007199254740992"}),
        (math.inf, {"$float": "Infinity"}),
        (math.nan, {"$float": "NaN"}),
        (date(2026, 1, 31), {"$date": "2026-01-31"}),
        (datetime(2026, 1, 31, 12, 30, tzinfo=UTC), {"$datetime": "2026-01-31T12:30:00+00:00"}),
        (b"hi", {"$bytes": "aGk="}),
        ({"$date": "no date"}, {"$object": {"$date": "no date"}}),
        ({"$date": date(2026, 1, 31)}, {"$object": {"$date": {"$date": "2026-01-31"}}}),
        ((1, b""), [1, {"$bytes": ""}]),
    ],
)
def test_the_form_of_values(value: Any, written: Any) -> None:
    assert typed_value(value) == written


@pytest.mark.parametrize("value", [{"$date": "soon"}, {"$time": "12:00"}, {"$int": 1}, {"$object": 1}, {"$bytes": "%"}])
def test_an_invalid_typed_value_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        untyped_value(value)


@pytest.mark.parametrize("text", ["29", "-1.5e3", "true", "NaN", "9" * 400])
def test_written_values_keep_their_text(text: str) -> None:
    found = untyped_value(typed_value(WrittenValue(text)))
    assert type(found) is WrittenValue
    assert found == text


@pytest.mark.parametrize("text", ["", "x", "[1]", '"a"', "null", "[" * 100_000, "9" * 401, "01", " 1", "1\n"])
def test_written_values_are_numbers_or_bools(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (messages differ)
        untyped_value({"$written": text})
