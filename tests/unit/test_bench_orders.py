"""Random orders of random queries on a small graph return equal results."""

from __future__ import annotations

from random import Random

import pytest
from bench import orders


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return orders.make_graph(tmp_path_factory.mktemp("orders") / "g", 3, nodes=60, degree=3)


@pytest.mark.parametrize("seed", range(40))
def test_orders_agree(graph, seed, monkeypatch):
    monkeypatch.setattr(orders, "REPEATS", 1)
    found = orders.compare(graph, orders.random_query(Random(seed)), seed)
    assert found is None or found.slowdown >= 1


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
