"""Breadth-first traversal of bounded hops.

A node counts at its shortest distance only. The source is not reached again by a cycle. A node with a loop counts once
more at its distance plus one. With `backward` the traversal starts where the hop ends, so the loop of the source
counts: the pairs are the same as in the forward direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import local

import numpy as np

from omnigraph.engine import kernels, tuning
from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.csr import (
    EMPTY,
    U64,
    Csr,
    Neighbours,
    Room,
    batched_ranges,
    contains,
    distinct,
    high,
    low,
    pack,
    unbounded,
)
from omnigraph.engine.adjacency.csr_overlay import CsrOverlay
from omnigraph.engine.adjacency.ranged_csr import RangedCsr
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.exec.native_calls import gather, interruptible, slices
from omnigraph.engine.kernels.addresses import INT32, INT64, address_of
from omnigraph.query.plan import ir

_LAST_MARK = np.iinfo(np.int32).max


@dataclass(slots=True)
class BoundedHops:
    """A traversal of `least` to `most` hops over one adjacency."""

    neighbours: Neighbours
    loops: Numbers
    """The nodes with an edge to themselves, ascending."""
    least: int
    most: int
    backward: bool = False
    """Traverse from the end of the hop to its start."""

    def reach(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the nodes that each source reaches: (position in `sources`, node)."""
        parts: list[tuple[Numbers, Numbers]] = []
        rows = 0
        for start, at, nodes in self._batches(sources, room):
            rows += len(nodes)
            room(rows)
            parts.append((at + start, nodes))
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return EMPTY, EMPTY
        return np.concatenate([at for at, _ in parts]), np.concatenate([nodes for _, nodes in parts])

    def reach_rows(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """`reach` for sources with repetitions; each distinct source is traversed once."""
        if len(sources) == 1:
            ends = self.reach_from(int(sources[0]), room)
            return np.zeros(len(ends), np.int64), ends
        unique, places = interruptible(lambda: np.unique(sources, return_inverse=True), len(sources))
        at, found = self.reach(unique, room)
        counts = np.bincount(at, minlength=len(unique))
        starts = np.cumsum(counts) - counts
        per_row = counts[places]
        room(int(per_row.sum()))
        positions = np.repeat(np.arange(len(sources)), per_row)
        return positions, gather(found, batched_ranges(starts[places], per_row))

    def reach_counts(self, sources: Numbers) -> Numbers:
        """Return the number of nodes that each source reaches."""
        counts = np.zeros(len(sources), np.int64)
        for start, at, _ in self._batches(sources, unbounded):
            found = np.bincount(at)
            counts[start : start + len(found)] = found
        return counts

    def reach_from(self, source: int, room: Room) -> Numbers:
        """Return the nodes that one source reaches, in no particular order.

        The marks of visited nodes are kept from one traversal to the next, so the cost depends on the nodes visited,
        not on the number of nodes.
        """
        neighbours, loops, least = self.neighbours, self.loops, self.least
        marks = _marks(neighbours.count)
        mark = marks.next()
        frontier = np.array([source])
        marks.stamp[source] = mark
        found: list[Numbers] = []
        if least == 1 and len(loops) and contains(loops, frontier)[0]:
            found.append(frontier)
        reached = 0
        for distance in range(1, self.most + 1):
            checkpoint()
            frontier = _step(neighbours, frontier, marks, mark)
            if not len(frontier):
                break
            if distance >= least:
                found.append(frontier)
                reached += len(frontier)
                room(reached)
            if distance + 1 == least and len(loops):
                looped = contains(loops, frontier)
                if self.backward:
                    looped[:] = contains(loops, np.array([source]))
                found.append(frontier[looped])
        return np.concatenate(found) if found else EMPTY

    def _batches(self, sources: Numbers, room: Room) -> Iterator[tuple[int, Numbers, Numbers]]:
        """`reach` in batches of sources: (position of the first source, position relative to it, node).

        The size of a batch adapts to the number of nodes that earlier sources reached.
        """
        start, at_once = 0, min(len(sources), tuning.current.bfs_sources_first)
        farthest = 1
        while start < len(sources):
            some = sources[start : start + at_once]
            if len(some) == 1:
                nodes = self.reach_from(int(some[0]), room)
                yield start, np.zeros(len(nodes), np.int64), nodes
                steps = len(nodes)
            else:
                reached = self._reach_batch(some, room)
                if reached is None:
                    at_once = max(1, len(some) // 4)
                    continue
                at, nodes, steps = reached
                yield start, at, nodes
            farthest = max(farthest, steps // len(some))
            start += len(some)
            at_once = max(1, min(tuning.current.bfs_sources_max, tuning.current.bfs_batch_steps // farthest))

    def _reach_batch(self, sources: Numbers, room: Room) -> tuple[Numbers, Numbers, int] | None:
        """`reach` for all sources at once, and the size of its largest step; None if a step is too large.

        Visited nodes are a sorted set of packed pairs (source, node).
        """
        neighbours, loops, least = self.neighbours, self.loops, self.least
        at, frontier = np.arange(len(sources)), sources
        seen = pack(at, frontier)
        found: list[U64] = []
        longest = 0
        for distance in range(self.most + 1):
            if distance and least <= distance:
                found.append(pack(at, frontier))
                room(sum(map(len, found)))
            if distance + 1 == least and len(loops):
                again = contains(loops, sources[at] if self.backward else frontier)
                found.append(pack(at[again], frontier[again]))
            if distance == self.most or not len(frontier):
                break
            checkpoint()
            if int(neighbours.degrees(frontier).sum()) + len(seen) > 2 * tuning.current.bfs_batch_steps:
                return None
            places, targets = neighbours.expand(frontier)
            longest = max(longest, len(targets))
            new = distinct(pack(at[places], targets))
            new = new[~contains(seen, new)]
            seen = np.sort(np.concatenate([seen, new]), kind="stable")
            at, frontier = high(new), low(new)
        pairs = distinct(np.concatenate(found)) if found else np.zeros(0, np.uint64)
        return high(pairs), low(pairs), longest


def bounded_hops(op: ir.Expand, adjacency: Adjacency) -> BoundedHops:
    """Return the traversal of an Expand operator."""
    neighbours, loops = adjacency.neighbours(op.direction), adjacency.loops(op.direction)
    return BoundedHops(neighbours, loops, op.min_hops, op.max_hops, op.backward)


def new_neighbours(neighbours: Neighbours, frontier: Numbers, new: Callable[[Numbers], Mask]) -> Numbers:
    """Return the distinct neighbours of a frontier for which `new` is true, ascending."""
    parts: list[Numbers] = []
    for some in slices(neighbours.degrees(frontier), tuning.current.bfs_node_batch_steps):
        far = neighbours.far(frontier[some])
        parts.append(np.unique(far[new(far)]))
    if not parts:
        return EMPTY
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def levels_from(neighbours: Neighbours, source: int, most: int, asked: Mask | None = None) -> list[Numbers]:
    """Return the nodes at distance 1, 2, … up to `most` from a source; stop once all nodes in `asked` are reached."""
    marks = _marks(neighbours.count)
    mark = marks.next()
    frontier = np.array([source])
    marks.stamp[source] = mark
    levels: list[Numbers] = []
    left = -1 if asked is None else int(asked.sum()) - int(asked[source])
    while left and len(levels) < most:
        checkpoint()
        frontier = _step(neighbours, frontier, marks, mark)
        if not len(frontier):
            break
        levels.append(frontier)
        left -= 0 if asked is None else int(asked[frontier].sum())
    return levels


def distinct_nodes(nodes: Numbers, count: int) -> Numbers:
    """Return each of some nodes once, in no particular order; `count` is the number of nodes of their table."""
    if len(nodes) <= tuning.current.distinct_sort_rows and count >= tuning.current.distinct_sort_nodes_min:
        # The marks of a large table are spread over many pages of memory.
        return distinct(nodes)
    if _has_no_marks(count):
        # A new process: the first marks would take longer than many sorts of few nodes.
        _thread.sorted += len(nodes)
        if _thread.sorted * tuning.current.distinct_sort_cost <= count:
            return distinct(nodes)
    marks = _marks(count)
    return _unvisited(nodes, marks, marks.next())


def _step(neighbours: Neighbours, frontier: Numbers, marks: _VisitMarks, mark: int) -> Numbers:
    """Return the distinct neighbours of a frontier that are not yet visited, and mark them."""
    if len(frontier) <= tuning.current.bfs_small_frontier:
        return _step_at_once(neighbours, frontier, marks, mark)
    parts = [
        _step_at_once(neighbours, frontier[some], marks, mark)
        for some in slices(neighbours.degrees(frontier), tuning.current.bfs_node_batch_steps)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _step_at_once(neighbours: Neighbours, frontier: Numbers, marks: _VisitMarks, mark: int) -> Numbers:
    loops = kernels.find("bfs_kernels")
    if isinstance(neighbours, RangedCsr):
        neighbours = neighbours.of(frontier)
    if loops is not None and isinstance(neighbours, Csr):
        return marks.found(loops.step(neighbours.addresses, frontier, 0, *marks.addresses(mark)))
    if loops is not None and isinstance(neighbours, CsrOverlay):
        base, (known, others) = neighbours.base, neighbours.split_unchanged(frontier)
        base = base if isinstance(base, Csr) else base.of(known)
        moved = 0 if neighbours.far_renumbered is None else address_of(neighbours.far_renumbered.new_of, INT64)
        found = marks.found(loops.step(base.addresses, known, moved, *marks.addresses(mark)))
        return np.concatenate([found, _unvisited(neighbours.far(others), marks, mark)]) if len(others) else found
    if len(frontier) <= tuning.current.bfs_small_frontier:
        return _unvisited(neighbours.far(frontier), marks, mark)
    with kernels.timed_fallback():
        return _unvisited(neighbours.far(frontier), marks, mark)


def _unvisited(targets: Numbers, marks: _VisitMarks, mark: int) -> Numbers:
    """Return the distinct nodes without the mark, and mark them."""
    new = targets[marks.stamp[targets] != mark]
    marks.stamp[new] = mark
    # Of equal nodes, the one whose position was written last is kept.
    order = np.arange(len(new))
    marks.place[new] = order
    found: Numbers = new[marks.place[new] == order]
    return found


class _VisitMarks:
    """A mark and a position for every node. A new mark value invalidates all earlier marks."""

    def __init__(self, count: int) -> None:
        self.stamp = np.zeros(count, np.int32)
        self.place = np.zeros(count, np.int64)
        self._stamp = address_of(self.stamp, INT32, written=True)
        self._place = address_of(self.place, INT64, written=True)
        self._last = 0

    def addresses(self, mark: int) -> tuple[int, int, int]:
        """Return the parameters of a compiled step: the stamps, the mark, and the buffer of the nodes it finds."""
        return self._stamp, mark, self._place

    def found(self, count: int) -> Numbers:
        """Return the nodes that a compiled step found."""
        return self.place[:count].copy()

    def next(self) -> int:
        if self._last == _LAST_MARK:
            self.stamp[:] = 0
            self._last = 0
        self._last += 1
        return self._last


class _ThreadMarks(local):
    """The marks that a thread used last."""

    marks: _VisitMarks | None = None
    sorted: int = 0
    """Nodes that were sorted for lack of marks."""


_thread = _ThreadMarks()


def _has_no_marks(count: int) -> bool:
    marks = _thread.marks
    return marks is None or len(marks.stamp) < count or len(marks.stamp) > 4 * count + 100_000


def _marks(count: int) -> _VisitMarks:
    if _has_no_marks(count):
        _thread.marks, _thread.sorted = _VisitMarks(count + count // 8), 0
    marks = _thread.marks
    assert marks is not None
    return marks
