"""CSR adjacency: the neighbours of node `n` are `targets[offsets[n]:offsets[n + 1]]`.

`Csr` is a complete adjacency, built once. `csr_overlay` holds variants with the same interface. Each neighbour
of a node occurs once; in `Csr` they are in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.native import gather, slices, stoppable

U64 = np.ndarray[Any, np.dtype[np.uint64]]
I32 = np.ndarray[Any, np.dtype[np.int32]]
NONE: Numbers = np.zeros(0, np.int64)
Room = Callable[[int], None]
"""Told how many rows there are about to be; raises when they are too many."""


def unbounded(rows: int) -> None:
    """Room for any number of rows."""


class Neighbours(Protocol):
    """What every form of adjacency answers."""

    @property
    def count(self) -> int:
        """How many nodes can be asked about: those numbered below."""

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """For each source its far ends: (position in `sources`, far end)."""

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """The far ends of all sources together, as often as they occur."""

    def degrees(self, sources: Numbers) -> Numbers:
        """How many far ends each source has."""

    def totals(self, values: Numbers | None) -> Numbers:
        """For each node the sum of its far ends' values; without values each counts one."""

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Whether each pair is connected."""


@dataclass(frozen=True)
class Csr:
    """The far ends of every node."""

    offsets: Numbers
    targets: I32

    @property
    def count(self) -> int:
        """As in `Neighbours`."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return int(self.offsets.nbytes + self.targets.nbytes)

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """As in `Neighbours`."""
        if len(sources) == 1:
            ends = self.far(sources, room)
            return np.zeros(len(ends), np.int64), ends
        starts = self.offsets[sources]
        counts = self.offsets[sources + 1] - starts
        total = _total(counts, room)
        if total <= tuning.current.batch_values:
            return np.arange(len(sources)).repeat(counts), self.targets[ranges(starts, counts)].astype(np.int64)
        positions, targets = np.empty(total, np.int64), np.empty(total, np.int64)
        end = 0
        for some in slices(counts, tuning.current.batch_values):
            places = ranges(starts[some], counts[some])
            begin, end = end, end + len(places)
            positions[begin:end] = np.arange(some.start, some.stop).repeat(counts[some])
            targets[begin:end] = self.targets[places]
        return positions, targets

    def all_pairs(self) -> tuple[Numbers, Numbers]:
        """`expand` of every node."""
        return np.repeat(np.arange(self.count), np.diff(self.offsets)), self.targets.astype(np.int64)

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """As in `Neighbours`."""
        if len(sources) == 1:
            ends = self._row(sources[0])
            room(len(ends))
            return ends.astype(np.int64)
        starts = self.offsets[sources]
        counts = self.offsets[sources + 1] - starts
        total = _total(counts, room)
        if total <= tuning.current.batch_values:
            return self.targets[ranges(starts, counts)].astype(np.int64)
        targets, end = np.empty(total, np.int64), 0
        for some in slices(counts, tuning.current.batch_values):
            places = ranges(starts[some], counts[some])
            begin, end = end, end + len(places)
            targets[begin:end] = self.targets[places]
        return targets

    def degrees(self, sources: Numbers) -> Numbers:
        """As in `Neighbours`."""
        return self.offsets[sources + 1] - self.offsets[sources]

    def totals(self, values: Numbers | None) -> Numbers:
        """As in `Neighbours`."""
        if values is None:
            return np.diff(self.offsets)
        running = np.zeros(len(self.targets) + 1, np.int64)
        np.cumsum(values[self.targets], out=running[1:])
        sums: Numbers = running[self.offsets[1:]] - running[self.offsets[:-1]]
        return sums

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """As in `Neighbours`."""
        if not len(sources) or not len(self.targets):
            return np.zeros(len(sources), bool)
        if len(sources) == 1 or (sources == sources[0]).all():
            return contains(self._row(sources[0]), targets.astype(np.int32))
        places = self.positions_of(sources, targets)
        inside = np.minimum(places, len(self.targets) - 1)
        found: Mask = (places < self.offsets[sources + 1]) & (self.targets[inside] == targets)
        return found

    def positions_of(self, sources: Numbers, targets: Numbers | I32) -> Numbers:
        """Where in `targets` each pair is, or would be: all are looked for at once, each in its source's row."""
        start, end = self.offsets[sources], self.offsets[sources + 1]
        last = len(self.targets) - 1
        for _ in range(int((end - start).max(initial=0)).bit_length()):
            middle = (start + end) >> 1
            below = (middle < end) & (self.targets[np.minimum(middle, last)] < targets)
            start = np.where(below, middle + 1, start)
            end = np.where(below, end, middle)
        return start

    def _row(self, source: np.int64) -> I32:
        return self.targets[self.offsets[source] : self.offsets[source + 1]]


