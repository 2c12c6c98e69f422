"""Betweenness and closeness: both follow shortest paths from a sample of nodes, or from every node.

Paths are counted in edges. Parallel edges and loops do not count. The sample is drawn without replacement by a
generator with a given seed; its sums are scaled to all nodes, so that the expected value is the exact one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.edge_list import EdgeList, Floats, Neighbors
from omnigraph.engine.cache.table_cache import Numbers


def betweenness(edges: EdgeList, *, samples: int, seed: int, directed: bool) -> tuple[Floats, int]:
    """Return the share of shortest paths between other nodes that lead through each node, and the sample size.

    The algorithm is that of Brandes: one search per start counts the paths to each node, and a second pass from the
    farthest nodes back adds up the shares of their predecessors. Values are divided by the number of pairs of other
    nodes, as networkx does.
    """
    neighbors = edges.neighbors(directed=directed)
    starts = sample_nodes(edges.count, samples, seed)
    total = np.zeros(edges.count)
    for start in starts.tolist():
        checkpoint()
        total += _dependencies(neighbors, edges.count, start)
    return scaled_betweenness(total, len(starts)), len(starts)


def scaled_betweenness(total: Floats, samples: int) -> Floats:
    """Scale sums over a sample of starts to all pairs of other nodes."""
    count = len(total)
    pairs = (count - 1) * (count - 2)
    return total * (count / (samples * pairs) if samples and pairs > 0 else 0.0)


def _dependencies(neighbors: Neighbors, count: int, start: int) -> Floats:
    """Return, for each node, the sum over all targets of the share of shortest paths from `start` that it is on."""
    paths = np.zeros(count)
    paths[start] = 1.0
    steps: list[tuple[Numbers, Numbers]] = []
    for froms, tos, _ in _levels(neighbors, count, start):
        np.add.at(paths, tos, paths[froms])
        steps.append((froms, tos))
    shares = np.zeros(count)
    for froms, tos in reversed(steps):
        np.add.at(shares, froms, paths[froms] / paths[tos] * (1.0 + shares[tos]))
    shares[start] = 0.0
    return shares


def _levels(neighbors: Neighbors, count: int, start: int) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Search breadth first; yield the ends of the edges from each level to the next, and the nodes of the next."""
    seen = np.zeros(count, bool)
    seen[start] = True
    frontier = np.array([start])
    while len(frontier):
        tos, owners = neighbors.of(frontier)
        new = ~seen[tos]
        tos, froms = tos[new], frontier[owners[new]]
        seen[tos] = True
        frontier = _distinct(tos, count)
        if len(tos):
            yield froms, tos, frontier


def _distinct(nodes: Numbers, count: int) -> Numbers:
    """Return the distinct nodes in ascending order; many are marked in an array, few are sorted."""
    if len(nodes) * 16 < count:
        return np.unique(nodes)
    marks = np.zeros(count, bool)
    marks[nodes] = True
    return np.flatnonzero(marks)


def closeness(edges: EdgeList, *, samples: int, seed: int, directed: bool) -> tuple[Floats, int]:
    """Return the closeness of each node, and the sample size.

    It is the inverse of the mean distance from the nodes that reach the node, times the share of nodes that do (the
    form of Wasserman and Faust, which compares nodes of different components).
    """
    neighbors = edges.neighbors(directed=directed)
    starts = sample_nodes(edges.count, samples, seed)
    distances, reached = np.zeros(edges.count), np.zeros(edges.count)
    for start in starts.tolist():
        checkpoint()
        for distance, (_, _, found) in enumerate(_levels(neighbors, edges.count, start), 1):
            distances[found] += distance
            reached[found] += 1
    return scaled_closeness(distances, reached, len(starts)), len(starts)


def scaled_closeness(distances: Floats, reached: Floats, samples: int) -> Floats:
    """Return the closeness of each node from the sum of distances and the number of starts that reach it."""
    count = len(distances)
    share = reached * (count / samples if samples else 0.0) / max(count - 1, 1)
    inverse = np.divide(reached, distances, out=np.zeros(count), where=distances > 0)
    found: Floats = np.minimum(share, 1.0) * inverse
    return found


def sample_nodes(count: int, samples: int, seed: int) -> Numbers:
    """Return the nodes to start from: a sample without replacement, or all if there are no more."""
    if samples >= count:
        return np.arange(count)
    chosen: Numbers = np.sort(np.random.default_rng(seed).choice(count, samples, replace=False))
    return chosen
