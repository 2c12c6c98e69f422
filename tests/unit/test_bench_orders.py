"""Random orders of random queries on a small graph return equal results."""

from __future__ import annotations

from random import Random

import pytest
from bench import orders

from omnigraph.engine import tuning
from omnigraph.query.syntax.parser import parse_queries
from support.oracle.model import World
from support.oracle.reading import answer


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return orders.make_graph(tmp_path_factory.mktemp("orders") / "g", 3, nodes=60, degree=3)


@pytest.mark.parametrize("seed", range(40))
def test_orders_agree(graph, seed, monkeypatch):
    monkeypatch.setattr(orders, "REPEATS", 1)
    found = orders.compare(graph, orders.random_query(Random(seed)), seed)
    assert found is None or found.slowdown >= 1


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    graph = orders.make_graph(tmp_path_factory.mktemp("orders") / "tiny", 4, nodes=20, degree=3)
    return graph, world_of(graph)


def world_of(graph) -> World:
    """The graph as the oracle reads it."""
    nodes = {}
    for name in "AB":
        text = f"$v: {name} }} return {{ id($v) as id, $v.key as key, $v.n as n, $v.tag as tag }} }}"
        nodes[name] = {row.pop("id"): row for row in graph.query(f"query q() {{ match {{ {text}").to_pylist()}
    edges = {}
    for word, (source, _) in orders.EDGES.items():
        weight = ", $e.w as w" if word == "aa" else ""
        text = f"$v: {source} $v $e:{word} $w }} return {{ id($e) as id, id($v) as src, id($w) as dst{weight} }} }}"
        edges[word.capitalize()] = {
            row.pop("id"): row for row in graph.query(f"query q() {{ match {{ {text}").to_pylist()
        }
    return World(graph.catalog(), nodes, edges)


def agree(graph, world: World, seed: int, count: int) -> None:
    """Random queries have the rows of the oracle in the chosen order and in plans that change at every operator."""
    random = Random(seed)
    for _ in range(count):
        text = orders.random_query(random)
        expected = answer(parse_queries(text).queries[0], world, {}, 0)
        rows = sorted(tuple(row.values()) for row in graph.query(text).to_pylist())
        assert rows == sorted(map(tuple, expected.rows)), text
        with tuning.replaced(replan_rows_min=0, replan_factor=0.0, chain_rows_max=0):
            changed = sorted(tuple(row.values()) for row in graph.query(text).to_pylist())
        assert changed == rows, text


@pytest.mark.parametrize("seed", range(5))
def test_queries_agree_with_the_oracle(tiny, seed):
    agree(*tiny, seed, 20)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_queries_agree_with_the_oracle_long(tiny, seed):
    agree(*tiny, seed, 100)


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_orders_agree_long(tmp_path, number, monkeypatch):
    monkeypatch.setattr(orders, "REPEATS", 1)
    assert list(orders.compared(100, 1_000 * number, tmp_path, per_graph=50))


def test_disagreement_is_reported(graph, monkeypatch):
    results = iter([[1], [2]])
    monkeypatch.setattr(orders, "_rows", lambda *_: next(results))
    with pytest.raises(orders.Disagreement):
        orders.compare(graph, "query q() { match { $v0: A $v0 aa $v1 } return { $v0.key } }", 1)


def test_rank_correlation():
    assert orders.spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert orders.spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert orders.spearman([1, 1, 2, 2], [1, 1, 5, 5]) == pytest.approx(1)
    assert orders.spearman([1, 1], [1, 2]) == 0
