"""Numbers about a whole graph: rank, components, degrees. Arrays in, arrays out.

Nodes are dense numbers, edges are two columns of them; parallel edges count as often as they are there. None
of the algorithms makes anything larger than the edges themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph.engine.cache.table_cache import Numbers

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class EdgeList:
    """Edges between the nodes 0 to `count` - 1."""

    count: int
    sources: Numbers
    targets: Numbers
    weights: Floats | None = None
    """How much each edge counts for; none is negative."""


def degrees(edges: EdgeList) -> tuple[Numbers, Numbers]:
    """How many edges come in, and how many go out."""
    incoming = np.bincount(edges.targets, minlength=edges.count)
    return incoming, np.bincount(edges.sources, minlength=edges.count)


def pagerank(edges: EdgeList, *, damping: float, tolerance: float, rounds_max: int) -> tuple[Floats, int]:
    """The share of a random walk's time spent at each node, and the rounds it took; the shares sum to one.

    With probability `damping` the walk follows an edge, chosen by weight, else it starts again anywhere; where
    no edge leaves, it starts again. It ends when a round moves less than `tolerance` in all.
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
        arriving = np.bincount(edges.targets, weights=ranks[edges.sources] * share, minlength=edges.count)
        anywhere = (1.0 - damping + damping * ranks[stuck].sum()) / edges.count
        following = damping * arriving + anywhere
        moved = float(np.abs(following - ranks).sum())
        ranks = following / following.sum()
        if moved < tolerance:
            break
    return ranks, rounds


def components(edges: EdgeList) -> Numbers:
    """The component of each node when edges are walked both ways: 0 is the largest, equals go by first member.

    Every node points at the smallest node it knows of; edges join what their ends point at, then pointers are
    followed to the end. The pointers halve their distance each time, so a chain takes few rounds.
    """
    roots = np.arange(edges.count, dtype=np.int64)
    while True:
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
    """Number components that are known by their smallest members: the largest first, equals by that member."""
    sizes = np.bincount(roots, minlength=len(roots))
    firsts = np.flatnonzero(sizes)
    order = firsts[np.argsort(-sizes[firsts], kind="stable")]
    names = np.zeros(len(roots), np.int64)
    names[order] = np.arange(len(order))
    found: Numbers = names[roots]
    return found
