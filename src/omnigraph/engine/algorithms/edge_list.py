"""The input of the algorithms: edges between numbered nodes, and their neighbour lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from omnigraph.engine.cache.table_cache import Numbers

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class EdgeList:
    """Edges between the nodes 0 to `count` - 1."""

    count: int
    sources: Numbers
    targets: Numbers
    weights: Floats | None = None
    """The weight of each edge, not negative; None weighs all edges 1."""

    @cached_property
    def outgoing(self) -> Neighbors:
        """The distinct targets of each node, without itself."""
        return _distinct(self.count, self.sources, self.targets)

    @cached_property
    def outgoing_edges(self) -> Neighbors:
        """The target of each edge, by source; those of parallel edges are repeated."""
        return _lists(self.count, np.sort(self.sources.astype(np.int64) * max(self.count, 1) + self.targets))

    @cached_property
    def incoming(self) -> Neighbors:
        """The distinct sources of each node, without itself."""
        return _distinct(self.count, self.targets, self.sources)

    @cached_property
    def both(self) -> Neighbors:
        """The distinct neighbours of each node in either direction, without itself."""
        sources = np.concatenate([self.sources, self.targets])
        return _distinct(self.count, sources, np.concatenate([self.targets, self.sources]))

    def neighbors(self, *, directed: bool) -> Neighbors:
        """Return the targets of each node; with `directed=False`, the neighbours in either direction."""
        return self.outgoing if directed else self.both


@dataclass(frozen=True)
class Neighbors:
    """Neighbour lists: those of node `n` are `nodes[offsets[n]:offsets[n + 1]]`, ascending."""

    offsets: Numbers
    nodes: Numbers

    @cached_property
    def degrees(self) -> Numbers:
        """The number of neighbours of each node."""
        found: Numbers = np.diff(self.offsets)
        return found

    def of(self, nodes: Numbers) -> tuple[Numbers, Numbers]:
        """Return the neighbours of several nodes, one list after the other, and the position of each list's node."""
        counts = self.degrees[nodes]
        owners = np.repeat(np.arange(len(nodes)), counts)
        starts = self.offsets[nodes] - (np.cumsum(counts) - counts)
        return self.nodes[np.arange(len(owners)) + starts[owners]], owners


def _distinct(count: int, sources: Numbers, targets: Numbers) -> Neighbors:
    kept = sources != targets
    return _lists(count, np.unique(sources[kept].astype(np.int64) * max(count, 1) + targets[kept]))


def _lists(count: int, pairs: Numbers) -> Neighbors:
    """Return the neighbour lists of sorted pairs, each a number: source × count + target."""
    owners, nodes = np.divmod(pairs, max(count, 1))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=count))])
    return Neighbors(offsets.astype(np.int64), nodes)


def narrowed(numbers: Numbers, count: int) -> Numbers:
    """Return numbers below `count` in 32 bits if they fit."""
    return numbers.astype(np.int32 if count <= np.iinfo(np.int32).max else np.int64, copy=False)


def sums_by(groups: Numbers, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each group from 0 to `count` - 1."""
    found: Floats = np.bincount(groups, weights=values, minlength=count).astype(np.float64, copy=False)
    return found


@dataclass(frozen=True)
class Symmetric:
    """A weighted undirected graph: every edge in both directions, parallel edges added up, sorted by source.

    A loop occurs once with twice its weight, so that the weights of a node sum to its degree.
    """

    count: int
    sources: Numbers
    targets: Numbers
    weights: Floats

    @classmethod
    def of(cls, edges: EdgeList) -> Symmetric:
        """Return the undirected form of a graph."""
        weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
        return cls.summed(
            edges.count,
            np.concatenate([edges.sources, edges.targets]),
            np.concatenate([edges.targets, edges.sources]),
            np.concatenate([weights, weights]),
        )

    @classmethod
    def summed(cls, count: int, sources: Numbers, targets: Numbers, weights: Floats) -> Symmetric:
        """Add up the weights of entries with the same ends."""
        keys, places = np.unique(sources.astype(np.int64) * max(count, 1) + targets, return_inverse=True)
        owners, nodes = np.divmod(keys, max(count, 1))
        return cls(count, owners, nodes, sums_by(places, weights, len(keys)))

    @cached_property
    def strengths(self) -> Floats:
        """The sum of the weights of each node."""
        return sums_by(self.sources, self.weights, self.count)

    def within(self, groups: Numbers) -> float:
        """Return the weight of the edges between nodes of the same group, in both directions."""
        return float(self.weights[groups[self.sources] == groups[self.targets]].sum())

    def merged(self, groups: Numbers) -> Symmetric:
        """Return the graph whose nodes are the groups."""
        count = int(groups.max()) + 1 if len(groups) else 0
        return Symmetric.summed(count, groups[self.sources], groups[self.targets], self.weights)
