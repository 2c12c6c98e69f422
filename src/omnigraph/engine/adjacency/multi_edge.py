"""Edges of several types, walked as if they were of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce

import numpy as np

from omnigraph.engine.adjacency.adjacency import EdgeAdjacency
from omnigraph.engine.adjacency.csr import NONE, Csr, build
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.exec.cancellation import checkpoint, say
from omnigraph.query.plan.ir import Direction


class _CombinedAdjacency(ABC):
    """The far ends of any of some adjacencies, in one layer; kept with the first edge table."""

    def __init__(self, parts: Sequence[EdgeAdjacency], tables: Sequence[TableData]) -> None:
        self._parts = parts
        # What is kept is of these versions of the edges, and of the nodes they number.
        self._of = _versions([*(part.edges for part in parts), *tables])

    def neighbours(self, direction: Direction) -> Csr:
        """As in `Adjacency`."""
        name = f"several:{direction}:{self._of}"
        return self._parts[0].edges.derived(name, lambda: self._together(direction))

    def compacted(self, direction: Direction) -> Csr:
        """As in `Adjacency`."""
        return self.neighbours(direction)

    def for_scan(self, direction: Direction) -> Csr:
        """As in `Adjacency`."""
        return self.neighbours(direction)

    @abstractmethod
    def _together(self, direction: Direction) -> Csr:
        """The far ends of all parts."""


class MultiEdgeAdjacency(_CombinedAdjacency):
    """Edges of several types between the same node types; a node two edge types lead to is one far end."""

    def __init__(self, parts: Sequence[EdgeAdjacency]) -> None:
        super().__init__(parts, parts[0].node_tables)

    def _together(self, direction: Direction) -> Csr:
        wholes = [part.compacted(direction) for part in self._parts]
        pairs = [whole.all_pairs() for whole in wholes]
        near = np.concatenate([near for near, _ in pairs])
        far = np.concatenate([far for _, far in pairs])
        return build(near, far, max(whole.count for whole in wholes))

    def has_neighbours(self, direction: Direction, nodes: int) -> Mask:
        """As in `Adjacency`."""
        return reduce(np.logical_or, [part.has_neighbours(direction, nodes) for part in self._parts])

    def loops(self, direction: Direction) -> Numbers:
        """As in `Adjacency`."""
        return reduce(np.union1d, [part.loops(direction) for part in self._parts])


class UnionAdjacency(_CombinedAdjacency):
    """Edges between different node types: both ends are numbered as in one union of all of them."""

    def __init__(self, parts: Sequence[EdgeAdjacency], starts: Sequence[tuple[int, int]], space: TableData) -> None:
        super().__init__(parts, [space])
        self._starts = starts
        """Where the nodes begin that each part calls its sources, and its targets."""
        self._space = space

    def _together(self, direction: Direction) -> Csr:
        ways: list[Direction] = ["out", "in"] if direction == "both" else [direction]
        say(f"edges of {len(self._parts)} types put together")
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
        """As in `Adjacency`."""
        return self.neighbours(direction).degrees(np.arange(nodes)) > 0

    def loops(self, direction: Direction) -> Numbers:
        """As in `Adjacency`."""
        parts = zip(self._parts, self._starts, strict=True)
        # A loop leads from a type to itself; between others equal numbers are different nodes.
        loops = [part.loops(direction) + source for part, (source, _) in parts if part.joins_one_table]
        return np.unique(np.concatenate([*loops, NONE]))


def _versions(tables: Sequence[TableData]) -> str:
    return ":".join(f"{table.folder}@{table.key[1]}" for table in tables)
