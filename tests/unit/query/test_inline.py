"""Queries without a head: recognition, and types of parameters."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import ParameterError, ParseError, TypeCheckError, hint_for
from omnigraph.query.inference import infer_params
from omnigraph.query.inline import inline_params, is_bare
from omnigraph.query.syntax.ast import Param
from omnigraph.query.syntax.format import format_queries
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.scalar_types.written_value import WrittenValue
from omnigraph.schema.check import compile_schema

PEOPLE = compile_schema(
    "node Person {\n name: String @key @index\n age: I32?\n born: Date?\n seen: DateTime?\n}\n"
    "edge Knows: Person -> Person {\n since: Date?\n}\n"
)


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("match { $p: P } return { $p }", True),
        ("  // words\n/* more */ match { $p: P } return { $p }", True),
        ('insert P { name: "x" }', True),
        ("atomic { delete P where x = 1 }", True),
        ("query q() { match { $p: P } return { $p } }", False),
        ("\n\nquery q() { match { $p: P } return { $p } }", False),
        ("", False),
        ("matches", False),
    ],
)
def test_recognition_of_a_query_without_head(text, bare):
    assert is_bare(text) is bare
    if bare:
        assert parse_queries(text).queries[0].name.text == "inline"


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        ("a", "String"), (True, "Bool"), (1, "I64"), (2**63, "U64"), (1.5, "F64"), (Decimal("1.5"), "F64"),
        (date(2020, 1, 1), "Date"), (datetime(2020, 1, 1, tzinfo=UTC), "DateTime"), (np.int32(3), "I64"),
        (np.float32(3), "F64"), (np.bool_(True), "Bool"), (Colour.RED, "String"), (UUID(int=1), "String"),
        (Path("x"), "String"),
    ],
)  # fmt: skip
def test_the_type_of_a_parameter_is_that_of_its_value(value, type_name):
    (param,) = inline_params("match { $p: P } return { $p }", {"x": value})
    assert (param.name.text, param.type_name.text, param.is_list) == ("x", type_name, False)


@pytest.mark.parametrize(
    ("value", "type_name"), [(["a"], "String"), ([1, 2], "I64"), ([1, 2.5], "F64"), ([], "String"), ((1, None), "I64")]
)
def test_lists(value, type_name):
    (param,) = inline_params("match { $p: P } return { $p }", {"x": value})
    assert (param.type_name.text, param.is_list) == (type_name, True)


def test_a_list_argument_of_nearest_is_a_vector():
    text = "match { $p: P } return { $p.x } order { nearest($p.v, $q) } limit 3"
    for value in ([1, 0, 0], np.zeros(3, dtype="f4")):
        (param,) = inline_params(text, {"q": value})
        assert (param.type_name.text, param.dim) == ("Vector", 3)


def test_a_null_has_no_type():
    with pytest.raises(ParameterError, match="the type of parameter 'x' cannot be taken from null") as caught:
        inline_params("match { $p: P } return { $p }", {"x": None})
    assert caught.value.hint == "declare it: query name($x: Type) { … }"


def test_a_query_with_a_head_declares_its_parameters():
    assert inline_params("query q($x: I32) { match { $p: P } return { $p } }", {"x": 1}) == ()


def test_a_bare_query_ends_with_the_text():
    with pytest.raises(ParseError, match="expected the end of the query, found 'x'") as caught:
        parse_queries("match { $p: P }\nreturn { $p }\nx")
    assert caught.value.diagnostics[0].line == 3


def test_formatting_adds_a_head():
    formatted = format_queries("match { $p: P } return { $p.name }")
    assert formatted.startswith("query inline() {\n")
    assert parse_queries(formatted) == parse_queries("match { $p: P } return { $p.name }")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(
        tmp_path_factory.mktemp("inline") / "g.omni",
        "node Person {\n name: String @key\n age: I32?\n born: Date?\n v: Vector(2)?\n}\n"
        "node Year {\n number: I64 @key\n}\n"
        "edge Before: Year -> Year\nedge Knows: Person -> Person\n",
    )
    people = [{"name": "Ana", "age": 41, "v": [1, 0]}, {"name": "Bo", "age": 5, "v": [0, 1]}]
    graph.load([{"type": "Person", "data": person} for person in people], mode="merge")
    graph.load([{"type": "Year", "data": {"number": 1900}}], mode="merge")
    return graph


def test_a_mapping_in_second_position_is_the_parameters(graph):
    named = "query older($age: I32) { match { $p: Person $p.age > $age } return { $p.name } }"
    assert graph.query(named, {"age": 10}).to_pylist() == [{"p.name": "Ana"}]
    assert graph.query(named, "older", {"age": 10}).to_pylist() == [{"p.name": "Ana"}]
    bare = "match { $p: Person { name: $name } } return { $p.age }"
    assert graph.query(bare, {"name": "Bo"}).to_pylist() == [{"p.age": 5}]
    near = "match { $p: Person } return { $p.name } order { nearest($p.v, $q) } limit 1"
    assert graph.query(near, {"q": [0, 1]}).to_pylist() == [{"p.name": "Bo"}]
    assert "Person" in graph.explain(bare, {"name": "Bo"})
    assert "rows" in graph.profile(bare, {"name": "Bo"})
    assert [len(page) for page in graph.pages("match { $p: Person } return { $p.name } order { $p.name }", page=1)] == [
        1,
        1,
    ]


def test_one_text_with_values_of_different_types_has_two_plans(graph):
    text = "match { $p: Person $p.age = $x } return { $p.name }"
    assert graph.query(text, {"x": 5}).to_pylist() == [{"p.name": "Bo"}]
    with pytest.raises(TypeCheckError):
        graph.query(text, {"x": "five"})
    assert graph.query(text, {"x": 41}).to_pylist() == [{"p.name": "Ana"}]


def test_bare_statements_are_mutations(graph):
    changed = graph.mutate("update Person set { age: $age } where name = $name", {"name": "Bo", "age": 6})
    assert changed.affected_nodes == 1
    assert graph.get("Person", "Bo")["age"] == 6
    graph.mutate("update Person set { age: 5 } where name = $name", {"name": "Bo"})


@pytest.mark.parametrize("vector", [[0.5, 0.25], [3, 4], np.array([3, 4], dtype="f4")])
def test_a_list_for_a_vector_property_is_a_vector(graph, vector):
    text = 'insert Person { name: "Vic", v: $v }'
    assert graph.mutate(text, {"v": vector}).affected_nodes == 1
    assert graph.get("Person", "Vic")["v"] == [float(number) for number in vector]
    graph.mutate("update Person set { v: $v } where name = $name", {"name": "Vic", "v": [1, 2]})
    assert graph.get("Person", "Vic")["v"] == [1.0, 2.0]
    with pytest.raises(ParameterError, match=r"Vector\(2\)"):
        graph.mutate(text, {"v": [1.0, 2.0, 3.0]})
    graph.mutate('delete Person where name = "Vic"')


def test_a_list_that_is_not_only_a_vector_is_a_list(graph):
    text = 'update Person set { v: $v } where name = "Bo" and age in $v'
    with pytest.raises(TypeCheckError):
        graph.mutate(text, {"v": [1, 2]})
    assert graph.query("match { $p: Person $p.age in $v } return { $p.name }", {"v": [5, 6]}).to_pylist() == [
        {"p.name": "Bo"}
    ]


@pytest.mark.parametrize(
    ("use", "scalar"),
    [
        ("$p: Person { born: $x }", "Date"),
        ("$p: Person $p.born > $x", "Date"),
        ("$p: Person $x <= $p.seen", "DateTime"),
        ("$p: Person $p knows $q $q.born = $x", "Date"),
        ("$p: Person $p $k:knows $q $k.since = $x", "Date"),
        ("$p: Person not { $p knows $q $q.born = $x }", "Date"),
        ("$p: Person $p.name = $x", "String"),
        ("$p: Person $p.born = $x $p.name = $x", "String"),
        ("$p: Person $p.age = $x", "String"),
    ],
)
def test_a_text_has_the_type_of_the_compared_property(use, scalar):
    (param,) = inferred(f"match {{ {use} }} return {{ $p.name }}", {"x": "1980-01-01"})
    assert (param.type_name.text, param.is_list) == (scalar, False)


def test_lists_and_statements():
    (param,) = inferred("match { $p: Person $p.born in $x } return { $p.name }", {"x": ["1980-01-01"]})
    assert (param.type_name.text, param.is_list) == ("Date", True)
    text = "update Person set { born: $born } where seen < $seen"
    assert [param.type_name.text for param in inferred(text, {"born": "…", "seen": "…"})] == ["Date", "DateTime"]
    (param,) = inferred("upsert Person { name: $n } new { born: $b }", {"b": "1980-01-01"})
    assert param.type_name.text == "Date"


@pytest.mark.parametrize(
    ("use", "scalar"),
    [
        ("$p: Person { name: $x }", "String"),
        ("$p: Person { age: $x }", "I64"),
        ("$p: Person $p.name starts_with $x", "String"),
        ("$p: Person search($p.name, $x)", "String"),
        ("$p: Person id($p) = $x", "String"),
    ],
)
def test_a_written_number_is_a_text_if_the_property_is_one(use, scalar):
    (param,) = inferred(f"match {{ {use} }} return {{ $p.name }}", {"x": WrittenValue("7")})
    assert param.type_name.text == scalar
    (number,) = inferred(f"match {{ {use} }} return {{ $p.name }}", {"x": 7})
    assert number.type_name.text == "I64"


def inferred(text: str, given: dict[str, object]) -> tuple[Param, ...]:
    return infer_params(PEOPLE, parse_queries(text).queries[0], inline_params(text, given))


def test_values_are_read_by_the_type_of_the_property(graph):
    graph.mutate("update Person set { born: $born } where name = $name", {"name": "Ana", "born": "1980-01-01"})
    text = "match { $p: Person $p.born < $d } return { $p.name }"
    assert graph.query(text, {"d": "1990-01-01"}).to_pylist() == [{"p.name": "Ana"}]
    with pytest.raises(ParameterError, match=r"parameter 'd' \(Date\)"):
        graph.query(text, {"d": "last week"})
    graph.mutate('insert Person { name: "123" }')
    by_name = "match { $p: Person { name: $n } } return { $p.name }"
    assert graph.query(by_name, {"n": WrittenValue("123")}).to_pylist() == [{"p.name": "123"}]
    with pytest.raises(TypeCheckError) as caught:
        graph.query(by_name, {"n": 123})
    assert caught.value.hint == "pass a value of type String for '$n'"
    with pytest.raises(TypeCheckError) as caught:
        graph.query("match { $p: Person $p.age = $n } return { $p.name }", {"n": "five"})
    assert caught.value.hint == "pass a value of type I32 for '$n'"
    with pytest.raises(TypeCheckError) as caught:
        graph.mutate('update Person set { age: $n } where name = "Bo"', {"n": True})
    assert caught.value.hint == "pass a value of type I32 for '$n'"
    by_age = "match { $p: Person { age: $n } } return { $p.name }"
    assert graph.query(by_age, {"n": WrittenValue("41")}).to_pylist() == [{"p.name": "Ana"}]
    graph.mutate('delete Person where name = "123"')
    graph.mutate('update Person set { born: null } where name = "Ana"')


def test_endpoints_of_an_edge_are_integers_if_the_key_is_one(graph):
    graph.mutate("insert Year { number: 1901 }")
    graph.mutate("insert Before { from: 1900, to: 1901 }")
    graph.mutate("insert Before { from: $a, to: $b }", {"a": 1901, "b": "1900"})
    graph.mutate("query link($a: I64) { insert Before { from: $a, to: $a } }", {"a": 1900})
    pairs = graph.query("match { $a: Year $a before $b } return { $a.number as a, $b.number as b } order { a, b }")
    assert [tuple(row.values()) for row in pairs.to_pylist()] == [(1900, 1900), (1900, 1901), (1901, 1900)]
    with pytest.raises(og.errors.InputError, match=r"'Before\.from'"):
        graph.mutate("query link($a: I64?) { insert Before { from: $a, to: 1900 } }", {"a": None})
    with pytest.raises(TypeCheckError, match="the id of a Person"):
        graph.mutate('insert Knows { from: 1, to: "Bo" }')


def test_a_name_with_a_dollar_sign(graph):
    with pytest.raises(ParameterError, match=r"without the dollar sign, not as '\$name'") as caught:
        graph.query("match { $p: Person { name: $name } } return { $p.age }", {"$name": "Bo"})
    assert caught.value.hint == "write {'name': …}"


def test_a_value_that_is_not_passed(graph):
    with pytest.raises(TypeCheckError) as caught:
        graph.query("match { $p: Person { name: $name } } return { $p.age }")
    hint = caught.value.diagnostics[0].hint
    assert hint == "pass its value: {'name': …}"
    assert hint_for(hint, "cli") == "pass its value: -p name=…"
    assert hint_for(hint, "shell") == "set its value: ':set name=…'"
    assert "hint: pass its value: -p name=…" in caught.value.render("cli")


def test_parameters_given_twice_or_of_the_wrong_kind(graph):
    with pytest.raises(og.errors.InputError, match="parameters are given twice"):
        graph.query("match { $p: Person } return { $p }", {}, {})
    with pytest.raises(ParameterError, match="parameters are an object of names and values, not an array"):
        graph.query("match { $p: Person } return { $p }", None, [1])


@pytest.mark.parametrize("head", ["", "query older($age: I32?, $least: I32?) {"])
@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_a_parameter_that_the_query_does_not_use_is_refused(graph, head, engine):
    text = (
        f"{head} match {{ $p: Person $p.age > $age not {{ $p.age < $least }} }} return {{ $p.name }} {'}' * bool(head)}"
    )
    for given, hint in (
        ({"aeg": 1}, "did you mean 'age'?"),
        ({"age": 1, "town": 1}, "it takes 'age', 'least'"),
        ({"age": 1, "p": 1}, "it takes 'age', 'least'"),
    ):
        with pytest.raises(ParameterError, match="the query has no parameter") as caught:
            graph.query(text, given, engine=engine)
        assert caught.value.hint == hint
    with pytest.raises(ParameterError) as caught:
        graph.mutate('update Person set { age: 5 } where name = "Bo"', {"age": 6})
    assert caught.value.hint == "it takes no parameters"


def test_get(graph):
    assert graph.get("Person", "Ana") == {"id": "Ana", "age": 41, "born": None, "name": "Ana", "v": [1.0, 0.0]}
    assert graph.get("Year", 1900) == {"id": "1900", "number": 1900}
    assert graph.get("Person", "nobody") is None
    assert graph.get("Person", "Ana", at=graph.commits()[-1].id) is None
    with pytest.raises(og.errors.TypeNotFound):
        graph.get("Persn", "Ana")
    with pytest.raises(og.errors.InputError, match="an id is a str or an int, not bool"):
        graph.get("Person", True)
