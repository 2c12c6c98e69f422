"""Edges as arrays: who is next to whom, by number.

For one edge table version and the node versions at its ends: the neighbours of every node, in compressed
rows (`offsets[n]` to `offsets[n + 1]` in `targets`), sorted and each once, for walking; and the edge rows of
every node, for hops that name the edge. Both directions and their union are made when first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import persisted
from omnigraph.engine.data import DataCache, Fragments, Mask, Numbers, TableData
from omnigraph.errors import Damaged
from omnigraph.query.ir import Direction

U64 = np.ndarray[Any, np.dtype[np.uint64]]

_KEPT_MIN = 50_000
"""Adjacency of fewer edges is built faster than it is found on disk."""


@dataclass(frozen=True)
class Neighbours:
    """Compressed rows: the far ends of each node, sorted, each once."""

    offsets: Numbers
    targets: Numbers

    def expand(self, sources: Numbers) -> tuple[Numbers, Numbers]:
        """For each source its far ends: (position in `sources`, far end)."""
        starts = self.offsets[sources]
        counts = self.offsets[sources + 1] - starts
        positions = np.repeat(np.arange(len(sources)), counts)
        return positions, self.targets[_ranges(starts, counts)]

    def degrees(self, sources: Numbers) -> Numbers:
        """How many far ends each source has."""
        return self.offsets[sources + 1] - self.offsets[sources]

    def totals(self, values: Numbers) -> Numbers:
        """For each node the sum of its far ends' values; values beyond the ends it knows do not matter."""
        if (values == 1).all():
            return np.diff(self.offsets)
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(values[self.targets])])
        sums: Numbers = running[self.offsets[1:]] - running[self.offsets[:-1]]
        return sums

    @cached_property
    def pairs(self) -> U64:
        """Every (source, target) as one number, ascending."""
        sources = np.repeat(np.arange(len(self.offsets) - 1, dtype=np.uint64), np.diff(self.offsets))
        return (sources << np.uint64(32)) | self.targets.astype(np.uint64)

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Whether each pair is connected."""
        wanted = (sources.astype(np.uint64) << np.uint64(32)) | targets.astype(np.uint64)
        return _contains(self.pairs, wanted)


@dataclass(frozen=True)
class EdgeRows:
    """Compressed rows of edge rows: for each node the edges at it, and the node at the other end."""

    offsets: Numbers
    edges: Numbers
    targets: Numbers

    def expand(self, sources: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """For each source its edges: (position in `sources`, edge row, far end)."""
        starts = self.offsets[sources]
        counts = self.offsets[sources + 1] - starts
        places = _ranges(starts, counts)
        return np.repeat(np.arange(len(sources)), counts), self.edges[places], self.targets[places]


class Layered:
    """Neighbours of an earlier version, and those added since: what a small commit costs is what it added."""

    def __init__(self, base: Neighbours, added: Neighbours) -> None:
        self.base = base
        self.added = added
        self.offsets = added.offsets
        self._known = len(base.offsets) - 1

    def expand(self, sources: Numbers) -> tuple[Numbers, Numbers]:
        """As `Neighbours`; far ends of one source are not in order."""
        old = np.flatnonzero(sources < self._known)
        positions, targets = self.base.expand(sources[old])
        more, others = self.added.expand(sources)
        return np.concatenate([old[positions], more]), np.concatenate([targets, others])

    def degrees(self, sources: Numbers) -> Numbers:
        """As `Neighbours`."""
        degrees = self.added.degrees(sources)
        old = sources < self._known
        degrees[old] += self.base.degrees(sources[old])
        return degrees

    def totals(self, values: Numbers) -> Numbers:
        """As `Neighbours`."""
        totals = self.added.totals(values).copy()
        totals[: self._known] += self.base.totals(values)
        return totals

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """As `Neighbours`."""
        return self.base.connected(sources, targets) | self.added.connected(sources, targets)


AnyNeighbours = Neighbours | Layered


@dataclass(frozen=True)
class Base:
    """Adjacency that was built in full, and the pieces of the tables it was built from."""

    edges: Fragments
    sources: Fragments
    targets: Fragments
    neighbours: Neighbours
    loops: Numbers


class Adjacency:
    """One edge table between two node tables, all at pinned versions."""

    def __init__(self, edges: TableData, sources: TableData, targets: TableData, cache: DataCache) -> None:
        self.edges = edges
        self._source_nodes = sources
        self._target_nodes = targets
        self._cache = cache
        self._key = ":".join(str(part) for data in (edges, sources, targets) for part in data.key)

    def neighbours(self, direction: Direction) -> AnyNeighbours:
        """Far ends by walking the edges out, in, or both ways."""
        return self._walk(direction)[0]

    def loops(self, direction: Direction) -> Numbers:
        """The nodes with an edge to themselves, ascending."""
        return self._walk(direction)[1]

    def edge_rows(self, direction: Direction) -> EdgeRows:
        """Edge rows by walking the edges out, in, or both ways; a loop is there once."""
        return self.edges.derived(f"edge_rows:{direction}:{self._key}", lambda: self._edge_rows(direction))

    def ends(self) -> tuple[Numbers, Numbers]:
        """The numbers of every edge's source and target, in row order."""
        return self.edges.derived(
            f"ends:{self._key}",
            lambda: (
                _numbers(self.edges.column("src"), self._source_nodes.column("id"), self.edges),
                _numbers(self.edges.column("dst"), self._target_nodes.column("id"), self.edges),
            ),
        )

    def _walk(self, direction: Direction) -> tuple[AnyNeighbours, Numbers]:
        return self.edges.derived(f"neighbours:{direction}:{self._key}", lambda: self._build(direction))

    def _build(self, direction: Direction) -> tuple[AnyNeighbours, Numbers]:
        """On top of what was built before, in this process or an earlier one, if it is the same and more."""
        what = (self.edges.folder, self._source_nodes.folder, self._target_nodes.folder, direction)
        base = self._cache.bases.get(what) or _load(self._cache, what)
        if base is not None:
            self._cache.bases[what] = base
            added = self._added(base, direction)
            if added is not None:
                return added
        src, dst = self.ends()
        neighbours = _neighbours(src, dst, direction, self._near(direction).row_count)
        loops = np.unique(src[src == dst])
        fragments = (self.edges.fragments, self._source_nodes.fragments, self._target_nodes.fragments)
        base = Base(*fragments, neighbours, loops)
        self._cache.bases[what] = base
        _save(self._cache, what, base)
        return neighbours, loops

    def _added(self, base: Base, direction: Direction) -> tuple[AnyNeighbours, Numbers] | None:
        """The base with the edges added since; None when rows were changed or removed, or too many added."""
        sources, targets = self._source_nodes, self._target_nodes
        if (
            sources.fragments[: len(base.sources)] != base.sources
            or targets.fragments[: len(base.targets)] != base.targets
        ):
            return None
        known = sum(rows for _, rows, _ in base.edges)
        if self.edges.fragments[: len(base.edges)] != base.edges or self.edges.row_count > known * 1.1 + 100_000:
            return None
        new = self.edges.added_since(base.edges, ["src", "dst"])
        assert new is not None
        if not new.num_rows and len(base.neighbours.offsets) - 1 == self._near(direction).row_count:
            return base.neighbours, base.loops
        src = _few_numbers(new["src"], sources, self.edges)
        dst = _few_numbers(new["dst"], targets, self.edges)
        near, far = (dst, src) if direction == "in" else (src, dst)
        if direction == "both":
            near, far = np.concatenate([src, dst]), np.concatenate([dst, src])
        fresh = ~base.neighbours.connected(near, far)
        added = _neighbours(near[fresh], far[fresh], "out", self._near(direction).row_count)
        return Layered(base.neighbours, added), np.union1d(base.loops, src[src == dst])

    def _near(self, direction: Direction) -> TableData:
        return self._target_nodes if direction == "in" else self._source_nodes

    def _edge_rows(self, direction: Direction) -> EdgeRows:
        src, dst = self.ends()
        rows = np.arange(len(src), dtype=np.int64)
        count = self._near(direction).row_count
        if direction == "both":
            other = src != dst
            src, dst, rows = (
                np.concatenate([src, dst[other]]),
                np.concatenate([dst, src[other]]),
                np.concatenate([rows, rows[other]]),
            )
        elif direction == "in":
            src, dst = dst, src
        # One sort of packed numbers is several times faster than a stable argsort.
        packed = np.sort(_pack(src, np.arange(len(src))))
        order = (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)
        return EdgeRows(_offsets(src[order], count), rows[order], dst[order])


