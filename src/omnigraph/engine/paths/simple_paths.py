"""Enumeration of simple paths: paths along some hops that visit no node twice.

Paths are extended edge by edge in batches. If the ends of a hop are known, a path that cannot reach one with its
remaining edges is dropped at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.adjacency import REVERSED
from omnigraph.engine.adjacency.bfs import new_neighbours
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.native_calls import slices
from omnigraph.engine.paths.edge_space import IncidentEdges, PathGraph
from omnigraph.engine.paths.path_table import PathBatch
from omnigraph.query.plan import ir


@dataclass(frozen=True)
class EndFilter:
    """The permitted ends of a hop: any node, some nodes, or one node per owner."""

    allowed: Mask | None = None
    of_owner: Numbers | None = None

    def nodes(self) -> Numbers | None:
        """Return all permitted ends; None if every node is permitted."""
        if self.of_owner is not None:
            return np.unique(self.of_owner)
        return None if self.allowed is None else np.flatnonzero(self.allowed)

    def accepts(self, owners: Numbers, nodes: Numbers) -> Mask | None:
        """Return a mask of the paths that end at a permitted node; None if all do."""
        if self.of_owner is not None:
            here: Mask = self.of_owner[owners] == nodes
            return here
        return None if self.allowed is None else self.allowed[nodes]


class SimplePaths:
    """Enumerates the paths of one operator."""

    def __init__(self, context: ExecutionContext, graph: PathGraph) -> None:
        self._context = context
        self._graph = graph
        self._held = 0
        """The number of complete paths."""
        self._numbers = 0
        """The number of values in them."""

    def start(self, nodes: Numbers) -> list[PathBatch]:
        """Return one path without edges per node; its owner is the position of the node."""
        none = np.zeros((len(nodes), 0), np.int64)
        return [PathBatch(nodes.reshape(-1, 1), none, np.arange(len(nodes)), none)]

    def follow(self, batches: list[PathBatch], step: ir.PathStep, ends: EndFilter) -> list[PathBatch]:
        """Extend the paths by one hop; paths of equal length form one batch."""
        by_length: dict[int, list[PathBatch]] = {}
        for batch in batches:
            for extended in self._extended(batch, step, ends):
                by_length.setdefault(extended.edges.shape[1], []).append(extended)
        return [_merged(by_length[length]) for length in sorted(by_length)]

    def _extended(self, batch: PathBatch, step: ir.PathStep, ends: EndFilter) -> Iterator[PathBatch]:
        """Yield the paths extended by the edges of one hop.

        Batches are processed depth first. The number of waiting batches is bounded by the length of the hop, not by the
        number of paths; only complete paths are held.
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
            extended = self._one_edge(first, incident_edges, left, step.max_hops - hops - 1)
            if not len(extended.owners):
                continue
            waiting.append((hops + 1, extended))
            if hops + 1 >= step.min_hops:
                nodes = extended.nodes[:, -1]
                arrived = ends.accepts(extended.owners, nodes)
                chosen = slice(None) if arrived is None else np.flatnonzero(arrived)
                found = _chosen(extended, chosen)
                found = replace(found, stops=np.column_stack([found.stops, nodes[chosen]]))
                if len(found.owners):
                    self._held += len(found.owners)
                    self._numbers += found.nodes.size + found.edges.size + found.stops.size + found.owners.size
                    # Complete paths are copied twice: by length, and into the rows of the match.
                    self._context.check_size(self._held, -(-2 * self._numbers // self._held))
                    yield found

    def _one_edge(self, batch: PathBatch, incident_edges: IncidentEdges, left: Numbers | None, more: int) -> PathBatch:
        """Extend paths by one edge; keep simple paths that can reach an end with `more` edges."""
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
        """Return for each node its distance to the nearest permitted end; None if that would not prune."""
        targets = ends.nodes()
        if targets is None or step.max_hops <= 1:
            return None
        left = np.full(self._graph.count, step.max_hops, np.int64)
        left[targets] = 0
        neighbours = self._graph.neighbours(step, REVERSED[step.direction])
        frontier = targets
        for distance in range(1, step.max_hops):
            frontier = new_neighbours(neighbours, frontier, lambda far: left[far] == step.max_hops)
            if not len(frontier):
                break
            left[frontier] = distance
        return left


def _portions(batch: PathBatch, incident_edges: IncidentEdges) -> list[PathBatch]:
    """Split a batch so that each portion, extended by one edge, is at most one batch."""
    if not len(batch.owners):
        return [batch]
    width = batch.nodes.shape[1] + batch.edges.shape[1] + 2
    at_once = max(1, min(tuning.current.batch_rows, tuning.current.path_batch_values // width))
    cut = list(slices(incident_edges.degrees(batch.nodes[:, -1]), at_once))
    return [batch] if len(cut) == 1 else [_chosen(batch, some) for some in cut]


def reversed_paths(batches: list[PathBatch]) -> list[PathBatch]:
    """Return the paths from end to start."""
    return [replace(batch, nodes=batch.nodes[:, ::-1], edges=batch.edges[:, ::-1]) for batch in batches]


def _chosen(batch: PathBatch, rows: Numbers | slice) -> PathBatch:
    return PathBatch(batch.nodes[rows], batch.edges[rows], batch.owners[rows], batch.stops[rows])


def _merged(batches: list[PathBatch]) -> PathBatch:
    if len(batches) == 1:
        return batches[0]
    return PathBatch(
        np.concatenate([batch.nodes for batch in batches]),
        np.concatenate([batch.edges for batch in batches]),
        np.concatenate([batch.owners for batch in batches]),
        np.concatenate([batch.stops for batch in batches]),
    )
