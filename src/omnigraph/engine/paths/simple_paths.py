"""Every path along some hops that visits no node twice.

Paths grow edge by edge, a batch at a time. Where it is known which nodes a hop may end at, a path that cannot
get there within the edges it has left is given up at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.bfs import new_far
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.context import Work
from omnigraph.engine.exec.native import slices
from omnigraph.engine.paths.edge_space import REVERSED, IncidentEdges, PathGraph
from omnigraph.engine.paths.path_table import PathBatch
from omnigraph.query.plan import ir


@dataclass(frozen=True)
class EndFilter:
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

    def __init__(self, work: Work, graph: PathGraph) -> None:
        self._work = work
        self._graph = graph
        self._held = 0
        """Paths that arrived, …"""
        self._numbers = 0
        """… and the numbers they are made of."""

    def start(self, nodes: Numbers) -> list[PathBatch]:
        """For each node the path that has not left it yet; the node's place owns it."""
        none = np.zeros((len(nodes), 0), np.int64)
        return [PathBatch(nodes.reshape(-1, 1), none, np.arange(len(nodes)), none)]

    def follow(self, batches: list[PathBatch], step: ir.PathStep, ends: EndFilter) -> list[PathBatch]:
        """The paths one hop further; paths of one length are together."""
        by_length: dict[int, list[PathBatch]] = {}
        for batch in batches:
            for longer in self._longer(batch, step, ends):
                by_length.setdefault(longer.edges.shape[1], []).append(longer)
        return [_together(by_length[length]) for length in sorted(by_length)]

    def _longer(self, batch: PathBatch, step: ir.PathStep, ends: EndFilter) -> Iterator[PathBatch]:
        """The paths that are longer by the edges of one hop.

        Paths are made longer in batches, the last made first. What waits is bounded by the length of the hop, not by
        the number of paths; only paths that arrive are held.
        """
        incident_edges = self._graph.incident_edges(step, step.direction)
        left = self._edges_left(step, ends)
        waiting = [(0, batch)]
        while waiting:
            hops, batch = waiting.pop()
            if hops == step.max_hops:
                continue
            first, *rest = _portions(batch, incident_edges)
            waiting.extend((hops, portion) for portion in reversed(rest))
            longer = self._one_edge(first, incident_edges, left, step.max_hops - hops - 1)
            if not len(longer.owners):
                continue
            waiting.append((hops + 1, longer))
            if hops + 1 >= step.min_hops:
                nodes = longer.nodes[:, -1]
                arrived = ends.fit(longer.owners, nodes)
                chosen = slice(None) if arrived is None else np.flatnonzero(arrived)
                found = _chosen(longer, chosen)
                found = replace(found, stops=np.column_stack([found.stops, nodes[chosen]]))
                if len(found.owners):
                    self._held += len(found.owners)
                    self._numbers += found.nodes.size + found.edges.size + found.stops.size + found.owners.size
                    # They are put together twice: by length, and as rows of the match.
                    self._work.room(self._held, -(-2 * self._numbers // self._held))
                    yield found

    def _one_edge(self, batch: PathBatch, incident_edges: IncidentEdges, left: Numbers | None, more: int) -> PathBatch:
        """The paths with one more edge, of those that visit no node twice and can arrive with `more` edges."""
        positions, edges, nodes = incident_edges.expand(batch.nodes[:, -1])
        new = ~(batch.nodes[positions] == nodes[:, None]).any(axis=1)
        if left is not None:
            new &= left[nodes] <= more
        positions, edges, nodes = positions[new], edges[new], nodes[new]
        return PathBatch(
            np.column_stack([batch.nodes[positions], nodes]),
            np.column_stack([batch.edges[positions], edges]),
            batch.owners[positions],
            batch.stops[positions],
        )

    def _edges_left(self, step: ir.PathStep, ends: EndFilter) -> Numbers | None:
        """For each node how many edges it is from where the hop may end; None when that would help nothing."""
        targets = ends.nodes()
        if targets is None or step.max_hops <= 1:
            return None
        left = np.full(self._graph.count, step.max_hops, np.int64)
        left[targets] = 0
        neighbours = self._graph.neighbours(step, REVERSED[step.direction])
        frontier = targets
        for distance in range(1, step.max_hops):
            frontier = new_far(neighbours, frontier, lambda far: left[far] == step.max_hops)
            if not len(frontier):
                break
            left[frontier] = distance
        return left


def _portions(batch: PathBatch, incident_edges: IncidentEdges) -> list[PathBatch]:
    """A batch cut so that each portion, made longer by an edge, is a batch; the first is to be made longer first."""
    if not len(batch.owners):
        return [batch]
    width = batch.nodes.shape[1] + batch.edges.shape[1] + 2
    at_once = max(1, min(tuning.current.batch_rows, tuning.current.path_batch_values // width))
    cut = list(slices(incident_edges.degrees(batch.nodes[:, -1]), at_once))
    return [batch] if len(cut) == 1 else [_chosen(batch, some) for some in cut]


def reversed_paths(batches: list[PathBatch]) -> list[PathBatch]:
    """The same paths from their ends to their starts."""
    return [replace(batch, nodes=batch.nodes[:, ::-1], edges=batch.edges[:, ::-1]) for batch in batches]


def _chosen(batch: PathBatch, rows: Numbers | slice) -> PathBatch:
    return PathBatch(batch.nodes[rows], batch.edges[rows], batch.owners[rows], batch.stops[rows])


def _together(batches: list[PathBatch]) -> PathBatch:
    if len(batches) == 1:
        return batches[0]
    return PathBatch(
        np.concatenate([batch.nodes for batch in batches]),
        np.concatenate([batch.edges for batch in batches]),
        np.concatenate([batch.owners for batch in batches]),
        np.concatenate([batch.stops for batch in batches]),
    )
