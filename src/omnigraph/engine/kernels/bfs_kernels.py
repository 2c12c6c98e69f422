"""Traversal steps, tests of pairs and row intersections; numpy fallbacks: `adjacency.bfs`, `adjacency.csr`,
`exec.cycle_count`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from omnigraph.engine.kernels.addresses import BOOL, INT64, address_of
from omnigraph.engine.kernels.native_library import Loop, NativeLibrary


def _common_counts(
    walked_offsets: Any,
    walked_targets: Any,
    closed_offsets: Any,
    closed_targets: Any,
    walkers: Any,
    closers: Any,
    rows: int,
    marks: Any,
    counts: Any,
) -> int:
    last = np.int64(-1)
    for row in range(rows):
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
            found += marks[walked_targets[position]]
        counts[row] = found
    return rows


def _step(
    offsets: Any, targets: Any, frontier: Any, size: int, moved: Any, is_moved: int, stamp: Any, mark: int, found: Any
) -> int:
    count = 0
    for at in range(size):
        source = frontier[at]
        for position in range(offsets[source], offsets[source + 1]):
            target = moved[targets[position]] if is_moved else np.int64(targets[position])
            # A deleted node has the number -1.
            if target >= 0 and stamp[target] != mark:
                stamp[target] = mark
                found[count] = target
                count += 1
    return count


def _connected(offsets: Any, targets: Any, nodes: int, sources: Any, ends: Any, count: int, found: Any) -> int:
    for at in range(count):
        source = sources[at]
        if source < 0 or source >= nodes:
            return at
        end = ends[at]
        low = offsets[source]
        stop = offsets[source + 1]
        high = stop
        while low < high:
            middle = (low + high) >> 1
            if targets[middle] < end:
                low = middle + 1
            else:
                high = middle
        found[at] = low < stop and targets[low] == end
    return count


_CSR = ("int64*", "int32*")
LOOPS = {
    "common_counts": Loop(_common_counts, (*_CSR, *_CSR, "int64*", "int64*", "int64", "uint8&", "int64&")),
    "connected": Loop(_connected, (*_CSR, "int64", "int64*", "int64*", "int64", "uint8&")),
    "step": Loop(_step, (*_CSR, "int64*", "int64", "int64*", "int64", "int32&", "int64", "int64&")),
}


class Kernels:
    """Calls of the compiled loops."""

    def __init__(self, library: NativeLibrary) -> None:
        self._common_counts = library.function("common_counts", LOOPS["common_counts"])
        self._connected = library.pointer("connected", LOOPS["connected"])
        self._step = library.pointer("step", LOOPS["step"])

    def common_counts(
        self,
        walked_offsets: Any,
        walked_targets: Any,
        closed_offsets: Any,
        closed_targets: Any,
        walkers: Any,
        closers: Any,
        size: int,
    ) -> Any:
        """Return for each walker the number of its neighbours that are neighbours of its closer, which are marked
        meanwhile. `size` is the number of nodes.
        """
        rows, marks = len(walkers), np.zeros(size, np.uint8)
        counts = np.empty(rows, np.int64)
        walked, closed = (walked_offsets, walked_targets), (closed_offsets, closed_targets)
        self._common_counts(*walked, *closed, walkers, closers, rows, marks, counts)
        return counts

    def connected(self, csr: tuple[int, int], nodes: int, sources: Any, ends: Any, found: Any) -> None:
        """Write for each pair whether an edge connects it; `csr` has the addresses of the offsets and targets."""
        pairs = address_of(sources, INT64), address_of(ends, INT64)
        tested = self._connected(*csr, nodes, *pairs, len(sources), address_of(found, BOOL, written=True))
        if tested < len(sources):
            raise IndexError(f"node {sources[tested]} is out of range: there are {nodes:,}")

    def step(self, csr: tuple[int, int], frontier: Any, moved: int, stamp: int, mark: int, found: int) -> int:
        """Write the neighbours of a frontier without this mark to `found`, each once, and mark them; return their
        number.

        Arrays other than the frontier are addresses: `csr` those of the offsets and targets, `moved` that of the new
        numbers of moved rows, or 0. `found` has room for every node.
        """
        at, size = address_of(frontier, INT64), len(frontier)
        return self._step(*csr, at, size, moved, moved, stamp, mark, found)
