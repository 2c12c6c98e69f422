"""Number of closed walks: common neighbours of two nodes, counted without materialising them."""

from __future__ import annotations

import numpy as np

from omnigraph.engine import kernels, tuning
from omnigraph.engine.adjacency.csr import Csr
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.native_calls import slices


def common_counts(walked: Csr, walkers: Numbers, closed: Csr, closers: Numbers, *, steps: int, size: int) -> Numbers:
    """Return for each pair (walker, closer) the number of neighbours of the walker that are neighbours of the closer.

    `steps` is the sum of the degrees of the walkers, `size` the number of nodes that can be neighbours.
    """
    if steps <= tuning.current.cycle_expand_steps_max:
        positions, ends = walked.expand(walkers)
        hits = closed.connected(closers[positions], ends)
        return np.bincount(positions[hits], minlength=len(walkers))
    order = np.argsort(closers, kind="stable") if len(closers) > 1 and (closers[1:] < closers[:-1]).any() else None
    if order is not None:
        walkers, closers = walkers[order], closers[order]
    loops = kernels.find("bfs_kernels", steps * tuning.current.cycle_fallback_s)
    if loops is not None:
        arrays = (walked.offsets, walked.targets, closed.offsets, closed.targets)
        counts: Numbers = np.empty(len(walkers), np.int64)
        for some in slices(walked.degrees(walkers), tuning.current.cycle_kernel_batch_steps):
            counts[some] = loops.common_counts(*arrays, walkers[some], closers[some], size)
    else:
        with kernels.timed_fallback():
            counts = common_counts_fallback(walked, walkers, closed, closers, size)
    if order is None:
        return counts
    back = np.empty_like(counts)
    back[order] = counts
    return back


def common_counts_fallback(walked: Csr, walkers: Numbers, closed: Csr, closers: Numbers, size: int) -> Numbers:
    """The numpy fallback of `common_counts` for closers in ascending order: groups of closers mark their neighbours."""
    counts = np.zeros(len(walkers), np.int64)
    starts = np.flatnonzero(np.concatenate([[True], closers[1:] != closers[:-1]])) if len(closers) else closers
    at_once = max(1, tuning.current.cycle_mark_cells // max(size, 1))
    marks = np.zeros((min(at_once, len(starts)), size), bool)
    for first in range(0, len(starts), at_once):
        groups = starts[first : first + at_once]
        end = int(starts[first + at_once]) if first + at_once < len(starts) else len(closers)
        at, targets = closed.expand(closers[groups])
        marks[at, targets] = True
        group = np.repeat(np.arange(len(groups)), np.diff(np.append(groups, end)))
        for some in slices(walked.degrees(walkers[groups[0] : end]), tuning.current.cycle_batch_steps):
            rows = slice(int(groups[0]) + some.start, int(groups[0]) + some.stop)
            positions, ends = walked.expand(walkers[rows])
            hits = marks[group[some][positions], ends]
            counts[rows] = np.bincount(positions[hits], minlength=rows.stop - rows.start)
        marks[at, targets] = False
    return counts
