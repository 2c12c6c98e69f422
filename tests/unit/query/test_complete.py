"""Completion and description of words of query and schema texts."""

from __future__ import annotations

import pytest

from omnigraph.errors import InputError
from omnigraph.query.complete import complete, hover
from omnigraph.query.editor import check_language, complete_text, format_text, hover_text, lint_text
from omnigraph.query.lint import with_utf16_offsets
from omnigraph.schema.check import compile_schema
from omnigraph.schema.complete import complete_schema, hover_schema

SCHEMA = """
interface Named { name: String }
node Person @description("A human.") implements Named {
    name: String @key
    age: I32? @description("In years.")
}
node Town { label: String @key }
edge LivesIn: Person -> Town { since: Date? }
"""
CATALOG = compile_schema(SCHEMA)


def at(text: str) -> tuple[str, int]:
    """The text without its mark, and the position of the mark."""
    return text.replace("‸", ""), text.index("‸")


def test_candidates_have_kind_type_and_description():
    found = {each.text: each for each in complete(*at("match { $p: Person $p.‸ }"), CATALOG).candidates}
    assert found["age"].to_json() == {"text": "age", "kind": "property", "type": "I32?", "description": "In years."}
    types = {each.text: each for each in complete(*at("match { $p: ‸"), CATALOG).candidates}
    assert (types["Person"].kind, types["Person"].type, types["Person"].description) == ("type", "node", "A human.")
    assert types["Named"].type == "interface"
    edges = {each.text: each for each in complete(*at("match { $p: Person $p ‸"), CATALOG).candidates}
    assert (edges["livesIn"].kind, edges["livesIn"].type) == ("edge", "Person -> Town")
    words = {each.text: each for each in complete(*at("match { $p: Person } return { ‸"), CATALOG).candidates}
    assert (words["$p"].kind, words["$p"].type) == ("variable", "Person")
    assert (words["count"].kind, words["count"].type) == ("function", "count($x)")
    assert {each.kind for each in complete("", 0, CATALOG).candidates} == {"keyword"}


def test_the_range_is_the_incomplete_word():
    text, offset = at("match { $p: Per‸ } return { $p.name }")
    found = complete(text, offset, CATALOG)
    assert (text[found.start : found.end], [each.text for each in found.candidates]) == ("Per", ["Person"])


@pytest.mark.parametrize(
    ("text", "kind", "title", "description"),
    [
        ("match { $p: Per‸son }", "type", "node Person implements Named", "A human.\n\nage: I32?\nname: String"),
        ("match { $p: Person $p.a‸ge > 3 }", "property", "Person.age: I32?", "In years."),
        ("match { $p: Person { a‸ge: 3 } }", "property", "Person.age: I32?", "In years."),
        ("match { $p livesIn $t ‸$t }", "variable", "$t: Town", None),
        ("match { $p live‸sIn $t }", "edge", "edge LivesIn: Person -> Town", "since: Date?"),
        ("match { $p: Person } return { ‸count($p) }", "function", "count($x)", None),
        ("query q($d: Da‸te) { }", "scalar", "Date: scalar type", "A day."),
    ],
)
def test_hover_describes_the_word(text, kind, title, description):
    source, offset = at(text)
    found = hover(source, offset, CATALOG)
    assert (found.kind, found.title, found.description) == (kind, title, description)
    assert found.start <= offset < found.end


@pytest.mark.parametrize("text", ["‸", "match ‸{ }", "‸match { }", 'match { "‸x" }', "match { $‸p }"])
def test_hover_says_nothing_about_other_words(text):
    assert hover(*at(text), CATALOG) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("‸", {"node", "edge", "interface", "merge"}),
        ("merge { ‸ }", {"properties"}),
        ("merge { properties: ‸ }", {"conflict", "combine"}),
        ("node Person ‸", {"implements"}),
        ("interface Named { } node Person implements ‸", {"Named"}),
        ("node Person { name: ‸", {"String", "I32", "enum"}),
        ("node Person { name: Str‸", {"String"}),
        ("node Person { name: String @k‸", {"key"}),
        ("node A { } node B { } edge C: ‸", {"A", "B"}),
        ("node A { } node B { } edge C: A -> ‸", {"A", "B"}),
    ],
)
def test_completion_of_schemas(text, expected):
    found = complete_schema(*at(text))
    assert expected <= {each.text for each in found.candidates}


