"""Edges of several types, walked as if they were of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce

import numpy as np

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.csr import NONE, Neighbours, build
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.exec.cancellation import checkpoint, say
from omnigraph.query.plan.ir import Direction


class _Combined(ABC):
    """The far ends of any of some adjacencies, in one layer; kept with the first edge table."""

    def __init__(self, parts: Sequence[Adjacency], tables: Sequence[TableData]) -> None:
        self._parts = parts
        # What is kept is of these versions of the edges, and of the nodes they number.
        self._of = _versions([*(part.edges for part in parts), *tables])

    def neighbours(self, direction: Direction) -> Neighbours:
        """As in `Hops`."""
        name = f"several:{direction}:{self._of}"
        return self._parts[0].edges.derived(name, lambda: self._together(direction))

    def whole(self, direction: Direction) -> Neighbours:
        """As in `Hops`."""
        return self.neighbours(direction)

    def for_all(self, direction: Direction) -> Neighbours:
        """As in `Hops`."""
        return self.neighbours(direction)

    @abstractmethod
    def _together(self, direction: Direction) -> Neighbours:
        """The far ends of all parts."""


class Several(_Combined):
    """Edges of several types between the same node types; a node two edge types lead to is one far end."""

    def __init__(self, parts: Sequence[Adjacency]) -> None:
        super().__init__(parts, parts[0].node_tables)

    def _together(self, direction: Direction) -> Neighbours:
        wholes = [part.whole(direction) for part in self._parts]
        pairs = [whole.everything() for whole in wholes]
        near = np.concatenate([near for near, _ in pairs])
        far = np.concatenate([far for _, far in pairs])
        return build(near, far, max(whole.count for whole in wholes))

    def linked(self, direction: Direction, nodes: int) -> Mask:
        """As in `Hops`."""
        return reduce(np.logical_or, [part.linked(direction, nodes) for part in self._parts])

    def loops(self, direction: Direction) -> Numbers:
        """As in `Hops`."""
        return reduce(np.union1d, [part.loops(direction) for part in self._parts])


class Mixed(_Combined):
    """Edges between different node types: both ends are numbered as in one union of all of them."""

    def __init__(self, parts: Sequence[Adjacency], starts: Sequence[tuple[int, int]], space: TableData) -> None:
        super().__init__(parts, [space])
        self._starts = starts
        """Where the nodes begin that each part calls its sources, and its targets."""
        self._space = space

    def _together(self, direction: Direction) -> Neighbours:
        ways: list[Direction] = ["out", "in"] if direction == "both" else [direction]
        say(f"edges of {len(self._parts)} types put together")
        pairs = [self._pairs(at, way) for at in range(len(self._parts)) for way in ways]
        near = np.concatenate([near for near, _ in pairs])
        far = np.concatenate([far for _, far in pairs])
        return build(near, far, self._space.row_count)

    def _pairs(self, at: int, direction: Direction) -> tuple[Numbers, Numbers]:
        checkpoint()
        near, far = self._parts[at].whole(direction).everything()
        source, target = self._starts[at]
        return (near + target, far + source) if direction == "in" else (near + source, far + target)

    def linked(self, direction: Direction, nodes: int) -> Mask:
        """As in `Hops`."""
        return self.neighbours(direction).degrees(np.arange(nodes)) > 0

    def loops(self, direction: Direction) -> Numbers:
        """As in `Hops`."""
        parts = zip(self._parts, self._starts, strict=True)
        # A loop leads from a type to itself; between others equal numbers are different nodes.
        loops = [part.loops(direction) + source for part, (source, _) in parts if part.joins_one_table]
        return np.unique(np.concatenate([*loops, NONE]))


def _versions(tables: Sequence[TableData]) -> str:
    return ":".join(f"{table.folder}@{table.key[1]}" for table in tables)
