"""Ids of rows: from keys, from records, or generated."""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.ingest.record_reader import read_dicts
from omnigraph.engine.ingest.records import Faults
from omnigraph.engine.ingest.row_builder import build_rows
from omnigraph.errors import RecordError
from omnigraph.schema.check import compile_schema
from support.writes import called

KEYED = """
node S { k: String @key }
node U { k: U32 @key }
node I { k: I64 @key }
node F { k: F32 @key }
node G { k: F64 @key }
node B { k: Bool @key }
node D { k: Date @key }
node M { k: DateTime @key }
node E { k: enum(a, b) @key }
node C { a: Date  b: String  c: F64 @key(c, b, a) }
node N { v: I32? }
edge L: N -> N
"""
KEYS = compile_schema(KEYED)


def ids(*rows: dict[str, Any], type_name: str) -> list[str]:
    kind = "edge" if type_name == "L" else "type"
    ends = {"from": "a", "to": "b"} if kind == "edge" else {}
    (part,) = read_dicts([{kind: type_name, **ends, "data": row} for row in rows], KEYS, Faults()).values()
    made = (f"made{number}" for number in count())
    found: list[str] = (
        build_rows([part], Faults(), lambda many: pa.array([next(made) for _ in range(many)], pa.utf8()))
        .table["id"]
        .to_pylist()
    )
    return found


@pytest.mark.parametrize(
    ("type_name", "value", "id_"),
    [
        ("S", "Ä b", "Ä b"),
        ("S", "", ""),
        ("U", 42, "42"),
        ("I", -(2**63), "-9223372036854775808"),
        ("F", 0.1, "0.1"),
        ("F", 16777217, "16777216"),
        ("G", 0.1, "0.1"),
        ("G", 3, "3"),
        ("G", -0.0, "0"),
        ("G", 1e21, "1000000000000000000000"),
        ("B", True, "true"),
        ("D", "2024-01-01", "19723"),
        ("M", "2024-01-01T00:00:00.001Z", "1704067200001"),
        ("E", "a", "a"),
    ],
)
def test_a_key_becomes_the_id(type_name, value, id_):
    assert ids({"k": value}, {"k": value, "id": id_}, type_name=type_name) == [id_, id_]


def test_a_composite_key_is_an_array_in_the_order_of_names():
    assert ids({"a": "1970-01-02", "b": 'x"é', "c": 1.5}, type_name="C") == ['["1","x\\"é","1.5"]']


def test_without_a_key_the_id_is_given_or_generated():
    assert ids({}, {"id": "mine"}, {"id": None}, {"v": 1}, type_name="N") == ["made0", "mine", "made1", "made2"]
    assert ids({}, {"id": "mine"}, type_name="L") == ["made0", "mine"]


@pytest.mark.parametrize(
    ("type_name", "value", "old"),
    [
        ("U", 42, "00042"),
        ("U", 42, "+42"),
        ("I", 0, "-0"),
        ("I", -7, "-007"),
        ("F", 0.1, "0.10"),
        ("F", 0.5, "5e-1"),
        ("G", 3.0, "3.0"),
        ("G", 1e21, "1e21"),
        ("D", 19_723, "2024-01-01"),
        ("D", 19_723, "2024-01-01T10:00:00Z"),
        ("M", 1_704_067_200_000, "2024-01-01"),
        ("M", 1_704_067_200_000, "2024-01-01T02:00:00+02:00"),
    ],
)
def test_an_alternative_form_of_a_key_is_an_alias(type_name, value, old):
    (part,) = read_dicts([{"type": type_name, "data": {"k": value, "id": old}}], KEYS, Faults()).values()
    rows = build_rows([part], Faults(), called("id"))
    assert rows.aliases == {old: ids({"k": value}, type_name=type_name)[0]}


@pytest.mark.parametrize("old", ["7", "x", "1970-01-02"])
def test_an_alternative_form_of_one_column_of_a_composite_key(old):
    row = {"a": 1, "b": "x", "c": 7.0, "id": old}
    (part,) = read_dicts([{"type": "C", "data": row}], KEYS, Faults()).values()
    assert build_rows([part], Faults(), called("id")).aliases == {old: '["1","x","7"]'}


@pytest.mark.parametrize(
    ("type_name", "value", "id_"),
    [
        ("U", 42, "43"),
        ("U", 42, "42.0"),
        ("U", 42, " 42"),
        ("U", 42, "4_2"),
        ("U", 42, "٤٢"),
        ("U", 42, "--42"),
        ("U", 42, ""),
        ("G", 1000.0, "1_000"),
        ("G", 1.0, " 1.0"),
        ("G", 1.0, "one"),
        ("G", 1.0, "1e999999"),
        ("F", 0.1, "0.2"),
        ("D", 19_723, "2024-01-02"),
        ("D", 19_723, "yesterday"),
        ("B", True, "True"),
        ("B", True, "1"),
        ("S", "x", "X"),
        ("E", "a", "A"),
    ],
)
def test_an_id_that_differs_from_the_key_is_refused(type_name, value, id_):
    with pytest.raises(RecordError, match=f"^line 1: the id '.*' of {type_name} differs from its key '.*'$"):
        ids({"k": value, "id": id_}, type_name=type_name)


def test_one_alias_for_two_keys_is_refused():
    with pytest.raises(RecordError) as caught:
        ids({"a": 1, "b": "x", "c": 7.0, "id": "x"}, {"a": 2, "b": "x", "c": 7.0, "id": "x"}, type_name="C")
    assert caught.value.line == 2
    assert caught.value.reason == """the id 'x' of C stands for two keys, '["1","x","7"]' and '["2","x","7"]'"""
