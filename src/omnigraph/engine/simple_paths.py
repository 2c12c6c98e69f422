"""Every path along some hops that visits no node twice.

Paths grow edge by edge, all of one length at a time. Where it is known which nodes a hop may end at, a path that cannot
get there within the edges it has left is given up at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from omnigraph.engine.data import Mask, Numbers
from omnigraph.engine.path_data import Batch
from omnigraph.engine.trails import TURNED, Terrain
from omnigraph.engine.work import Work
from omnigraph.query import ir


@dataclass(frozen=True)
class Ends:
    """Where a hop may end: anywhere, at some nodes, or for each owner of paths at one."""

    allowed: Mask | None = None
    of_owner: Numbers | None = None

    def nodes(self) -> Numbers | None:
        """All nodes it may end at; None when that is every node."""
        if self.of_owner is not None:
            return np.unique(self.of_owner)
        return None if self.allowed is None else np.flatnonzero(self.allowed)

    def fit(self, owners: Numbers, nodes: Numbers) -> Mask | None:
        """Which paths have arrived; None when all have."""
        if self.of_owner is not None:
            here: Mask = self.of_owner[owners] == nodes
            return here
        return None if self.allowed is None else self.allowed[nodes]


class SimplePaths:
    """Enumerates the paths of one operation."""

    def __init__(self, work: Work, terrain: Terrain) -> None:
        self._work = work
        self._terrain = terrain
        self._held = 0

    def start(self, nodes: Numbers) -> list[Batch]:
        """For each node the path that has not left it yet; the node's place owns it."""
        none = np.zeros((len(nodes), 0), np.int64)
        return [Batch(nodes.reshape(-1, 1), none, np.arange(len(nodes)), none)]

    def follow(self, batches: list[Batch], step: ir.PathStep, ends: Ends) -> list[Batch]:
        """The paths one hop further; paths of one length are together."""
        by_length: dict[int, list[Batch]] = {}
        for batch in batches:
            for longer in self._longer(batch, step, ends):
                by_length.setdefault(longer.edges.shape[1], []).append(longer)
        return [_together(by_length[length]) for length in sorted(by_length)]

    def _longer(self, batch: Batch, step: ir.PathStep, ends: Ends) -> Iterator[Batch]:
        trails = self._terrain.trails(step, step.direction)
        left = self._edges_left(step, ends)
        for hops in range(1, step.max_hops + 1):
            here = batch.nodes[:, -1]
            self._work.room(self._held + trails.count(here))
            positions, edges, nodes = trails.expand(here)
            new = ~(batch.nodes[positions] == nodes[:, None]).any(axis=1)
            if left is not None:
                new &= left[nodes] <= step.max_hops - hops
            positions, edges, nodes = positions[new], edges[new], nodes[new]
            batch = Batch(
                np.column_stack([batch.nodes[positions], nodes]),
                np.column_stack([batch.edges[positions], edges]),
                batch.owners[positions],
                batch.stops[positions],
            )
            if not len(nodes):
                return
            if hops >= step.min_hops:
                arrived = ends.fit(batch.owners, nodes)
                chosen = slice(None) if arrived is None else np.flatnonzero(arrived)
                found = _chosen(batch, chosen)
                found = replace(found, stops=np.column_stack([found.stops, nodes[chosen]]))
                self._held += len(found.edges)
                yield found

    def _edges_left(self, step: ir.PathStep, ends: Ends) -> Numbers | None:
        """For each node how many edges it is from where the hop may end; None when that would help nothing."""
        targets = ends.nodes()
        if targets is None or step.max_hops <= 1:
            return None
        left = np.full(self._terrain.count, step.max_hops, np.int64)
        left[targets] = 0
        neighbours = self._terrain.neighbours(step, TURNED[step.direction])
        frontier = targets
        for distance in range(1, step.max_hops):
            reached = neighbours.far(frontier)
            frontier = np.unique(reached[left[reached] == step.max_hops])
            left[frontier] = distance
        return left


def turned(batches: list[Batch]) -> list[Batch]:
    """The same paths from their ends to their starts."""
    return [replace(batch, nodes=batch.nodes[:, ::-1], edges=batch.edges[:, ::-1]) for batch in batches]


def _chosen(batch: Batch, rows: Numbers | slice) -> Batch:
    return Batch(batch.nodes[rows], batch.edges[rows], batch.owners[rows], batch.stops[rows])


def _together(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(
        np.concatenate([batch.nodes for batch in batches]),
        np.concatenate([batch.edges for batch in batches]),
        np.concatenate([batch.owners for batch in batches]),
        np.concatenate([batch.stops for batch in batches]),
    )
