"""Incremental maintenance of incident edges: a complete structure with the changes since it was built."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from omnigraph.engine.adjacency.csr import I32, EdgeRows, Room, build_edge_rows, unbounded
from omnigraph.engine.adjacency.csr_overlay import Renumbering
from omnigraph.engine.adjacency.ranged_csr import RangedEdgeRows
from omnigraph.engine.cache.row_mapping import RowPositions
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan.ir import Direction

_Ends = TypeVar("_Ends", Numbers, I32)


@dataclass(frozen=True)
class SparseEdgeRows:
    """The incident edges of a few nodes."""

    sources: Numbers
    """The nodes with edges, ascending."""
    rows: EdgeRows
    """Their edges, by position in `sources`."""

    @classmethod
    def of(cls, near: Numbers, far: Numbers, edges: Numbers) -> SparseEdgeRows:
        """Build the incident edges from the ends of some edges."""
        sources, places = np.unique(near, return_inverse=True)
        rows = build_edge_rows(places.astype(np.int32), far.astype(np.int32), edges.astype(np.int32), len(sources))
        return cls(sources, rows)

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each source: (position in `sources`, edge row, neighbour)."""
        at, places = self._find(sources)
        positions, edges, targets = self.rows.expand(places, room)
        return at[positions], edges, targets

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of edges of each source."""
        at, places = self._find(sources)
        degrees = np.zeros(len(sources), np.int64)
        degrees[at] = self.rows.degrees(places)
        return degrees

    def _find(self, sources: Numbers) -> tuple[Numbers, Numbers]:
        """Return (positions of the sources with edges, their places)."""
        if not len(self.sources):
            return sources[:0], sources[:0]
        places = np.minimum(np.searchsorted(self.sources, sources), len(self.sources) - 1)
        at = np.flatnonzero(self.sources[places] == sources)
        return at, places[at]


@dataclass(frozen=True)
class EdgeRowsOverlay:
    """Incident edges with those added and removed since they were built.

    `base` uses the row numbers of the version it was built from, `added` those of the current version.
    """

    base: EdgeRows | RangedEdgeRows
    added: SparseEdgeRows
    row_of: RowPositions | None = None
    """Old edge row → current edge row, -1 if it was removed; None if the numbers are unchanged."""
    near_renumbered: Renumbering | None = None
    far_renumbered: Renumbering | None = None

    @property
    def nbytes(self) -> int:
        """The size in memory, without the base."""
        return self.added.rows.nbytes + (0 if self.row_of is None else int(self.row_of.nbytes))

    def expand(self, sources: Numbers, room: Room = unbounded) -> tuple[Numbers, Numbers, Numbers]:
        """Return the edges of each source: (position in `sources`, edge row, neighbour), by position and edge row."""
        at, known = self._known(sources)
        positions, edges, targets = self.base.expand(known, room)
        positions = at[positions]
        if self.row_of is not None:
            edges = self.row_of[edges].astype(np.int64)
            left = np.flatnonzero(edges >= 0)
            positions, edges, targets = positions[left], edges[left], targets[left]
        if self.far_renumbered is not None:
            targets = self.far_renumbered.new_of[targets]
        held = len(edges)
        more = self.added.expand(sources, lambda rows: room(rows + held))
        if not len(more[0]):
            return positions, edges, targets
        positions, edges, targets = (
            np.concatenate(pair) for pair in zip((positions, edges, targets), more, strict=True)
        )
        order = np.lexsort((edges, positions))
        return positions[order], edges[order], targets[order]

    def degrees(self, sources: Numbers) -> Numbers:
        """Return the number of edges of each source."""
        if self.row_of is not None:
            return np.bincount(self.expand(sources)[0], minlength=len(sources)).astype(np.int64)
        at, known = self._known(sources)
        degrees = self.added.degrees(sources)
        degrees[at] += self.base.degrees(known)
        return degrees

    def _known(self, sources: Numbers) -> tuple[Numbers, Numbers]:
        """Return (positions of the sources that the base contains, their old row numbers)."""
        old = sources if self.near_renumbered is None else self.near_renumbered.old_of[sources]
        at = np.flatnonzero((old >= 0) & (old < self.base.count))
        return at, old[at]


def oriented_edges(src: _Ends, dst: _Ends, rows: _Ends, direction: Direction) -> tuple[_Ends, _Ends, _Ends]:
    """Return (near end, far end, row) of edges that are followed in a direction, by row. A loop occurs once."""
    if direction == "out":
        return src, dst, rows
    if direction == "in":
        return dst, src, rows
    near, far, both = (np.stack(pair, axis=1).reshape(-1) for pair in ((src, dst), (dst, src), (rows, rows)))
    once = np.ones(len(near), bool)
    once[1::2] = src != dst
    return near[once], far[once], both[once]
