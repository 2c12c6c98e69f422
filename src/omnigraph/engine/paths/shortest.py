"""Shortest paths by number of edges or by weight, found level by level.

A level contains the nodes first reached with a number of edges and all edges that lead to them: the levels contain all
shortest paths of a source. With weights, a node is in every level that lowers its weight, or, for all paths of least
weight, equals it. Weights are not negative, so a node that is not lighter with more edges is on no path of least
weight. Several sources are searched at once; a key of source and node identifies a node of a source.

Paths are read back from the levels. If one path per pair is wanted, it is the one with the smallest edge ids, compared
from its start; only edges on a shortest path to a wanted end are considered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.csr import EMPTY, Neighbours, batched_ranges, offsets_of
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.native_calls import batches, interruptible
from omnigraph.engine.paths.distances import Distances, Meeting, Targets, distances, meeting
from omnigraph.engine.paths.edge_space import IncidentEdges
from omnigraph.engine.paths.path_table import Floats, PathBatch, RowSpace

_LEVEL_COLUMNS = 6
"""Number of integer columns that a level uses while it is built."""


@dataclass(frozen=True)
class BfsLevel:
    """The nodes reached with a number of edges, and the edges that lead to them from the previous level."""

    at: Numbers
    """The source position of each node."""
    nodes: Numbers
    sums: Floats | None
    into: Numbers
    """For each edge, the position of its far node in this level."""
    back: Numbers
    """For each edge, the position of its near node in the previous level."""
    edges: Numbers

    def only(self, kept: Numbers | Mask) -> BfsLevel:
        """Return the level with some of its edges."""
        return replace(self, into=self.into[kept], back=self.back[kept], edges=self.edges[kept])


@dataclass(frozen=True)
class PathSearch:
    """The search of one hop: the edges to follow, and which paths to return."""

    incident_edges: IncidentEdges
    edges: RowSpace
    node_count: int
    max_hops: int
    every: bool
    """Return all shortest paths, not one per pair of ends."""
    from_end: bool
    """The paths end at the sources: the search runs against their direction."""
    weights: Floats | None
    both: Callable[[], tuple[Neighbours, Neighbours]]
    """Returns the neighbours in the direction of the search and in the opposite direction.

    Without weights, a few pairs of ends are searched from both sides.
    """


class ShortestPaths:
    """Finds the shortest paths from some nodes over one hop."""

    def __init__(self, context: ExecutionContext, search: PathSearch) -> None:
        self._context = context
        self._incident = search.incident_edges
        self._edges = search.edges
        self._count = search.node_count
        self._most = search.max_hops
        self._every = search.every
        self._from_end = search.from_end
        self._weights = search.weights
        self._both = search.both

    def find(self, sources: Numbers, wanted: Targets) -> Iterator[PathBatch]:
        """Yield the paths from each source; the owner is the position of the source, where the paths start."""
        held = 0
        for first, levels, found in self._in_turn(sources, wanted):
            for batch in self._read(levels, found, held):
                held += len(batch.edges)
                self._context.check_size(held)
                yield replace(batch, owners=batch.owners + first)

    def measure(self, sources: Numbers, wanted: Targets) -> Iterator[Distances]:
        """Yield the distances from each source to its ends, without the paths."""
        held = 0
        for measured in self._lengths(sources, wanted) if self._weights is None else self._sums(sources, wanted):
            held += len(measured.ends)
            self._context.check_size(held)
            yield measured

    def _lengths(self, sources: Numbers, wanted: Targets) -> Iterator[Distances]:
        return distances(*self._both(), sources, wanted, self._most)

    def _sums(self, sources: Numbers, wanted: Targets) -> Iterator[Distances]:
        for first, levels, found in self._in_turn(sources, wanted):
            for number, positions in enumerate(found, 1):
                level = levels[number]
                assert level.sums is not None
                lengths = np.full(len(positions), number)
                yield Distances(level.at[positions] + first, level.nodes[positions], lengths, level.sums[positions])

    # -- search ----------------------------------------------------------------------------------

    def _in_turn(self, sources: Numbers, wanted: Targets) -> Iterator[tuple[int, list[BfsLevel], list[Numbers]]]:
        """Yield per batch of sources, or per pair: (position of the first source, levels, ends in each level).

        Ends are positions in the level.
        """
        pairs = wanted.few_pairs(len(sources)) if self._weights is None else None
        if pairs is not None:
            for at, end in pairs:
                met = meeting(*self._both(), int(sources[at]), end, self._most)
                if met is not None:
                    yield at, *self._walk(sources[at : at + 1], np.array([end]), met)
            return
        at_once = max(1, tuning.current.shortest_batch_keys // max(self._count, 1))
        for first in range(0, len(sources), at_once):
            some = sources[first : first + at_once]
            yield first, *self._walk(some, wanted.keys(first, len(some), self._count))

    def _walk(
        self, sources: Numbers, wanted: Numbers | None, met: Meeting | None = None
    ) -> tuple[list[BfsLevel], list[Numbers]]:
        """Return the levels of some sources, and for each level the positions of the wanted ends."""
        known = _Visited(sources, self._count, wanted, weighted=self._weights is not None)
        nothing = None if self._weights is None else np.zeros(len(sources))
        levels = [BfsLevel(np.arange(len(sources)), sources, nothing, EMPTY, EMPTY, EMPTY)]
        held = 0
        for hops in range(1, (self._most if met is None else met.distance) + 1):
            level = levels[-1]
            if not len(level.nodes) or known.has_all:
                break
            steps = self._incident.count(level.nodes)
            self._context.check_size(held + steps, _LEVEL_COLUMNS)
            longer = interruptible(partial(self._next_level, level, hops, known, met), steps)
            held += len(longer.edges)
            levels.append(longer)
        return levels, [known.found(level) for level in levels[1:]]

    def _next_level(self, level: BfsLevel, hops: int, known: _Visited, met: Meeting | None) -> BfsLevel:
        """Return the level that is reached with one more edge."""
        positions, edges, nodes = self._incident.expand(level.nodes)
        keys = level.at[positions] * self._count + nodes
        sums: Floats | None = None
        if self._weights is None:
            new = known.unvisited(keys)
            if met is not None:
                new &= met.left[nodes] <= met.distance - hops
        else:
            assert level.sums is not None
            sums = level.sums[positions] + self._weights[edges]
            new = known.lightest(keys, sums, level.at[positions], ties=self._every)
            sums = sums[new]
        positions, edges, nodes = positions[new], edges[new], nodes[new]
        first, into = known.mark(keys[new])
        sums = None if sums is None else sums[first]
        return BfsLevel(level.at[positions[first]], nodes[first], sums, into, positions, edges)

    # -- reading paths back ----------------------------------------------------------------------

    def _read(self, levels: list[BfsLevel], found: list[Numbers], held: int) -> Iterator[PathBatch]:
        levels = _needed(levels, found)
        if not self._every:
            levels = self._smallest_ids(levels)
        for number, positions in enumerate(found, 1):
            if len(positions):
                yield self._read_back(levels[: number + 1], positions, held)

    def _smallest_ids(self, levels: list[BfsLevel]) -> list[BfsLevel]:
        """Keep one edge into each node: the one on the path with the smallest edge ids.

        Paths of equal length are compared edge by edge. The nodes of a level are therefore in the order of their paths
        if they are sorted by the order of their predecessors, then by edge id. If paths end at the sources, the edge
        nearest to the other end comes first and decides alone.
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

    def _read_back(self, levels: list[BfsLevel], positions: Numbers, held: int) -> PathBatch:
        """Return the paths that end at some nodes of the last level."""
        owners, weights = levels[-1].at[positions], levels[-1].sums
        sums = None if weights is None else weights[positions]
        nodes = levels[-1].nodes[positions].reshape(-1, 1)
        edges = np.zeros((len(positions), 0), np.int64)
        for number in range(len(levels) - 1, 0, -1):
            level, before = levels[number], levels[number - 1]
            order = interruptible(partial(np.argsort, level.into, kind="stable"), len(level.into))
            starts = offsets_of(level.into, len(level.nodes))
            counts = starts[positions + 1] - starts[positions]
            self._context.check_size(held + int(counts.sum()), nodes.shape[1] + edges.shape[1] + 4)
            rows = np.repeat(np.arange(len(positions)), counts)
            entries = order[batched_ranges(starts[positions], counts)]
            positions = level.back[entries]
            nodes = _prepended(before.nodes[positions], nodes, rows)
            edges = _prepended(level.edges[entries], edges, rows)
            owners, sums = owners[rows], None if sums is None else sums[rows]
            if self._every and self._weights is not None:
                # Edges of weight 0 can form a cycle.
                unique = ~(nodes[:, 1:] == nodes[:, :1]).any(axis=1)
                positions, nodes, edges, owners = positions[unique], nodes[unique], edges[unique], owners[unique]
                sums = None if sums is None else sums[unique]
        return PathBatch(nodes, edges, owners, nodes[:, :0], sums)


