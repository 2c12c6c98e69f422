"""Columns, nulls, dates and types of table files: `load` with a format, in memory and as a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import InputError, RecordError, TypeNotFound

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    born: Date?
    seen: DateTime?
}
node City { code: I64 @key }
edge Knows: Person -> Person { since: Date? }
edge Lives: Person -> City
"""
PEOPLE = "Full Name;Alter;geboren;notes\nAna;31;24.12.1990;x\nBen;NA;01.02.1985;y\n"
COLUMNS = {"Full Name": "name", "Alter": "age", "geboren": "born", "notes": None}


@pytest.fixture(params=["memory", "job"])
def graph(request, tmp_path, tune) -> Any:
    """An empty graph, whose loads of files run in memory or as jobs of several tasks."""
    if request.param == "job":
        tune(memory_load_bytes_max=0)
    return og.init(tmp_path / "g", SCHEMA, sync=False, environ={})


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def people(graph: Any) -> list[dict[str, Any]]:
    rows = graph.query("match { $p: Person } return { $p.name, $p.age, $p.born } order { $p.name }").to_rows()
    return [{key.removeprefix("p."): value for key, value in row.items()} for row in rows]


def test_type_columns_nulls_and_dates(graph, tmp_path):
    file = write(tmp_path / "people.csv", PEOPLE)
    graph.load({"Person": file}, mode="append", columns=COLUMNS, null="NA", date_format="%d.%m.%Y")
    assert [(row["name"], row["age"], str(row["born"])) for row in people(graph)] == [
        ("Ana", 31, "1990-12-24"),
        ("Ben", None, "1985-02-01"),
    ]


def test_quoted_null_word_is_text(graph, tmp_path):
    file = write(tmp_path / "Person.csv", 'name,age\n"NA",NA\n-,7\n')
    graph.load(file, mode="append", null=["NA", "?"])
    assert [(row["name"], row["age"]) for row in people(graph)] == [("-", 7), ("NA", None)]


def test_tsv_needs_no_delimiter(graph, tmp_path):
    file = write(tmp_path / "Person.tsv", "name\tage\nAna, B.\t3\n")
    result = graph.load(file, mode="append")
    assert result.notes == ()
    assert people(graph)[0]["name"] == "Ana, B."


def test_one_file_feeds_two_types(graph, tmp_path):
    write(tmp_path / "City.csv", "code\n1\n2\n")
    file = write(tmp_path / "all.csv", "name,city\nAna,1\nBen,\nCleo,2\n")
    result = graph.load(
        {"City": tmp_path / "City.csv", "Person": file, "Lives": [file]},
        mode="append",
        columns={"Person:city": None, "Lives:name": "from", "Lives:city": "to"},
        skip_null_ends=True,
    )
    assert dict(result.tables) == {"node:City": 2, "node:Person": 3, "edge:Lives": 2}


def test_reject_names_file_line_and_column(graph, tmp_path):
    file = write(tmp_path / "people.csv", PEOPLE + "Cleo;old;1.1.2000;z\nDan;1;31.02.2000;z\nEve;2\n")
    rejects: list[Any] = []
    result = graph.load(
        {"Person": file}, mode="append", columns=COLUMNS, null="NA", date_format="%d.%m.%Y", rejects=rejects
    )
    assert dict(result.tables) == {"node:Person": 2}
    assert [(one.source, one.line, one.property, one.column) for one in rejects] == [
        (str(file), 4, "age", "Alter"),
        (str(file), 5, "born", "geboren"),
        (str(file), 6, None, None),
    ]
    assert "which does not have the form '%d.%m.%Y'" in rejects[1].reason
    assert rejects[0].to_json()["column"] == "Alter"


def test_rejects_of_one_file_for_two_types_keep_their_records(graph, tmp_path):
    write(tmp_path / "City.csv", "code\n1\n")
    file = write(tmp_path / "all.csv", "name,age,city\nAna,x,1\nBen,2,9\n")
    rejects: list[Any] = []
    graph.load(
        {"City": tmp_path / "City.csv", "Person": file, "Lives": file},
        mode="append",
        columns={"Person:city": None, "Lives:name": "from", "Lives:city": "to", "Lives:age": None},
        rejects=rejects,
    )
    assert {(one.type_name, one.line) for one in rejects} == {("Person", 2), ("Lives", 2), ("Lives", 3)}
    assert {next(iter(one.record)) for one in rejects if one.type_name == "Lives"} == {"edge"}
    assert {next(iter(one.record)) for one in rejects if one.type_name == "Person"} == {"type"}


