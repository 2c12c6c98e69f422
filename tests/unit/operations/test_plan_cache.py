"""The plan cache: one plan per schema and text, and eviction of old plans."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.plan_cache import PlanCache
from omnigraph.operations.requests import QueryText
from support.writes import ids_of, new_graph, node

SCHEMA = "node P { name: String @key  n: I64? }\nedge Knows: P -> P\n"
NAMES = "query names() { match { $p: P } return { $p.name } }"


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SCHEMA, node("P", name="a"))


def test_plan_is_cached_per_schema(graph):
    plans = PlanCache(CatalogCache(), DataCache())

    def plan(text: str = NAMES, name: str | None = None, **where: Any) -> object:
        return plans.get(graph.snapshot(**where), QueryText(text, name))

    first, at = plan(), graph.commits()[0].id
    assert plan() is first
    assert plan(NAMES + " ") is not first
    assert plan(name="names") is not first
    graph.load([node("P", name="f")], mode="append")
    assert plan() is first, "a plan does not depend on rows"
    graph.apply_schema(SCHEMA.replace("n: I64?", "n: I64?  m: I64?"))
    second = plan()
    assert second is not first
    assert plan(at=at) is first
    assert plan() is second


def test_plan_cache_evicts_the_least_recently_used(graph):
    plans, snapshot = PlanCache(CatalogCache(), DataCache()), graph.snapshot()
    first = plans.get(snapshot, QueryText(NAMES))
    for number in range(512):
        plans.get(snapshot, QueryText(NAMES + " " * (number + 1)))
    assert plans.get(snapshot, QueryText(NAMES)) is not first
    assert len(plans._known) == 512


def test_plans_of_mutations_are_cached(graph):
    plans = graph._context.plans
    insert = "query add($n: String) { insert P { name: $n } }"
    for number in range(3):
        graph.mutate(insert, params={"n": f"x{number}"})
    assert (plans.hits, plans.misses) == (2, 1)
    graph.apply_schema(SCHEMA.replace("n: I64?", "n: I64?  m: I64?"))
    graph.mutate(insert, params={"n": "x3"})
    assert (plans.hits, plans.misses) == (2, 2)
    assert ids_of(graph, "P") == ["a", "x0", "x1", "x2", "x3"]


def test_plans_of_long_texts_are_not_kept(graph):
    plans = graph._context.plans
    statements = " ".join(f'insert P {{ name: "{"n" * 100}{number}" }}' for number in range(600))
    assert graph.mutate(statements).affected_nodes == 600
    assert len(plans) == 0
