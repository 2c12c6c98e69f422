"""Stages: for each rule a query that violates it, and the most similar valid query."""

from __future__ import annotations

import pytest

from omnigraph.errors import ParseError
from omnigraph.query.compile import compile_query
from omnigraph.query.lint import lint
from omnigraph.query.plan import ir
from support.queries import CATALOG, NO_CODE, diagnostics

MATCH = "match { $p $w:knows $q $t: path { $p knows{1,2} $r } }"

# id: (what follows the match, its code, the underlined text, the same without the error)
RULES = {
    "no-name": ("with { $p.name } return { 1 }", "T42", "$p.name", "with { $p.name as $n } return { $n }"),
    "no-name-of-an-aggregate": (
        "with { $p, count($q) } return { $p }",
        "T42",
        "count($q)",
        "with { $p, count($q) as $n } return { $p }",
    ),
    "bound-already": (
        "with { $p.name as $q } return { $q }",
        "T42",
        "$q",
        "with { $p.name as $z } return { $z }",
    ),
    "named-twice": (
        "with { $p.name as $n, $p.age as $n } return { $n }",
        "T42",
        "$n",
        "with { $p.name as $n, $p.age as $m } return { $n }",
    ),
    "kept-twice": ("with { $p, $p } return { $p }", "T42", "$p", "with { $p, $q } return { $p }"),
    "a-parameter-as-a-name": (
        "with { $p.name as $text } return { 1 }",
        "T42",
        "$text",
        "with { $p.name as $texts } return { 1 }",
    ),
    "a-parameter-alone": ("with { $text } return { 1 }", "T42", "$text", "with { $text as $n } return { $n }"),
    "anonymous": ("with { $p.name as $_ } return { 1 }", "T42", "$_", "with { $p.name as $n } return { 1 }"),
    "renamed-node": ("with { $p as $n } return { 1 }", "T42", "$p as $n", "with { $p } return { $p }"),
    "path": ("with { $t } return { 1 }", "T42", "$t", "with { length($t) as $n } return { $n }"),
    "object": (
        "with { { a: $p.name } as $o } return { 1 }",
        "T42",
        "{ a: $p.name } as $o",
        "with { $p.name as $o } return { 1 }",
    ),
    "vector": (
        "with { $p.face as $v } return { 1 }",
        "T42",
        "$p.face as $v",
        "with { $p.marks as $v } return { $v }",
    ),
    "blob": ("with { $p.photo as $v } return { 1 }", "T24", "$p.photo", "with { $p.bio as $v } return { $v }"),
    "property-of-a-value": (
        "with { $p.name as $n } return { $n.name }",
        "T42",
        "$n.name",
        "with { $p } return { $p.name }",
    ),
    "end-of-a-hop": (
        "with { $p.name as $n } match { $n knows $q } return { $q }",
        "T42",
        "$n",
        "with { $p } match { $p knows $q } return { $q }",
    ),
    "bound-to-a-node": (
        "with { $p.name as $n } match { $n: Person } return { $n }",
        "T42",
        "$n: Person",
        "with { $p } match { $p: Person } return { $p }",
    ),
    "id-of-a-value": ("with { $p.name as $n } return { id($n) }", "T42", "$n", "with { $p } return { id($p) }"),
    "search-in-a-value": (
        'with { $p.bio as $n } match { search($n.bio, "x") } return { 1 }',
        "T42",
        "$n.bio",
        'with { $p } match { search($p.bio, "x") } return { 1 }',
    ),
    "value-in-a-pattern": (
        "with { $p.name as $n } match { $c: City { name: $n } } return { $c }",
        NO_CODE,
        "$n",
        "with { $p.name as $n } match { $c: City $c.name = $n } return { $c }",
    ),
    "not-carried-on": ("with { $p } return { $q.name }", "T6", "$q", "with { $p, $q } return { $q.name }"),
    "not-carried-on-alone": ("with { $p } return { $q }", NO_CODE, "$q", "with { $p, $q } return { $q }"),
    "unknown": ("with { $x } return { 1 }", NO_CODE, "$x", "with { $p } return { 1 }"),
    "alias-without-a-dollar": (
        "with { $p, count($q) as $n } having { n > 1 } return { $n }",
        "T42",
        "n",
        "with { $p, count($q) as $n } having { $n > 1 } return { $n }",
    ),
    "having-without-groups": (
        "with { $p, $p.age as $n } having { $n > 1 } return { $n }",
        "T29",
        "{ $n > 1 }",
        "with { $p, count($q) as $n } having { $n > 1 } return { $n }",
    ),
    "rank-without-a-limit": (
        "with { $p } order { nearest($p.face, $vector) } return { $p }",
        "T17",
        "nearest($p.face, $vector)",
        "with { $p } order { nearest($p.face, $vector) } limit 3 return { $p }",
    ),
    "key-beside-an-aggregate": (
        "with { 1 as $one, count($q) as $n } return { $n }",
        "T9",
        "1",
        "with { $p.age as $one, count($q) as $n } return { $n }",
    ),
    "a-list-has-no-order": (
        "with { $p.marks as $m } return { $m } order { $m }",
        NO_CODE,
        "$m",
        "with { $p.age as $m } return { $m } order { $m }",
    ),
}


