"""PageRank."""

from __future__ import annotations

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.edge_list import EdgeList, Floats


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
