"""The rewrite in isolation: a plan before and after, and the uniqueness that it needs."""

from __future__ import annotations

import pytest

from omnigraph.engine.optimizer.fold_distinct import fold_distinct, unique_variable
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir
from omnigraph.schema.check import compile_schema

SCHEMA = """
node P { name: String @key  n: I64? }
edge E: P -> P
"""


@pytest.fixture
def catalog():
    return compile_schema(SCHEMA)


def plan(catalog, match: str, columns: str = "$p.name") -> ir.QueryIR:
    compiled = compile_query(catalog, f"query q() {{ match {{ {match} }} return {{ {columns} }} }}")
    assert isinstance(compiled, ir.QueryIR)
    return compiled


# match: the variable whose nodes occur once
UNIQUE = {
    "$p: P": "p",
    '$p: P { name: "a" }': "p",
    '$p: P { name: "a" } $p e $q': "q",
    '$p: P { name: "a" } $p e{1,4} $q $q.n > 1': "q",
    '$p: P { name: "a" } $p e $q not { $q e $p }': "q",
    '$p: P { name: "a" } $p e $q $q e $p': "q",
    '$p: P { name: "a" } $q: P { name: "b" } $q.n > $p.n': "q",
    "$p: P $q: P": None,
    "$p: P $p e $q": None,
    '$p: P { name: "a" } $p e $q $q e $r': None,
    '$p: P { name: "a" } $p $w:e $q': None,
    '$p: P { name: "a" } $p e $q optional { $q e $r }': None,
    '$p: P { name: "a" } $w: path { $p e{1,2} $q }': None,
}


@pytest.mark.parametrize(("match", "expected"), UNIQUE.items(), ids=UNIQUE)
def test_unique_variable(catalog, match, expected):
    assert unique_variable(plan(catalog, match).pipeline, catalog) == expected


def test_distinct_count_becomes_a_count(catalog):
    match = '$p: P { name: "a" } $p e{1,4} $q'
    before = plan(catalog, match, "count(distinct $q) as n")
    assert fold_distinct(before, catalog) == plan(catalog, match, "count($q) as n")
    grouped = plan(catalog, match, "count(distinct $q) + 1 as n")
    assert fold_distinct(grouped, catalog) == plan(catalog, match, "count($q) + 1 as n")


@pytest.mark.parametrize(
    "columns", ["count(distinct $p) as n", "count(distinct $q.n) as n", "sum($q.n) as n", "$q.name"]
)
def test_other_results_stay(catalog, columns):
    before = plan(catalog, '$p: P { name: "a" } $p e{1,4} $q', columns)
    assert fold_distinct(before, catalog) == before
