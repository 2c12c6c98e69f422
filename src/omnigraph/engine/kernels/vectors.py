"""Selection of the rows that can be among the nearest; numpy fallback: `engine.search.vector_scan`."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.engine.kernels.heaps import replace_least
from omnigraph.engine.kernels.native_library import Loop, NativeLibrary


def _candidates(
    codes: Any,
    width: int,
    scales: Any,
    errors: Any,
    query: Any,
    step: float,
    slack: float,
    rows: Any,
    whole: int,
    count: int,
    best: Any,
    wanted: int,
    upper: Any,
    found: Any,
) -> int:
    for position in range(count):
        row = position if whole else rows[position]
        total = np.int32(0)
        start = row * width
        for at in range(width):
            total += np.int32(codes[start + at]) * np.int32(query[at])
        # The sum fits 32 bits; the cast lets the compiler keep the loop above in 32 bits.
        similarity = np.float32(np.int32(total)) * np.float32(scales[row] * step)
        error = errors[row] + np.float32(slack)
        upper[position] = similarity + error
        lower = similarity - error
        if lower > best[0]:
            replace_least(best, wanted, lower)
    last = best[0]
    size = 0
    for position in range(count):
        if upper[position] >= last:
            found[size] = position
            size += 1
    return size


_BLOCK = ("int8*", "int64", "float32*", "float32*")
LOOPS = {
    "vector_candidates": Loop(
        _candidates,
        (
            *_BLOCK,
            *("int16*", "float64", "float64", "int64*", "int64", "int64"),
            *("float32&", "int64", "float32&", "int64&"),
        ),
    )
}


class Kernels:
    """Calls of the compiled loop."""

    def __init__(self, library: NativeLibrary) -> None:
        self._candidates = library.function("vector_candidates", LOOPS["vector_candidates"])

    def candidates(
        self, block: tuple[Any, Any, Any], query: Any, step: float, slack: float, rows: Any, whole: bool, wanted: int
    ) -> Any:
        """Return the positions of the rows that can be among the `wanted` nearest, ties included.

        `block` are the codes, scales and errors of all vectors; `rows` are the candidates, unless `whole` selects all.
        """
        best = np.full(wanted, -np.inf, np.float32)
        return self._scan(block, query, step, slack, rows, whole, best)[1].copy()

    def bounds(self, block: tuple[Any, Any, Any], query: Any, step: float, slack: float, rows: Any, best: Any) -> Any:
        """Return the upper bounds of the similarities of some rows; update `best`, a heap of the best lower bounds."""
        return self._scan(block, query, step, slack, rows, False, best)[0]

    def _scan(
        self, block: tuple[Any, Any, Any], query: Any, step: float, slack: float, rows: Any, whole: bool, best: Any
    ) -> tuple[Any, Any]:
        codes, scales, errors = block
        count = len(codes) if whole else len(rows)
        upper, found = np.empty(count, np.float32), np.empty(count, np.int64)
        vectors = (codes, codes.shape[1], scales, errors)
        size = self._candidates(*vectors, query, step, slack, rows, whole, count, best, len(best), upper, found)
        return upper, found[:size]
