"""The property type Uuid, from input to results."""

from __future__ import annotations

import json
from uuid import UUID

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import ConstraintViolation, ParameterError, ParseError, RecordError, TypeCheckError
from omnigraph.graph import Graph

SCHEMA = """
node Device { uid: Uuid @key  serial: Uuid? @unique  batch: Uuid? @index  parts: [Uuid]?  name: String? }
edge Link: Device -> Device { via: Uuid? }
"""
ONE, TWO, THREE = (UUID(int=number * 0x1111_2222_3333_4444_ABCD) for number in (1, 2, 3))


def device(uid, **data):
    return {"type": "Device", "data": {"uid": uid, **data}}


@pytest.fixture
def graph(tmp_path) -> Graph:
    graph = og.init(tmp_path / "g", SCHEMA, environ={})
    graph.load(
        [
            device(THREE, name="three", batch=ONE, parts=[str(ONE).upper(), TWO]),
            device(str(ONE).upper(), name="one", serial=str(THREE)),
            device(str(TWO), name="two", batch=str(TWO)),
            {"edge": "Link", "from": ONE, "to": str(TWO), "data": {"via": THREE}},
        ],
        mode="merge",
    )
    return graph


def names(graph, condition, params=None):
    rows = graph.query(f"match {{ $d: Device {condition} }} return {{ $d.name as name }} order {{ $d.uid }}", params)
    return [row["name"] for row in rows]


def test_rows_contain_lower_case_text_equal_to_the_id(graph):
    (row,) = graph.query('match { $d: Device { name: "one" } } return { $d.uid as uid, id($d) as id, $d.serial as s }')
    assert row == {"uid": str(ONE), "id": str(ONE), "s": str(THREE)}
    (row,) = graph.query('match { $d: Device { name: "three" } } return { $d.parts as parts }')
    assert row["parts"] == [str(ONE), str(TWO)]


@pytest.mark.parametrize("form", [UUID, str, lambda text: text.upper()], ids=["object", "text", "upper-case"])
def test_parameters_accept_objects_and_text(graph, form):
    assert names(graph, "$d.uid = $u", {"u": form(str(TWO))}) == ["two"]
    text = "query q($u: Uuid) { match { $d: Device { uid: $u } } return { $d.name as name } }"
    assert [row["name"] for row in graph.query(text, {"u": form(str(TWO))})] == ["two"]
    assert names(graph, "$d.uid in $u", {"u": [form(str(ONE)), form(str(THREE))]}) == ["one", "three"]


def test_literals_compare_in_the_order_of_the_numbers(graph):
    assert names(graph, f'$d.uid >= uuid("{str(TWO).upper()}")') == ["two", "three"]
    assert names(graph, f'$d.batch != uuid("{ONE}")') == ["two"]
    assert names(graph, f'$d.parts contains uuid("{TWO}")') == ["three"]
    assert names(graph, f'$d.uid in [uuid("{ONE}"), uuid("{TWO}")]') == ["one", "two"]
    assert names(graph, f'to_string($d.uid) = "{ONE}"') == ["one"]


def test_aggregates(graph):
    (row,) = graph.query(
        "match { $d: Device } return { min($d.uid) as low, max($d.uid) as high, collect($d.batch) as batches }"
    )
    assert (row["low"], row["high"]) == (str(ONE), str(THREE))
    assert sorted(row["batches"]) == sorted([str(ONE), str(TWO)])


def test_index_and_filters_agree(graph):
    before = names(graph, f'$d.batch = uuid("{ONE}")')
    graph.ensure_indices()
    graph.optimize()
    assert names(graph, f'$d.batch = uuid("{ONE}")') == before == ["three"]


def test_unique_values_are_compared_in_canonical_form(graph):
    with pytest.raises(ConstraintViolation, match=r"@unique violation on Device\.serial"):
        graph.load([device(UUID(int=9), serial=str(THREE).upper())], mode="append")


