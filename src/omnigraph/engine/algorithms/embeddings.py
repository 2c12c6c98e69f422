"""Node embeddings from random walks: nodes that short random walks lead to the same places have similar vectors.

The method is FastRP: a sparse random projection of the probabilities that a walk of 1, 2, … steps from a node ends at
each other node, computed by repeated averaging over neighbours without drawing walks or building that matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.edge_list import EdgeList, Floats, Symmetric

_CELLS = 8_000_000
"""Number of gathered values in memory at a time."""


def walk_embeddings(edges: EdgeList, *, dimensions: int, steps: Sequence[float], seed: int) -> Floats:
    """Return a vector of length 1 for each node; `steps` are the weights of walks of 1, 2, … steps.

    A node without neighbours has the vector 0. Direction does not count; weights are those of the walk.
    """
    graph = Symmetric.of(edges)
    vectors = projection(edges.count, dimensions, seed)
    shares = graph.weights / np.where(graph.strengths > 0, graph.strengths, 1.0)[graph.sources]
    total = np.zeros_like(vectors)
    for weight in steps:
        vectors = _averaged(graph, shares, vectors)
        total += weight * normalized(vectors)
    return normalized(total)


def projection(count: int, dimensions: int, seed: int) -> Floats:
    """Return a random matrix whose entries are -√3, 0 or √3 with the probabilities 1/6, 2/3, 1/6."""
    drawn = np.random.default_rng(seed).integers(0, 6, (count, dimensions))
    found: Floats = np.sqrt(3.0) * ((drawn == 0).astype(float) - (drawn == 1).astype(float))
    return found


def _averaged(graph: Symmetric, shares: Floats, vectors: Floats) -> Floats:
    """Return for each node the mean of the vectors of its neighbours."""
    found = np.zeros_like(vectors)
    ends = np.searchsorted(graph.sources, np.arange(graph.count + 1))
    first, width = 0, max(1, _CELLS // max(vectors.shape[1], 1))
    while first < graph.count:
        checkpoint()
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + width, side="right")) - 1)
        part = slice(int(ends[first]), int(ends[last]))
        filled = first + np.flatnonzero(np.diff(ends[first : last + 1]))
        if len(filled):
            gathered = vectors[graph.targets[part]] * shares[part, None]
            found[filled] = np.add.reduceat(gathered, ends[filled] - ends[first], axis=0)
        first = last
    return found


def normalized(vectors: Floats) -> Floats:
    """Return vectors of length 1; the vector 0 stays."""
    lengths = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    found: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return found
