"""Selection of a query by name, and compilation of a text in one call."""

from __future__ import annotations

import pytest

from omnigraph.errors import InputError, ParseError, QueryNotFound, TypeCheckError
from omnigraph.query.compile import compile_query, pick_query
from omnigraph.query.plan.ir import MutationIR, QueryIR
from omnigraph.query.syntax.parser import parse_queries
from support.queries import CATALOG

ONE = "query one() { match { $p: Person } return { $p.name } }"
TWO = 'query two() { insert City { name: "a" } }'
ONE_AGAIN = "query one() { match { $c: City } return { $c.name } }"


def test_the_only_query_needs_no_name():
    assert isinstance(compile_query(CATALOG, ONE), QueryIR)
    assert isinstance(compile_query(CATALOG, TWO), MutationIR)


def test_a_query_is_found_by_its_name():
    assert compile_query(CATALOG, f"{ONE} {TWO}", "two").name == "two"


def test_the_first_query_of_a_duplicate_name_is_used():
    plan = compile_query(CATALOG, f"{ONE} {TWO} {ONE_AGAIN}", "one")
    assert isinstance(plan, QueryIR)
    assert plan.columns[0].name == "p.name"


def test_an_error_in_another_query_is_ignored():
    broken = "query broken() { match { $p: Persn } return { 1 } }"
    assert compile_query(CATALOG, f"{broken} {ONE}", "one").name == "one"
    with pytest.raises(TypeCheckError):
        compile_query(CATALOG, f"{broken} {ONE}", "broken")


def test_a_text_with_a_syntax_error_has_no_queries():
    with pytest.raises(ParseError):
        compile_query(CATALOG, f"{ONE} query broken(", "one")


def test_several_queries_need_a_name():
    with pytest.raises(InputError) as caught:
        compile_query(CATALOG, f"{TWO} {ONE}")
    assert caught.value.message == "the source holds several queries: 'one', 'two'"
    assert caught.value.hint == "name one of them"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("tow", "did you mean 'two'?"), ("nothing_like_it", "it holds 'one', 'two'")],
)
def test_an_unknown_name_lists_the_known_names(name, hint):
    with pytest.raises(QueryNotFound) as caught:
        compile_query(CATALOG, f"{ONE} {TWO}", name)
    assert caught.value.message == f"the source holds no query '{name}'"
    assert caught.value.hint == hint


def test_an_empty_text_contains_no_query():
    with pytest.raises(QueryNotFound, match="holds no query"):
        pick_query(parse_queries(""), None)
    with pytest.raises(QueryNotFound) as caught:
        pick_query(parse_queries(""), "one")
    assert caught.value.hint is None


def test_errors_name_their_source():
    with pytest.raises(TypeCheckError) as caught:
        compile_query(CATALOG, "query q() { match { $p: Persn } return { 1 } }", source_name="people.gq")
    assert caught.value.diagnostics[0].place == "people.gq:1:25, in query 'q'"
    assert caught.value.span == (24, 29)