def query(rest: str) -> str:
    return f"query q($text: String, $vector: Vector(3)) {{ {MATCH} {rest} }}"


@pytest.mark.parametrize(("wrong", "code", "at", "right"), RULES.values(), ids=RULES)
def test_rule(wrong: str, code: str, at: str, right: str) -> None:
    text = query(wrong)
    first = diagnostics(text)[0]
    assert (first.code, text.splitlines()[first.line - 1][first.column - 1 :][: len(at)]) == (code, at)
    compile_query(CATALOG, query(right))


@pytest.mark.parametrize(
    "text",
    [
        "match { $p: Person } with { $p.name as n } return { $n }",
        "match { $p: Person } with { } return { 1 }",
        "match { $p: Person } with { $p }",
        "match { $p: Person } with { $p } order { $p.name } match { $p knows $q }",
        "match { $p: Person } return { $p } with { $p }",
        "with { $p } return { $p }",
    ],
)
def test_syntax_errors(text: str) -> None:
    with pytest.raises(ParseError):
        compile_query(CATALOG, f"query q() {{ {text} }}")


def read_plan(text: str) -> ir.QueryIR:
    plan = compile_query(CATALOG, text)
    assert isinstance(plan, ir.QueryIR)
    return plan


def test_plan_of_a_stage() -> None:
    plan = read_plan("query q() { match { $p knows $q } with { $p, count($q) as $n } return { $p.name, $n } }")
    (stage,) = plan.pipeline
    assert isinstance(stage, ir.Stage)
    assert (stage.kept, stage.variables, stage.value_names) == (("p",), ("p", "_#with0"), ("$n",))
    assert [column.name for column in stage.query.columns] == ["p", "n"]
    assert plan.columns[1].expr == ir.carried_value("_#with0", "n", ir.I64)


def test_a_stage_stays_the_first_operator() -> None:
    plan = read_plan("query q() { match { $p: Person } with { $p } match { 1 > 2 $p.age > 3 } return { $p } }")
    assert [type(op) for op in plan.pipeline] == [ir.Stage, ir.Filter, ir.Filter]


def test_a_name_that_ended_is_free() -> None:
    plan = read_plan("query q() { match { $p: Person } with { count($p) as $n } match { $p: City } return { $p } }")
    assert isinstance(plan.columns[0].expr, ir.Entity)
    assert plan.columns[0].expr.type_name == "City"


@pytest.mark.parametrize(
    ("stage", "warnings"),
    [
        ("with { $p } limit 3", ["'limit' and 'skip' of a stage without 'order' keep arbitrary rows"]),
        ("with { $p } order { $p.name }", ["the 'order' of a stage has no effect without 'limit' or 'skip'"]),
        ("with { $p } order { $p.name } limit 3", []),
    ],
)
def test_lint(stage: str, warnings: list[str]) -> None:
    text = f"query q() {{ match {{ $p: Person }} {stage} return {{ $p.name }} }}"
    found = lint(CATALOG, text, query_path="q.gq", schema_source={"kind": "file", "path": "s.pg"}).results[0]
    assert list(found.warnings) == warnings
    assert found.operation is not None
    assert found.operation["reads"] == [{"kind": "node", "type_name": "Person"}]
