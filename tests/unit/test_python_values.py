"""Values of built-in Python types are accepted for matching property types, and output values are accepted as input."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest

from omnigraph.errors import ValueFormatError
from omnigraph.query.params import bind_params
from omnigraph.query.plan.ir import ParamDecl
from omnigraph.types import PropertyType
from omnigraph.values import read_json
from support.writes import new_graph, node

pd = pytest.importorskip("pandas")


class Mood(enum.Enum):
    GOOD = "good"


class Level(enum.IntEnum):
    HIGH = 3


class Word(str):
    pass


ID = uuid.UUID(int=7)
CET = dt.timezone(dt.timedelta(hours=1))
FITTING: list[tuple[Any, PropertyType, Any]] = [
    (dt.date(1970, 1, 3), PropertyType("Date"), 2),
    (dt.date(1970, 1, 3), PropertyType("DateTime"), 2 * 86_400_000),
    (dt.datetime(1970, 1, 1, 0, 0, 1, 5000), PropertyType("DateTime"), 1005),
    (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=CET), PropertyType("DateTime"), 1000 - 3_600_000),
    (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=CET), PropertyType("Date"), -1),
    (np.datetime64("1970-01-02T00:00:00.001", "ns"), PropertyType("DateTime"), 86_400_001),
    (np.datetime64("1970-01-02"), PropertyType("Date"), 1),
    (np.datetime64("NaT"), PropertyType("Date", nullable=True), None),
    (pd.Timestamp("1970-01-02T00:00:00.001Z"), PropertyType("DateTime"), 86_400_001),
    (pd.NaT, PropertyType("DateTime", nullable=True), None),
    (pd.NA, PropertyType("I64", nullable=True), None),
    (np.int8(3), PropertyType("I64"), 3),
    (np.uint64(2**64 - 1), PropertyType("U64"), 2**64 - 1),
    (np.float32(0.5), PropertyType("F64"), 0.5),
    (np.bool_(True), PropertyType("Bool"), True),
    (np.str_("a"), PropertyType("String"), "a"),
    (np.array([1, 2]), PropertyType("I64", is_list=True), [1, 2]),
    (np.array([1, 2], np.float32), PropertyType("Vector", dim=2), [1.0, 2.0]),
    ((1.0, 2.0), PropertyType("Vector", dim=2), [1.0, 2.0]),
    ((dt.date(1970, 1, 2),), PropertyType("Date", is_list=True), [1]),
    (Decimal("7.0"), PropertyType("I32"), 7),
    (Decimal("0.5"), PropertyType("F64"), 0.5),
    (Mood.GOOD, PropertyType("String"), "good"),
    (Level.HIGH, PropertyType("I32"), 3),
    (Word("w"), PropertyType("String"), "w"),
    (ID, PropertyType("String"), str(ID)),
    (PurePosixPath("a/b"), PropertyType("String"), "a/b"),
    (bytearray(b"x"), PropertyType("Blob"), b"x"),
    (b"x", PropertyType("Blob"), b"x"),
]


@pytest.mark.parametrize(("value", "type_", "stored"), FITTING, ids=lambda value: str(value)[:30])
def test_matching_python_value_is_accepted(value, type_, stored):
    found = read_json(value, type_)
    assert (found, type(found)) == (stored, type(stored))
    if type_.scalar != "Blob":
        assert bind_params([ParamDecl("p", type_)], {"p": value}) == {"p": stored}


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (dt.date(1970, 1, 3), PropertyType("String")),
        (dt.time(1), PropertyType("DateTime")),
        (Decimal("7.5"), PropertyType("I32")),
        (Decimal("NaN"), PropertyType("F64")),
        (np.float64("nan"), PropertyType("F64")),
        (np.float64(3.0), PropertyType("I32")),
        (np.bool_(True), PropertyType("I32")),
        (np.array(["a"]), PropertyType("String")),
        (ID, PropertyType("I64")),
        (b"x", PropertyType("String")),
        (pd.NA, PropertyType("I64")),
        ({1}, PropertyType("I64", is_list=True)),
        (Ellipsis, PropertyType("String")),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mismatching_python_value_is_rejected(value, type_):
    with pytest.raises(ValueFormatError):
        read_json(value, type_)


def test_output_values_are_accepted_as_input(tmp_path):
    schema = "node T { k: String @key d: Date? at: DateTime? days: [Date]? f: F32? v: Vector(2)? }\n"
    records = [
        node("T", k="a", d=dt.date(2024, 1, 1), at=dt.datetime(2024, 1, 1, 3, tzinfo=CET), days=[dt.date(1999, 1, 1)]),
        node("T", k="b", f=np.float32(0.1), v=np.array([1, 2])),
    ]
    graph = new_graph(tmp_path, schema, *records)
    before = list(graph.export())
    returned = ", ".join(f"$t.{name} as {name}" for name in ("k", "d", "at", "days", "f", "v"))
    text = f"query q() {{ match {{ $t: T }} return {{ {returned} }} }}"
    rows = graph.query(text).to_pylist()
    frame = graph.query(text).to_pandas()
    graph.load([node("T", **row) for row in rows], mode="merge")
    assert list(graph.export()) == before
    graph.load({"T": frame}, mode="merge")
    assert list(graph.export()) == before
    insert = "query q($k: String, $d: Date, $at: DateTime) { insert T { k: $k, d: $d, at: $at } }"
    graph.mutate(insert, params={"k": "c", "d": rows[0]["d"], "at": pd.Timestamp(rows[0]["at"])})
    first, last = (record["data"] for record in list(graph.export())[::2])
    assert (first["d"], first["at"]) == (last["d"], last["at"])