def test_schema_candidates_are_narrow():
    assert [each.text for each in complete_schema(*at("node A { } interface B { } edge C: ‸")).candidates] == ["A"]
    assert complete_schema(*at("node A { ‸")).candidates == ()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("node A { a: Str‸ing }", "String"),
        ("node A { a: String @ke‸y }", "@key or @key(a, …)"),
        ("node A { } edge B: ‸A -> A", "node A"),
        ("node A { a: } edge B: ‸A -> A", "node A"),
    ],
)
def test_hover_of_schemas(text, title):
    assert hover_schema(*at(text)).title == title


def test_hover_of_properties_has_their_constraints():
    schema = """node A {
    name: String @key @description("The name.")
    age: I32? @unique
    text: String? @index
    mean‸ing: Vector(4)? @embed("text")
    @range(age, 0..150)
    @check(name, "^[a-z]+$")
}"""
    text, offset = at(schema)
    found = hover_schema(text, offset)
    assert (found.kind, found.title, found.description) == ("property", "A.meaning: Vector(4)?", '`@embed("text")`')
    assert text[found.start : found.end] == "meaning"
    age = hover_schema(text, text.index("age:"))
    assert (age.title, age.description) == ("A.age: I32?", "`@unique(age)`\n`@range(age, 0..150)`")
    name = hover_schema(text, text.index("name:"))
    assert name.description == 'The name.\n\n`@key(name)`\n`@check(name, "^[a-z]+$")`'
    catalog = compile_schema(text)
    query = "match { $a: A  $a.age > 3 }"
    assert hover(query, query.index("age"), catalog).description == age.description
    assert hover_schema(text.replace("I32?", "I3"), text.index("age:")) is None, "the schema has an error"


def test_hover_of_schemas_says_nothing_about_other_words():
    assert hover_schema(*at("no‸de A { }")) is None
    assert hover_schema(*at("node A { } ‸")) is None
    assert hover_schema(*at("edge B: Unknown‸1 -> A")) is None


WHERE = {"query_path": "<query>", "schema_source": {}}


@pytest.mark.parametrize("unit", ["bytes", "utf16"])
def test_offsets_of_a_mistake_behind_an_emoji(unit):
    text = 'query q() {\n  match { $p: Person $p.name = "\U0001f426é" $p.agee = 3 }\n  return { $p.name }\n}'
    report = lint_text(text, "gq", CATALOG, **WHERE)
    if unit == "utf16":
        report = with_utf16_offsets(report, text)
    (diagnostic,) = report.results[0].diagnostics
    encoded = text.encode("utf-16-le" if unit == "utf16" else "utf-8")
    size = 2 if unit == "utf16" else 1
    marked = encoded[diagnostic.start * size : diagnostic.end * size]
    assert marked.decode("utf-16-le" if unit == "utf16" else "utf-8") == "agee"
    line = text.split("\n")[diagnostic.line - 1]
    before = line[: line.index("agee")]
    assert diagnostic.column == len(before) + 1 + (1 if unit == "utf16" else 0)


def test_lint_of_a_schema():
    assert lint_text(SCHEMA, "pg", CATALOG, **WHERE).ok
    broken = lint_text("// \U0001f426\nnode A { a: Strin }", "pg", CATALOG, **WHERE)
    assert [(finding.code, finding.severity) for finding in broken.findings] == [("S000", "error")]
    (moved,) = with_utf16_offsets(broken, "// \U0001f426\nnode A { a: Strin }").findings[0].diagnostics
    assert moved.start == broken.findings[0].diagnostics[0].start - 2
    (unknown,) = lint_text("node A { a: String @pk }", "pg", CATALOG, **WHERE).findings
    assert unknown.severity == "warning"


def test_services_by_language():
    assert complete_text("ma", 2, "gq", CATALOG).candidates[0].text == "match"
    assert complete_text("no", 2, "pg", CATALOG).candidates[0].text == "node"
    assert hover_text("node A { a: String }", 13, "pg", CATALOG).title == "String"
    assert format_text("node A{a:String}", "pg") == "node A {\n    a: String\n}\n"
    bare = "// all\nmatch { $p: Person { name: $n } }\nreturn { $p.name }\n"
    assert format_text("// all\nmatch{$p:Person{name:$n}}return{$p.name}", "gq") == bare
    assert format_text(bare, "gq") == bare
    assert format_text('insert Person{name:"a"}', "gq") == 'insert Person { name: "a" }\n'
    assert format_text("query q(){match{$p:Person}return{$p.name}}", "gq").startswith("query q() {\n    match")
    for offset in (-1, 3, True, "1"):
        with pytest.raises(InputError):
            complete_text("ma", offset, "gq", CATALOG)
    with pytest.raises(InputError):
        complete_text(3, 0, "gq", CATALOG)
    with pytest.raises(InputError, match="there is no language 'sql'"):
        check_language("sql")
