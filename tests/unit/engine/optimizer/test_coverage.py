"""Searches on columns in which few rows have a text or a vector."""

from __future__ import annotations

import pytest

from omnigraph.engine.optimizer.optimize import optimize
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  city: String?  note: String?  story: String?  vec: Vector(2)?  full: Vector(2)? }
edge Knows: P -> P
"""
ROWS = 400


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    people = [
        node(
            "P",
            name=f"p{at}",
            city=f"c{at % 40}",
            note="old red house" if at % 100 == 0 else "" if at % 2 else None,
            story="a red door" if at % 4 == 0 else "a blue door",
            full=[at, 1],
            **({"vec": [at, 1]} if at % 100 == 0 else {}),
        )
        for at in range(ROWS)
    ]
    knows = [edge("Knows", f"p{at}", f"p{(at * 7 + step) % ROWS}") for at in range(ROWS) for step in range(1, 6)]
    return new_graph(tmp_path_factory.mktemp("coverage"), SCHEMA, *people, *knows)


def cost(graph, property_name: str) -> float:
    """Return the cost of ranking the ends of a hop by a vector."""
    text = f"""query q($v: Vector(2)?) {{
      match {{ $p: P $p knows $q $q knows $r $r.city = "c1" }}
      return {{ $p.name }} order {{ nearest($q.{property_name}, $v) }} limit 5
    }}"""
    context, snapshot = graph._context, graph.snapshot()
    catalog = context.catalogs.of(snapshot)
    plan = compile_query(catalog, text)
    assert isinstance(plan, ir.QueryIR)
    choice = optimize(plan, GraphStatistics(catalog, snapshot, context.cache), compare=True).choice
    assert choice is not None
    assert choice.orders[0][0] == "q"
    return choice.costs[0]


def share(graph, condition: str, **values) -> float:
    context, snapshot = graph._context, graph.snapshot()
    catalog = context.catalogs.of(snapshot)
    text = f"query q($words: String?) {{ match {{ $p: P {condition} }} return {{ $p.name }} }}"
    plan = compile_query(catalog, text)
    assert isinstance(plan, ir.QueryIR)
    filters = [one for op in plan.pipeline if isinstance(op, ir.NodeScan) for one in op.filters]
    filters += [op.condition for op in plan.pipeline if isinstance(op, ir.Filter)]
    return Selectivity(GraphStatistics(catalog, snapshot, context.cache), {"p": "P"}, values=values).share(filters)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('search($p.note, "red")', 0.01),
        ('search($p.story, "red")', 0.25),
        ('search($p.story, "red blue")', 1.0),
        ('search($p.story, "purple")', 0.0),
        ('match_text($p.story, "Red")', 0.25),
        ("$p.vec is null", 0.99),
        ("$p.vec is not null", 0.01),
        ("$p.full is not null", 1.0),
        ("$p.note is not null", 0.51),
    ],
)
def test_share_of_rows(graph, condition, expected):
    assert share(graph, condition) == pytest.approx(expected, abs=0.005)


def test_unknown_words_are_sought_in_the_rows_with_a_text(graph):
    assert share(graph, "search($p.note, $words)") == pytest.approx(0.0005, rel=0.2)
    assert share(graph, "search($p.story, $words)") == pytest.approx(0.05)
    assert share(graph, "search($p.story, $words)", words="red") == pytest.approx(0.25, abs=0.02)
    assert share(graph, 'fuzzy($p.story, "rad")') == pytest.approx(0.05)


def test_ranking_few_vectors_costs_less(graph):
    assert cost(graph, "vec") < 0.8 * cost(graph, "full")
