"""Hints of load errors for common mistakes."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.errors import OmniGraphError

SCHEMA = """node Film {
    number: I32 @key
    title: String
    seen: Bool?
    genres: [String]?
    rating: F64?
    length: I32?
}

node User {
    handle: String @key
}

edge ActedIn: User -> Film {
    part: String?
}
"""


@pytest.fixture
def graph(tmp_path):
    return og.init(tmp_path / "g", SCHEMA, sync=False, environ={})


ADD = "or add the property to the schema"
ENDS = "the ends of an edge are the columns 'from' and 'to': rename the columns, or map them: columns={'NAME': 'from'}"


def refused(graph, path: Path, text: str, mode: str = "merge") -> OmniGraphError:
    path.write_text(text)
    with pytest.raises(OmniGraphError) as caught:
        graph.load(path, mode=mode)
    return caught.value


NO_VALUE = "for no value leave a CSV cell empty, and write null in JSON"


@pytest.mark.parametrize(
    ("column", "cell", "hint"),
    [
        ("seen", "yes", "write true or false"),
        ("seen", "1", "write true or false"),
        ("genres", "scifi|horror", 'a list is a JSON array: ["one", "two"]'),
        ("rating", '"1,5"', "the decimal separator is a point, and digits are not grouped: 1.5"),
        ("rating", '"12,000"', "the decimal separator is a point, and digits are not grouped: 12000 or 12.000"),
        ("rating", '"0,500"', "the decimal separator is a point, and digits are not grouped: 0.500"),
        ("rating", '"1,234,567.5"', "the decimal separator is a point, and digits are not grouped: 1234567.5"),
        ("length", '"12,000"', "digits are not grouped: 12000"),
        ("length", '"-1,234,567"', "digits are not grouped: -1234567"),
        ("length", '"1,5"', None),
        ("length", '"12,00"', None),
        ("rating", "nan", NO_VALUE),
        ("rating", "NULL", NO_VALUE),
        ("length", "N/A", NO_VALUE),
        ("number", "None", f"{NO_VALUE}; the type must be I32?"),
        ("length", "long", None),
        ("seen", "perhaps", None),
    ],
)
def test_hint_for_a_cell(graph, tmp_path, column, cell, hint):
    other = "" if column == "number" else "number,"
    error = refused(graph, tmp_path / "Film.csv", f"{other}title,{column}\n{'1,' if other else ''}t,{cell}\n")
    assert error.hint == hint


@pytest.mark.parametrize(
    ("member", "hint"),
    [
        ('"length": "90"', "write the number without quotes"),
        ('"rating": "1.5"', "write the number without quotes"),
        ('"title": 2001', 'write it as text, in quotes: "…"'),
        ('"seen": 1', "write true or false"),
        ('"director": "x"', "the properties are 'genres', 'length', 'number', 'rating', 'seen', 'title'"),
    ],
)
def test_hint_for_a_member(graph, tmp_path, member, hint):
    error = refused(graph, tmp_path / "films.jsonl", f'{{"type": "Film", "data": {{"number": 1, {member}}}}}\n')
    assert error.hint == hint
    assert error.message.startswith(f"{tmp_path / 'films.jsonl'}, line 1: ")


def test_hint_for_edge_ends_under_other_names(graph, tmp_path):
    error = refused(graph, tmp_path / "e.jsonl", '{"edge": "ActedIn", "src": "ana", "dst": 3}\n')
    assert "'from' and 'to'" in error.hint
    error = refused(graph, tmp_path / "ActedIn.csv", "person,film\nana,3\n")
    assert error.hint == ENDS
    error = refused(graph, tmp_path / "ActedIn.csv", "part\nhero\n")
    assert error.hint == ENDS
    error = refused(graph, tmp_path / "e.jsonl", '{"edge": "ActedIn", "from": "ana", "to": 3, "part": "x"}\n')
    assert error.hint == "properties go inside 'data'"


def test_hint_for_an_unknown_column(graph, tmp_path):
    error = refused(graph, tmp_path / "Film.csv", "number,title,director\n1,t,x\n")
    assert error.hint.endswith(
        "'title'; leave the column out, columns={'director': None}, or add the property to the schema"
    )
    error = refused(graph, tmp_path / "ActedIn.csv", "from,to,salary\nana,3,9\n")
    assert error.hint == f"the properties are 'part'; leave the column out, columns={{'salary': None}}, {ADD}"
    error = refused(graph, tmp_path / "Film.csv", "number,titel\n1,t\n")
    assert error.hint == "did you mean 'title'?"


def test_hint_for_a_file_that_is_not_named_after_a_type(graph, tmp_path):
    error = refused(graph, tmp_path / "Film_idx.csv", "number,title\n1,t\n")
    assert error.message == f"'{tmp_path / 'Film_idx.csv'}': there is no node or edge type 'Film_idx'"
    assert error.hint.startswith(
        "the name of a table file, up to the first dot, is the type; give it {'TYPE': 'FILE'}: "
    )


def test_hints_for_a_missing_end_and_for_edges_that_block_an_overwrite(graph, tmp_path):
    error = refused(graph, tmp_path / "ActedIn.csv", "from,to\nzoë,3\n")
    assert error.hint == "load or insert the node first, or together with the edge"
    (tmp_path / "User.csv").write_text("handle\nana\n")
    (tmp_path / "Film.csv").write_text("number,title\n3,t\n")
    (tmp_path / "ActedIn.csv").write_text("from,to\nana,3\n")
    graph.load([tmp_path / f"{name}.csv" for name in ("User", "Film", "ActedIn")], mode="merge")
    error = refused(graph, tmp_path / "User.csv", "handle\nbo\n", mode="overwrite")
    assert "overwrite the edge type in the same load" in error.hint


def test_hint_for_a_partial_update_of_a_missing_node(graph, tmp_path):
    error = refused(graph, tmp_path / "films.jsonl", '{"type": "Film", "data": {"number": 5, "length": 90}}\n')
    assert error.message == f"{tmp_path / 'films.jsonl'}, line 1: Film '5' is new and needs title (String)"


def test_standard_input_is_named_without_its_copy(graph, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = b'{"type": "Film", "data": {"number": 1}}\n'
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(lines), isatty=lambda: False))
    assert run(["load", "--data", "-", "--mode", "append", "g"]) == 1
    assert "error: stdin.jsonl, line 1: Film.title is required" in capsys.readouterr().err
