"""Compiled traversal steps and row intersections; numpy fallbacks: `adjacency.bfs`, `exec.cycle_count`."""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, types

_I64 = types.Array(int64, 1, "C", readonly=True)
_I32 = types.Array(int32, 1, "C", readonly=True)


@njit([int64[::1](_I64, _I32, _I64, _I32, _I64, _I64, int64)], nogil=True, cache=True)
def common_counts(  # type: ignore[no-untyped-def]
    walked_offsets, walked_targets, closed_offsets, closed_targets, walkers, closers, size
):
    """Return for each walker the number of its neighbours that are neighbours of its closer, which are marked
    meanwhile.
    """
    counts = np.zeros(len(walkers), np.int64)
    marks = np.zeros(size, np.uint8)
    last = np.int64(-1)
    for row in range(len(walkers)):
        closer = closers[row]
        if closer != last:
            if last >= 0:
                for position in range(closed_offsets[last], closed_offsets[last + 1]):
                    marks[closed_targets[position]] = 0
            last = closer
            for position in range(closed_offsets[closer], closed_offsets[closer + 1]):
                marks[closed_targets[position]] = 1
        found = 0
        walker = walkers[row]
        for position in range(walked_offsets[walker], walked_offsets[walker + 1]):
            # Unsigned index avoids the wraparound check; this is the hot loop.
            found += marks[np.uint32(walked_targets[position])]
        counts[row] = found
    return counts


@njit([int64[::1](_I64, _I32, _I64, _I64, int32[::1], int32)], nogil=True, cache=True)
def step(offsets, targets, frontier, moved, stamp, mark):  # type: ignore[no-untyped-def]
    """Return the neighbours of a frontier without this mark, each once, and mark them; renumbered if rows moved."""
    is_moved = len(moved) > 0
    steps = 0
    for source in frontier:
        steps += offsets[source + 1] - offsets[source]
    found = np.empty(min(steps, len(stamp)), np.int64)
    count = 0
    for source in frontier:
        for position in range(offsets[source], offsets[source + 1]):
            target = moved[targets[position]] if is_moved else np.int64(targets[position])
            if stamp[target] != mark:
                stamp[target] = mark
                found[count] = target
                count += 1
    return found[:count].copy()
