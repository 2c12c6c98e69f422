"""Compiled BM25 scoring and top-k selection; numpy fallbacks: `engine.search.inverted_index`."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, njit, types, uint16, uint32

from omnigraph.engine.kernels.heaps import replace_least

_ROWS = types.Array(uint32, 1, "C", readonly=True)
_NORMS = types.Array(float64, 1, "C", readonly=True)
_ROW_MAP = types.Array(int32, 1, "C", readonly=True)
_I64 = types.Array(int64, 1, "C", readonly=True)
_TWO = types.UniTuple(int64[::1], 2)  # type: ignore[no-untyped-call]
_COUNTS = [types.Array(kind, 1, "C", readonly=True) for kind in (uint16, uint32)]
_POSTINGS = [types.Tuple((_ROWS, counts)) for counts in _COUNTS]  # type: ignore[no-untyped-call]


@njit(
    [int64(float64[::1], postings, _NORMS, float64, _ROW_MAP, int64[::1], int64) for postings in _POSTINGS],
    nogil=True,
    cache=True,
)
def add(scores, postings, norms, weight, row_map, touched, size):  # type: ignore[no-untyped-def]
    """Add the score of one word to the rows that contain it; append rows that had no score to `touched`.

    `postings` are the rows and the number of occurrences in each. `row_map` maps rows of a segment to current rows; it
    is empty if they are the same. Returns the new size of `touched`.
    """
    rows, counts = postings
    moved = len(row_map) > 0
    for at in range(len(rows)):
        row = np.int64(row_map[rows[at]]) if moved else np.int64(rows[at])
        if row >= 0:
            count = np.float64(counts[at])
            if scores[row] == 0:
                touched[size] = row
                size += 1
            scores[row] += weight * count / (count + norms[row])
    return size


@njit([int64[::1](_NORMS, _I64, boolean, int64)], nogil=True, cache=True)
def best(scores, rows, whole, wanted):  # type: ignore[no-untyped-def]
    """Return the positions of the `wanted` best scores above 0, ties included."""
    count = len(scores) if whole else len(rows)
    heap = np.zeros(wanted, np.float64)
    for position in range(count):
        score = scores[position] if whole else scores[rows[position]]
        if score > heap[0]:
            replace_least(heap, score)
    last = heap[0]
    found = np.empty(count, np.int64)
    size = 0
    for position in range(count):
        score = scores[position] if whole else scores[rows[position]]
        if score > 0 and score >= last:
            found[size] = position
            size += 1
    return found[:size].copy()


@njit([_TWO(_NORMS, _I64, boolean, _NORMS)], nogil=True, cache=True)
def rank_counts(scores, rows, whole, wanted):  # type: ignore[no-untyped-def]
    """Return for each wanted score how many scores are higher, and how many are equal."""
    above = np.zeros(len(wanted), np.int64)
    equal = np.zeros(len(wanted), np.int64)
    for position in range(len(scores) if whole else len(rows)):
        score = scores[position] if whole else scores[rows[position]]
        if score > 0:
            for at in range(len(wanted)):
                above[at] += score > wanted[at]
                equal[at] += score == wanted[at]
    return above, equal
