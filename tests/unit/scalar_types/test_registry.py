"""The registry of scalar kinds is complete and consistent."""

from __future__ import annotations

from typing import get_args

import pyarrow as pa
import pytest

from omnigraph.scalar_types.columns import (
    ARROW_TYPES,
    as_numbers,
    comparable,
    holds_values_of,
    kind_of,
    stored_array,
    stored_values,
)
from omnigraph.scalar_types.registry import KINDS, LITERAL_CALLS, LiteralCall, ScalarName
from omnigraph.spark.arrow_interop import spark_name, wire_type
from omnigraph.types import PropertyType

VALUES = {
    "String": "a", "Blob": b"a", "Bool": True, "I32": -1, "I64": 2**62, "U32": 1, "U64": 2**63, "F32": 0.5, "F64": 0.1,
    "Date": 19_000, "DateTime": 86_400_001, "Uuid": "123e4567-e89b-12d3-a456-426614174000",
}  # fmt: skip
SCALARS = [name for name in KINDS if name != "Vector"]


def test_every_name_has_an_entry():
    assert tuple(KINDS) == get_args(ScalarName)
    assert tuple(LITERAL_CALLS) == get_args(LiteralCall)
    assert set(VALUES) == set(SCALARS)


@pytest.mark.parametrize("name", SCALARS)
def test_stored_values_survive_arrow_and_json(name):
    kind, value = KINDS[name], VALUES[name]
    column = stored_array([value, None], ARROW_TYPES[name])
    assert stored_values(column) == [value, None]
    assert holds_values_of(kind, column)
    if name not in ("Blob", "U64", "I64"):  # wide integers are written as texts
        assert kind.read(kind.write(value)) == value
    if kind.from_id is not None:
        assert kind.from_id(kind.text(value)) == value


@pytest.mark.parametrize("name", SCALARS)
def test_columns_are_comparable_and_have_a_spark_type(name):
    column = stored_array([VALUES[name]], ARROW_TYPES[name])
    if name != "Blob":
        assert pa.compute.sort_indices(comparable(column)).to_pylist() == [0]
    assert spark_name(ARROW_TYPES[name]) == KINDS[name].spark
    assert wire_type(ARROW_TYPES[name]) is not None


def test_kinds_that_share_an_arrow_type_resolve_to_the_first():
    assert kind_of(pa.utf8()) is KINDS["String"]
    assert kind_of(pa.date64()) is KINDS["DateTime"]
    assert kind_of(pa.list_(pa.utf8())) is None


def test_dates_in_lists_are_numbers():
    column = pa.array([[1, 2], None], pa.list_(pa.int32())).cast(pa.list_(pa.date32()))
    assert as_numbers(column).to_pylist() == [[1, 2], None]
    assert stored_array([[1, 2], None], column.type).equals(column)


@pytest.mark.parametrize(
    ("name", "values", "valid"),
    [
        ("Uuid", [VALUES["Uuid"], None], True),
        ("Uuid", [VALUES["Uuid"].upper()], False),
        ("Uuid", [VALUES["Uuid"] + "\n"], False),
        ("Uuid", [None], True),
        ("Date", [2_932_896], True),
        ("Date", [2_932_897], False),
        ("String", ["anything"], True),
    ],
)
def test_values_outside_a_kind_are_found(name, values, valid):
    assert holds_values_of(KINDS[name], stored_array(values, ARROW_TYPES[name])) is valid


def test_types_look_up_their_kind():
    assert PropertyType("Uuid", nullable=True).kind is KINDS["Uuid"]