def test_dry_run_of_a_merge_shows_the_rows_that_change(graph, tmp_path):
    names = ["Ana", "Bo", "Cleo", "Dan"]
    file = write(tmp_path / "Person.csv", "name,age\n" + "".join(f"{name},1\n" for name in names))
    assert graph.load(file, mode="merge", dry_run=True).notes == ("dry run: nothing was written",)
    before = graph.load(file, mode="merge").commit_id
    write(file, "name,age\n" + "".join(f"{name},2\n" for name in ["Eve", *reversed(names)]))
    assert graph.load(file, mode="merge", dry_run=True).notes == (
        "node:Person: 4 existing rows have the key of a record and change: 'Ana', 'Bo', 'Cleo' and 1 more",
        "dry run: nothing was written",
    )
    assert graph.snapshot().commit_id == before


def test_dry_run_validates_and_writes_nothing(graph, tmp_path):
    file = write(tmp_path / "Person.csv", "name,age\nAna,1\nBen,x\n")
    before = graph.snapshot().commit_id
    with pytest.raises(RecordError, match="line 3"):
        graph.load(file, mode="append", dry_run=True)
    rejects: list[Any] = []
    result = graph.load(file, mode="append", dry_run=True, rejects=rejects)
    assert (dict(result.tables), result.commit_id, len(rejects)) == ({"node:Person": 1}, None, 1)
    assert "dry run: nothing was written" in result.notes
    assert graph.ingest(file, branch="new", dry_run=True, rejects=rejects).commit_id is None
    assert graph.snapshot().commit_id == before
    assert graph.branches() == ["main"]
    # The id of a load that was only tried is free.
    graph.load(file, mode="append", dry_run=True, rejects=rejects, job_id="j")
    assert not graph.load(file, mode="append", rejects=rejects, job_id="j").repeated


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"ages": "age"}}, "the column 'ages' is mapped, but no table has it"),
        ({"columns": {"Person:age": "nam"}}, "has no property 'nam', which the column 'age' is mapped to"),
        ({"columns": {"age": "name"}}, "columns 'name' and 'age' have the same meaning"),
        ({"columns": {1: "name"}}, "columns are a mapping"),
        ({"date_format": "%H:%M"}, "the date format '%H:%M' does not determine a date"),
        ({"null": [1]}, "the text of null cells"),
        ({"delimiter": "::"}, "the delimiter must be one of"),
    ],
)
def test_wrong_format_is_refused(graph, tmp_path, options, message):
    file = write(tmp_path / "Person.csv", "name,age\nAna,1\n")
    with pytest.raises(InputError, match=message):
        graph.load(file, mode="append", **options)


def test_wrong_types_are_refused(graph, tmp_path):
    file = write(tmp_path / "x.csv", "name,age\nAna,1\n")
    with pytest.raises(TypeNotFound, match="'Persn'"):
        graph.load({"Persn": file}, mode="append")
    lines = write(tmp_path / "x.jsonl", '{"type":"Person","data":{"name":"Ana"}}\n')
    with pytest.raises(InputError, match="whose records name their types"):
        graph.load({"Person": lines}, mode="append")


@pytest.mark.parametrize("frame", [pd.DataFrame, pa.table])
def test_columns_of_frames(graph, tmp_path, frame):
    data = frame({"Full Name": ["Ana", "Ben"], "Alter": [1.0, None] if frame is pd.DataFrame else [1, None]})
    graph.load({"Person": data}, mode="append", columns={"Full Name": "name", "Alter": "age"})
    assert [(row["name"], row["age"]) for row in people(graph)] == [("Ana", 1), ("Ben", None)]
    cities = write(tmp_path / "c.csv", "code\n7\n")
    lives = frame({"a": ["Ana", None, "Ben"], "b": [7, 7, None]})
    mapping = {"a": "from", "b": "to"}
    result = graph.load({"Lives": lives, "City": str(cities)}, mode="append", columns=mapping, skip_null_ends=True)
    assert dict(result.tables) == {"node:City": 1, "edge:Lives": 1}
