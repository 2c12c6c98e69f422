"""Minimum spanning forest."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.edge_list import EdgeList
from omnigraph.engine.cache.table_cache import Numbers

Flags = np.ndarray[Any, np.dtype[np.bool_]]


def spanning_forest(edges: EdgeList) -> tuple[Flags, float]:
    """Return True for the edges of a spanning forest of least weight, one tree per component, and its weight.

    The algorithm is that of Borůvka: every tree takes its lightest edge to another tree, until none is left. Edges of
    equal weight rank by number, so the forest is unique. Direction does not count.
    """
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    ranks = np.empty(len(weights), np.int64)
    ranks[np.argsort(weights, kind="stable")] = np.arange(len(weights))
    by_rank = np.argsort(ranks)
    chosen = np.zeros(len(weights), bool)
    roots = np.arange(edges.count, dtype=np.int64)
    left = np.flatnonzero(edges.sources != edges.targets)
    while True:
        checkpoint()
        sources, targets = roots[edges.sources[left]], roots[edges.targets[left]]
        crossing = sources != targets
        left, sources, targets = left[crossing], sources[crossing], targets[crossing]
        if not len(left):
            return chosen, float(weights[chosen].sum())
        best = np.full(edges.count, len(weights), np.int64)
        np.minimum.at(best, sources, ranks[left])
        np.minimum.at(best, targets, ranks[left])
        trees = np.flatnonzero(best < len(weights))
        taken = by_rank[best[trees]]
        chosen[taken] = True
        roots = joined_roots(edges.count, trees, roots[edges.sources[taken]], roots[edges.targets[taken]])[roots]


def joined_roots(count: int, trees: Numbers, sources: Numbers, targets: Numbers) -> Numbers:
    """Return the new root of each node that is a root, if each tree takes an edge between the given trees.

    Each tree points at the tree beyond its edge; of two trees that point at each other, the smaller is the root.
    """
    points = np.arange(count, dtype=np.int64)
    points[trees] = np.where(sources == trees, targets, sources)
    mutual = points[points] == np.arange(count)
    points = np.where(mutual & (np.arange(count) < points), np.arange(count), points)
    while not np.array_equal(points, further := points[points]):
        points = further
    return points
