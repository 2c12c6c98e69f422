"""The mock provider: deterministic vectors from a hash of the text, offline.

The vectors carry no meaning: any two texts are equally far apart on average. Model and role have no effect. The
algorithm is fixed to the bit; tests of other programs rely on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.embedding.vectors import NORM_MIN, Vectors, norms
from omnigraph.hashing import fnv1a

_TEXTS_PER_BLOCK = 4_096


def mock_vectors(texts: Sequence[str], dim: int) -> Vectors:
    """Return one vector of length 1 per text."""
    vectors = np.empty((len(texts), dim), np.float32)
    for start in range(0, len(texts), _TEXTS_PER_BLOCK):
        block = texts[start : start + _TEXTS_PER_BLOCK]
        vectors[start : start + len(block)] = _block(block, dim)
    return vectors


def _block(texts: Sequence[str], dim: int) -> Vectors:
    state = fnv1a([text.encode() for text in texts])
    raw = np.empty((dim, len(texts)), np.float32)
    for place in range(dim):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        raw[place] = state.astype(np.float64) / 18_446_744_073_709_551_616.0
    raw *= np.float32(2)
    raw -= np.float32(1)
    vectors = np.ascontiguousarray(raw.T)
    lengths = norms(vectors)
    lengths[lengths <= NORM_MIN] = 1  # unchanged
    vectors /= lengths[:, np.newaxis]
    return vectors
