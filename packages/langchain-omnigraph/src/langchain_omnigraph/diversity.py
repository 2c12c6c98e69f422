"""Maximal marginal relevance: the choice of relevant hits that differ from each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def diverse(distances: Sequence[float], vectors: Sequence[Sequence[float]], k: int, lambda_mult: float) -> list[int]:
    """Return the indexes of at most `k` hits by maximal marginal relevance.

    `distances` are cosine distances of the hits to the query, so the vector of the query is not required. The next hit
    maximises `lambda_mult` · relevance − (1 − `lambda_mult`) · the largest similarity to a chosen hit.
    """
    if not len(vectors):
        return []
    relevance: NDArray[Any] = 1.0 - np.asarray(distances, dtype=np.float64)
    matrix = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    chosen = [int(np.argmax(relevance))]
    nearest_chosen = unit @ unit[chosen[0]]
    while len(chosen) < min(k, len(unit)):
        score = lambda_mult * relevance - (1 - lambda_mult) * nearest_chosen
        score[chosen] = -np.inf
        best = int(np.argmax(score))
        chosen.append(best)
        nearest_chosen = np.maximum(nearest_chosen, unit @ unit[best])
    return chosen[:k]
