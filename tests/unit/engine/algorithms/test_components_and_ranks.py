"""Graph algorithms compared with reference implementations: matrices, traversals, counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.algorithms.components import components
from omnigraph.engine.algorithms.degrees import degrees
from omnigraph.engine.algorithms.edge_list import EdgeList
from omnigraph.engine.algorithms.pagerank import pagerank

SETTINGS = {"damping": 0.85, "tolerance": 1e-12, "rounds_max": 500}


@st.composite
def edge_lists(draw, weights: bool = False):
    count = draw(st.integers(1, 12))
    ends = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=30))
    some = [draw(st.sampled_from((0.0, 0.5, 1.0, 3.0))) for _ in pairs] if weights else None
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    return EdgeList(count, columns[:, 0], columns[:, 1], None if some is None else np.array(some))


def ranks_by_matrix(edges: EdgeList) -> np.ndarray:
    """Return the stationary distribution of the random walk, from its matrix."""
    walk = np.zeros((edges.count, edges.count))
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    for source, target, weight in zip(edges.sources, edges.targets, weights, strict=True):
        walk[target, source] += weight
    for node in range(edges.count):
        total = walk[:, node].sum()
        walk[:, node] = walk[:, node] / total if total else 1 / edges.count
    matrix = 0.85 * walk + 0.15 / edges.count
    return np.linalg.matrix_power(matrix, 400) @ np.full(edges.count, 1 / edges.count)


@given(edge_lists(weights=True))
def test_pagerank_equals_the_stationary_distribution(edges):
    ranks, _ = pagerank(edges, **SETTINGS)
    assert ranks == pytest.approx(ranks_by_matrix(edges), abs=1e-8)
    assert ranks.sum() == pytest.approx(1)


def test_pagerank_of_a_star_and_of_an_empty_graph():
    ranks, rounds = pagerank(EdgeList(4, np.array([1, 2, 3]), np.array([0, 0, 0])), **SETTINGS)
    assert ranks[0] > ranks[1] == ranks[2] == ranks[3]
    assert 1 < rounds < 500
    assert len(pagerank(EdgeList(0, np.zeros(0, np.int64), np.zeros(0, np.int64)), **SETTINGS)[0]) == 0


def components_by_walking(edges: EdgeList) -> list[frozenset[int]]:
    near: dict[int, set[int]] = {node: {node} for node in range(edges.count)}
    for source, target in zip(edges.sources.tolist(), edges.targets.tolist(), strict=True):
        near[source].add(target)
        near[target].add(source)
    found, seen = [], set[int]()
    for start in range(edges.count):
        if start not in seen:
            reached, waiting = set[int](), [start]
            while waiting:
                node = waiting.pop()
                if node not in reached:
                    reached.add(node)
                    waiting += near[node]
            found.append(frozenset(reached))
            seen |= reached
    return found


@given(edge_lists())
def test_components_equal_reachable_sets_ordered_by_size(edges):
    labels = components(edges)
    found = [frozenset(np.flatnonzero(labels == label).tolist()) for label in range(labels.max() + 1)]
    assert found == sorted(components_by_walking(edges), key=lambda part: (-len(part), min(part)))


def test_a_shuffled_long_path_is_one_component():
    order = np.random.default_rng(3).permutation(5_000)
    assert not components(EdgeList(5_000, order[:-1], order[1:])).any()


@given(edge_lists())
def test_degrees_count_edges_at_both_ends(edges):
    incoming, outgoing = degrees(edges)
    assert incoming.tolist() == [edges.targets.tolist().count(node) for node in range(edges.count)]
    assert outgoing.tolist() == [edges.sources.tolist().count(node) for node in range(edges.count)]
