"""Plans for classes of parameter values."""

from __future__ import annotations

import pytest

from omnigraph.operations.requests import QueryText
from omnigraph.query.plan import ir
from support.writes import edge, new_graph, node

SCHEMA = """
node Person { name: String @key  city: String  n: I64  on: Date? }
node Firm { name: String @key  kind: String }
edge WorksAt: Person -> Firm
"""
TEXT = """query q($city: String, $kind: String) {
    match { $p: Person { city: $city } $p worksAt $f $f.kind = $kind } return { $p.name as p, $f.name as f }
}"""


@pytest.fixture
def graph(tmp_path):
    """Nearly all persons live in one city, and nearly all firms are of one kind."""
    persons = [node("Person", name=f"p{at}", city="big" if at % 200 else f"c{at}", n=at) for at in range(2_000)]
    firms = [node("Firm", name=f"f{at}", kind="common" if at % 100 else f"k{at}") for at in range(1_000)]
    works = [edge("WorksAt", f"p{at}", f"f{at % 1_000}") for at in range(2_000)]
    return new_graph(tmp_path, SCHEMA, *persons, *firms, *works)


def start(graph, **params: object) -> str:
    prepared = graph._context.plans.get_read(graph.snapshot(), QueryText(TEXT, params=params))
    first = prepared.plan.pipeline[0]
    assert isinstance(first, ir.NodeScan)
    return first.var


def test_start_depends_on_the_value(graph):
    assert start(graph, city="c0", kind="common") == "p"
    assert start(graph, city="big", kind="k0") == "f"
    assert start(graph, city="c200", kind="common") == "p"
    assert graph._context.plans.misses == 1


def test_results_do_not_depend_on_the_plan(graph):
    for city in ("c0", "big", "nowhere"):
        for kind in ("k0", "common", "none"):
            found = graph.query(TEXT, params={"city": city, "kind": kind}).to_pylist()
            expected = [
                {"p": f"p{at}", "f": f"f{at % 1_000}"}
                for at in range(2_000)
                if ("big" if at % 200 else f"c{at}") == city
                and ("common" if at % 1_000 % 100 else f"k{at % 1_000}") == kind
            ]
            assert sorted(found, key=str) == sorted(expected, key=str)


def test_values_of_one_class_share_a_plan(graph):
    plans = graph._context.plans

    def plan(**params: object) -> object:
        return plans.get_read(graph.snapshot(), QueryText(TEXT, params=params))

    assert plan(city="c0", kind="common") is plan(city="c400", kind="common")
    assert plan(city="big", kind="k0") is plan(city="big", kind="k500")
    assert plan() is plan()


@pytest.mark.parametrize("value", [None, "2024-01-01", 7])
def test_values_of_other_types_have_a_plan(graph, value):
    text = "query q($on: Date?) { match { $p: Person $p worksAt $f $p.on = $on } return { $f.name } }"
    plans = graph._context.plans
    assert plans.get_read(graph.snapshot(), QueryText(text, params={"on": value})).plan.pipeline


def test_explain_shows_the_plan_of_the_values(graph):
    few = graph.explain(TEXT, params={"city": "c0", "kind": "common"})
    assert "  chosen  $p → $f" in few
    assert "  chosen  $f → $p" in graph.explain(TEXT, params={"city": "big", "kind": "k0"})