def _load(cache: DataCache, what: persisted.What) -> Base | None:
    kept = persisted.load(cache.folder, ("adjacency", *what))
    if kept is None:
        return None
    edges, sources, targets = (persisted.pieces_of(kept.about[name]) for name in ("edges", "sources", "targets"))
    arrays = kept.arrays
    return Base(edges, sources, targets, Neighbours(arrays["offsets"], arrays["targets"]), arrays["loops"])


def _save(cache: DataCache, what: persisted.What, base: Base) -> None:
    if len(base.neighbours.targets) < _KEPT_MIN:
        return
    about = {"edges": base.edges, "sources": base.sources, "targets": base.targets}
    arrays = {"offsets": base.neighbours.offsets, "targets": base.neighbours.targets, "loops": base.loops}
    persisted.save(cache.folder, ("adjacency", *what), about, arrays)


def _neighbours(src: Numbers, dst: Numbers, direction: Direction, count: int) -> Neighbours:
    if direction == "both":
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    elif direction == "in":
        src, dst = dst, src
    pairs = _distinct(_pack(src, dst))
    sources = (pairs >> np.uint64(32)).astype(np.int64)
    return Neighbours(_offsets(sources, count), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64))


def reach(
    neighbours: AnyNeighbours, loops: Numbers, sources: Numbers, least: int, most: int, *, backward: bool = False
) -> tuple[Numbers, Numbers]:
    """For each source the nodes at distance `least` to `most`: (position in `sources`, node).

    A node counts at its shortest distance only; the source itself does not come back by a cycle; a node with
    a loop counts once more at its distance plus one. `backward` walks from where the hop ends, so it is the
    source's loop that counts: the pairs are those that walking forward finds.
    """
    if len(sources) == 1:
        return _reach_from_one(neighbours, loops, int(sources[0]), least, most, backward)
    count = len(neighbours.offsets) - 1
    seen = np.sort(_pack(np.arange(len(sources)), sources))
    frontier_at, frontier = np.arange(len(sources)), sources
    found: list[U64] = []
    looped = np.zeros(max(count, 1), bool)
    looped[loops] = True
    for distance in range(most + 1):
        if distance and least <= distance:
            found.append(_pack(frontier_at, frontier))
        if least <= distance + 1 <= most and len(loops):
            again = looped[sources[frontier_at] if backward else frontier]
            found.append(_pack(frontier_at[again], frontier[again]))
        if distance == most or not len(frontier):
            break
        places, targets = neighbours.expand(frontier)
        new = _distinct(_pack(frontier_at[places], targets))
        new = new[~_contains(seen, new)]
        seen = _merge(seen, new)
        frontier_at = (new >> np.uint64(32)).astype(np.int64)
        frontier = (new & np.uint64(0xFFFFFFFF)).astype(np.int64)
    pairs = _distinct(np.concatenate(found)) if found else np.zeros(0, np.uint64)
    return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _reach_from_one(
    neighbours: AnyNeighbours, loops: Numbers, source: int, least: int, most: int, backward: bool
) -> tuple[Numbers, Numbers]:
    """`reach` for one source: what was seen is a bit per node."""
    count = len(neighbours.offsets) - 1
    seen, found = np.zeros(count, bool), np.zeros(count, bool)
    looped = np.zeros(count, bool)
    looped[loops] = True
    frontier = np.array([source])
    seen[source] = True
    for distance in range(most + 1):
        if distance and least <= distance:
            found[frontier] = True
        if least <= distance + 1 <= most:
            found[frontier[looped[source if backward else frontier]]] = True
        if distance == most or not len(frontier):
            break
        _, targets = neighbours.expand(frontier)
        fresh = np.zeros(count, bool)
        fresh[targets] = True
        fresh &= ~seen
        seen |= fresh
        frontier = np.flatnonzero(fresh)
    nodes = np.flatnonzero(found)
    return np.zeros(len(nodes), np.int64), nodes


