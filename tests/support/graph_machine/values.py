"""Valid and invalid values of every property type."""

from __future__ import annotations

import base64
from datetime import UTC, date, datetime
from random import Random
from typing import Any

import pyarrow as pa

from support.graph_model import (
    Prop,
    f32,
)


def days(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def base64_of(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


# (JSON form, stored form)
VALUES: dict[str, list[tuple[Any, Any]]] = {
    "String": [(text, text) for text in ("a", "b", "a@b", "it's @", "é@", "Z", "`", "x\ny")],
    "Bool": [(True, True), (False, False)],
    "I32": [(n, n) for n in (0, 1, 2, 7, 10, 120, -1, 2**31 - 1)],
    "I64": [(n, n) for n in (0, 1, 2, 7, -5, 2**53 + 1, -(2**63))],
    "U32": [(n, n) for n in (0, 1, 7, 2**32 - 1)],
    "U64": [(n, n) for n in (0, 1, 2**53 + 1, 2**64 - 1)],
    "F32": [(0.1, f32(0.1)), (1, 1.0), (-2.5, -2.5), (16777217, 16777216.0)],
    "F64": [(0.1, 0.1), (1, 1.0), (-1.5, -1.5), (0.0, 0.0), (-0.0, -0.0), (1e300, 1e300), (2**53 + 1, 2.0**53)],
    "Date": [("2024-02-29", days("2024-02-29")), (0, 0), ("1969-12-31", -1), ("1970-01-02T23:00:00-02:00", 2)],
    "DateTime": [
        ("2024-02-29T12:30:15.25Z", milliseconds("2024-02-29T12:30:15.250+00:00")),
        (1500, 1500),
        ("1970-01-01 01:00+02:00", -3_600_000),
        ("1969-12-31", -86_400_000),
    ],
    "Blob": [(base64_of(data), base64_of(data)) for data in (b"", b"\x00\xff", b"text")],
    "[I64]": [([], []), ([1, 2], [1, 2]), ([2**62], [2**62])],
    "Vector(2)": [([0.5, 1], [0.5, 1.0]), ([0, 0.1], [0.0, f32(0.1)])],
}


# (value, words of the message)
WRONG: dict[str, list[tuple[Any, str]]] = {
    "String": [(3, ""), (["a"], "")],
    "Bool": [(1, ""), ("true", "")],
    "I32": [(2**31, "exceeds Int32 range"), (1.5, ""), ("1", ""), (True, "")],
    "I64": [(2**63, "exceeds Int64 range"), (3.0, "")],
    "U32": [(-1, ""), (2**32, "exceeds UInt32 range")],
    "U64": [(-1, ""), (2**64, "exceeds UInt64 range")],
    "F32": [(1e39, ""), ("1", ""), (True, "")],
    "F64": [("0.5", ""), (10**400, ""), (False, "")],
    "Date": [("2024-13-01", ""), (1.5, ""), ("soon", ""), (2**31, "")],
    "DateTime": [("2024-02-29T25:00", ""), (True, ""), ("", "")],
    "Blob": [("base64:*", ""), ("https://example.org/x", ""), (1, "")],
    "[I64]": [([1, "x"], ""), ([None], ""), (3, ""), ([1.5], "")],
    "Vector(2)": [([1], "2 dimensions, got 1"), ([1, "x"], "elements must be numeric"), ([1, None], ""), (0.5, "")],
    "enum": [(3, ""), (["a"], "")],
}


ARROW: dict[str, pa.DataType] = {
    "String": pa.utf8(),
    "enum": pa.utf8(),
    "Bool": pa.bool_(),
    "I32": pa.int32(),
    "I64": pa.int64(),
    "U32": pa.uint32(),
    "U64": pa.uint64(),
    "F32": pa.float32(),
    "F64": pa.float64(),
    "Date": pa.date32(),
    "DateTime": pa.timestamp("ms", "UTC"),
    "Blob": pa.large_binary(),
    "[I64]": pa.list_(pa.int64()),
    "Vector(2)": pa.list_(pa.float32(), 2),
}


INTEGERS = ("I32", "I64", "U32", "U64")


NUMBERS = (*INTEGERS, "F32", "F64")


COMPARABLE = (*NUMBERS, "String", "enum", "Bool", "Date", "DateTime")


def sample(random: Random, prop: Prop) -> tuple[Any, Any]:
    """A value of a property as (JSON, stored); rarely a value outside its enum."""
    if prop.type == "enum":
        value = random.choice(prop.values) if random.random() < 0.95 else "odd"
        return value, value
    return random.choice(VALUES[prop.type])


def sample_or_null(random: Random, prop: Prop) -> tuple[Any, Any]:
    return (None, None) if prop.nullable and random.random() < 0.3 else sample(random, prop)


def stored_value(prop: Prop, given: Any) -> Any:
    """A sample in Arrow form."""
    if given is None or prop.type == "enum":
        return given
    for candidate, stored in VALUES[prop.type]:
        if repr(candidate) == repr(given):
            given = stored
            break
    if prop.type == "Date":
        return date.fromordinal(date(1970, 1, 1).toordinal() + given)
    return base64.b64decode(given.removeprefix("base64:")) if prop.type == "Blob" else given


def as_given(prop: Prop, stored: Any) -> Any:
    """A stored value as a parameter."""
    if stored is None:
        return None
    if prop.type == "Date":
        return date.fromordinal(date(1970, 1, 1).toordinal() + stored).isoformat()
    if prop.type == "DateTime":
        return datetime.fromtimestamp(stored / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return stored
