from __future__ import annotations

import json
from typing import Any

import pytest

from omnigraph.types import INTEGER_RANGES, SCALARS, VECTOR_DIM_MAX, ListType, ObjectType, PropertyType, ResultType

VECTOR = PropertyType("Vector", dim=3)
ENUM = PropertyType("String", enum_values=("a", "b-c"))
EVERY_TYPE = [
    *(PropertyType(scalar) for scalar in SCALARS),
    *(PropertyType(scalar, is_list=True) for scalar in SCALARS if scalar != "Blob"),
    VECTOR,
    PropertyType("Vector", dim=VECTOR_DIM_MAX),
    ENUM,
]

SPELT = {
    "String": PropertyType("String"),
    "I32?": PropertyType("I32", nullable=True),
    "[DateTime]": PropertyType("DateTime", is_list=True),
    "[F64]?": PropertyType("F64", is_list=True, nullable=True),
    "Vector(3)": VECTOR,
    "Vector(2147483647)?": PropertyType("Vector", dim=VECTOR_DIM_MAX, nullable=True),
    "enum(a, b-c)": ENUM,
    "enum(a, b-c)?": ENUM.with_nullable(True),
    "{ a: String, b: [Vector(3)]? }": ObjectType(
        (("a", PropertyType("String")), ("b", ListType(VECTOR, nullable=True)))
    ),
    "[Person?]": ListType(ObjectType((("id", PropertyType("String")),), nullable=True, name="Person")),
}


@pytest.mark.parametrize(("text", "type_"), SPELT.items(), ids=SPELT)
def test_spelling(text: str, type_: ResultType) -> None:
    assert str(type_) == text


@pytest.mark.parametrize("type_", [t.with_nullable(n) for t in EVERY_TYPE for n in (False, True)], ids=str)
def test_json_reads_back(type_: PropertyType) -> None:
    assert PropertyType.from_json(json.loads(json.dumps(type_.to_json()))) == type_


def test_json_form() -> None:
    assert VECTOR.to_json() == {"scalar": {"Vector": 3}, "nullable": False, "list": False, "enum_values": None}
    assert ENUM.with_nullable(True).to_json() == {
        "scalar": "String",
        "nullable": True,
        "list": False,
        "enum_values": ["a", "b-c"],
    }


BAD_JSON: dict[str, dict[str, Any]] = {
    "unknown scalar": {"scalar": "I128"},
    "no scalar": {"scalar": None},
    "vector without dimension": {"scalar": "Vector"},
    "dimension 0": {"scalar": {"Vector": 0}},
    "dimension too large": {"scalar": {"Vector": 2**31}},
    "dimension not an integer": {"scalar": {"Vector": 3.0}},
    "dimension a bool": {"scalar": {"Vector": True}},
    "other object": {"scalar": {"List": 3}},
    "list of vectors": {"scalar": {"Vector": 3}, "list": True},
    "list of blobs": {"scalar": "Blob", "list": True},
    "list of enums": {"list": True, "enum_values": ["a"]},
    "enum of integers": {"scalar": "I32", "enum_values": ["a"]},
    "empty enum": {"enum_values": []},
    "unsorted enum": {"enum_values": ["b", "a"]},
    "repeated enum value": {"enum_values": ["a", "a"]},
    "enum values no list": {"enum_values": "ab"},
    "enum values no strings": {"enum_values": [1, 2]},
    "enum values mixed": {"enum_values": ["a", 1]},
}


@pytest.mark.parametrize("changes", BAD_JSON.values(), ids=BAD_JSON)
def test_bad_json_is_rejected(changes: dict[str, Any]) -> None:
    data = {"scalar": "String", "nullable": False, "list": False, "enum_values": None, **changes}
    with pytest.raises((ValueError, KeyError)):
        PropertyType.from_json(data)


@pytest.mark.parametrize("missing", ["scalar", "nullable", "list", "enum_values"])
def test_incomplete_json_is_rejected(missing: str) -> None:
    data = PropertyType("String").to_json()
    del data[missing]
    with pytest.raises(KeyError):
        PropertyType.from_json(data)


KINDS = {  # is_integer, is_float, is_numeric, is_text
    "I32": (True, False, True, False),
    "U64": (True, False, True, False),
    "F32": (False, True, True, False),
    "F64": (False, True, True, False),
    "String": (False, False, False, True),
    "Bool": (False, False, False, False),
    "Date": (False, False, False, False),
    "DateTime": (False, False, False, False),
    "Blob": (False, False, False, False),
}


@pytest.mark.parametrize(("scalar", "expected"), KINDS.items(), ids=KINDS)
def test_kinds(scalar: Any, expected: tuple[bool, ...]) -> None:
    type_ = PropertyType(scalar, nullable=True)
    assert (type_.is_integer, type_.is_float, type_.is_numeric, type_.is_text) == expected
    of_them = PropertyType(scalar, is_list=True)
    assert not any((of_them.is_integer, of_them.is_float, of_them.is_numeric, of_them.is_text))


def test_enum_is_text_and_vector_is_not_numeric() -> None:
    assert ENUM.is_text
    assert not VECTOR.is_numeric


def test_item() -> None:
    assert PropertyType("I64", nullable=True, is_list=True).item == PropertyType("I64")


def test_with_nullable() -> None:
    assert ENUM.with_nullable(False) is ENUM
    assert ENUM.with_nullable(True).with_nullable(False) == ENUM != ENUM.with_nullable(True)


def test_integer_ranges() -> None:
    for scalar, (low, high) in INTEGER_RANGES.items():
        bits = int(scalar[1:])
        assert high - low + 1 == 2**bits
        assert low == (0 if scalar[0] == "U" else -(2 ** (bits - 1)))


@pytest.mark.parametrize(
    "fields",
    [
        {"scalar": "Vector"},
        {"scalar": "I32", "dim": 3},
        {"scalar": "I32", "enum_values": ("a",)},
        {"scalar": "String", "is_list": True, "enum_values": ("a",)},
    ],
)
def test_invalid_types_are_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        PropertyType(**fields)
