"""Answers for incomplete texts, and the choice of a schema."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.lang.utf16 import LineIndex
from omnigraph.lsp import answers
from omnigraph.lsp.documents import Documents, Schema

DEMO = Path(og.__file__).parent / "demo"
TEXTS = {name: (DEMO / f"station.{name}").read_text(encoding="utf-8") for name in ("pg", "gq")}


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("language", ["pg", "gq"])
def test_a_truncated_file_never_raises(tmp_path: Path, language: str, step: int) -> None:
    path = tmp_path / f"station.{language}"
    documents = Documents()
    documents.open[tmp_path / "station.pg"] = TEXTS["pg"]
    (tmp_path / "station.pg").touch()
    text = TEXTS[language].replace("Note", "No😀te", 1) if language == "gq" else TEXTS["pg"]
    for end in range(0, len(text) + 1, step):
        documents.open[path] = text[:end]
        document = documents.get(path)
        answers.diagnostics(document)
        answers.completion(document, end)
        answers.hover(document, max(end - 2, 0))
        answers.definition(documents, document, end)
        answers.references(documents, document, end, declaration=True)
        answers.symbols(document)
        answers.formatting(document)
        answers.code_lenses(document)
        symbol = document.symbol_at(end)
        if symbol is not None and symbol.kind in ("variable", "type"):
            answers.rename(documents, document, end, "other" if symbol.kind == "variable" else "Other")


@pytest.mark.parametrize(
    ("text", "title", "corrected"),
    [
        ('match { $p: Person  $p.born > "2000-01-01" }', "Replace by 'date(\"2000-01-01\")'", 'date("2000-01-01")'),
        ("match { $p: Person  $p.name = 'Ana' }", "Replace by '\"Ana\"'", '$p.name = "Ana"'),
        ("match { $p: Person  $p knows{3,1} $q }", "Replace by '{1,3}'", "knows{1,3} $q"),
        ("match { $p: Persn }", "Replace by 'Person'", "$p: Person }"),
    ],
)
def test_hints_with_a_replacement_are_code_actions(tmp_path: Path, text: str, title: str, corrected: str) -> None:
    documents, path = Documents(), tmp_path / "q.gq"
    schema = tmp_path / "s.pg"
    schema.write_text("node Person { name: String @key  born: Date? }  edge Knows: Person -> Person")
    documents.open[path] = f"query q() {{ {text} return {{ $p.name }} }}"
    document = documents.get(path)
    (action,) = answers.code_actions(document, answers.diagnostics(document))
    assert action.title == title
    assert action.edit is not None
    assert action.edit.changes is not None
    ((edit,),) = action.edit.changes.values()
    start, end = (answers.offset_of(document, place) for place in (edit.range.start, edit.range.end))
    documents.open[path] = document.text[:start] + edit.new_text + document.text[end:]
    assert corrected in documents.open[path]
    assert answers.diagnostics(documents.get(path)) == []


def test_hints_that_describe_are_no_code_actions(tmp_path: Path) -> None:
    documents, path = Documents(), tmp_path / "q.gq"
    (tmp_path / "s.pg").write_text("node Person { name: String @key  age: I32? }")
    for clause in ("length($p) > 3", "$p.age = null", 'nearest($p.name, "x") > 3'):
        documents.open[path] = f"query q() {{ match {{ $p: Person  {clause} }} return {{ $p.name }} }}"
        document = documents.get(path)
        found = answers.diagnostics(document)
        assert found, clause
        assert answers.code_actions(document, found) == [], clause


def test_lines_and_columns() -> None:
    lines = LineIndex("a😀b\n\nc")
    assert [lines.position(at) for at in range(7)] == [(0, 0), (0, 1), (0, 3), (0, 4), (1, 0), (2, 0), (2, 1)]
    for at in range(7):
        assert lines.offset(*lines.position(at)) == at
    assert (lines.offset(0, 99), lines.offset(9, 0), lines.offset(0, 2)) == (3, 6, 1)


def test_the_schema_of_a_query_file(tmp_path: Path) -> None:
    path, documents = tmp_path / "a" / "q.gq", Documents()
    path.parent.mkdir()

    def schema(text: str = "") -> Schema | None:
        documents.open[path] = text
        return documents.get(path).schema

    assert schema() is None
    (tmp_path / "other.pg").write_text("node Other { k: String @key }")
    named = schema("// schema: ../other.pg\n")
    assert named is not None
    assert named.path == tmp_path / "other.pg"
    assert schema("// schema: missing.pg") is None
    (path.parent / "own.pg").write_text("node Own { k: String @key }")
    own = schema()
    assert own is not None
    assert own.path == path.parent / "own.pg"
    og.init(tmp_path / "g.omni", "node Stored { k: String @key }", sync=False, environ={})
    (tmp_path / "omnigraph.yaml").write_text("graphs:\n  g:\n    uri: g.omni\n  h:\n    uri: h.omni\n")
    assert schema() == own, "two graphs, and none is chosen"
    (tmp_path / "omnigraph.yaml").write_text(
        "cli:\n  graph: g\ngraphs:\n  g:\n    uri: g.omni\n  h:\n    uri: h.omni\n"
    )
    stored = schema()
    assert stored is not None
    assert stored.catalog is not None
    assert (list(stored.catalog.nodes), stored.graph) == (["Stored"], str(tmp_path / "g.omni"))
    (tmp_path / "omnigraph.yaml").write_text("graphs: [")
    assert schema() == own


def test_warnings_and_errors_without_a_schema(tmp_path: Path) -> None:
    documents = Documents()
    documents.open[tmp_path / "s.pg"] = 'node A @colour("red") { k: String @key }'
    found = answers.diagnostics(documents.get(tmp_path / "s.pg"))
    assert [(each.severity.name, each.range.start.character) for each in found if each.severity] == [("Warning", 5)]
    documents.open[tmp_path / "q.gq"] = "query q() { match { $p: A } return { $p.k }"
    assert len(answers.diagnostics(documents.get(tmp_path / "q.gq"))) == 1
    documents.open[tmp_path / "q.gq"] += " }"
    assert answers.diagnostics(documents.get(tmp_path / "q.gq")) == []


def test_a_warning_about_a_query_is_at_its_name(tmp_path: Path) -> None:
    documents, path = Documents(), tmp_path / "q.gq"
    (tmp_path / "s.pg").write_text("node P { k: String @key }\nedge Knows: P -> P")
    names = "query names() { match { $p: P } return { $p.k } }\n"
    documents.open[path] = f"{names}query friends() {{ match {{ $p knows $q }} return {{ $p.k, count($q) as n }} }}"
    (found,) = answers.diagnostics(documents.get(path))
    assert (found.code, found.range.start.line, found.range.start.character) == ("L301", 1, 6)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "omnigraph.lsp.server", raising=False)
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    assert run(["lsp"]) != 0
    assert "pip install 'omnigraph[lsp]'" in capsys.readouterr().err
