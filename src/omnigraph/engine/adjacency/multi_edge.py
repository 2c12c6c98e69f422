"""Adjacency of several edge types, traversed as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import REVERSED, EdgeAdjacency
from omnigraph.engine.adjacency.csr import EMPTY, Csr, Neighbours, build
from omnigraph.engine.adjacency.joined_neighbours import JoinedNeighbours, NeighboursPart
from omnigraph.engine.adjacency.period_adjacency import PeriodAdjacency
from omnigraph.engine.adjacency.visible_adjacency import VisibleAdjacency
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Mask, Numbers, UseCounter
from omnigraph.engine.exec.cancellation import add_note, checkpoint
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan.ir import Direction

TypedAdjacency = EdgeAdjacency | VisibleAdjacency | PeriodAdjacency
"""The adjacency of one edge type, in full or as a read sees it."""


@dataclass(frozen=True)
class _Way:
    """One adjacency, followed in one direction."""

    adjacency: TypedAdjacency
    direction: Direction
    near: range
    """The common numbers of the near nodes."""
    far: range
    """The common numbers of the far nodes."""


class _CombinedAdjacency(ABC):
    """The union of several adjacencies. Hops read the parts; one CSR is built for loops, or once it pays."""

    def __init__(self, parts: Sequence[TypedAdjacency], tables: Sequence[ColumnSource]) -> None:
        self._parts = parts
        # The cache key contains the versions of the edge tables and of the node tables.
        self._of = _versions([*(part.edges for part in parts), *tables])

    def neighbours(self, direction: Direction) -> Neighbours:
        """Return the neighbours along outgoing edges, incoming edges, or both."""
        pays = self._uses(direction) * tuning.current.joined_hop_edges > self._edge_count
        return self.compacted(direction) if pays else self._joined(direction)

    def compacted(self, direction: Direction) -> Csr:
        """Return the neighbours as one CSR without overlay, for loops over many nodes."""
        name = f"several:{direction}:{self._of}"
        return self._parts[0].edges.derived(name, lambda: self._combined_csr(direction))

    def for_scan(self, direction: Direction) -> Neighbours:
        """Return the neighbours for a scan over all nodes."""
        few = self._edge_count < tuning.current.joined_hop_edges
        pays = few or self._uses(direction) >= tuning.current.scans_before_compaction
        return self.compacted(direction) if pays else self._joined(direction)

    @property
    def _edge_count(self) -> int:
        return sum(part.edges.row_count for part in self._parts)

    def _uses(self, direction: Direction) -> int:
        """Count a use of a direction of these versions; return the new count."""
        return self._parts[0].edges.derived(f"several uses:{direction}:{self._of}", UseCounter).increment()

    def _joined(self, direction: Direction) -> JoinedNeighbours:
        """Return the neighbours of all parts, read from each."""
        parts = [
            NeighboursPart(way.adjacency.neighbours(way.direction), way.near, way.far) for way in self._ways(direction)
        ]
        return JoinedNeighbours(parts, self._count(direction), lambda: self.compacted(direction))

    def _combined_csr(self, direction: Direction) -> Csr:
        """Build the CSR of all parts."""
        add_note(f"{len(self._parts)} edge types combined")
        pairs = []
        for way in self._ways(direction):
            checkpoint()
            near, far = way.adjacency.compacted(way.direction).all_pairs()
            pairs.append((near + way.near.start, far + way.far.start))
        near = np.concatenate([near for near, _ in pairs])
        far = np.concatenate([far for _, far in pairs])
        return build(near, far, self._count(direction))

    @abstractmethod
    def _count(self, direction: Direction) -> int:
        """Return the number of near nodes."""

    @abstractmethod
    def _ways(self, direction: Direction) -> list[_Way]:
        """Return the directions in which the parts are followed."""


class MultiEdgeAdjacency(_CombinedAdjacency):
    """Several edge types between the same node types. A node that two edge types lead to is one neighbour."""

    def __init__(self, parts: Sequence[TypedAdjacency]) -> None:
        super().__init__(parts, parts[0].node_tables)

    def _count(self, direction: Direction) -> int:
        return self._parts[0].node_tables[1 if direction == "in" else 0].row_count

    def _ways(self, direction: Direction) -> list[_Way]:
        near, far = range(self._count(direction)), range(self._count(REVERSED[direction]))
        return [_Way(part, direction, near, far) for part in self._parts]

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """Return a mask of the nodes that have a neighbour."""
        return reduce(np.logical_or, [part.has_neighbours(direction, nodes) for part in self._parts])

    def loops(self, direction: Direction) -> Numbers:
        """Return the nodes with an edge to themselves, ascending."""
        return reduce(np.union1d, [part.loops(direction) for part in self._parts])


class UnionAdjacency(_CombinedAdjacency):
    """Edge types between different node types. Both ends are numbered by the union of all their node tables."""

    def __init__(self, parts: Sequence[TypedAdjacency], starts: Sequence[tuple[int, int]], space: ColumnSource) -> None:
        super().__init__(parts, [space])
        self._starts = starts
        """For each part, where its source nodes and its target nodes begin in the union."""
        self._space = space

    def _count(self, direction: Direction) -> int:  # noqa: ARG002
        return self._space.row_count

    def _ways(self, direction: Direction) -> list[_Way]:
        found: list[_Way] = []
        for part, starts in zip(self._parts, self._starts, strict=True):
            sources, targets = (
                range(start, start + table.row_count) for start, table in zip(starts, part.node_tables, strict=True)
            )
            # Both directions of edges within one table are one way: a pair can be in both.
            ways: tuple[Direction, ...] = (
                ("out", "in") if direction == "both" and not part.joins_one_table else (direction,)
            )
            found += [_Way(part, way, *((targets, sources) if way == "in" else (sources, targets))) for way in ways]
        return found

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """Return a mask of the nodes that have a neighbour."""
        linked = np.zeros(nodes, bool)
        for way in self._ways(direction):
            linked[way.near.start : way.near.stop] |= way.adjacency.has_neighbours(way.direction, len(way.near))
        return linked

    def loops(self, direction: Direction) -> Numbers:
        """Return the nodes with an edge to themselves, ascending."""
        parts = zip(self._parts, self._starts, strict=True)
        # Only an edge type from a node type to itself has loops; otherwise equal numbers are different nodes.
        loops = [part.loops(direction) + source for part, (source, _) in parts if part.joins_one_table]
        return np.unique(np.concatenate([*loops, EMPTY]))


def _versions(tables: Sequence[ColumnSource]) -> str:
    return ":".join(f"{table.key[0]}@{table.key[1]}" for table in tables)
