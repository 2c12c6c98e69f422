"""The plan cache: one plan per schema and text, and eviction of old plans."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import omnigraph as og
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


_READ = """
import sys
import omnigraph as og
graph = og.open(sys.argv[1])
rows = graph.query(sys.argv[2], params={"key": "a"}).to_pylist()
wanted = ("omnigraph.engine.optimizer.optimize", "omnigraph.engine.optimizer.search", "omnigraph.engine.statistics")
print(rows, [name for name in wanted if name in sys.modules])
"""
_LOOKUP = "query q($key: String) { match { $p: Person { key: $key } } return { $p.age } }"
_HOP = "query q($key: String) { match { $p: Person { key: $key } $p knows $q } return { $q.age } }"


def _modules(graph: og.Graph, text: str) -> str:
    command = [sys.executable, "-c", _READ, graph.uri, text]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_lookup_of_one_node_does_not_import_the_optimizer(tmp_path):
    graph = og.init(tmp_path / "g", "node Person { key: String @key  age: I32 }\nedge Knows: Person -> Person")
    people = [{"type": "Person", "data": {"key": key, "age": age}} for key, age in (("a", 1), ("b", 2))]
    graph.load([*people, {"edge": "Knows", "from": "a", "to": "b"}], mode="append")
    assert _modules(graph, _LOOKUP) == "[{'p.age': 1}] []"
    assert "optimizer.search" in _modules(graph, _HOP)


def test_long_texts_evict_plans(graph):
    """The plans of some long texts take the memory of hundreds of short ones."""
    plans = PlanCache(CatalogCache(), DataCache())
    for number in range(24):
        plans.get(graph.snapshot(), QueryText(NAMES + " " * (60_000 + number)))
    assert len(plans) == 17
    assert plans.bytes <= 64 * 1024 * 1024
    first = plans.get(graph.snapshot(), QueryText(NAMES + " " * 60_000))
    assert plans.get(graph.snapshot(), QueryText(NAMES + " " * 60_000)) is first
