"""Every query of the conformance examples compiles, or fails with the expected error.

This module checks names and types of results; `test_examples_read` and `test_examples_run` check rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import TypeCheckError
from omnigraph.query.compile import compile_query
from omnigraph.query.lint import describe_operation, lint
from omnigraph.query.params import bind_params
from omnigraph.query.plan.explain import explain
from omnigraph.query.plan.ir import MutationIR, QueryIR
from omnigraph.query.syntax.format import format_queries
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import compile_schema

EXAMPLES = Path(__file__).parent / "cases" / "examples"
GRAPHS = ("library", "ward", "deps")

CASES = {
    f"{graph}-{name}": (graph, name, case)
    for graph in GRAPHS
    for name, case in json.loads((EXAMPLES / f"{graph}.expected.json").read_text()).items()
}
COMPILE_CODES = {"T4", "T7", "T9", "T15", "T17", "T22", "T23", "D2"}
"""Expected errors that name a type checking rule."""

CATALOGS: dict[str, Catalog] = {graph: compile_schema((EXAMPLES / f"{graph}.pg").read_text()) for graph in GRAPHS}
SOURCES = {graph: (EXAMPLES / f"{graph}.gq").read_text() for graph in GRAPHS}


def test_there_are_75_queries_and_each_has_a_case():
    written = {f"{graph}-{query.name}" for graph in GRAPHS for query in parse_queries(SOURCES[graph]).queries}
    assert len(written) == 75
    assert written == set(CASES)


def test_every_code_occurs_as_an_expected_error():
    named = {case["error"] for _, _, case in CASES.values() if "error" in case}
    assert named >= COMPILE_CODES


def fails_to_compile(case: dict[str, Any]) -> bool:
    return case.get("error") in {*COMPILE_CODES, "@key"}


SOUND = {id_: case for id_, case in CASES.items() if not fails_to_compile(case[2])}
BROKEN = {id_: case for id_, case in CASES.items() if fails_to_compile(case[2])}


@pytest.mark.parametrize(("graph", "name", "case"), BROKEN.values(), ids=BROKEN)
def test_invalid_query_reports_exactly_one_error(graph, name, case):
    with pytest.raises(TypeCheckError) as caught:
        compile_query(CATALOGS[graph], SOURCES[graph], name)
    (diagnostic,) = caught.value.diagnostics
    if case["error"] == "@key":
        assert "@key" in diagnostic.message
    else:
        assert caught.value.code == case["error"]
    assert diagnostic.subject == f"query '{name}'"


@pytest.mark.parametrize(("graph", "name", "case"), SOUND.values(), ids=SOUND)
def test_valid_query_compiles_and_binds_parameters(graph, name, case):
    catalog = CATALOGS[graph]
    plan = compile_query(catalog, SOURCES[graph], name)
    columns = [column["name"] for column in describe_operation(catalog, plan)["result"]]
    if "rows" in case:
        assert isinstance(plan, QueryIR)
        assert [column.name for column in plan.columns] == columns
        for row in case["rows"]:
            assert set(row) == set(columns)
    else:
        assert isinstance(plan, MutationIR)
        assert columns == ["affected_nodes", "affected_edges"]
    bound = bind_params(plan.params, case["params"])
    assert set(bound) == {param.name for param in plan.params}
    verb = "query" if "rows" in case else "change"
    assert explain(plan).startswith(f"{verb} {name}(")


@pytest.mark.parametrize(
    ("graph", "after"), [(graph, case["after"]) for graph, _, case in CASES.values() if "after" in case]
)
def test_query_over_a_mutation_matches_its_rows(graph, after):
    plan = compile_query(CATALOGS[graph], SOURCES[graph], after["query"])
    assert isinstance(plan, QueryIR)
    bind_params(plan.params, after["params"])
    for row in after["rows"]:
        assert set(row) == {column.name for column in plan.columns}


@pytest.mark.parametrize("graph", GRAPHS)
def test_lint_reports_exactly_the_invalid_queries(graph):
    report = lint(CATALOGS[graph], SOURCES[graph], query_path=f"{graph}.gq", schema_source={"kind": "file"})
    broken = [result.name for result in report.results if result.diagnostics]
    assert broken == [name for owner, name, case in CASES.values() if owner == graph and fails_to_compile(case)]


@pytest.mark.parametrize("graph", GRAPHS)
def test_formatting_preserves_queries_and_is_idempotent(graph):
    formatted = format_queries(SOURCES[graph])
    assert parse_queries(formatted) == parse_queries(SOURCES[graph])
    assert format_queries(formatted) == formatted
    comments = [line.strip() for line in SOURCES[graph].splitlines() if line.strip().startswith("//")]
    assert [line.strip() for line in formatted.splitlines() if line.strip().startswith("//")] == comments