class _Visited:
    """The state of every node of every source: visited, least weight, wanted."""

    def __init__(self, sources: Numbers, count: int, wanted: Numbers | None, *, weighted: bool) -> None:
        size = len(sources) * count
        own = np.arange(len(sources)) * count + sources
        self._count = count
        self._sources = len(sources)
        self._seen = np.zeros(size, bool)
        self._seen[own] = True
        self._slot = np.empty(size, np.int64)
        self._best: Floats | None = None
        if weighted:
            self._best = np.full(size, np.inf)
            self._best[own] = -1.0  # lower than any sum, so that no path returns to a source
        self._asked: Mask | None = None
        self._missing = -1
        if wanted is not None:
            self._asked = np.zeros(size, bool)
            self._asked[wanted] = True
            self._asked[own] = False
            self._wanted = np.flatnonzero(self._asked)
            self._missing = len(self._wanted)

    @property
    def has_all(self) -> bool:
        """True if all wanted ends were reached; with weights they may still get lighter, and it stays False."""
        return not self._missing

    def unvisited(self, keys: Numbers) -> Mask:
        """Return a mask of the keys that no earlier level visited."""
        return ~self._seen[keys]

    def lightest(self, keys: Numbers, sums: Floats, at: Numbers, *, ties: bool) -> Mask:
        """Return a mask of the sums that are the least of their keys and can lead to a wanted end.

        With `ties`, sums equal to the least are included.
        """
        assert self._best is not None
        limit = self._limit(self._best)[at]
        light: Mask = (
            (sums <= self._best[keys]) & (sums <= limit) if ties else (sums < self._best[keys]) & (sums < limit)
        )
        np.minimum.at(self._best, keys[light], sums[light])
        light &= sums == self._best[keys]
        return light

    def _limit(self, best: Floats) -> Floats:
        """Return for each source the weight beyond which no path is needed: the largest of its wanted ends."""
        if self._asked is None:
            return np.full(self._sources, np.inf)
        limit = np.full(self._sources, -np.inf)
        np.maximum.at(limit, self._wanted // self._count, best[self._wanted])
        return limit

    def mark(self, keys: Numbers) -> tuple[Numbers, Numbers]:
        """Mark the keys of a level as visited.

        Return (position of each key's first occurrence, index of each key among these).
        """
        self._slot[keys] = np.arange(len(keys))
        first = np.flatnonzero(self._slot[keys] == np.arange(len(keys)))
        self._slot[keys[first]] = np.arange(len(first))
        self._seen[keys] = True
        if self._asked is not None and self._best is None:
            self._missing -= int(self._asked[keys[first]].sum())
        return first, self._slot[keys]

    def found(self, level: BfsLevel) -> Numbers:
        """Return the positions in a level of the wanted ends that are reached with their least weight."""
        keys = level.at * self._count + level.nodes
        right = np.ones(len(keys), bool) if self._asked is None else self._asked[keys]
        if self._best is not None:
            right &= level.sums == self._best[keys]
        return np.flatnonzero(right)


def _prepended(first: Numbers, others: Numbers, rows: Numbers) -> Numbers:
    """Prepend a number to some rows of a matrix."""
    found = np.empty((len(rows), others.shape[1] + 1), np.int64)
    for some in batches(len(rows), tuning.current.batch_rows):
        found[some, 0] = first[some]
        found[some, 1:] = others[rows[some]]
    return found


def _needed(levels: list[BfsLevel], found: list[Numbers]) -> list[BfsLevel]:
    """Keep the edges of the levels that lead to a wanted end."""
    kept = list(levels)
    needed = np.zeros(len(levels[-1].nodes), bool)
    for number in range(len(levels) - 1, 0, -1):
        level = levels[number]
        needed[found[number - 1]] = True
        kept[number] = level.only(needed[level.into])
        needed = np.zeros(len(levels[number - 1].nodes), bool)
        needed[kept[number].back] = True
    return kept


def _repeats(positions: Numbers) -> bool:
    return bool(len(positions)) and int(np.bincount(positions).max()) > 1


def _firsts(ordered: Numbers) -> Mask:
    """Return a mask of the sorted numbers that differ from their predecessor."""
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first
