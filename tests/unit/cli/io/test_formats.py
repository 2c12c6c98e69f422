"""Every output format, byte for byte."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.cli.io.formats import ReadTarget, text_lines, write_binary
from omnigraph.engine.result.result import Result
from omnigraph.text_table import TableStyle

MAIN = ReadTarget("main")
PLAIN = TableStyle()


def result(**columns: pa.Array) -> Result:
    return Result(pa.table(columns), query_name="objects_in", commit_id="01C", elapsed_ms=1.0)


OBJECTS = {"o.label": pa.array(["Bronze mirror", "Comb"]), "o.room": pa.array(["4b", None], pa.utf8())}


def printed(found: Result, format_: str, style: TableStyle = PLAIN, target: ReadTarget = MAIN) -> str:
    return "".join(f"{line}\n" for line in text_lines(found, target, format_, style))


def test_table_example_of_the_specification():
    assert printed(result(**OBJECTS), "table", TableStyle(12)) == (
        "2 rows from branch main via objects_in\n"
        "o.label      | o.room\n"
        "-------------+-------\n"
        "Bronze mirr… | 4b    \n"
        "Comb         | null  \n"
    )


def test_wrapped_table_with_a_name_longer_than_the_maximum():
    found = result(
        **{
            "a long name": pa.array(["x"]),
            "b": pa.array(
                [
                    "abcdefg\nh",
                ]
            ),
        }
    )
    assert printed(found, "table", TableStyle(4, "wrap"), ReadTarget(None, "01ABC")) == (
        "1 row from snapshot 01ABC via objects_in\n"
        "a long name | b   \n"
        "------------+-----\n"
        "x           | abcd\n"
        "            | efg\\\n"
        "            | nh  \n"
    )


def test_tables_without_rows_or_columns():
    assert printed(result(a=pa.array([], pa.utf8())), "table") == "0 rows from branch main via objects_in\na\n-\n"
    assert printed(result(), "table") == "0 rows from branch main via objects_in\n(no rows)\n"


def test_kv():
    assert printed(result(**OBJECTS), "kv") == (
        "2 rows from branch main via objects_in\n"
        "row 1\no.label: Bronze mirror\no.room: 4b\n\nrow 2\no.label: Comb\no.room: null\n"
    )
    empty = printed(result(a=pa.array([], pa.utf8())), "kv")
    assert empty == "0 rows from branch main via objects_in\n(no rows)\n"


def test_csv_quotes_special_cells():
    found = result(**{"a,b": pa.array(['say "no"', "x\ny", "plain", "a\rb"]), "n": pa.array([1.5, None, 3.0, -0.25])})
    assert printed(found, "csv") == '"a,b",n\n"say ""no""",1.5\n"x\ny",\nplain,3.0\n"a\rb",-0.25\n'


VALUES = {
    "big": pa.array([2**53, -(2**53) + 1], pa.int64()),
    "date": pa.array([0, 1], pa.date32()),
    "time": pa.array([0, None], pa.date64()),
    "list": pa.array([["a", "ü"], []]),
    "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
    "truth": pa.array([True, None]),
    "node": pa.array([{"id": "x", "n": 1}, None]),
}


def test_json_is_the_result_object():
    document = json.loads(printed(result(**VALUES), "json"))
    assert list(document) == ["query_name", "target", "row_count", "columns", "rows", "graph_commit_id"]
    assert document["target"] == {"branch": "main", "snapshot": None}
    assert document["columns"] == list(VALUES)
    first, second = document["rows"]
    assert first["big"] == "9007199254740992"
    assert second["big"] == -9007199254740991
    assert (first["date"], first["time"]) == ("1970-01-01", "1970-01-01T00:00:00.000Z")
    assert (first["vector"], second["vector"], second["list"]) == ([1.0, 2.0], None, [])
    assert "columns" not in json.loads(printed(result(), "json"))
    assert "ü" in printed(result(**VALUES), "json")


def test_jsonl():
    lines = printed(result(**VALUES), "jsonl").splitlines()
    assert lines[0] == (
        '{"kind":"metadata","query_name":"objects_in","target":{"branch":"main","snapshot":null},"row_count":2}'
    )
    assert lines[1].startswith('{"big":"9007199254740992","date":"1970-01-01"')
    assert len(lines) == 3


def test_cells_are_json_without_quotes():
    text = printed(result(**VALUES), "kv")
    assert "big: 9007199254740992\n" in text
    assert 'list: ["a","ü"]\n' in text
    assert "truth: true\n" in text


def test_columns_with_equal_names_are_both_shown():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    found = Result(table, query_name="q", commit_id="c", elapsed_ms=0)
    assert printed(found, "csv") == "n,n\n1,2\n"


@pytest.mark.parametrize("format_", ["arrow", "parquet"])
def test_binary_formats(format_):
    file = io.BytesIO()
    found = result(**OBJECTS)
    write_binary(found, format_, file)
    file.seek(0)
    read = pq.read_table(file) if format_ == "parquet" else pa.ipc.open_file(file).read_all()
    assert read.equals(found.to_arrow())
