"""CSR adjacency whose arrays are read by range from an object store.

A hop reads the offsets of its nodes, then the ranges of their neighbours: two rounds of requests. When they are there,
the mapped files serve as a complete CSR for these nodes, also for compiled loops. Offsets are checked before they are
used: blocks are checked one by one, so a node whose two offsets are in different blocks could have a range that is
negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from omnigraph.engine.adjacency.csr import Csr, EdgeRows, Room, unbounded
from omnigraph.engine.cache.ranged_arrays import AnyArray, RangedArray, fetch, mapped_array
from omnigraph.engine.cache.table_cache import Mask, Numbers


class RangedRows:
    """Rows of a CSR: offsets, and arrays of values that they divide; at least one of them is read by range."""

    def __init__(self, offsets: AnyArray | RangedArray, values: Sequence[AnyArray | RangedArray]) -> None:
        self._offsets = offsets
        self._values = values
        self._entry = next(array.entry for array in (offsets, *values) if isinstance(array, RangedArray))

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self._offsets) - 1

    @property
    def nbytes(self) -> int:
        """The size in memory; the files are mapped."""
        return 0

    def ensure(self, sources: Numbers, room: Room = unbounded, *, values: bool = True) -> None:
        """Read the offsets of some nodes and, unless they are not needed, the values between them."""
        if isinstance(self._offsets, RangedArray):
            ends = np.concatenate([sources, sources + 1])
            self._entry.ensure([(self._offsets, self._offsets.blocks_of(ends))])
        if not values or not len(sources):
            return
        offsets = mapped_array(self._offsets)
        starts, stops = offsets[sources], offsets[sources + 1]
        self._entry.check(bool((starts <= stops).all()), "'offsets' is not ascending")
        room(int((stops - starts).sum()))
        fetch(self._values, lambda array: array.blocks_of_ranges(starts, stops))

    def mapped(self) -> list[AnyArray]:
        """Return the arrays as files. Only what was read is there."""
        return [mapped_array(array) for array in (self._offsets, *self._values)]

    def whole(self) -> list[AnyArray]:
        """Read and return the complete arrays."""
        return fetch([self._offsets, *self._values], lambda array: array.blocks)


class RangedCsr:
    """The neighbours of every node, of which those of some nodes are read."""

    def __init__(self, offsets: AnyArray | RangedArray, targets: AnyArray | RangedArray) -> None:
        self._rows = RangedRows(offsets, [targets])
        self._mapped = Csr(*self._rows.mapped())
        self.count = self._rows.count
        """The number of nodes."""
        self.nbytes = 0

    def of(self, sources: Numbers, room: Room = unbounded) -> Csr:
        """Read the neighbours of some nodes; return a CSR that is valid for them."""
        self._rows.ensure(sources, room)
        return self._mapped

    def compacted(self) -> Csr:
        """Read and return the complete CSR."""
        self._rows.whole()
        return self._mapped

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the neighbours of each source: (position in `sources`, neighbour)."""
        return self.of(sources, room).expand(sources, room)

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """Return the neighbours of all sources, with repetitions."""
        return self.of(sources, room).far(sources, room)

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of neighbours of each source."""
        self._rows.ensure(sources, values=False)
        return self._mapped.degrees(sources)

    def totals(self, values: Numbers | None) -> Numbers:
        """Return for each node the sum of its neighbours' values; without values, its degree."""
        return self.compacted().totals(values)

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Return for each pair whether an edge connects it."""
        return self.of(sources).connected(sources, targets)


class RangedEdgeRows:
    """The incident edges of every node, of which those of some nodes are read."""

    def __init__(
        self, offsets: AnyArray | RangedArray, edges: AnyArray | RangedArray, targets: AnyArray | RangedArray
    ) -> None:
        self._rows = RangedRows(offsets, [edges, targets])
        self._mapped = EdgeRows(*self._rows.mapped())
        self.count = self._rows.count
        """The number of nodes."""
        self.nbytes = 0

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each source: (position in `sources`, edge row, neighbour)."""
        self._rows.ensure(sources, room)
        return self._mapped.expand(sources, room)

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of edges of each source."""
        self._rows.ensure(sources, values=False)
        return self._mapped.degrees(sources)


def csr_of(offsets: AnyArray | RangedArray, targets: AnyArray | RangedArray) -> Csr | RangedCsr:
    """Return the CSR of two arrays."""
    if isinstance(offsets, RangedArray) or isinstance(targets, RangedArray):
        return RangedCsr(offsets, targets)
    return Csr(offsets, targets)


def edge_rows_of(arrays: Sequence[AnyArray | RangedArray]) -> EdgeRows | RangedEdgeRows:
    """Return the incident edges of three arrays: offsets, edges and targets."""
    if any(isinstance(array, RangedArray) for array in arrays):
        return RangedEdgeRows(*arrays)
    return EdgeRows(*cast("Sequence[AnyArray]", arrays))
