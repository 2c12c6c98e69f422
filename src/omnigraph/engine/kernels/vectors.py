"""Selection of the rows that can be among the nearest; numpy fallback: `engine.search.vector_codes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.engine.kernels.heaps import replace_least
from omnigraph.engine.kernels.native_library import Loop, NativeLibrary


def _near(
    codes: Any,
    width: int,
    scales: Any,
    errors: Any,
    query: Any,
    step: float,
    slack: float,
    share: float,
    rows: Any,
    whole: int,
    count: int,
    best: Any,
    wanted: int,
    found: Any,
    similarities: Any,
    margins: Any,
) -> int:
    size = 0
    for position in range(count):
        row = position if whole else rows[position]
        total = np.int32(0)
        start = row * width
        for at in range(width):
            total += np.int32(codes[start + at]) * np.int32(query[at])
        # The sum fits 32 bits; the cast lets the compiler keep the loop above in 32 bits.
        similarity = np.float32(np.int32(total)) * np.float32(scales[row] * step)
        margin = (errors[row] + np.float32(slack)) * np.float32(share)
        if similarity + margin >= best[0]:
            found[size] = position
            similarities[size] = similarity
            margins[size] = margin
            size += 1
            if similarity - margin > best[0]:
                replace_least(best, wanted, similarity - margin)
    # The bound was lower when the first rows were compared with it.
    kept = 0
    for place in range(size):
        if similarities[place] + margins[place] >= best[0]:
            found[kept] = found[place]
            similarities[kept] = similarities[place]
            margins[kept] = margins[place]
            kept += 1
    return kept


LOOPS = {
    "vectors_near": Loop(
        _near,
        (
            *("int8*", "int64", "float32*", "float32*"),
            *("int16*", "float64", "float64", "float64"),
            *("int64*", "int64", "int64"),
            *("float32&", "int64", "int64&", "float32&", "float32&"),
        ),
    )
}


class Kernels:
    """Calls of the compiled loop."""

    def __init__(self, library: NativeLibrary) -> None:
        self._near = library.function("vectors_near", LOOPS["vectors_near"])

    def near(
        self,
        vectors: tuple[Any, Any, Any],
        query: tuple[Any, float, float],
        rows: Any | None,
        best: Any,
        share: float,
    ) -> tuple[Any, Any, Any]:
        """Return the positions in `rows` (None: all) of the rows that can be among the nearest, with their
        similarities and margins; update `best`, a heap of the best lower bounds.

        `vectors` are codes, scales and errors, `query` codes, step and slack.
        """
        codes, scales, errors = vectors
        count = len(codes) if rows is None else len(rows)
        found = np.empty(count, np.int64)
        similarities, margins = np.empty(count, np.float32), np.empty(count, np.float32)
        chosen = np.zeros(0, np.int64) if rows is None else rows
        size = self._near(
            *(codes, codes.shape[1], scales, errors, *query, share),
            *(chosen, rows is None, count, best, len(best), found, similarities, margins),
        )
        return found[:size].copy(), similarities[:size].copy(), margins[:size].copy()