def _pack(high: Numbers, low: Numbers) -> U64:
    return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)


def _distinct(values: U64) -> U64:
    """Ascending, each once. (`np.unique` hashes when nothing else is asked of it, and is ten times slower.)"""
    values = np.sort(values)
    keep = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=keep[1:])
    return values[keep]


def _contains(ordered: U64, wanted: U64) -> Mask:
    if not len(ordered):
        return np.zeros(len(wanted), bool)
    places = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    found: Mask = ordered[places] == wanted
    return found


def _merge(a: U64, b: U64) -> U64:
    return np.sort(np.concatenate([a, b]), kind="stable")


def _ranges(starts: Numbers, counts: Numbers) -> Numbers:
    """The concatenated ranges `start … start + count`."""
    total = int(counts.sum())
    if not total:
        return np.zeros(0, np.int64)
    ends = np.cumsum(counts)
    places: Numbers = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return places


def _offsets(ordered: Numbers, count: int) -> Numbers:
    return np.searchsorted(ordered, np.arange(count + 1))


def _few_numbers(ends: pa.ChunkedArray, nodes: TableData, edges: TableData) -> Numbers:
    """`_numbers` for a few ends: the ids are looked through once, and no map of all of them is made."""
    ids = nodes.column("id")
    wanted = pc.unique(ends)
    places = np.flatnonzero(pc.is_in(ids, value_set=wanted).to_numpy(zero_copy_only=False))
    among = pc.index_in(
        ends.combine_chunks() if isinstance(ends, pa.ChunkedArray) else ends, value_set=ids.take(pa.array(places))
    )
    if among.null_count:
        raise _dangling(among.null_count, edges)
    return places[among.to_numpy(zero_copy_only=False)] if len(ends) else np.zeros(0, np.int64)


def _dangling(count: int, edges: TableData) -> Damaged:
    return Damaged(f"{count} edges of '{edges.folder}' end at nodes that do not exist", code="dangling_edge")


def _numbers(ends: pa.Array, ids: pa.Array, edges: TableData) -> Numbers:
    places = pc.index_in(ends, value_set=ids)
    if places.null_count:
        raise _dangling(places.null_count, edges)
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)
