"""Weakly connected components."""

from __future__ import annotations

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.edge_list import EdgeList
from omnigraph.engine.cache.table_cache import Numbers


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
    """Number groups of nodes, given by any member of each: largest first, ties by that member."""
    sizes = np.bincount(roots, minlength=len(roots))
    firsts = np.flatnonzero(sizes)
    order = firsts[np.argsort(-sizes[firsts], kind="stable")]
    names = np.zeros(len(roots), np.int64)
    names[order] = np.arange(len(order))
    found: Numbers = names[roots]
    return found
