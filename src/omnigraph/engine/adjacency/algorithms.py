"""Graph algorithms over arrays: PageRank, connected components, degrees.

Nodes are dense numbers and edges are two columns of them. Parallel edges count once each. No algorithm allocates more
than the size of the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.cache.table_cache import Numbers

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class EdgeList:
    """Edges between the nodes 0 to `count` - 1."""

    count: int
    sources: Numbers
    targets: Numbers
    weights: Floats | None = None
    """The weight of each edge, not negative; None weighs all edges 1."""


def degrees(edges: EdgeList) -> tuple[Numbers, Numbers]:
    """Return the in-degree and the out-degree of each node."""
    incoming = np.bincount(edges.targets, minlength=edges.count)
    return incoming, np.bincount(edges.sources, minlength=edges.count)


def pagerank(edges: EdgeList, *, damping: float, tolerance: float, rounds_max: int) -> tuple[Floats, int]:
    """Return the PageRank of each node, which sums to one, and the number of iterations.

    With probability `damping` the random walk follows an edge, chosen by weight; otherwise, and at nodes without
    outgoing edges, it continues at any node. Iteration ends when the ranks change by less than `tolerance` in total.
    """
    if not edges.count:
        return np.zeros(0), 0
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    leaving = np.bincount(edges.sources, weights=weights, minlength=edges.count)
    stuck = leaving == 0
    share = weights / np.where(stuck, 1.0, leaving)[edges.sources]
    ranks = np.full(edges.count, 1.0 / edges.count)
    rounds = 0
    for rounds in range(1, rounds_max + 1):  # noqa: B007
        checkpoint()
        arriving = np.bincount(edges.targets, weights=ranks[edges.sources] * share, minlength=edges.count)
        anywhere = (1.0 - damping + damping * ranks[stuck].sum()) / edges.count
        following = damping * arriving + anywhere
        moved = float(np.abs(following - ranks).sum())
        ranks = following / following.sum()
        if moved < tolerance:
            break
    return ranks, rounds


def components(edges: EdgeList) -> Numbers:
    """Return the weakly connected component of each node: 0 is the largest, ties are ordered by smallest member.

    Each node points at the smallest node known to be connected to it. Each iteration joins the targets of both ends of
    an edge, then follows the pointers to their end. Pointer chains halve, so a long path takes few iterations.
    """
    roots = np.arange(edges.count, dtype=np.int64)
    while True:
        checkpoint()
        sources, targets = roots[edges.sources], roots[edges.targets]
        lower = np.minimum(sources, targets)
        joined = roots.copy()
        np.minimum.at(joined, sources, lower)
        np.minimum.at(joined, targets, lower)
        while not np.array_equal(joined, further := joined[joined]):
            joined = further
        if np.array_equal(joined, roots):
            break
        roots = joined
    return name_components(roots)


def name_components(roots: Numbers) -> Numbers:
    """Number components given by their smallest members: largest first, ties by that member."""
    sizes = np.bincount(roots, minlength=len(roots))
    firsts = np.flatnonzero(sizes)
    order = firsts[np.argsort(-sizes[firsts], kind="stable")]
    names = np.zeros(len(roots), np.int64)
    names[order] = np.arange(len(order))
    found: Numbers = names[roots]
    return found
