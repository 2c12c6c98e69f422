"""Comparisons have the same meaning as SQL, as a mask and in an oracle by mathematical value."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.expr import predicates
from omnigraph.schema.arrow import arrow_type
from omnigraph.storage.lance.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.lance.tables import Table
from omnigraph.types import PropertyType
from support.graphs import new_line

OPS = ("=", "!=", "<", "<=", ">", ">=")
POWERS = sorted({sign * (2**bits + step) for bits in (31, 32, 53, 63, 64) for step in (-1, 0, 1) for sign in (1, -1)})
WHOLE = [*POWERS, 2**54 + 2**30, 2**54 + 2**30 + 1, 0, 1, -1, 3, 10**30, -(10**30), 10**400]
FRACTIONS = [
    0.0, -0.0, 0.5, -0.5, 2.7, -2.7, 1e300, -1e300, 1e-300, 5e-324, 0.1, 1 / 3, 16777217.0, 3.4028234663852886e38,
    3.5e38, -3.5e38, 2.0**31, 2.0**53, 2.0**63, 2.0**64, -(2.0**63), 9007199254740991.0,
    math.inf, -math.inf, math.nan,
]  # fmt: skip
TEXTS = [
    "", "a", "A", "z", "é", "e\u0301", "ß", "日本", "😀", "\uffff", "o'brien", "''", '"', "`", "`x`", "\\", "%", "_",
    "a b", "a\nb", "a\tb", "a\x00b", "--", "'; drop", "NULL", "true", "1",
]  # fmt: skip
DAYS = [0, 1, -1, 19_723, 2_932_896, 2_932_897, -719_162, -719_163, 2**31 - 1, -(2**31)]
MOMENTS = [0, 1, -1, 999, 86_400_000, 1_704_164_645_678, -62_135_596_800_000, 253_402_300_800_000, 2**62, -(2**62)]


def f32(number: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def nearest(value: int | float) -> float:
    """Return the nearest 32-bit float, ties to even; infinite above the largest."""
    try:
        near = f32(float(value))
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    if math.isinf(value):
        return near
    bits = struct.unpack("<I", struct.pack("<f", near))[0]
    around = [one for one in (bits - 1, bits, bits + 1) if 0 <= one < 2**32 and one & 0x7F800000 != 0x7F800000]
    numbers = [(struct.unpack("<f", struct.pack("<I", one))[0], one % 2) for one in around]
    return float(min(numbers, key=lambda number: (abs(Fraction(number[0]) - Fraction(value)), number[1]))[0])


STORED: dict[str, list[Any]] = {
    "I32": [0, 1, -1, 2, 3, 2**31 - 1, -(2**31), None],
    "U32": [0, 1, 2, 3, 2**31, 2**32 - 1, None],
    "I64": [0, 1, -1, 3, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), None],
    "U64": [0, 1, 3, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, None],
    "F32": [
        2.0**54,
        2.0**54 + 2**31,
        0.0,
        -0.0,
        0.5,
        f32(0.1),
        f32(1 / 3),
        2.0,
        -2.0,
        f32(2.7),
        16777216.0,
        f32(3.4e38),
        -f32(3.4e38),
        None,
    ],
    "F64": [0.0, -0.0, 0.1, 1 / 3, 2.7, -2.7, 2.0**53, 2.0**63, 2.0**64, 1e300, -1e300, 5e-324, None],
    "Bool": [True, False, None],
    "String": [*TEXTS, None],
    "Date": [*DAYS, None],
    "DateTime": [*MOMENTS, None],
}
CONSTANTS: dict[str, list[Any]] = {
    **{scalar: [*WHOLE, *FRACTIONS, None] for scalar in ("I32", "U32", "I64", "U64", "F32", "F64")},
    "Bool": [True, False, None],
    "String": [*TEXTS, None],
    "Date": [*DAYS, None],
    "DateTime": [*MOMENTS, None],
}


def holds(stored: Any, op: str, value: Any, scalar: str) -> bool:
    """Return the result of a comparison by the rules of the language, for one pair of values."""
    if stored is None or value is None:
        return False
    if isinstance(value, float) and math.isnan(value):
        return op == "!="
    if scalar == "F32":
        value = nearest(value)
    if isinstance(value, float) and math.isinf(value):
        return {"=": False, "!=": True, "<": value > 0, "<=": value > 0, ">": value < 0, ">=": value < 0}[op]
    if isinstance(value, int | float) and not isinstance(value, bool):
        stored, value = Fraction(stored), Fraction(value)
    found: bool = {
        "=": stored == value,
        "!=": stored != value,
        "<": stored < value,
        "<=": stored <= value,
        ">": stored > value,
        ">=": stored >= value,
    }[op]
    return found


def stored_table(root: Any, scalar: str) -> Table:
    type_ = arrow_type(PropertyType(scalar))
    schema = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("order", type_)])
    values = STORED[scalar]
    line = new_line(root, schema=schema)
    rows = pa.table(
        {"id": [str(place) for place in range(len(values))], "order": pa.array(values, type_)}, schema=schema
    )
    line.write(TableWrite(append=rows))
    return line.table


def with_index(table: Table) -> Table:
    staged, pending = stage_indexes(table, [IndexSpec("order")])
    assert staged is not None
    assert not pending
    indexed, _ = staged.promote()
    return indexed


@pytest.mark.parametrize("scalar", STORED)
def test_sql_and_mask_agree_with_the_oracle(tmp_path, scalar):
    """The column is named `order`, an SQL keyword."""
    type_ = PropertyType(scalar, nullable=True)
    table = stored_table(tmp_path, scalar)
    column = table.read(["order"])["order"]
    for value in CONSTANTS[scalar]:
        for op in OPS:
            test = predicates.make_test("order", type_, op, value)
            expected = [holds(one, op, value, scalar) for one in STORED[scalar]]
            mask = [bool(found) for found in test.mask(column).to_pylist()]
            hits = {int(id_) for id_ in table.read(["id"], filter=test.sql())["id"].to_pylist()}
            assert mask == expected, (op, value, test)
            assert [place in hits for place in range(len(expected))] == expected, (op, value, test.sql())


@pytest.mark.parametrize("scalar", ["I32", "I64", "U64", "F32", "F64", "Bool", "String", "Date", "DateTime"])
def test_index_does_not_change_results(tmp_path, scalar):
    type_ = PropertyType(scalar, nullable=True)
    indexed = with_index(stored_table(tmp_path, scalar))
    for value in STORED[scalar]:
        for op in OPS:
            sql = predicates.make_test("order", type_, op, value).sql()
            expected = [str(place) for place, one in enumerate(STORED[scalar]) if holds(one, op, value, scalar)]
            assert sorted(indexed.read(["id"], filter=sql)["id"].to_pylist()) == sorted(expected), (op, value)


@pytest.mark.parametrize(
    ("scalar", "op", "value", "always"),
    [
        ("I32", "=", 2.7, False),
        ("I32", "!=", 2.7, True),
        ("I32", "<", 2**31, True),
        ("I32", ">=", 2**31, False),
        ("U32", ">", -1, True),
        ("U64", "<", 2**64, True),
        ("I64", "!=", 2**63, True),
        ("F64", "=", 2**53 + 1, False),
        ("F32", ">", 1e39, False),
        ("F64", "<", math.inf, True),
        ("F64", "!=", math.nan, True),
        ("I64", "=", math.nan, False),
    ],
)
def test_constant_results(scalar, op, value, always):
    test = predicates.make_test("x", PropertyType(scalar), op, value)
    assert test.always is always
    assert test.sql() == ("`x` IS NOT NULL" if always else "false")
    assert test.mask(pa.array([1, None], arrow_type(PropertyType(scalar)))).to_pylist() == [always, False]


def test_constant_between_two_integers():
    assert predicates.make_test("x", PropertyType("I32"), "<", 2.7).sql() == "`x` <= 2"
    assert predicates.make_test("x", PropertyType("I32"), ">=", -2.7).sql() == "`x` > -3"


def test_null_matches_nothing_for_every_type():
    for scalar, values in STORED.items():
        for op in OPS:
            test = predicates.make_test("x", PropertyType(scalar, nullable=True), op, None)
            assert test.sql() == "false"
            assert test.mask(pa.array(values, arrow_type(PropertyType(scalar)))).to_pylist().count(True) == 0


@pytest.mark.parametrize("op", OPS)
def test_flipping_twice_is_the_identity(op):
    assert predicates.flipped(predicates.flipped(op)) == op
    assert predicates.flipped(op) == {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("scalar", STORED)
def test_one_of_several_values(tmp_path, scalar, indexed):
    table = stored_table(tmp_path, scalar)
    table = with_index(table) if indexed else table
    values = [value for value in STORED[scalar] if value is not None]
    for wanted in (values, values[::2], values[1::2], values[:1], values[-1:]):
        among = predicates.sql_in("order", pa.array(wanted, table.schema.field("order").type))
        hits = {int(id_) for id_ in table.read(["id"], filter=among)["id"].to_pylist()}
        assert hits == {place for place, value in enumerate(values) if value in wanted}, among
