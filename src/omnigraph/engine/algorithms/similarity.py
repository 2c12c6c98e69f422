"""Similarity of nodes by the neighbours that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.edge_list import EdgeList, Floats, Neighbors
from omnigraph.engine.cache.table_cache import Mask, Numbers

Measure = Literal["jaccard", "cosine"]
Direction = Literal["out", "in", "both"]
_PAIRS = 4_000_000
"""Number of candidate pairs in memory at a time, unless one node has more."""


@dataclass(frozen=True)
class SimilarPairs:
    """Pairs of nodes with their similarity, sorted by node, then by descending similarity."""

    nodes: Numbers
    others: Numbers
    values: Floats
    hubs: int
    """Number of neighbours that were left out because too many nodes have them."""


def similar_nodes(
    edges: EdgeList, *, measure: Measure, limit: int, least: float, degree_max: int, direction: Direction
) -> SimilarPairs:
    """Return for each node the `limit` most similar nodes with a similarity of at least `least`.

    Jaccard is the number of shared neighbours divided by the number of neighbours of either node; cosine divides by the
    geometric mean of their numbers. A neighbour of more than `degree_max` nodes says little about them and makes the
    number of pairs quadratic; it does not count.
    """
    lists, back = {
        "out": (edges.outgoing, edges.incoming),
        "in": (edges.incoming, edges.outgoing),
        "both": (edges.both, edges.both),
    }[direction]
    kept = back.degrees <= degree_max
    hubs = int(np.count_nonzero(~kept))
    if hubs:
        lists = _without(lists, kept)
    starts = np.concatenate([[0], np.cumsum(_pair_counts(lists, back))])
    found, first = [], 0
    while first < edges.count:
        checkpoint()
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + _PAIRS, side="right")) - 1)
        found.append(_most_similar(lists, back, np.arange(first, last), measure, limit, least))
        first = last
    none = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    nodes, others, values = (np.concatenate(column) for column in zip(none, *found, strict=True))
    return SimilarPairs(nodes, others, values, hubs)


def _without(lists: Neighbors, kept: Mask) -> Neighbors:
    """Return neighbour lists without some neighbours."""
    counts = np.concatenate([[0], np.cumsum(kept[lists.nodes])])
    return Neighbors(counts[lists.offsets], lists.nodes[kept[lists.nodes]])


def _pair_counts(lists: Neighbors, back: Neighbors) -> Numbers:
    """Return for each node the number of ways to a neighbour and back to a node."""
    sums = np.concatenate([[0], np.cumsum(back.degrees[lists.nodes])])
    found: Numbers = np.diff(sums[lists.offsets])
    return found


def _most_similar(
    lists: Neighbors, back: Neighbors, nodes: Numbers, measure: Measure, limit: int, least: float
) -> tuple[Numbers, Numbers, Floats]:
    neighbors, owners = lists.of(nodes)
    others, places = back.of(neighbors)
    firsts = nodes[owners[places]]
    different = firsts != others
    count = len(lists.degrees)
    keys, shared = np.unique(firsts[different] * count + others[different], return_counts=True)
    firsts, others = np.divmod(keys, count)
    sizes = lists.degrees[firsts], lists.degrees[others]
    if measure == "jaccard":
        values = shared / (sizes[0] + sizes[1] - shared)
    else:
        values = shared / np.sqrt(sizes[0].astype(float) * sizes[1])
    close = values >= least
    firsts, others, values = firsts[close], others[close], values[close]
    order = np.lexsort((others, -values, firsts))
    firsts, others, values = firsts[order], others[order], values[order]
    starts = np.flatnonzero(np.diff(firsts, prepend=-1))
    ranks = np.arange(len(firsts)) - np.repeat(starts, np.diff(np.append(starts, len(firsts))))
    top = ranks < limit
    return firsts[top], others[top], values[top]