@dataclass(frozen=True)
class EdgeRows:
    """For each node the edges at it, and the node at the other end."""

    offsets: Numbers
    edges: I32
    targets: I32

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return int(self.offsets.nbytes + self.edges.nbytes + self.targets.nbytes)

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers, Numbers]:
        """For each source its edges: (position in `sources`, edge row, far end)."""
        starts = self.offsets[sources]
        counts = self.offsets[sources + 1] - starts
        _total(counts, room)
        places = in_slices(starts, counts)
        positions = np.repeat(np.arange(len(sources)), counts)
        return positions, gather(self.edges, places).astype(np.int64), gather(self.targets, places).astype(np.int64)

    def degrees(self, sources: Numbers) -> Numbers:
        """How many edges are at each source."""
        return self.offsets[sources + 1] - self.offsets[sources]


# -- making them -------------------------------------------------------------------------------------


def build(near: Numbers | I32, far: Numbers | I32, count: int) -> Csr:
    """Compressed rows of some pairs, in any order and however often each is there."""
    pairs = stoppable(lambda: distinct(pack(near, far)), len(near))
    return Csr(offsets_of((pairs >> np.uint64(32)).astype(np.int64), count), low(pairs).astype(np.int32))


def build_edge_rows(near: I32, far: I32, edges: I32, count: int) -> EdgeRows:
    """The edges of each node, in the order of their rows."""
    # One sort of packed numbers is several times faster than a stable argsort.
    order = stoppable(lambda: low(np.sort(pack(near, np.arange(len(near))))), len(near))
    return EdgeRows(offsets_of(near[order], count), edges[order], far[order])


def offsets_of(ordered: Numbers | I32, count: int) -> Numbers:
    """Where the rows of each node start, given the node of each row."""
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(ordered, minlength=count), out=offsets[1:])
    return offsets


def pack(high: Numbers | I32, low_: Numbers | I32) -> U64:
    """Two numbers as one, in the order of the first."""
    return (high.astype(np.uint64) << np.uint64(32)) | low_.astype(np.uint64)


def low(pairs: U64) -> Numbers:
    """The second number of each pair."""
    return (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)


def high(pairs: U64) -> Numbers:
    """The first number of each pair."""
    return (pairs >> np.uint64(32)).astype(np.int64)


def distinct(values: U64) -> U64:
    """Ascending, each once. (`np.unique` hashes when nothing else is asked of it, and is ten times slower.)"""
    values = np.sort(values)
    if len(values) < 2:
        return values
    keep = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=keep[1:])
    return values if keep.all() else values[keep]


def contains(ordered: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> Mask:
    """Which of the wanted are among the ordered."""
    if not len(ordered):
        return np.zeros(len(wanted), bool)
    places = np.minimum(ordered.searchsorted(wanted), len(ordered) - 1)
    found: Mask = ordered[places] == wanted
    return found


def _total(counts: Numbers, room: Room) -> int:
    """The sum of some counts, for which there is room."""
    total = int(counts.sum())
    room(total)
    return total


def in_slices(starts: Numbers, counts: Numbers) -> Numbers:
    """`ranges`, made in batches with checkpoints between them."""
    if int(counts.sum()) <= tuning.current.batch_values:
        return ranges(starts, counts)
    return np.concatenate([ranges(starts[some], counts[some]) for some in slices(counts, tuning.current.batch_values)])


def ranges(starts: Numbers, counts: Numbers) -> Numbers:
    """The concatenated ranges `start … start + count`."""
    ends: Numbers = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    if not total:
        return NONE
    shift: Numbers = starts - (ends - counts)
    places: Numbers = np.arange(total) + shift.repeat(counts)
    return places
