"""Conversion of whole columns and of single values follows the same rules: those of `values.read_json`."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.ingest import json_columns
from omnigraph.engine.ingest.json_columns import build_column
from omnigraph.errors import ValueFormatError
from omnigraph.schema.arrow import arrow_type
from omnigraph.types import PropertyType
from omnigraph.values import managed_blob, read_json

WORDS = (
    "", "a", "Ä", "日本", "😀", "a\nb", "x" * 300, "2024-02-29", "base64:AA==", "base64:!",
    "s3://b/k", "\ud800", "a\udfff",
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64,
    -(2**63), -(2**63) - 1, 2**54 + 2**30, 2**54 + 2**30 + 1, 10**400, 0.0, -0.0, 1.5, 3.0, 0.1, 1e38,
    3.4028235677973362e38, 3.4028235677973366e38, 1e39, 1e308, 1e-50, 5e-324, math.inf, -math.inf, math.nan,
)  # fmt: skip
DATES = (
    "2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31", "2024-01-02T03:04:05.678Z", "2024-01-02 03:04",
    "2023-02-29", "2024-1-2", "20240102", "2024-01-02T25:00", "2024-01-02T03:04:05+02:00", "2024-01-02T00:30:00+05:00",
)  # fmt: skip
ODD = (None, True, False, [], {}, [1], ["a"], [None], [1, None], [[1]], {"a": 1}, object(), b"x", (1, 2))

TYPES = {
    str(type_): type_
    for type_ in [
        *(
            PropertyType(scalar, nullable=True)
            for scalar in ("String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64")
        ),
        *(PropertyType(scalar, nullable=True) for scalar in ("Date", "DateTime", "Blob")),
        PropertyType("Vector", nullable=True, dim=2),
        PropertyType("Vector", dim=3),
        PropertyType("String", nullable=True, enum_values=("a", "b")),
        PropertyType("I32"),
        *(
            PropertyType(s, nullable=True, is_list=True)
            for s in ("String", "Bool", "I32", "U64", "F32", "F64", "Date", "DateTime")
        ),
    ]
}


def any_value(random: Random, depth: int = 0) -> Any:
    kind = random.randrange(5 if depth else 7)
    if kind == 0:
        return random.choice(WORDS)
    if kind == 1:
        return random.choice(NUMBERS)
    if kind == 2:
        return random.choice(DATES)
    if kind == 3:
        return random.choice(ODD)
    if kind == 4:
        return random.choice((True, random.randint(-5, 300), random.random()))
    return [any_value(random, 1) for _ in range(random.randrange(4))]


def read(value: Any, type_: PropertyType) -> tuple[Any, str | None]:
    """Return the stored form or the error; a null is kept."""
    try:
        if value is None:
            return None, None
        found = read_json(value, type_)
        return (managed_blob(found) if type_.scalar == "Blob" else found), None
    except ValueFormatError as error:
        return None, error.message


def stored(column: pa.Array, type_: PropertyType) -> list[Any]:
    """Return the values of a column in stored form, dates as numbers."""
    if type_.scalar in ("Date", "DateTime"):
        number = pa.int32() if type_.scalar == "Date" else pa.int64()
        column = column.cast(pa.list_(number) if type_.is_list else number)
    return list(column.to_pylist())


def build(values: list[Any], type_: PropertyType) -> tuple[pa.Array, dict[int, str]]:
    bad: dict[int, str] = {}
    column = build_column(values, type_, lambda position, error: bad.__setitem__(position, error.message))
    # Arrow considers a time of day in a date64 invalid; DateTime values have one.
    column.validate(full=type_.scalar != "DateTime")
    assert column.type == arrow_type(type_)
    return column, bad


@pytest.mark.parametrize("name", TYPES)
def test_a_column_with_bad_values_is_converted_value_by_value(name):
    type_ = TYPES[name]
    random = Random(name)
    for _ in range(150):
        values = [any_value(random) for _ in range(random.randrange(6))]
        column, bad = build(values, type_)
        expected = [read(value, type_) for value in values]
        assert bad == {place: why for place, (_, why) in enumerate(expected) if why is not None}, values
        assert repr(stored(column, type_)) == repr([value for value, _ in expected]), values


def parts(value: Any, type_: PropertyType) -> list[tuple[Any, PropertyType]]:
    if value is None:
        return []
    return [(item, type_) for item in value] if isinstance(value, list) else [(value, type_)]


def is_common(part: tuple[Any, PropertyType]) -> bool:
    """Return True unless the column has dates given as numbers or integers too wide for a float."""
    value, type_ = part
    if type_.scalar in ("Date", "DateTime"):
        return isinstance(value, str)
    return type_.scalar not in ("F32", "Vector") or not isinstance(value, int) or value.bit_length() <= 53


@pytest.mark.parametrize("name", TYPES)
def test_both_conversions_give_the_same_column(name):
    """Valid values only: the whole-column conversion must be used and must equal the conversion of single values."""
    type_ = TYPES[name]
    random = Random(name)
    good = [value for value in (any_value(random) for _ in range(20_000)) if read(value, type_)[1] is None]
    good = [value for value in good if not isinstance(value, tuple) and all(map(is_common, parts(value, type_)))]
    assert len(good) > 50
    for size in (0, 1, 2, len(good)):
        values = random.sample(good, size)
        whole = json_columns._convert_column(values, type_)
        slow = json_columns._convert_values(values, type_, lambda position, error: pytest.fail(f"{position}: {error}"))
        if type_.scalar != "Blob":
            assert whole is not None
            assert repr(whole.to_pylist() if "Date" not in name else stored(whole, type_)) == repr(
                slow.to_pylist() if "Date" not in name else stored(slow, type_)
            )
        assert build(values, type_)[1] == {}


def test_a_null_in_a_required_column_is_kept():
    column, bad = build([1, None], PropertyType("I32"))
    assert column.to_pylist() == [1, None]
    assert bad == {}


@pytest.mark.parametrize(
    ("type_", "value", "reason"),
    [
        (PropertyType("I32"), 2**31, "2147483648 exceeds Int32 range (-2147483648 to 2147483647)"),
        (PropertyType("U64"), 2**64, "18446744073709551616 exceeds UInt64 range (0 to 18446744073709551615)"),
        (PropertyType("U32"), -1, "-1 exceeds UInt32 range (0 to 4294967295)"),
        (PropertyType("I32"), 3.0, "expected I32, found the number 3.0"),
        (PropertyType("I32"), True, "expected I32, found true"),
        (PropertyType("I64"), "7", "expected I64, found the string '7'"),
        (PropertyType("Bool"), 1, "expected Bool, found the integer 1"),
        (PropertyType("F32"), 1e39, "1e+39 exceeds Float32 range"),
        (PropertyType("F64"), "1", "expected F64, found the string '1'"),
        (PropertyType("String"), 5, "expected String, found the integer 5"),
        (PropertyType("String"), "\ud800", "text contains an unpaired surrogate and is not valid Unicode"),
        (PropertyType("Vector", dim=3), [1, 2], "expected 3 dimensions, got 2"),
        (PropertyType("Vector", dim=2), [1, "x"], "vector elements must be numeric, found the string 'x'"),
        (PropertyType("Vector", dim=2), [1, None], "vector elements must be numeric, found null"),
        (PropertyType("Vector", dim=2), [1, True], "vector elements must be numeric, found true"),
        (PropertyType("I32", is_list=True), [1, None], "a list may not hold null"),
        (PropertyType("I32", is_list=True), 1, "expected [I32], found the integer 1"),
        (PropertyType("I32", is_list=True), [1, "x"], "expected I32, found the string 'x'"),
        (PropertyType("Date"), "2023-02-29", "'2023-02-29' is not a date of the calendar"),
        (PropertyType("Blob"), "base64:!", "invalid base64 data: Only base64 data is allowed"),
        (PropertyType("Blob"), 5, "expected Blob, found the integer 5"),
    ],
)  # fmt: skip
def test_the_error_names_the_bad_value(type_, value, reason):
    good = {
        "I32": 1,
        "Vector": [1.0] * (type_.dim or 0),
        "Date": "2024-01-01",
        "Blob": "base64:",
        "String": "x",
        "Bool": True,
    }
    other: Any = good.get(type_.scalar, 1)
    if type_.is_list:
        other = [other]
    column, bad = build([other, value, other], type_)
    assert bad == {1: reason}
    assert column.is_null().to_pylist() == [False, True, False]


def test_empty_is_not_null():
    assert build([[], None], PropertyType("I32", nullable=True, is_list=True))[0].to_pylist() == [[], None]
    assert build(["base64:", None], PropertyType("Blob", nullable=True))[0].to_pylist() == [b"", None]
    assert build(["", None], PropertyType("String", nullable=True))[0].to_pylist() == ["", None]


def test_f32_is_rounded_to_nearest():
    column, bad = build([0.1, 16777217, 3.4028235677973362e38, None], PropertyType("F32", nullable=True))
    assert column.to_pylist() == [0.10000000149011612, 16777216.0, 3.4028234663852886e38, None]
    assert bad == {}


def test_a_wide_integer_is_rounded_once():
    """Rounded to 64 bits first, the second value would be a tie and be rounded down to even."""
    values = [2**54 + 2**30, 2**54 + 2**30 + 1, -(2**54) - 2**30 - 1, 2**54, 2**63]
    column, bad = build(values, PropertyType("F32"))
    lists, also_bad = build([values], PropertyType("F32", is_list=True))
    assert column.to_pylist() == [2.0**54, 2.0**54 + 2**31, -(2.0**54) - 2**31, 2.0**54, 2.0**63]
    assert lists.to_pylist() == [column.to_pylist()]
    assert bad == also_bad == {}
