"""Adjacency as an actor sees it: edges that are visible, between nodes that are visible.

Operators follow edges from visible nodes only. If only nodes are guarded, the far ends of a hop are filtered as they
are expanded. If the edges are guarded themselves, neighbours come from the edge rows: a node counts only if a visible
edge leads to it. Traversals that follow a large part of the edges use a filtered CSR, which is kept in memory alone,
under the digest of the visible edges.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import AnyCsr, EdgeAdjacency, Ends, oriented
from omnigraph.engine.adjacency.csr import (
    I32,
    Csr,
    EdgeRows,
    IncidentRows,
    Neighbours,
    Room,
    build,
    build_edge_rows,
    distinct,
    high,
    low,
    pack,
    unbounded,
)
from omnigraph.engine.adjacency.edge_rows_overlay import oriented_edges
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.cache.visibility import StoredTable, VisibleTable
from omnigraph.query.plan.ir import Direction

_SHARE = 4
"""A traversal that follows more than one in so many edges uses the filtered CSR."""


class VisibleAdjacency:
    """The visible edges of one edge table."""

    def __init__(self, base: EdgeAdjacency, edges: VisibleTable, sources: StoredTable, targets: StoredTable) -> None:
        self.base = base
        self.edges = edges
        self._tables = (sources, targets)
        # The row numbers of the ends are those of the versions of the node tables.
        of = ":".join(f"{table.key[0]}@{table.key[1]}" for table in self._tables)
        self._names = {
            (kind, direction): f"visible {kind}:{direction}:{of}"
            for kind in ("csr", "linked", "loops", "edge_rows")
            for direction in ("out", "in", "both")
        }

    @property
    def node_tables(self) -> tuple[StoredTable, StoredTable]:
        """The node tables of the sources and of the targets."""
        return self._tables

    @property
    def joins_one_table(self) -> bool:
        """True if both ends are in the same table. Only then can an edge be a loop."""
        return self.base.joins_one_table

    def neighbours(self, direction: Direction) -> Neighbours:
        """Return the visible neighbours along outgoing edges, incoming edges, or both."""
        known: Csr | None = self.edges.known(self._name("csr", direction))
        if known is not None:
            return known
        complete = self._complete(direction)
        if self.edges.own is None:
            return _VisibleEnds(self.base.neighbours(direction), self._far(direction), self._many, complete)
        return _VisibleEdges(
            self.base.edge_rows(direction), self.edges, self._near_count(direction), self._many, complete
        )

    def compacted(self, direction: Direction) -> Csr:
        """Return the visible neighbours as one CSR."""
        return self.edges.derived(self._name("csr", direction), lambda: self._filtered(direction))

    def for_scan(self, direction: Direction) -> Csr:
        """Return the visible neighbours for a scan over all nodes."""
        return self.compacted(direction)

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """Return a mask of the nodes that have a visible neighbour."""
        csr = self.compacted(direction)
        return self.edges.derived(self._name("linked", direction), lambda: csr.degrees(np.arange(nodes)) > 0)

    def loops(self, direction: Direction) -> Numbers:
        """Return the nodes with a visible edge to themselves, ascending."""
        loops = self.base.loops(direction)
        if not len(loops):
            return loops
        if self.edges.own is None:
            return loops[_sees(self._tables[0], loops)]
        return self.edges.derived(self._name("loops", direction), self._loops)

    def edge_rows(self, direction: Direction) -> IncidentRows:
        """Return the visible edge rows along outgoing edges, incoming edges, or both. A loop occurs once."""
        known: EdgeRows | None = self.edges.known(self._name("edge_rows", direction))
        if known is not None:
            return known
        rows = self.base.edge_rows(direction)
        return _VisibleRows(rows, self.edges, self._many, lambda: self._complete_rows(direction))

    def _complete_rows(self, direction: Direction) -> EdgeRows:
        return self.edges.derived(self._name("edge_rows", direction), lambda: self._edge_rows(direction))

    def ends(self) -> Ends:
        """Return the row numbers of each edge's source and target, in row order, those of hidden edges included."""
        return self.base.ends()

    def _name(self, kind: str, direction: Direction) -> str:
        return self._names[kind, direction]

    @property
    def _many(self) -> int:
        return max(self.edges.row_count // _SHARE, tuning.current.visible_steps_min)

    def _far(self, direction: Direction) -> StoredTable:
        return self._tables[0 if direction == "in" else 1]

    def _near_count(self, direction: Direction) -> int:
        return self._tables[1 if direction == "in" else 0].row_count

    def _complete(self, direction: Direction) -> Callable[[], Csr]:
        return lambda: self.compacted(direction)

    def _filtered(self, direction: Direction) -> Csr:
        """Filter the CSR of all edges, or build one from the visible edges if the edges are guarded themselves."""
        if self.edges.own is not None:
            src, dst, _ = self._visible_ends()
            return build(*oriented(src, dst, direction), self._near_count(direction))
        csr = self.base.compacted(direction)
        kept = np.ones(len(csr.targets), bool)
        near, far = (self._tables[at].visible for at in ((1, 0) if direction == "in" else (0, 1)))
        if far is not None:
            kept &= far[csr.targets]
        if near is not None:
            kept &= np.repeat(near, np.diff(csr.offsets))
        before = np.zeros(len(kept) + 1, np.int64)
        np.cumsum(kept, out=before[1:])
        return Csr(before[csr.offsets], csr.targets[kept])

    def _edge_rows(self, direction: Direction) -> EdgeRows:
        near, far, rows = oriented_edges(*self._visible_ends(), direction)
        return build_edge_rows(near, far, rows, self._near_count(direction))

    def _loops(self) -> Numbers:
        src, dst, _ = self._visible_ends()
        return np.unique(src[src == dst]).astype(np.int64)

    def _visible_ends(self) -> tuple[I32, I32, I32]:
        """Return the source, the target and the row of each visible edge."""
        src, dst = self.base.ends()
        rows = self.edges.shown_rows()
        return src[rows], dst[rows], rows.astype(np.int32)


class _VisibleEnds:
    """Neighbours of visible nodes, of which those that are visible; `table` is the table of the far ends."""

    __slots__ = ("base", "complete", "many", "table")

    def __init__(self, base: AnyCsr, table: StoredTable, many: int, complete: Callable[[], Csr]) -> None:
        self.base = base
        self.table = table
        self.many = many
        self.complete = complete

    @property
    def count(self) -> int:
        """The number of nodes."""
        return self.base.count

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the neighbours of each source: (position in `sources`, neighbour)."""
        if self._is_large(sources):
            return self.complete().expand(sources, room)
        positions, targets = self.base.expand(sources)
        seen = _sees(self.table, targets)
        if not seen.all():
            positions, targets = positions[seen], targets[seen]
        room(len(targets))
        return positions, targets

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """Return the neighbours of all sources, with repetitions."""
        if self._is_large(sources):
            return self.complete().far(sources, room)
        targets = self.base.far(sources)
        targets = targets[_sees(self.table, targets)]
        room(len(targets))
        return targets

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of neighbours of each source."""
        if self._is_large(sources):
            return self.complete().degrees(sources)
        return np.bincount(self.expand(sources)[0], minlength=len(sources)).astype(np.int64)

    def totals(self, values: Numbers | None) -> Numbers:
        """Return for each node the sum of its neighbours' values; without values, its degree."""
        return self.complete().totals(values)

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Return for each pair whether an edge connects it."""
        return self.base.connected(sources, targets) & _sees(self.table, targets)

    def _is_large(self, sources: Numbers) -> bool:
        return len(sources) > self.many or (len(sources) > 1 and int(self.base.degrees(sources).sum()) > self.many)


class _VisibleEdges:
    """Neighbours of visible nodes that visible edges lead to."""

    __slots__ = ("complete", "count", "edges", "many", "rows")

    def __init__(
        self, rows: IncidentRows, edges: VisibleTable, count: int, many: int, complete: Callable[[], Csr]
    ) -> None:
        self.rows = rows
        self.edges = edges
        self.count = count
        """The number of nodes."""
        self.many = many
        self.complete = complete

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers]:
        """Return the neighbours of each source: (position in `sources`, neighbour)."""
        if self._is_large(sources):
            return self.complete().expand(sources, room)
        positions, edges, targets = self.rows.expand(sources)
        seen = self.edges.sees(edges)
        pairs = distinct(pack(positions[seen], targets[seen]))
        room(len(pairs))
        return high(pairs), low(pairs)

    def far(self, sources: Numbers, room: Room = unbounded) -> Numbers:
        """Return the neighbours of all sources, with repetitions."""
        return self.expand(sources, room)[1]

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of neighbours of each source."""
        return np.bincount(self.expand(sources)[0], minlength=len(sources)).astype(np.int64)

    def totals(self, values: Numbers | None) -> Numbers:
        """Return for each node the sum of its neighbours' values; without values, its degree."""
        return self.complete().totals(values)

    def connected(self, sources: Numbers, targets: Numbers) -> Mask:
        """Return for each pair whether an edge connects it."""
        if self._is_large(sources):
            return self.complete().connected(sources, targets)
        positions, edges, far = self.rows.expand(sources)
        hits = np.flatnonzero(far == targets[positions])
        hits = hits[self.edges.sees(edges[hits])]
        found = np.zeros(len(sources), bool)
        found[positions[hits]] = True
        return found

    def _is_large(self, sources: Numbers) -> bool:
        return len(sources) > self.many or int(self.rows.degrees(sources).sum()) > self.many


class _VisibleRows:
    """The visible incident edges of visible nodes."""

    __slots__ = ("complete", "edges", "many", "rows")

    def __init__(self, rows: IncidentRows, edges: VisibleTable, many: int, complete: Callable[[], EdgeRows]) -> None:
        self.rows = rows
        self.edges = edges
        self.many = many
        self.complete = complete

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each source: (position in `sources`, edge row, neighbour)."""
        if self._is_large(sources):
            return self.complete().expand(sources, room)
        positions, edges, targets = self.rows.expand(sources)
        seen = self.edges.sees(edges)
        if not seen.all():
            positions, edges, targets = positions[seen], edges[seen], targets[seen]
        room(len(edges))
        return positions, edges, targets

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of edges of each source."""
        if self._is_large(sources):
            return self.complete().degrees(sources)
        return np.bincount(self.expand(sources)[0], minlength=len(sources)).astype(np.int64)

    def _is_large(self, sources: Numbers) -> bool:
        return len(sources) > self.many or int(self.rows.degrees(sources).sum()) > self.many


def _sees(table: StoredTable, numbers: Numbers) -> Mask:
    return table.sees(numbers) if isinstance(table, VisibleTable) else np.ones(len(numbers), bool)
