"""Shortest and lightest paths, level by level.

A level holds the nodes first reached by so many edges, and every edge that reaches one so: together they are all
shortest paths of a source. With weights a node is in every level that makes it lighter, or for all lightest paths
also as light; weights are not negative, so a node that is no lighter for more edges is on no lightest path.
Several sources are walked at once: a node of one source is told from the same node of another by its key.

From the levels paths are read back. Where only one is wanted it is the one with the smallest ids of edges, compared
from its start; only edges on a shortest path to where somebody asked for are looked at for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from omnigraph.engine.data import Mask, Numbers
from omnigraph.engine.distances import Measured, Meeting, Wanted, distances, meeting
from omnigraph.engine.neighbours import NONE, Walkable, offsets_of, ranges
from omnigraph.engine.path_data import Batch, Floats, Space
from omnigraph.engine.trails import Trails
from omnigraph.engine.work import Work

_KEYS_AT_ONCE = 4_000_000
"""Each source walked at once has room for every node."""


@dataclass(frozen=True)
class Level:
    """What is reached by so many edges: nodes, and the edges that lead to them from the level before."""

    at: Numbers
    """For each node here the source it is reached from."""
    nodes: Numbers
    sums: Floats | None
    into: Numbers
    """For each edge the place of its far node here …"""
    back: Numbers
    """… and of its near one in the level before."""
    edges: Numbers

    def only(self, kept: Numbers | Mask) -> Level:
        """The same nodes with some of the edges."""
        return replace(self, into=self.into[kept], back=self.back[kept], edges=self.edges[kept])


class Shortest:
    """Finds the shortest paths from some nodes over one hop.

    `from_end` says that paths end at the sources. `both` are the neighbours of nodes as walked and back: without
    weights, a few pairs of ends are looked for from both.
    """

    def __init__(
        self,
        work: Work,
        trails: Trails,
        edges: Space,
        count: int,
        most: int,
        *,
        every: bool,
        from_end: bool,
        weights: Floats | None,
        both: tuple[Walkable, Walkable],
    ) -> None:
        self._work = work
        self._trails = trails
        self._edges = edges
        self._count = count
        self._most = most
        self._every = every
        self._from_end = from_end
        self._weights = weights
        self._both = both

    def find(self, sources: Numbers, wanted: Wanted) -> Iterator[Batch]:
        """The paths from each source, owned by its place; they start at the sources, whichever end these are."""
        held = 0
        for first, levels, found in self._in_turn(sources, wanted):
            for batch in self._read(levels, found, held):
                held += len(batch.edges)
                self._work.room(held)
                yield replace(batch, owners=batch.owners + first)

    def measure(self, sources: Numbers, wanted: Wanted) -> Iterator[Measured]:
        """How far the ends that are asked for are from each source, where it does not matter by which path."""
        held = 0
        for measured in self._lengths(sources, wanted) if self._weights is None else self._sums(sources, wanted):
            held += len(measured.ends)
            self._work.room(held)
            yield measured

    def _lengths(self, sources: Numbers, wanted: Wanted) -> Iterator[Measured]:
        return distances(*self._both, sources, wanted, self._most)

    def _sums(self, sources: Numbers, wanted: Wanted) -> Iterator[Measured]:
        for first, levels, found in self._in_turn(sources, wanted):
            for number, places in enumerate(found, 1):
                level = levels[number]
                assert level.sums is not None
                lengths = np.full(len(places), number)
                yield Measured(level.at[places] + first, level.nodes[places], lengths, level.sums[places])

    # -- walking ---------------------------------------------------------------------------------

    def _in_turn(self, sources: Numbers, wanted: Wanted) -> Iterator[tuple[int, list[Level], list[Numbers]]]:
        """For some sources after others, or for a few pairs: (the first source, levels, what is found in each)."""
        few = wanted.few(len(sources)) if self._weights is None else None
        if few is not None:
            for at, end in few:
                met = meeting(*self._both, int(sources[at]), end, self._most)
                if met is not None:
                    yield at, *self._walk(sources[at : at + 1], np.array([end]), met)
            return
        at_once = max(1, _KEYS_AT_ONCE // max(self._count, 1))
        for first in range(0, len(sources), at_once):
            some = sources[first : first + at_once]
            yield first, *self._walk(some, wanted.keys(first, len(some), self._count))

    def _walk(
        self, sources: Numbers, wanted: Numbers | None, met: Meeting | None = None
    ) -> tuple[list[Level], list[Numbers]]:
        """The levels of some sources, and for each level the places of the ends that are asked for."""
        count = self._count
        size = len(sources) * count
        at = np.arange(len(sources))
        none = None if self._weights is None else np.zeros(len(sources))
        levels = [Level(at, sources, none, NONE, NONE, NONE)]
        own = at * count + sources
        seen = np.zeros(size, bool)
        seen[own] = True
        best = np.zeros(0)
        if self._weights is not None:
            best = np.full(size, np.inf)
            best[own] = -1.0  # nothing is lighter, so nothing comes back
        slot = np.empty(size, np.int64)
        asked = np.ones(0, bool)
        if wanted is not None:
            asked = np.zeros(size, bool)
            asked[wanted] = True
            asked[own] = False
            wanted = np.flatnonzero(asked) if len(wanted) else wanted
        missing = -1 if wanted is None else len(wanted)
        entries = 0
        for hops in range(1, (self._most if met is None else met.distance) + 1):
            level = levels[-1]
            if not len(level.nodes) or not missing:
                break
            self._work.room(entries + self._trails.count(level.nodes))
            positions, edges, nodes = self._trails.expand(level.nodes)
            keys = level.at[positions] * count + nodes
            sums: Floats | None = None
            if self._weights is None:
                new = ~seen[keys]
                if met is not None:
                    new &= met.left[nodes] <= met.distance - hops
            else:
                assert level.sums is not None
                sums = level.sums[positions] + self._weights[edges]
                limit = self._limit(best, wanted, len(sources))[level.at[positions]]
                new = (sums <= best[keys]) & (sums <= limit) if self._every else (sums < best[keys]) & (sums < limit)
                np.minimum.at(best, keys[new], sums[new])
                new &= sums == best[keys]
            positions, edges, nodes, keys = positions[new], edges[new], nodes[new], keys[new]
            slot[keys] = np.arange(len(keys))
            first = np.flatnonzero(slot[keys] == np.arange(len(keys)))
            slot[keys[first]] = np.arange(len(first))
            seen[keys] = True
            if self._weights is None and wanted is not None:
                missing -= int(asked[keys[first]].sum())
            entries += len(edges)
            levels.append(
                Level(
                    level.at[positions[first]],
                    nodes[first],
                    None if sums is None else sums[new][first],
                    slot[keys],
                    positions,
                    edges,
                )
            )
        return levels, [self._found(level, best, asked if wanted is not None else None) for level in levels[1:]]

    def _limit(self, best: Floats, wanted: Numbers | None, sources: int) -> Floats:
        """For each source the sum no path needs to pass: the largest to what is asked for, once all is reached."""
        limit = np.full(sources, np.inf)
        if wanted is not None:
            limit[:] = -np.inf
            np.maximum.at(limit, wanted // self._count, best[wanted])
        return limit

    def _found(self, level: Level, best: Floats, asked: Mask | None) -> Numbers:
        keys = level.at * self._count + level.nodes
        right = np.ones(len(keys), bool) if asked is None else asked[keys]
        if level.sums is not None:
            right &= level.sums == best[keys]
        return np.flatnonzero(right)

    # -- reading back ----------------------------------------------------------------------------

    def _read(self, levels: list[Level], found: list[Numbers], held: int) -> Iterator[Batch]:
        levels = _needed(levels, found)
        if not self._every:
            levels = self._smallest(levels)
        for number, places in enumerate(found, 1):
            if len(places):
                yield self._back(levels[: number + 1], places, held)

    def _smallest(self, levels: list[Level]) -> list[Level]:
        """The levels with one edge into each node: the one on the path with the smallest ids of edges.

        Paths of equal length are compared edge by edge, so the nodes of a level are in the order of their paths once
        they are in the order of the nodes before them, then of the edges. Seen from where paths end the edge nearest
        to the other end comes first, and decides alone.
        """
        several = [number for number, level in enumerate(levels) if _repeats(level.into)]
        chosen = list(levels)
        place = np.zeros(len(levels[0].nodes), np.int64)
        for number in range(1, max(several, default=0) + 1):
            level = levels[number]
            ids = self._edges.ranks(level.edges)
            before = np.zeros(len(ids), np.int64) if self._from_end else place[level.back]
            order = np.lexsort((ids, before, level.into))
            first = order[_firsts(level.into[order])]
            chosen[number] = level.only(first)
            place = np.zeros(len(level.nodes), np.int64)
            place[level.into[first[np.lexsort((ids[first], before[first]))]]] = np.arange(len(first))
        return chosen

    def _back(self, levels: list[Level], places: Numbers, held: int) -> Batch:
        """The paths that end at some nodes of the last level."""
        owners, weights = levels[-1].at[places], levels[-1].sums
        sums = None if weights is None else weights[places]
        nodes = levels[-1].nodes[places].reshape(-1, 1)
        edges = np.zeros((len(places), 0), np.int64)
        for number in range(len(levels) - 1, 0, -1):
            level, before = levels[number], levels[number - 1]
            order = np.argsort(level.into, kind="stable")
            starts = offsets_of(level.into, len(level.nodes))
            counts = starts[places + 1] - starts[places]
            self._work.room(held + int(counts.sum()))
            rows = np.repeat(np.arange(len(places)), counts)
            entries = order[ranges(starts[places], counts)]
            places = level.back[entries]
            nodes = np.column_stack([before.nodes[places], nodes[rows]])
            edges = np.column_stack([level.edges[entries], edges[rows]])
            owners, sums = owners[rows], None if sums is None else sums[rows]
            if self._every and self._weights is not None:
                # Edges that weigh nothing may lead in a circle.
                once = ~(nodes[:, 1:] == nodes[:, :1]).any(axis=1)
                places, nodes, edges, owners = places[once], nodes[once], edges[once], owners[once]
                sums = None if sums is None else sums[once]
        return Batch(nodes, edges, owners, nodes[:, :0], sums)


def _needed(levels: list[Level], found: list[Numbers]) -> list[Level]:
    """The levels with the edges that lead to something found."""
    kept = list(levels)
    needed = np.zeros(len(levels[-1].nodes), bool)
    for number in range(len(levels) - 1, 0, -1):
        level = levels[number]
        needed[found[number - 1]] = True
        kept[number] = level.only(needed[level.into])
        needed = np.zeros(len(levels[number - 1].nodes), bool)
        needed[kept[number].back] = True
    return kept


def _repeats(places: Numbers) -> bool:
    return bool(len(places)) and int(np.bincount(places).max()) > 1


def _firsts(ordered: Numbers) -> Mask:
    """Which of some numbers in order differ from the one before."""
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first
