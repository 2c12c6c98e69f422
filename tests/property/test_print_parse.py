"""Printing and parsing are inverse, formatting is idempotent, and formatting keeps every comment."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.lang.tokens import lex
from omnigraph.query.syntax.ast import QueryFile
from omnigraph.query.syntax.format import format_queries, print_queries
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.schema.ast import SchemaFile
from omnigraph.schema.format import format_schema, print_schema
from omnigraph.schema.parser import parse_schema
from support import everything
from support.trees import QUERY_FILES, SCHEMA_FILES, rewrite

SEEDED = settings(derandomize=True, deadline=None, max_examples=200)
SEEDS = st.integers(0, 2**32)
REWRITINGS = 4
AS_ALIAS = 'query q() { match { $a: A } return { $a.b as as, other, as, "' + "long" * 30 + '" } }'
"""Without commas, these items on separate lines would parse as `other as "long…"`."""


def comments_of(text: str) -> Counter[str]:
    return Counter(comment.text.rstrip() for comment in lex(text).comments)


@SEEDED
@given(SCHEMA_FILES, SEEDS)
@example(parse_schema(everything.SCHEMA), 0)
def test_schema(tree: SchemaFile, seed: int) -> None:
    printed = print_schema(tree)
    assert parse_schema(printed) == tree
    assert format_schema(printed) == printed
    for number in range(REWRITINGS):
        text, comments = rewrite(printed, Random(seed + number))
        assert parse_schema(text) == tree
        formatted = format_schema(text)
        assert parse_schema(formatted) == tree
        assert comments_of(formatted) == Counter(comments)
        assert format_schema(formatted) == formatted


@SEEDED
@given(QUERY_FILES, SEEDS)
@example(parse_queries(everything.QUERIES), 0)
@example(parse_queries(AS_ALIAS), 0)
def test_queries(tree: QueryFile, seed: int) -> None:
    printed = print_queries(tree)
    assert parse_queries(printed) == tree
    assert format_queries(printed) == printed
    for number in range(REWRITINGS):
        text, comments = rewrite(printed, Random(seed + number))
        assert parse_queries(text) == tree
        formatted = format_queries(text)
        assert parse_queries(formatted) == tree
        assert comments_of(formatted) == Counter(comments)
        assert format_queries(formatted) == formatted
