"""Compiled: the sum of what a mask picks out. The twin is in `omnigraph.engine.totals`."""

from __future__ import annotations

import numpy as np
from numba import boolean, float32, float64, int32, int64, njit, types, uint32, uint64

_MASK = types.Array(boolean, 1, "C", readonly=True)
_NUMBERS = [types.Array(kind, 1, "C", readonly=True) for kind in (float64, float32, int32, int64, uint32, uint64)]


# In any order, so that several are added at a time; a choice instead of a branch, which would be guessed wrongly.
@njit([float64(values, _MASK) for values in _NUMBERS], nogil=True, cache=True, fastmath={"reassoc", "nsz"})
def masked_sum(values, passing):  # type: ignore[no-untyped-def]
    """The sum of the values that pass, as a 64-bit float."""
    total = 0.0
    for place in range(len(values)):
        total += np.float64(values[place]) if passing[place] else 0.0
    return total
