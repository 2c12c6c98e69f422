"""Selection of the best scores; numpy fallbacks: `engine.search.inverted_index`."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.engine.kernels.heaps import replace_least
from omnigraph.engine.kernels.native_library import Loop, NativeLibrary


def _best(scores: Any, rows: Any, whole: int, count: int, heap: Any, wanted: int, found: Any) -> int:
    for position in range(count):
        score = scores[position] if whole else scores[rows[position]]
        if score > heap[0]:
            replace_least(heap, wanted, score)
    last = heap[0]
    size = 0
    for position in range(count):
        score = scores[position] if whole else scores[rows[position]]
        if score > 0 and score >= last:
            found[size] = position
            size += 1
    return size


def _rank_counts(
    scores: Any, rows: Any, whole: int, count: int, wanted: Any, wanted_count: int, above: Any, equal: Any
) -> int:
    for position in range(count):
        score = scores[position] if whole else scores[rows[position]]
        if score > 0:
            for at in range(wanted_count):
                above[at] += score > wanted[at]
                equal[at] += score == wanted[at]
    return count


LOOPS = {
    "bm25_best": Loop(_best, ("float64*", "int64*", "int64", "int64", "float64&", "int64", "int64&")),
    "bm25_rank_counts": Loop(
        _rank_counts, ("float64*", "int64*", "int64", "int64", "float64*", "int64", "int64&", "int64&")
    ),
}


class Kernels:
    """Calls of the compiled loops."""

    def __init__(self, library: NativeLibrary) -> None:
        self._best = library.function("bm25_best", LOOPS["bm25_best"])
        self._rank_counts = library.function("bm25_rank_counts", LOOPS["bm25_rank_counts"])

    def best(self, scores: Any, rows: Any, whole: bool, wanted: int) -> Any:
        """Return the positions of the `wanted` best scores above 0, ties included."""
        count = len(scores) if whole else len(rows)
        found = np.empty(count, np.int64)
        size = self._best(scores, rows, whole, count, np.zeros(wanted), wanted, found)
        return found[:size].copy()

    def rank_counts(self, scores: Any, rows: Any, whole: bool, wanted: Any) -> tuple[Any, Any]:
        """Return for each wanted score how many scores are higher, and how many are equal."""
        count = len(scores) if whole else len(rows)
        above, equal = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
        self._rank_counts(scores, rows, whole, count, wanted, len(wanted), above, equal)
        return above, equal
