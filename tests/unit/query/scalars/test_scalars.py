"""Scalar functions and `case`: types, messages, use of their names as identifiers, layout, plans, reference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnigraph.errors import ParseError, TypeCheckError
from omnigraph.query.compile import compile_query
from omnigraph.query.plan.explain import explain
from omnigraph.query.scalars import SCALARS
from omnigraph.query.syntax.format import format_queries
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.schema.check import compile_schema

DOCS = Path(__file__).parents[4] / "docs"
CATALOG = compile_schema(
    """node P { name: String @key  i: I32  big: I64?  wide: U64?  x: F32?  yes: Bool  day: Date?  at: DateTime?
       tags: [String]?  marks: [I64]  vec: Vector(3)?  photo: Blob?  case: I64?  when: I64?  then: I64?  end: I64? }
       edge Knows: P -> P { years: F64?  notes: [String]? }"""
)


def plan(expr: str, match: str = "$p: P"):
    return compile_query(CATALOG, f"query q() {{ match {{ {match} }} return {{ {expr} as v }} }}")


def type_of(expr: str) -> str:
    return str(plan(expr).columns[0].expr.type)


TYPES = {
    "abs($p.i)": "I64?", "abs($p.wide)": "U64?", "abs($p.x)": "F64?", "sign($p.x)": "I64?", "floor($p.i)": "I64",
    "round($p.x, 2)": "F64?", "sqrt(4)": "F64?", "trim($p.name)": "String", "substring($p.name, 1)": "String?",
    'split($p.name, ",")': "[String]", 'replace($p.name, "a", "b")': "String", "year($p.day)": "I64?",
    "hour($p.at)": "I64?", "date_add($p.day, 1, day)": "Date?", "date_add($p.at, 1, day)": "DateTime?",
    "date_diff($p.day, $p.day, days)": "I64?", "date_trunc($p.at, hour)": "DateTime?", "head($p.marks)": "I64?",
    "slice($p.marks, 0)": "[I64]?", "concat($p.marks, [1.5])": "[F64]", 'concat($p.name, "x")': "String",
    "to_string($p.i)": "String?", 'to_date("2020-01-01")': "Date?", "length($p.marks)": "I64",
    "case when $p.yes then 1 else 2 end": "I64", "case when $p.yes then 1 end": "I64?",
    "case $p.i when 1 then $p.tags else [] end": "[String]?", "case when $p.yes then $p.i else 0.5 end": "F64",
}  # fmt: skip


@pytest.mark.parametrize(("expr", "expected"), TYPES.items(), ids=TYPES)
def test_type(expr, expected):
    assert type_of(expr) == expected


MESSAGES = {
    "abs($p.name)": "'abs' needs a number, but $p.name is String",
    "abs(null)": "'abs' needs a number, but null is String?",
    "round($p.x, 1.5)": "'round' needs an integer, but 1.5 is F64",
    "trim($p.i)": "'trim' needs a String, but $p.i is I32",
    "substring($p.name, \"1\")": "'substring' needs an integer, but \"1\" is String",
    "split($p.tags, \",\")": "'split' needs a String, but $p.tags is [String]?",
    "year($p.name)": "'year' needs a Date or a DateTime, but $p.name is String",
    "hour($p.day)": "'hour' needs a DateTime, but $p.day is Date?",
    "date_add($p.day, 1, \"days\")": "'date_add' needs a unit of time, which \"days\" is not",
    "date_add($p.day, 1, fortnights)": "'date_add' needs a unit of time, which fortnights is not",
    "date_add($p.day, 1, hours)": "'date_add' needs compatible values, not 'Date?', 'I64', 'hours'",
    "date_diff($p.day, $p.at, days)": "'date_diff' needs compatible values, not 'Date?', 'DateTime?', 'days'",
    "head($p.name)": "'head' needs a list, but $p.name is String",
    "item($p.tags, 0.5)": "'item' needs an integer, but 0.5 is F64",
    "concat($p.tags, $p.marks)": "'concat' needs compatible values, not '[I64]', '[String]?'",
    "concat($p.name, $p.tags)": "'concat' needs compatible values, not 'String', '[String]?'",
    "to_string($p.vec)": "'to_string' needs a String, a number, a Bool, a Date or a DateTime, but $p.vec is Vector(3)?",
    "to_integer($p.yes)": "'to_integer' needs a number or a String, but $p.yes is Bool",
    "coalesce($p.i, $p.name)": "'coalesce' needs compatible values, not 'I32', 'String'",
    "case when $p.yes then 1 else \"a\" end": "'case' needs values of one type, not 'I64', 'String'",
    "case when $p.yes then null end": "'case' needs values of one type, not 'null'",
}  # fmt: skip


@pytest.mark.parametrize(("expr", "message"), MESSAGES.items(), ids=MESSAGES)
def test_message(expr, message):
    with pytest.raises(TypeCheckError) as caught:
        plan(expr)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("T26", message)


def test_a_case_can_be_a_condition():
    match = "$p: P $p.yes case when $p.i > 1 then $p.yes else false end case $p.i when 1 then true end = true"
    assert len(plan("$p.name", match).pipeline[0].filters) == 3
    with pytest.raises(TypeCheckError, match="T25"):
        plan("$p.name", "$p: P case when $p.yes then 1 end")


def test_other_errors():
    for expr, code in {
        "case when $p.i then 1 end": "T25",
        "case $p.i when \"a\" then 1 end": "T7",
        "case when $p.photo is null then 1 end": "T24",
        "abs($p)": "T7",
        "lower(search($p.name, \"a\"))": "T26",
    }.items():  # fmt: skip
        with pytest.raises(TypeCheckError) as caught:
            plan(expr)
        assert [found.code for found in caught.value.diagnostics] == [code], expr


BROKEN = {
    "substring($p.name)": "'substring' takes 2 or 3 arguments, not 1",
    "trim()": "'trim' takes 1 argument, not 0",
    "concat($p.name)": "'concat' takes 2 to 16 arguments, not 1",
    "case when $p.yes then 1": "expected 'end' to close 'case', found 'as'",
    "case when then 1 end": "expected 'then' and a value, found '1'",
    "case $p.i when 1 then end": None,
}


@pytest.mark.parametrize(("expr", "message"), BROKEN.items(), ids=BROKEN)
def test_syntax_errors(expr, message):
    with pytest.raises((ParseError, TypeCheckError)) as caught:
        plan(expr)
    if message is not None:
        assert message in caught.value.diagnostics[0].message


NAMES = [
    "update P set { case: case + when, when: then } where case = end",
    "update P set { then: end } where case > 1 and when < then",
    "update P set { case: case when case > 1 then case else when end } where end = 1",
    "update P set { i: year(day), big: end } where case is null",
    "delete P where end in [1, 2] and then != when",
]


@pytest.mark.parametrize("statement", NAMES)
def test_function_names_can_be_identifiers(statement):
    compile_query(CATALOG, f"query q() {{ {statement} }}")


def test_function_names_can_be_aliases():
    text = (
        "query q() { match { $p: P } return { $p.i as case $p.i as when case when $p.name as end end } order { case } }"
    )
    assert [column.name for column in compile_query(CATALOG, text).columns] == [
        "case", "when", "case", "when", "end", "end",
    ]  # fmt: skip


LAYOUT = [
    'case when $p.i > 1 and $p.yes then "a" when not $p.yes then "b" else "c" end as v',
    "case $p.i + 1 when 2 then -1 when 3 then (case when $p.yes then 1 end) * 2 end as v",
    "(case when $p.yes then 1 else 2 end) + 3 as v",
    "date_add($p.day, -3, months) as v",
    "round(abs($p.x) * 2, 1) as v",
]


@pytest.mark.parametrize("item", LAYOUT)
def test_print_then_parse_is_the_identity(item):
    text = f"query q() {{ match {{ $p: P }} return {{ {item} }} }}"
    printed = format_queries(text)
    assert parse_queries(printed) == parse_queries(text)
    assert format_queries(printed) == printed


def test_explain_shows_calls_in_source_syntax():
    text = """query q() {
        match { $a: P $r: shortest { $a knows{1,3} $p } nodes($r, name) contains "x" year($p.day) = 2020 }
        return { case $p.i when 1 then date_add($p.day, 3, months) end as d, concat($p.tags, edges($r, id)) as l }
    }"""
    shown = explain(compile_query(CATALOG, text))
    assert "year($p.day) = 2020" in shown
    assert 'nodes($r, name) contains "x"' in shown
    assert "case when $p.i = 1 then date_add($p.day, 3, months) else null end as d: Date?" in shown
    assert "concat($p.tags, edges($r, id)) as l: [String]?" in shown


PATHS = {
    "nodes($r, photo)": "the nodes of '$r' have no property 'photo'",
    "nodes($r, nothing)": "the nodes of '$r' have no property 'nothing'",
    "edges($r, notes)": "'notes' is [String]?, and a list cannot hold lists",
    'nodes($r, "name")': "'nodes' takes the name of a property, which \"name\" is not",
}


@pytest.mark.parametrize(("expr", "message"), PATHS.items(), ids=PATHS)
def test_properties_of_the_nodes_and_edges_of_a_path(expr, message):
    match = "$p: P $r: path { $p knows{1,2} $q }"
    assert str(plan("nodes($r, i)", match).columns[0].expr.type) == "[I32]"
    with pytest.raises(TypeCheckError) as caught:
        plan(expr, match)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("T36", message)


@pytest.mark.parametrize("name", SCALARS)
def test_every_function_is_in_the_reference_and_in_coming_from(name):
    for page in ("query-language.md", "coming-from.md"):
        rows = [line for line in (DOCS / page).read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
        assert any(re.search(rf"`{name}\(", row) for row in rows), page
