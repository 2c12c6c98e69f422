"""CSR adjacency: the neighbours of node `n` are `targets[offsets[n]:offsets[n + 1]]`.

`Csr` is a complete adjacency. `csr_overlay` holds variants for incremental maintenance. All implement `Neighbours`. A
neighbour of a node occurs once; in `Csr` neighbours are in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

import numpy as np

from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache.table_cache import Mask, Numbers, unmapped_bytes
from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.exec.native_calls import batches, gather, interruptible, slices
from omnigraph.engine.kernels.addresses import INT32, INT64, address_of
from omnigraph.fast_dataclass import dataclass

U64 = np.ndarray[Any, np.dtype[np.uint64]]
_Integers = TypeVar("_Integers", U64, Numbers)
I32 = np.ndarray[Any, np.dtype[np.int32]]
EMPTY: Numbers = np.zeros(0, np.int64)
SORTED_EDGE_BYTES = 40
"""Memory per edge of a sort."""
_PIECE = 1 << 22
"""Values of a mapped array that are processed at a time."""
Room = Callable[[int], None]
"""Called with the number of rows before they are produced; raises if there are too many."""


def unbounded(rows: int) -> None:
    """Accept any number of rows."""


class Neighbours(Protocol):
    """Neighbours by node number, in every representation."""

    @property
    def count(self) -> int:
        """The number of nodes."""

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the neighbours of each source: (position in `sources`, neighbour)."""

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """Return the neighbours of all sources, with repetitions."""

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of neighbours of each source."""

    def totals(self, values: Numbers | None) -> Numbers:
        """Return for each node the sum of its neighbours' values; without values, its degree."""

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Return for each pair whether an edge connects it."""


class IncidentRows(Protocol):
    """Incident edges by node number, in every representation."""

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each source: (position in `sources`, edge row, neighbour)."""

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of edges of each source."""


@dataclass(frozen=True)
class Csr:
    """The neighbours of every node as compressed sparse rows."""

    offsets: Numbers
    targets: I32

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.offsets) - 1

    @cached_property
    def addresses(self) -> tuple[int, int]:
        """The addresses of the offsets and targets, for compiled kernels."""
        return address_of(self.offsets, INT64), address_of(self.targets, INT32)

    @property
    def nbytes(self) -> int:
        """The size in memory; mapped arrays count 0."""
        return unmapped_bytes(self.offsets, self.targets)

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the neighbours of each source: (position in `sources`, neighbour)."""
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
            entries = ranges(starts[some], counts[some])
            begin, end = end, end + len(entries)
            positions[begin:end] = np.arange(some.start, some.stop).repeat(counts[some])
            targets[begin:end] = self.targets[entries]
        return positions, targets

    def all_pairs(self) -> tuple[Numbers, Numbers]:
        """Return `expand` of every node."""
        return np.repeat(np.arange(self.count), np.diff(self.offsets)), self.targets.astype(np.int64)

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """Return the neighbours of all sources, with repetitions."""
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
            entries = ranges(starts[some], counts[some])
            begin, end = end, end + len(entries)
            targets[begin:end] = self.targets[entries]
        return targets

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of neighbours of each source."""
        return self.offsets[sources + 1] - self.offsets[sources]

    def totals(self, values: Numbers | None) -> Numbers:
        """Return for each node the sum of its neighbours' values; without values, its degree."""
        if values is None:
            return np.diff(self.offsets)
        running = np.zeros(len(self.targets) + 1, np.int64)
        np.cumsum(values[self.targets], out=running[1:])
        sums: Numbers = running[self.offsets[1:]] - running[self.offsets[:-1]]
        return sums

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Return for each pair whether an edge connects it."""
        if not len(sources) or not len(self.targets):
            return np.zeros(len(sources), bool)
        if len(sources) == 1 or (sources == sources[0]).all():
            return contains(self._row(sources[0]), targets.astype(np.int32))
        loops = kernels.find("bfs_kernels", len(sources) * tuning.current.connected_fallback_s)
        if loops is not None:
            tested = np.empty(len(sources), bool)
            for some in batches(len(sources), tuning.current.batch_values):
                pairs = np.ascontiguousarray(sources[some], np.int64), np.ascontiguousarray(targets[some], np.int64)
                loops.connected(self.addresses, self.count, *pairs, tested[some])
            return tested
        with kernels.timed_fallback():
            entries = self.positions_of(sources, targets)
            inside = np.minimum(entries, len(self.targets) - 1)
            found: Mask = (entries < self.offsets[sources + 1]) & (self.targets[inside] == targets)
            return found

    def positions_of(self, sources: Numbers, targets: Numbers | I32) -> Numbers:
        """Return the position of each pair in `targets`, or where it would be inserted, by one binary search."""
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
    """The incident edges of every node as compressed sparse rows, with the node at the other end."""

    offsets: Numbers
    edges: I32
    targets: I32

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """The size in memory; mapped arrays count 0."""
        return unmapped_bytes(self.offsets, self.edges, self.targets)

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each source: (position in `sources`, edge row, neighbour)."""
        starts = self.offsets[sources]
        counts = self.offsets[sources + 1] - starts
        _total(counts, room)
        entries = batched_ranges(starts, counts)
        positions = np.repeat(np.arange(len(sources)), counts)
        return positions, gather(self.edges, entries).astype(np.int64), gather(self.targets, entries).astype(np.int64)

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of edges of each source."""
        return self.offsets[sources + 1] - self.offsets[sources]


# -- building ----------------------------------------------------------------------------------------


def build(near: Numbers | I32, far: Numbers | I32, count: int) -> Csr:
    """Build the CSR of pairs in any order; repeated pairs count once."""
    targets: list[I32] = [np.zeros(0, np.int32)]
    offsets = write_targets([(near, far)], count, targets.append)
    return Csr(offsets, np.concatenate(targets))


def write_targets(
    pairs: Sequence[tuple[Numbers | I32, Numbers | I32]],
    count: int,
    write: Callable[[I32], object],
    memory: int | None = None,
) -> Numbers:
    """Write the targets of the CSR of some (near, far) arrays in parts; return its offsets.

    Repeated pairs count once. About `memory` bytes are used beside the degrees of the nodes.
    """
    degrees = np.zeros(count, np.int64)
    rows = sum(len(near) for near, _ in pairs)
    for first, last, chosen in _node_ranges([near for near, _ in pairs], count, memory):
        packed = [pack(near[some], far[some]) for (near, far), some in zip(pairs, chosen, strict=True)]
        sorted_pairs = interruptible(partial(distinct, np.concatenate(packed) if len(packed) > 1 else packed[0]), rows)
        degrees[first:last] = np.bincount(high(sorted_pairs) - first, minlength=last - first)
        write(low(sorted_pairs).astype(np.int32))
    return _running(degrees)


def build_edge_rows(near: I32, far: I32, edges: I32, count: int) -> EdgeRows:
    """Build the incident edges of each node, in row order."""
    none = np.zeros(0, np.int32)
    rows: list[I32] = [none]
    targets: list[I32] = [none]

    def add(some: I32, ends: I32) -> None:
        rows.append(some)
        targets.append(ends)

    offsets = write_edge_rows(near, far, edges, count, add)
    return EdgeRows(offsets, np.concatenate(rows), np.concatenate(targets))


def write_edge_rows(
    near: I32, far: I32, edges: I32, count: int, write: Callable[[I32, I32], object], memory: int | None = None
) -> Numbers:
    """Write the incident edges of each node and their other ends in parts, in row order; return the offsets."""
    degrees = np.zeros(count, np.int64)
    for first, last, (chosen,) in _node_ranges([near], count, memory):
        some = near[chosen]
        # One sort of packed numbers is several times faster than a stable argsort.
        order = interruptible(partial(_stable_order, some), len(near))
        degrees[first:last] = np.bincount(some - first, minlength=last - first)
        write(edges[chosen][order], far[chosen][order])
    return _running(degrees)


def _stable_order(values: I32) -> Numbers:
    return low(np.sort(pack(values, np.arange(len(values)))))


def _node_ranges(
    near: Sequence[Numbers | I32], count: int, memory: int | None
) -> Iterator[tuple[int, int, list[slice | Numbers]]]:
    """Divide the nodes into ranges with a bounded number of edges: (first node, node after the last, their edges).

    The edges are positions in each of the arrays. The memory of a sort is then bounded. Only the edges of one node
    exceed the bound.
    """
    most = tuning.current.adjacency_sorted_edges
    most = most if memory is None else min(most, max(memory // SORTED_EDGE_BYTES, 1))
    if sum(map(len, near)) <= most:
        yield 0, count, [slice(None)] * len(near)
        return
    ends = np.zeros(count, np.int64)
    for part in (part for array in near for part in _pieces(array)):
        ends += np.bincount(part, minlength=count)
    np.cumsum(ends, out=ends)
    first = 0
    while first < count:
        checkpoint()
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + most, side="right")), first + 1)
        yield first, last, [_positions_between(array, first, last) for array in near]
        first = last


def _positions_between(near: Numbers | I32, first: int, last: int) -> Numbers:
    """Return the positions of the edges of a range of nodes."""
    found: list[Numbers] = []
    start = 0
    for part in _pieces(near):
        found.append(np.flatnonzero((part >= first) & (part < last)) + start)
        start += len(part)
    return np.concatenate([EMPTY, *found])


def _pieces(array: Numbers | I32) -> Iterator[Numbers | I32]:
    """Yield an array in pieces, so that temporary arrays are small."""
    for start in range(0, len(array), _PIECE):
        yield array[start : start + _PIECE]


def loops_of(src: I32, dst: I32) -> Numbers:
    """Return the nodes with an edge to themselves, ascending."""
    found = [some[some == other] for some, other in zip(_pieces(src), _pieces(dst), strict=True)]
    return np.unique(np.concatenate([EMPTY, *found])).astype(np.int64)


def _running(degrees: Numbers) -> Numbers:
    """Return the CSR offsets of nodes with these degrees."""
    offsets = np.zeros(len(degrees) + 1, np.int64)
    np.cumsum(degrees, out=offsets[1:])
    return offsets


def offsets_of(ordered: Numbers | I32, count: int) -> Numbers:
    """Return the CSR offsets of rows, given the ascending node of each row."""
    return _running(np.bincount(ordered, minlength=count))


def pack(high: Numbers | I32, low_: Numbers | I32) -> U64:
    """Pack two numbers into one that sorts by the first, then by the second."""
    return (high.astype(np.uint64) << np.uint64(32)) | low_.astype(np.uint64)


def low(pairs: U64) -> Numbers:
    """Return the second number of each packed pair."""
    return (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)


def high(pairs: U64) -> Numbers:
    """Return the first number of each packed pair."""
    return (pairs >> np.uint64(32)).astype(np.int64)


def distinct(values: _Integers) -> _Integers:
    """Return the distinct values, ascending. `np.unique` without further outputs hashes, which is ten times slower."""
    values = np.sort(values)
    if len(values) < 2:
        return values
    keep = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=keep[1:])
    return values if keep.all() else values[keep]


def contains(ordered: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> Mask:
    """Return which of `wanted` are in the ascending array `ordered`."""
    if not len(ordered):
        return np.zeros(len(wanted), bool)
    entries = np.minimum(ordered.searchsorted(wanted), len(ordered) - 1)
    found: Mask = ordered[entries] == wanted
    return found


def _total(counts: Numbers, room: Room) -> int:
    """Return the sum of the counts after checking that there is room for it."""
    total = int(counts.sum())
    room(total)
    return total


def batched_ranges(starts: Numbers, counts: Numbers) -> Numbers:
    """`ranges`, computed in batches with checkpoints between them."""
    if int(counts.sum()) <= tuning.current.batch_values:
        return ranges(starts, counts)
    return np.concatenate([ranges(starts[some], counts[some]) for some in slices(counts, tuning.current.batch_values)])


def ranges(starts: Numbers, counts: Numbers) -> Numbers:
    """Return the concatenated ranges `start … start + count`."""
    ends: Numbers = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    if not total:
        return EMPTY
    shift: Numbers = starts - (ends - counts)
    entries: Numbers = np.arange(total) + shift.repeat(counts)
    return entries
