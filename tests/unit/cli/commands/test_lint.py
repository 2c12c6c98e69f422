"""`omnigraph lint` of several files, and its formats for code review tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from omnigraph.cli.io.annotations import Annotation, github_command, sarif_log
from support.commands import document

WRONG = "query wrong() {\n    match { $p: Persn }\n    return { $p.name }\n}\n"
CONSTANT = 'query fix() {\n    update Person set { nick: "x" } where name = "Ana"\n}\n'


def required(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def listed(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": items}


TEXT = {"type": "string", "minLength": 1}
PLACE = required(artifactLocation=required(uri=TEXT))
PLACE["properties"]["region"] = required(startLine={"type": "integer", "minimum": 1})
RESULT = required(
    ruleId=TEXT,
    level={"enum": ["error", "warning", "note", "none"]},
    message=required(text=TEXT),
    locations=listed(required(physicalLocation=PLACE)),
)
DRIVER = required(name=TEXT, version=TEXT, rules={"type": "array", "items": required(id=TEXT)})
RUN = required(
    tool=required(driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
)
SARIF = required(version={"const": "2.1.0"}, runs=listed(RUN))
"""The members that SARIF 2.1.0 and the code scanning of GitHub require."""


@pytest.fixture
def files(folder):
    """A schema, a valid and an invalid file; the schema has an annotation without effect."""
    (folder / "s.pg").write_text("node Person {\n    name: String @key\n    nick: String? @nickname\n}\n")
    (folder / "q.gq").write_text("query all() {\n    match { $p: Person }\n    return { $p.name }\n}\n")
    (folder / "wrong.gq").write_text(WRONG)
    return folder


def test_several_files_as_text(files, cli):
    code, out, _ = cli("lint", "--schema", "s.pg", "q.gq", "wrong.gq", "s.pg")
    assert code == 1
    assert out.startswith("q.gq:\nok     all (read)\n")
    assert "\nwrong.gq:\nerror  wrong: type error: T1: there is no node type 'Persn'\n  --> wrong.gq:2:17" in out
    assert "\ns.pg:\nok     s.pg (schema)\nwarning  L202 " in out
    assert out.endswith("lint: 3 files, 2 queries, 1 error, 3 warnings, 0 infos\n")
    assert cli("lint", "--schema", "s.pg", "q.gq", "s.pg")[0] == 0


def test_several_files_as_json(files, cli):
    found = document(cli("lint", "--schema", "s.pg", "q.gq", "wrong.gq", "--format", "json"), code=1)
    assert found["status"] == "error"
    assert [(file["query_path"], file["status"]) for file in found["files"]] == [("q.gq", "ok"), ("wrong.gq", "error")]
    one = document(cli("lint", "--schema", "s.pg", "q.gq", "--format", "json"))
    assert one == document(cli("lint", "--schema", "s.pg", "q.gq", "--json")) == found["files"][0]


def test_files_and_a_graph(graph, cli):
    Path("wrong.gq").write_text(WRONG)
    assert document(cli("lint", "q.gq", "s.pg", "g.omni", "--json"))["files"][0]["schema_source"]["uri"] == "g.omni"
    assert cli("lint", "q.gq", "wrong.gq", "g.omni")[0] == 1
    swapped = cli("lint", "g.omni", "q.gq", "wrong.gq")
    assert (swapped[0], "the graph comes last: omnigraph lint q.gq wrong.gq g.omni" in swapped[2]) == (2, True)
    assert cli("lint", "-q", "q.gq", "wrong.gq", "g.omni")[0] == 2


def test_format_must_be_known(files, cli):
    assert "the formats are text, json, github, sarif" in cli("lint", "q.gq", "--format", "xml")[2]
    assert "exclude each other" in cli("lint", "q.gq", "--format", "sarif", "--json")[2]


def test_schema_beside_the_file_and_by_comment(files, cli):
    assert document(cli("lint", "q.gq", "--json"))["schema_source"] == {"kind": "file", "path": "s.pg"}
    (files / "other.pg").write_text("node Place {}\n")
    code, _, err = cli("lint", "q.gq")
    assert (code, "'omnigraph lint' requires a graph" in err) == (1, True)
    (files / "q.gq").write_text("// schema: other.pg\nquery all() { match { $p: Place } return { id($p) } }\n")
    assert document(cli("lint", "q.gq", "--json"))["schema_source"] == {"kind": "file", "path": "other.pg"}


def test_github(files, cli):
    (files / "constant.gq").write_text(CONSTANT)
    code, out, _ = cli("lint", "--format", "github", "q.gq", "wrong.gq", "constant.gq")
    assert code == 1
    assert out.splitlines() == [
        "::warning file=s.pg,title=L202::'@nickname' on 'Person.nick' is not an annotation of the schema language; "
        "it is kept as metadata and has no effect",
        "::error file=wrong.gq,line=2,col=17,title=T1::there is no node type 'Persn'%0Ahint: did you mean 'Person'?",
        "::warning file=constant.gq,line=1,col=7,title=query_warning::the mutation has no parameters: it writes the "
        "same thing every time",
    ]
    assert cli("lint", "--format", "github", "q.gq", "constant.gq")[0] == 0


def test_finding_about_queries_is_placed_at_the_first_one(files, cli):
    (files / "s.pg").write_text("node Person {\n    name: String @key\n    nick: String?\n    age: I32?\n}\n")
    (files / "up.gq").write_text(
        '// names\nquery up($n: String) {\n    update Person set { nick: $n } where name = "Ana"\n}\n'
    )
    out = cli("lint", "--format", "github", "up.gq")[1]
    assert out == "::warning file=up.gq,line=2,col=7,title=L201::no update sets the nullable property 'Person.age'\n"


def test_invalid_schema_is_an_annotation(files, cli):
    (files / "s.pg").write_text("node Person {\n    name: Strin @key\n}\n")
    for more in ([], ["s.pg"], ["--schema", "s.pg"]):
        code, out, _ = cli("lint", "--format", "github", "q.gq", "wrong.gq", *more)
        assert code == 1
        assert out.count("\n") == 1
        assert out.startswith("::error file=s.pg,line=2,col=11,title=")
    code, out, err = cli("lint", "q.gq")
    assert (code, out, "--> s.pg:2:11" in err) == (1, "", True)


def test_github_escapes_properties_and_messages():
    found = Annotation("info", "a:b,c", "100%\r\n::error::x, y", "odd,name:50%.gq", 3)
    assert github_command(found) == (
        "::notice file=odd%2Cname%3A50%25.gq,line=3,title=a%3Ab%2Cc::100%25%0D%0A::error::x, y"
    )


def test_sarif(files, cli):
    code, out, _ = cli("lint", "--format", "sarif", "q.gq", "wrong.gq")
    assert code == 1
    log = json.loads(out)
    jsonschema_rs.validate(SARIF, log)
    (run,) = log["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["L202", "T1"]
    warning, error = run["results"]
    assert (warning["level"], warning["locations"][0]["physicalLocation"]) == (
        "warning",
        {"artifactLocation": {"uri": "s.pg"}},
    )
    assert (error["level"], error["locations"][0]["physicalLocation"]) == (
        "error",
        {"artifactLocation": {"uri": "wrong.gq"}, "region": {"startLine": 2, "startColumn": 17}},
    )
    (files / "s.pg").write_text("node Person { name: String @key }\n")
    code, out, _ = cli("lint", "--format", "sarif", "q.gq")
    jsonschema_rs.validate(SARIF, json.loads(out))
    assert (code, json.loads(out)["runs"][0]["results"]) == (0, [])


def test_sarif_addresses(folder):
    paths = [str(folder / "a b.gq"), "/elsewhere/ä.gq"]
    results = sarif_log([Annotation("error", "T1", "x", path, 1, 1) for path in paths])["runs"][0]["results"]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
    assert uris == ["a%20b.gq", "file:///elsewhere/%C3%A4.gq"]
