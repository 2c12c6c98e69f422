"""Blocking: candidate pairs that share a value, a rare token or a neighbouring vector. Not all pairs are compared.

A block is a set of rows with the same key: a normalised value, or a pair of tokens. Blocks with more rows than the
limit say little and are left out, so the number of pairs is linear in the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.operations.resolution.tokens import Numbers, TokenRows

BLOCK_MAX = 50
"""Maximum number of rows of a block."""
RARE_TOKENS = 3
"""The rarest tokens of a value that form blocks."""
_PLANES = 16
_TABLES = 8
_PAIRS_AT_ONCE = 4_000_000


def pairs_of_blocks(keys: Numbers, rows: Numbers, most: int = BLOCK_MAX) -> Numbers:
    """Return the pairs of rows with equal keys, as numbers `left * 2**32 + right` with left < right."""
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1]))) if len(keys) else np.zeros(0, np.int64)
    sizes = np.diff(np.concatenate((starts, [len(keys)])))
    found: list[Numbers] = []
    for size in np.unique(sizes[(sizes > 1) & (sizes <= most)]).tolist():
        checkpoint()
        chosen = starts[sizes == size]
        left, right = np.triu_indices(size, 1)
        step = max(1, _PAIRS_AT_ONCE // len(left))
        for first in range(0, len(chosen), step):
            members = rows[chosen[first : first + step, None] + np.arange(size)]
            a, b = members[:, left].ravel(), members[:, right].ravel()
            found.append(np.unique((np.minimum(a, b) << 32) + np.maximum(a, b)))
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


def value_pairs(column: TokenRows, most: int = BLOCK_MAX) -> Numbers:
    """Return the pairs of rows with equal normalised values."""
    rows = np.flatnonzero(column.values >= 0)
    return pairs_of_blocks(column.values[rows], rows, most)


def token_pairs(column: TokenRows, most: int = BLOCK_MAX, rare: int = RARE_TOKENS) -> Numbers:
    """Return the pairs of rows that share one of their rarest tokens, or two of them if these are frequent."""
    frequency = column.frequencies[column.tokens]
    order = np.lexsort((column.tokens, frequency, column.rows))
    place = np.arange(len(order)) - column.starts[column.rows[order]]
    kept = order[place < rare]
    rows, tokens = column.rows[kept], column.tokens[kept]
    common = column.frequencies[tokens] > 1
    rows, tokens = rows[common], tokens[common]
    single = pairs_of_blocks(tokens, rows, most)
    # Frequent tokens form blocks in twos: first and last name.
    position = np.arange(len(rows)) - np.searchsorted(rows, rows)
    twos: list[tuple[Numbers, Numbers]] = []
    for distance in range(1, rare):
        here = np.flatnonzero(position >= distance)
        low, high = np.sort(np.stack([tokens[here - distance], tokens[here]]), axis=0)
        twos.append((low * len(column.words) + high, rows[here]))
    keys = np.concatenate([key for key, _ in twos]) if twos else np.zeros(0, np.int64)
    owners = np.concatenate([row for _, row in twos]) if twos else np.zeros(0, np.int64)
    return np.union1d(single, pairs_of_blocks(keys, owners, most))


def vector_pairs(vectors: np.ndarray[Any, np.dtype[np.float32]], rows: Numbers, most: int = BLOCK_MAX) -> Numbers:
    """Return the pairs of rows whose vectors lie on the same side of random planes, in one of several tables."""
    random = np.random.default_rng(7)
    found: Numbers = np.zeros(0, np.int64)
    for _ in range(_TABLES if len(rows) else 0):
        checkpoint()
        planes = random.standard_normal((vectors.shape[1], _PLANES)).astype(np.float32)
        signs = (vectors @ planes > 0).astype(np.int64)
        found = np.union1d(found, pairs_of_blocks(signs @ (1 << np.arange(_PLANES)), rows, most))
    return found


def all_pairs(parts: Sequence[Numbers] | Iterator[Numbers]) -> tuple[Numbers, Numbers]:
    """Return the distinct pairs of several sources, as left and right rows."""
    found = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
    return found >> 32, found & 0xFFFFFFFF
