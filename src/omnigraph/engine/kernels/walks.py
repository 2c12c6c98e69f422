"""Compiled: steps of a walk, and what two rows have in common. The twins are in `engine.walks` and `engine.closing`."""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, types

_I64 = types.Array(int64, 1, "C", readonly=True)
_I32 = types.Array(int32, 1, "C", readonly=True)


@njit([int64[::1](_I64, _I32, _I64, _I32, _I64, _I64, int64)], nogil=True, cache=True)
def common_counts(  # type: ignore[no-untyped-def]
    walked_offsets, walked_targets, closed_offsets, closed_targets, walkers, closers, size
):
    """How many far ends of each walker are far ends of its closer; those carry its stamp while it is its turn."""
    counts = np.zeros(len(walkers), np.int64)
    stamp = np.full(size, -1, np.int32)
    last = np.int64(-1)
    for row in range(len(walkers)):
        closer = closers[row]
        if closer != last:
            last = closer
            for place in range(closed_offsets[closer], closed_offsets[closer + 1]):
                stamp[closed_targets[place]] = closer
        found = 0
        for place in range(walked_offsets[walkers[row]], walked_offsets[walkers[row] + 1]):
            if stamp[walked_targets[place]] == closer:
                found += 1
        counts[row] = found
    return counts


@njit([int64[::1](_I64, _I32, _I64, int32[::1], int32, int64)], nogil=True, cache=True)
def step(offsets, targets, frontier, stamp, mark, steps):  # type: ignore[no-untyped-def]
    """The far ends of a frontier that have not this mark yet, each once, now marked."""
    found = np.empty(min(steps, len(stamp)), np.int64)
    count = 0
    for source in frontier:
        for place in range(offsets[source], offsets[source + 1]):
            target = targets[place]
            if stamp[target] != mark:
                stamp[target] = mark
                found[count] = target
                count += 1
    return found[:count].copy()
