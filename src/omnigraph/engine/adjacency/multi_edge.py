"""Adjacency of several edge types, traversed as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce

import numpy as np

from omnigraph.engine.adjacency.csr import EMPTY, Csr, build
from omnigraph.engine.adjacency.visible_adjacency import TypedAdjacency
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.cancellation import add_note, checkpoint
from omnigraph.query.plan.ir import Direction


class _CombinedAdjacency(ABC):
    """The union of several adjacencies as one CSR, cached with the first edge table."""

    def __init__(self, parts: Sequence[TypedAdjacency], tables: Sequence[ColumnSource]) -> None:
        self._parts = parts
        # The cache key contains the versions of the edge tables and of the node tables.
        self._of = _versions([*(part.edges for part in parts), *tables])

    def neighbours(self, direction: Direction) -> Csr:
        """Return the neighbours along outgoing edges, incoming edges, or both."""
        name = f"several:{direction}:{self._of}"
        return self._parts[0].edges.derived(name, lambda: self._combined_csr(direction))

    def compacted(self, direction: Direction) -> Csr:
        """Return the neighbours as one CSR without overlay, for loops over many nodes."""
        return self.neighbours(direction)

    def for_scan(self, direction: Direction) -> Csr:
        """Return the neighbours for a scan over all nodes."""
        return self.neighbours(direction)

    @abstractmethod
    def _combined_csr(self, direction: Direction) -> Csr:
        """Build the CSR of all parts."""


class MultiEdgeAdjacency(_CombinedAdjacency):
    """Several edge types between the same node types. A node that two edge types lead to is one neighbour."""

    def __init__(self, parts: Sequence[TypedAdjacency]) -> None:
        super().__init__(parts, parts[0].node_tables)

    def _combined_csr(self, direction: Direction) -> Csr:
        wholes = [part.compacted(direction) for part in self._parts]
        pairs = [whole.all_pairs() for whole in wholes]
        near = np.concatenate([near for near, _ in pairs])
        far = np.concatenate([far for _, far in pairs])
        return build(near, far, max(whole.count for whole in wholes))

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

    def _combined_csr(self, direction: Direction) -> Csr:
        ways: list[Direction] = ["out", "in"] if direction == "both" else [direction]
        add_note(f"{len(self._parts)} edge types combined")
        pairs = [self._pairs(at, way) for at in range(len(self._parts)) for way in ways]
        near = np.concatenate([near for near, _ in pairs])
        far = np.concatenate([far for _, far in pairs])
        return build(near, far, self._space.row_count)

    def _pairs(self, at: int, direction: Direction) -> tuple[Numbers, Numbers]:
        checkpoint()
        near, far = self._parts[at].compacted(direction).all_pairs()
        source, target = self._starts[at]
        return (near + target, far + source) if direction == "in" else (near + source, far + target)

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """Return a mask of the nodes that have a neighbour."""
        return self.neighbours(direction).degrees(np.arange(nodes)) > 0

    def loops(self, direction: Direction) -> Numbers:
        """Return the nodes with an edge to themselves, ascending."""
        parts = zip(self._parts, self._starts, strict=True)
        # Only an edge type from a node type to itself has loops; otherwise equal numbers are different nodes.
        loops = [part.loops(direction) + source for part, (source, _) in parts if part.joins_one_table]
        return np.unique(np.concatenate([*loops, EMPTY]))


def _versions(tables: Sequence[ColumnSource]) -> str:
    return ":".join(f"{table.key[0]}@{table.key[1]}" for table in tables)
