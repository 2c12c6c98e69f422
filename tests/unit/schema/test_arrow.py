from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.schema.arrow import arrow_type, table_schema
from omnigraph.schema.check import compile_schema
from omnigraph.types import SCALARS, ListType, ObjectType, PropertyType
from omnigraph.values import read_json
from support import everything

SCALAR_TYPES = {
    "String": pa.utf8(),
    "Blob": pa.large_binary(),
    "Bool": pa.bool_(),
    "I32": pa.int32(),
    "I64": pa.int64(),
    "U32": pa.uint32(),
    "U64": pa.uint64(),
    "F32": pa.float32(),
    "F64": pa.float64(),
    "Date": pa.date32(),
    "DateTime": pa.date64(),
    "Uuid": pa.utf8(),
}


@pytest.mark.parametrize("scalar", SCALARS)
def test_scalars_and_their_lists(scalar: Any) -> None:
    expected = SCALAR_TYPES[scalar]
    assert arrow_type(PropertyType(scalar)) == expected
    assert arrow_type(PropertyType(scalar, nullable=True)) == expected
    if scalar != "Blob":
        of_them = arrow_type(PropertyType(scalar, is_list=True))
        assert of_them == pa.list_(pa.field("item", expected, nullable=True))
        assert of_them.value_field.name == "item"
        assert of_them.value_field.nullable


def test_vectors_and_enums() -> None:
    vector = arrow_type(PropertyType("Vector", dim=3))
    assert vector == pa.list_(pa.field("item", pa.float32(), nullable=True), 3)
    assert vector.list_size == 3
    assert arrow_type(PropertyType("Vector", dim=2**31 - 1)).list_size == 2**31 - 1
    assert arrow_type(PropertyType("String", enum_values=("a",))) == pa.utf8()


def test_object_and_list_types() -> None:
    pair = ObjectType((("at", PropertyType("DateTime")), ("n", PropertyType("I64", nullable=True))))
    struct = pa.struct([pa.field("at", pa.date64()), pa.field("n", pa.int64())])
    assert arrow_type(pair) == struct
    assert arrow_type(ListType(pair, nullable=True)) == pa.list_(pa.field("item", struct))
    assert arrow_type(ListType(ListType(PropertyType("Bool")))) == pa.list_(pa.list_(pa.bool_()))


def test_system_columns_precede_properties_sorted_by_name() -> None:
    catalog = compile_schema("""
        interface Named { name: String }
        node A implements Named { z: I32 a: [F32]? v: Vector(2) _x: Bool? e: enum(q, p) }
        edge E: A -> A { since: Date? b: Blob }
    """)
    assert table_schema(catalog.nodes["A"]) == pa.schema(
        [
            pa.field("id", pa.utf8(), nullable=False),
            pa.field("_x", pa.bool_(), nullable=True),
            pa.field("a", pa.list_(pa.field("item", pa.float32(), nullable=True)), nullable=True),
            pa.field("e", pa.utf8(), nullable=False),
            pa.field("name", pa.utf8(), nullable=False),
            pa.field("v", pa.list_(pa.field("item", pa.float32(), nullable=True), 2), nullable=False),
            pa.field("z", pa.int32(), nullable=False),
        ]
    )
    assert table_schema(catalog.edges["E"]) == pa.schema(
        [
            pa.field("id", pa.utf8(), nullable=False),
            pa.field("src", pa.utf8(), nullable=False),
            pa.field("dst", pa.utf8(), nullable=False),
            pa.field("b", pa.large_binary(), nullable=False),
            pa.field("since", pa.date32(), nullable=True),
        ]
    )


def test_every_table_has_a_schema() -> None:
    for type_ in compile_schema(everything.SCHEMA).tables():
        assert table_schema(type_).names[0] == "id"


VALUES: list[tuple[PropertyType, Any]] = [
    (PropertyType("String"), "é"),
    (PropertyType("Blob"), "base64:AAE="),
    (PropertyType("Bool"), True),
    (PropertyType("I32"), -(2**31)),
    (PropertyType("I64"), -(2**63)),
    (PropertyType("U32"), 2**32 - 1),
    (PropertyType("U64"), 2**64 - 1),
    (PropertyType("F32"), 0.1),
    (PropertyType("F64"), 0.1),
    (PropertyType("Date"), -719_162),
    (PropertyType("Date"), "2024-02-29"),
    (PropertyType("Vector", dim=2), [0.1, 1]),
    (PropertyType("I32", is_list=True), [1, 2]),
    (PropertyType("Date", is_list=True), ["2024-02-29"]),
]


@pytest.mark.parametrize(("type_", "value"), VALUES, ids=[f"{t} {v}" for t, v in VALUES])
def test_stored_values_fit_their_column(type_: PropertyType, value: Any) -> None:
    stored = read_json(value, type_)
    array = pa.array([stored, None], arrow_type(type_))
    as_numbers = {"Date": pa.int32()}.get(type_.scalar)
    if as_numbers is not None and not type_.is_list:
        array = array.cast(as_numbers)
    if type_.is_list and type_.scalar == "Date":
        array = pa.array([stored], pa.list_(pa.int32()))
    assert array[0].as_py() == stored


def test_datetimes_keep_their_milliseconds() -> None:
    stored = read_json("2024-02-29T01:02:03.004Z", PropertyType("DateTime"))
    column = pa.array([stored], pa.int64()).cast(pa.date64(), safe=False)
    assert column.cast(pa.int64())[0].as_py() == stored


def test_compiling_does_not_load_pyarrow() -> None:
    code = (
        "import sys; from omnigraph.schema.check import compile_schema; from omnigraph.query.lint import lint\n"
        "c = compile_schema('node A { a: String @key }')\n"
        "lint(c, 'query q() { match { $a: A } return { $a.a } }', query_path='q', schema_source={})\n"
        "sys.exit('pyarrow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
