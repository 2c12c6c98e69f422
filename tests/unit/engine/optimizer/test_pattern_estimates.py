"""Estimates of the rows of a pattern."""

from __future__ import annotations

import pytest

from omnigraph.engine.optimizer.optimize import optimize
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir
from support.writes import edge, new_graph, node

SCHEMA = """
node Place { number: I64 @key  name: String  kind: String }
edge IsPartOf: Place -> Place
"""
CITIES, COUNTRIES = 190, 10


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Each city is part of one of few countries, and all are in one table."""
    places = [
        node("Place", number=at, name=f"n{at}", kind="city" if at >= COUNTRIES else "country")
        for at in range(COUNTRIES + CITIES)
    ]
    parts = [edge("IsPartOf", str(at), str(at % COUNTRIES)) for at in range(COUNTRIES, COUNTRIES + CITIES)]
    return new_graph(tmp_path_factory.mktemp("estimates"), SCHEMA, *places, *parts)


def rows(graph, match: str) -> list[float]:
    """Return the estimated rows after the operators of the physical plan of a match."""
    snapshot, context = graph.snapshot(), graph._context
    catalog = context.catalogs.of(snapshot)
    plan = compile_query(catalog, f"query q($name: String) {{ match {{ {match} }} return {{ $c.name }} }}")
    assert isinstance(plan, ir.QueryIR)
    expected = optimize(plan, GraphStatistics(catalog, snapshot, context.cache)).expected
    assert expected is not None
    return [one.rows for one in expected.operators]


@pytest.mark.parametrize(
    "condition", ['$home.name = "n3"', "$home.name = $name", '$home.name in ["n3"]', '"n3" = $home.name']
)
def test_named_nodes_are_among_those_with_such_edges(graph, condition):
    assert rows(graph, f"$home: Place $c isPartOf $home {condition}") == pytest.approx([1, CITIES / COUNTRIES])


def test_a_range_names_no_nodes(graph):
    assert rows(graph, "$home: Place $c isPartOf $home $home.number < 1")[-1] < 3


def test_several_conditions_leave_one_node(graph):
    match = '$home: Place { name: "n3", kind: "country" } $c isPartOf $home'
    assert rows(graph, match) == pytest.approx([1, CITIES / COUNTRIES])
