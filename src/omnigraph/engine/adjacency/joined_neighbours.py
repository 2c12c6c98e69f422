"""Neighbours along several adjacencies, without one CSR of all of them.

A small commit changes one adjacency. The others, and the overlay of the changed one, are read as they are, so that the
first hop after a commit does not combine all edges again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from omnigraph.engine.adjacency.csr import EMPTY, Csr, Neighbours, Room, distinct, high, low, pack, unbounded
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.fast_dataclass import dataclass


@dataclass(frozen=True)
class NeighboursPart:
    """The neighbours of a range of nodes in a common numbering."""

    neighbours: Neighbours
    near: range
    """The common numbers of the near nodes."""
    far: range
    """The common numbers of the far nodes."""


class JoinedNeighbours:
    """The union of several parts. A pair in two parts counts once."""

    __slots__ = ("complete", "count", "overlaps", "parts")

    def __init__(self, parts: Sequence[NeighboursPart], count: int, complete: Callable[[], Csr]) -> None:
        self.parts = parts
        self.count = count
        """The number of nodes."""
        self.complete = complete
        self.overlaps = len({(part.near.start, part.far.start) for part in parts}) < len(parts)
        """True if two parts may have the same pair."""

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the neighbours of each source: (position in `sources`, neighbour)."""
        found, rows = [], 0
        for part, at, near in self._near(sources):
            positions, targets = part.neighbours.expand(near, partial(_room_beside, room, rows))
            rows += len(targets)
            found.append((positions if at is None else at[positions], _shifted(targets, part.far.start)))
        if len(found) == 1:
            return found[0]
        if not found:
            return EMPTY, EMPTY
        positions = np.concatenate([positions for positions, _ in found])
        targets = np.concatenate([targets for _, targets in found])
        if not self.overlaps:
            return positions, targets
        pairs = distinct(pack(positions, targets))
        return high(pairs), low(pairs)

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """Return the neighbours of all sources, with repetitions."""
        if self.overlaps:
            return self.expand(sources, room)[1]
        found, rows = [], 0
        for part, _, near in self._near(sources):
            targets = part.neighbours.far(near, partial(_room_beside, room, rows))
            rows += len(targets)
            found.append(_shifted(targets, part.far.start))
        return np.concatenate(found) if found else EMPTY

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of neighbours of each source."""
        if self.overlaps:
            return np.bincount(self.expand(sources)[0], minlength=len(sources)).astype(np.int64)
        degrees = np.zeros(len(sources), np.int64)
        for part, at, near in self._near(sources):
            degrees[slice(None) if at is None else at] += part.neighbours.degrees(near)
        return degrees

    def totals(self, values: Numbers | None) -> Numbers:
        """Return for each node the sum of its neighbours' values; without values, its degree."""
        if self.overlaps:
            return self.complete().totals(values)
        totals = np.zeros(self.count, np.int64)
        for part in self.parts:
            of_part = part.neighbours.totals(None if values is None else values[part.far.start : part.far.stop])
            totals[part.near.start : part.near.stop] += of_part
        return totals

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Return for each pair whether an edge connects it."""
        found = np.zeros(len(sources), bool)
        for part in self.parts:
            inside = _inside(sources, part.near) & _inside(targets, part.far)
            at = np.flatnonzero(inside)
            if len(at):
                found[at] |= part.neighbours.connected(sources[at] - part.near.start, targets[at] - part.far.start)
        return found

    def _near(self, sources: Numbers) -> list[tuple[NeighboursPart, Numbers | None, Numbers]]:
        """Return for each part with a source: (part, positions of its sources, their numbers); None for all."""
        chosen: list[tuple[NeighboursPart, Numbers | None, Numbers]] = []
        for part in self.parts:
            if len(part.near) == self.count:
                chosen.append((part, None, sources))
                continue
            at = np.flatnonzero(_inside(sources, part.near))
            if len(at):
                chosen.append((part, at, sources[at] - part.near.start))
        return chosen


def _room_beside(room: Room, held: int, rows: int) -> None:
    room(held + rows)


def _inside(numbers: Numbers, nodes: range) -> Mask:
    inside: Mask = (numbers >= nodes.start) & (numbers < nodes.stop)
    return inside


def _shifted(numbers: Numbers, by: int) -> Numbers:
    return numbers + by if by else numbers
