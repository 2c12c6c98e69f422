"""Blocking: candidate pairs that share a value, a rare token or a neighbouring vector. Not all pairs are compared.

A block is a set of rows with the same key: a normalised value, or a pair of tokens. Blocks with more rows than the
limit say little and are left out, so the number of pairs is linear in the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.operations.resolution.tokens import Numbers, TokenRows, distinct

BLOCK_MAX = 50
"""Maximum number of rows of a block."""
RARE_TOKENS = 3
"""The rarest tokens of a value that form blocks."""
_PLANES = 16
_TABLES = 8
_PAIRS_AT_ONCE = 4_000_000
_VECTORS_AT_ONCE = 65_536
Keyed = tuple[Numbers, Numbers]
"""Keys of blocks, and the row of each."""


def blocks_of(keys: Numbers, most: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the order of the rows by key, and the first place and the size of each block of 2 to `most` rows."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(keys) else order
    sizes = np.diff(starts, append=len(keys))
    chosen = (sizes > 1) & (sizes <= most)
    return order, starts[chosen], sizes[chosen]


def block_pairs(starts: Numbers, sizes: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the places of both rows of the pairs of all blocks, and at most some million at a time."""
    for size in distinct(sizes).tolist():
        checkpoint()
        chosen = starts[sizes == size]
        left, right = np.triu_indices(size, 1)
        step = max(1, _PAIRS_AT_ONCE // len(left))
        for first in range(0, len(chosen), step):
            places = chosen[first : first + step, None]
            yield (places + left).ravel(), (places + right).ravel()


def pairs_of_blocks(keys: Numbers, rows: Numbers, most: int = BLOCK_MAX) -> Numbers:
    """Return the pairs of rows with equal keys, as numbers `left * 2**32 + right` with left < right."""
    order, starts, sizes = blocks_of(keys, most)
    rows = rows[order]
    found: list[Numbers] = []
    for left, right in block_pairs(starts, sizes):
        a, b = rows[left], rows[right]
        found.append(distinct((np.minimum(a, b) << 32) + np.maximum(a, b)))
    return distinct(np.concatenate(found)) if found else np.zeros(0, np.int64)


def value_pairs(column: TokenRows, most: int = BLOCK_MAX) -> Numbers:
    """Return the pairs of rows with equal normalised values."""
    rows = np.flatnonzero(column.values >= 0)
    return pairs_of_blocks(column.values[rows], rows, most)


def token_pairs(column: TokenRows, most: int = BLOCK_MAX, rare: int = RARE_TOKENS) -> Numbers:
    """Return the pairs of rows that share one of their rarest tokens, or two of them if these are frequent."""
    keyed = token_keys(column.rows, column.tokens, column.frequencies[column.tokens], len(column.words), rare)
    return distinct(np.concatenate([pairs_of_blocks(keys, rows, most) for keys, rows in keyed]))


def token_keys(
    rows: Numbers, tokens: Numbers, frequencies: Numbers, words: int, rare: int = RARE_TOKENS
) -> tuple[Keyed, Keyed]:
    """Return the keys of single tokens and of two tokens: of the rarest of each row, equals in order of their number.

    `rows`, `tokens` and `frequencies` have one value per token of a row, by row. A token of one row has no key.
    """
    order = np.lexsort((tokens, frequencies, rows))
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))
    place = np.arange(len(order)) - np.repeat(firsts, np.diff(firsts, append=len(order)))
    kept = order[place < rare]
    kept = kept[frequencies[kept] > 1]
    rows, tokens = rows[kept], tokens[kept]
    # Frequent tokens form blocks in twos: first and last name.
    position = np.arange(len(rows)) - np.searchsorted(rows, rows)
    keys, owners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for distance in range(1, rare):
        here = np.flatnonzero(position >= distance)
        one, other = tokens[here - distance], tokens[here]
        keys.append(np.minimum(one, other) * words + np.maximum(one, other))
        owners.append(rows[here])
    return (tokens, rows), (np.concatenate(keys), np.concatenate(owners))


def vector_pairs(vectors: np.ndarray[Any, np.dtype[np.float32]], rows: Numbers, most: int = BLOCK_MAX) -> Numbers:
    """Return the pairs of rows whose vectors lie on the same side of random planes, in one of several tables."""
    found = [pairs_of_blocks(keys, rows, most) for keys in vector_keys(vectors)]
    return distinct(np.concatenate([np.zeros(0, np.int64), *found]))


def vector_keys(vectors: np.ndarray[Any, np.dtype[np.float32]]) -> list[Numbers]:
    """Return the sides of random planes on which each vector lies, in several tables."""
    random = np.random.default_rng(7)
    found: list[Numbers] = []
    for _ in range(_TABLES if len(vectors) else 0):
        # Products of 64 bits have the same sign, whatever number of vectors is multiplied at once.
        planes = random.standard_normal((vectors.shape[1], _PLANES)).astype(np.float32).astype(np.float64)
        keys = np.zeros(len(vectors), np.int64)
        for first in range(0, len(vectors), _VECTORS_AT_ONCE):
            checkpoint()
            part = slice(first, first + _VECTORS_AT_ONCE)
            keys[part] = (vectors[part] @ planes > 0) @ (1 << np.arange(_PLANES))
        found.append(keys)
    return found


def all_pairs(parts: Sequence[Numbers] | Iterator[Numbers]) -> tuple[Numbers, Numbers]:
    """Return the distinct pairs of several sources, as left and right rows."""
    found = distinct(np.concatenate([np.zeros(0, np.int64), *parts]))
    return found >> 32, found & 0xFFFFFFFF
