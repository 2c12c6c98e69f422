"""Compiled selection of the rows that can be among the nearest; numpy fallback: `engine.search.vector_scan`."""

from __future__ import annotations

import numpy as np
from numba import boolean, float32, float64, int8, int16, int64, njit, types

from omnigraph.engine.kernels.heaps import replace_least

_I8 = types.Array(int8, 2, "C", readonly=True)
_F32 = types.Array(float32, 1, "C", readonly=True)
_I64 = types.Array(int64, 1, "C", readonly=True)
_BLOCK = types.Tuple((_I8, _F32, _F32))  # type: ignore[no-untyped-call]
_Q = types.Array(int16, 1, "C", readonly=True)


@njit([int64[::1](_BLOCK, _Q, float64, float32, _I64, boolean, int64)], nogil=True, cache=True)
def candidates(block, query, step, slack, rows, whole, wanted):  # type: ignore[no-untyped-def]
    """Return the positions of the rows that can be among the `wanted` nearest, ties included.

    `block` are the codes, scales and errors of all vectors; `rows` are the candidates, unless `whole` selects all.
    """
    codes, scales, errors = block
    count = len(codes) if whole else len(rows)
    width = codes.shape[1]
    upper = np.empty(count, np.float32)
    best = np.full(wanted, -np.inf, np.float32)
    for position in range(count):
        row = position if whole else rows[position]
        total = np.int32(0)
        code = codes[row]
        for at in range(width):
            total += np.int32(code[at]) * np.int32(query[at])
        # The sum fits 32 bits; the cast lets the compiler keep the loop above in 32 bits.
        similarity = np.float32(np.int32(total)) * np.float32(scales[row] * step)
        error = errors[row] + slack
        upper[position] = similarity + error
        lower = similarity - error
        if lower > best[0]:
            replace_least(best, lower)
    last = best[0]
    found = np.empty(count, np.int64)
    size = 0
    for position in range(count):
        if upper[position] >= last:
            found[size] = position
            size += 1
    return found[:size].copy()
