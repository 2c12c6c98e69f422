"""Edges of several types, walked as if they were of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from omnigraph.engine.adjacency import Adjacency
from omnigraph.engine.data import Mask, Numbers, TableData
from omnigraph.engine.neighbours import NONE, Neighbours, build
from omnigraph.engine.watch import checkpoint, say
from omnigraph.query.ir import Direction


class Several(Adjacency):
    """The far ends of any of some adjacencies; a node two edge types lead to is one far end."""

    def __init__(self, parts: Sequence[Adjacency]) -> None:
        self.edges = parts[0].edges
        self._parts = parts
        # What is kept is of these versions of the edges, and of the nodes they number.
        tables = [*(part.edges for part in parts), parts[0]._source_nodes, parts[0]._target_nodes]
        self._of = _versions(tables)

    def neighbours(self, direction: Direction) -> Neighbours:
        """Far ends by walking the edges out, in, or both ways."""
        name = f"several:{direction}:{self._of}"
        return self.edges.derived(name, lambda: self._together(direction))

    def _together(self, direction: Direction) -> Neighbours:
        wholes = [part.whole(direction) for part in self._parts]
        pairs = [whole.everything() for whole in wholes]
        near = np.concatenate([near for near, _ in pairs])
        far = np.concatenate([far for _, far in pairs])
        return build(near, far, max(whole.count for whole in wholes))

    def whole(self, direction: Direction) -> Neighbours:
        """They are in one layer."""
        return self.neighbours(direction)

    def for_all(self, direction: Direction) -> Neighbours:
        """They are in one layer."""
        return self.neighbours(direction)

    def linked(self, direction: Direction, nodes: int) -> Mask:
        """Which nodes have a far end at all."""
        return reduce(np.logical_or, [part.linked(direction, nodes) for part in self._parts])

    def loops(self, direction: Direction) -> Numbers:
        """The nodes with an edge to themselves, ascending."""
        return reduce(np.union1d, [part.loops(direction) for part in self._parts])


class Mixed(Several):
    """The same for edges between different node types: both ends are numbered as in one union of all of them."""

    def __init__(self, parts: Sequence[Adjacency], starts: Sequence[tuple[int, int]], space: TableData) -> None:
        self.edges = parts[0].edges
        self._parts = parts
        self._starts = starts
        """Where the nodes begin that each part calls its sources, and its targets."""
        self._space = space
        self._of = _versions([*(part.edges for part in parts), space])

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
        """Which nodes have a far end at all."""
        return self.neighbours(direction).degrees(np.arange(nodes)) > 0

    def loops(self, direction: Direction) -> Numbers:
        """The nodes with an edge to themselves, ascending."""
        parts = zip(self._parts, self._starts, strict=True)
        # A loop leads from a type to itself; between others equal numbers are different nodes.
        loops = [part.loops(direction) + source for part, (source, _) in parts if part.joins_one_table]
        return np.unique(np.concatenate([*loops, NONE]))


def _versions(tables: Sequence[TableData]) -> str:
    return ":".join(f"{table.folder}@{table.key[1]}" for table in tables)
