"""Topological order."""

from __future__ import annotations

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.edge_list import EdgeList, Neighbors
from omnigraph.engine.cache.table_cache import Numbers


class CycleFound(Exception):
    """The graph has a cycle, so its nodes have no topological order."""

    def __init__(self, nodes: list[int]) -> None:
        super().__init__("the edges form a cycle")
        self.nodes = nodes
        """The nodes of one cycle, in the order of its edges; the last one leads to the first."""


def topological_order(edges: EdgeList) -> tuple[Numbers, Numbers]:
    """Return the position of each node, such that every edge leads to a later one, and its level.

    The level is the number of edges of the longest path that leads to the node. Positions are ordered by level, then by
    node number.
    """
    loops = np.flatnonzero(edges.sources == edges.targets)
    if len(loops):
        raise CycleFound([int(edges.sources[loops[0]])])
    outgoing = edges.outgoing_edges
    waiting = np.bincount(edges.targets, minlength=edges.count)
    levels = np.full(edges.count, -1, np.int64)
    ready, level = np.flatnonzero(waiting == 0), 0
    while len(ready):
        checkpoint()
        levels[ready] = level
        level += 1
        targets, _ = outgoing.of(ready)
        np.subtract.at(waiting, targets, 1)
        ready = np.unique(targets[waiting[targets] == 0])
    if (levels < 0).any():
        raise CycleFound(_cycle(edges.incoming, levels))
    return level_positions(levels), levels


def level_positions(levels: Numbers) -> Numbers:
    """Return the position of each node by level, then by number."""
    positions = np.empty(len(levels), np.int64)
    positions[np.argsort(levels, kind="stable")] = np.arange(len(levels))
    return positions


def _cycle(incoming: Neighbors, levels: Numbers) -> list[int]:
    """Walk back from a node without a level; each such node has a predecessor without one, so a node repeats."""
    at = int(np.flatnonzero(levels < 0)[0])
    walked: dict[int, int] = {}
    path: list[int] = []
    while at not in walked:
        walked[at] = len(path)
        path.append(at)
        before = incoming.nodes[incoming.offsets[at] : incoming.offsets[at + 1]]
        at = int(before[levels[before] < 0][0])
    return path[walked[at] :][::-1]