def test_mutations_take_literals_and_parameters_as_values_and_ends(graph):
    new = UUID(int=7)
    graph.mutate("query q($u: Uuid) { insert Device { uid: $u, name: upper(to_string($u)) } }", {"u": new})
    graph.mutate(f'insert Link {{ from: uuid("{str(new).upper()}"), to: uuid("{ONE}") }}')
    graph.mutate("query q($u: Uuid) { insert Link { from: $u, to: $u, via: $u } }", {"u": new})
    graph.mutate(f'update Device set {{ batch: uuid("{THREE}") }} where uid = uuid("{new}")')
    found = graph.query("match { $d: Device $d link $e } return { $d.uid as d, $e.uid as e } order { $d.uid, $e.uid }")
    assert [(row["d"], row["e"]) for row in found] == [
        (str(new), str(new)),
        (str(new), str(ONE)),
        (str(ONE), str(TWO)),
    ]
    assert names(graph, f'$d.batch = uuid("{THREE}")') == [str(new).upper()]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([UUID(int=20).bytes, UUID(int=21).bytes], pa.binary(16)),
        pa.array([UUID(int=20).bytes, UUID(int=21).bytes], pa.uuid()),
        pa.array([str(UUID(int=20)), str(UUID(int=21))]),
        pa.array([str(UUID(int=20)).upper(), str(UUID(int=21))], pa.large_string()),
    ],
    ids=["binary", "arrow-uuid", "string", "large-string"],
)
def test_arrow_and_parquet_columns(graph, tmp_path, column):
    table = pa.table({"uid": column, "name": ["a", "b"]})
    graph.load({"Device": table}, mode="merge")
    pq.write_table(table, tmp_path / "Device.parquet")
    graph.load(tmp_path / "Device.parquet", mode="merge")
    assert names(graph, f'$d.uid < uuid("{ONE}")') == ["a", "b"]


def test_pandas_and_csv(graph, tmp_path):
    frame = pd.DataFrame({"uid": [UUID(int=30)], "batch": [str(ONE).upper()], "name": ["pandas"]})
    graph.load({"Device": frame}, mode="append")
    (tmp_path / "Device.csv").write_text(f"uid,batch,name\n{str(UUID(int=31)).upper()},,csv\n")
    graph.load(tmp_path / "Device.csv", mode="append")
    assert names(graph, f'$d.uid < uuid("{ONE}")') == ["pandas", "csv"]
    assert names(graph, f'$d.batch = uuid("{ONE}")') == ["pandas", "three"]


def test_export_is_canonical_and_loads_again(graph, tmp_path):
    records = list(graph.export())
    copy = og.init(tmp_path / "copy", SCHEMA, environ={})
    copy.load(records, mode="merge")
    assert list(copy.export()) == records
    assert str(ONE).upper() not in json.dumps(records)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nope", "Device.uid: 'nope' is not a UUID"),
        (ONE.hex, f"Device.uid: '{ONE.hex}' is not a UUID"),
        (f"{{{ONE}}}", f"Device.uid: '{{{ONE}}}' is not a UUID"),
        (f"{ONE}\n", f"Device.uid: '{ONE}\\n' is not a UUID"),
        (7, "Device.uid: expected Uuid, found the integer 7"),
        (b"123", "Device.uid: expected Uuid, found bytes"),
    ],
    ids=["word", "no-hyphens", "braces", "line-feed", "integer", "bytes"],
)
def test_other_values_are_refused(graph, value, message):
    with pytest.raises(RecordError) as caught:
        graph.load([device(value)], mode="merge")
    assert caught.value.message == f"line 1: {message}"


def test_wrong_parameters_and_literals(graph):
    text = "query q($u: Uuid) { match { $d: Device { uid: $u } } return { $d.name } }"
    with pytest.raises(ParameterError, match="'nope' is not a UUID") as caught:
        graph.query(text, {"u": "nope"})
    assert caught.value.hint == "write it as 123e4567-e89b-12d3-a456-426614174000"
    with pytest.raises(ParameterError, match="expected a uuid string, found the integer 7"):
        graph.query(text, {"u": 7})
    with pytest.raises(ParseError, match="'12' is not a UUID"):
        names(graph, '$d.uid = uuid("12")')
    with pytest.raises(TypeCheckError, match="cannot compare") as wrong:
        names(graph, f'$d.uid = "{ONE}"')
    assert wrong.value.diagnostics[0].hint == f'write uuid("{ONE}")'
    with pytest.raises(TypeCheckError, match="cannot apply 'starts_with'"):
        names(graph, '$d.uid starts_with "a"')
