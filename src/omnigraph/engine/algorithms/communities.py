"""Communities: Louvain's method and label propagation.

Both move nodes between groups in parallel. A node considers the groups of its neighbours; the moves of one batch of
nodes are decided together on arrays and then applied. Batches are small enough that few neighbours are in the same one,
so the result is close to that of moving nodes one at a time. Direction does not count; weights do.

The methods are written for a `MovableGraph`: here arrays of this process, on Spark blocks of edges on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.components import name_components
from omnigraph.engine.algorithms.edge_list import EdgeList, Floats, Symmetric, narrowed, sums_by
from omnigraph.engine.cache.table_cache import Numbers

SWEEPS_MAX = 64
GAIN_MIN = 1e-7
"""A sweep that raises the modularity by less is the last one of its level."""
PASSES_MAX = 10
_ORDERS = 8
"""Number of orders of the nodes that are tried on a graph whose nodes move one at a time."""
_MIX_STEP = 1_000_003
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Batching:
    """How the nodes are divided: a small graph has one node per batch, a larger one a fixed number of batches."""

    number: int
    single_max: int = 256
    """Nodes of a graph up to this size move one at a time."""

    def of(self, count: int, order: int = 0) -> Numbers:
        """Return the batch of each node, in one of several pseudo-random orders."""
        ranks: Numbers = np.argsort(np.argsort(mixed(np.arange(count) + order * _MIX_STEP)))
        return ranks % max(self.batches(count), 1)

    def batches(self, count: int) -> int:
        """Return the number of batches."""
        return count if count <= self.single_max else self.number


LOUVAIN_BATCHING = Batching(4)
"""Fewer batches are fewer jobs on Spark. ADR 78 compares the modularity with that of sixteen batches."""
LABEL_BATCHING = Batching(16)
"""With four batches, the modularity of a graph with planted groups fell by a sixth."""


@dataclass(frozen=True)
class NodeEdges:
    """The edges of some nodes, without loops. `owners` is the position of the node of each edge, ascending."""

    nodes: Numbers
    strengths: Floats
    owners: Numbers
    targets: Numbers
    weights: Floats

    def within(self, groups: Numbers) -> float:
        """Return the weight of the edges between nodes of the same group."""
        return float(self.weights[groups[self.nodes][self.owners] == groups[self.targets]].sum())

    def tied(self, groups: Numbers) -> _Tied:
        """Add up the weights between each node and each group."""
        count = max(len(groups), 1)
        keys, places = np.unique(self.owners * count + groups[self.targets], return_inverse=True)
        owners, names = np.divmod(keys, count)
        return _Tied(owners, names, sums_by(places, self.weights, len(keys)))


@dataclass(frozen=True)
class _Tied:
    """Pairs of a node's position and a group of its neighbours, with the weight between them, ascending."""

    owners: Numbers
    groups: Numbers
    weights: Floats

    def best(self, scores: Floats, prefer: Numbers | None = None) -> Numbers:
        """Return the pair of each node with the highest score; ties by `prefer`, then by group."""
        if not len(self.owners):
            return np.zeros(0, np.int64)
        firsts = np.flatnonzero(np.diff(self.owners, prepend=-1))
        sizes = np.diff(firsts, append=len(self.owners))
        chosen = scores == np.repeat(np.maximum.reduceat(scores, firsts), sizes)
        if prefer is not None:
            order = np.where(chosen, prefer, np.iinfo(np.int64).max)
            chosen = order == np.repeat(np.minimum.reduceat(order, firsts), sizes)
        pairs = np.flatnonzero(chosen)
        found: Numbers = pairs[np.diff(self.owners[pairs], prepend=-1) > 0]
        return found


Decision = Callable[[NodeEdges], tuple[Numbers, Numbers]]
"""Returns the nodes that move, and the group that each moves to."""


class MovableGraph(Protocol):
    """A graph whose nodes move between groups batch by batch."""

    @property
    def count(self) -> int:
        """The number of nodes."""

    @property
    def batches(self) -> int:
        """The number of batches."""

    @property
    def strengths(self) -> Floats:
        """The sum of the weights of each node; a loop counts twice."""

    def moves(self, batch: int, decide: Decision) -> tuple[Numbers, Numbers]:
        """Return the moves of the nodes of a batch."""

    def within(self, groups: Numbers) -> float:
        """Return the weight of the edges within groups, in both directions."""

    def merged(self, groups: Numbers) -> Symmetric:
        """Return the graph whose nodes are the groups."""


class BatchedArrays:
    """A graph in memory whose nodes move in batches."""

    def __init__(self, graph: Symmetric, batching: Batching, order: int = 0) -> None:
        self._graph, self._batching, self._order = graph, batching, order
        self.count = graph.count
        self.batches = batching.batches(graph.count)
        self.strengths = graph.strengths
        self.within = graph.within
        self.merged = graph.merged

    @cached_property
    def _edges(self) -> list[NodeEdges]:
        graph = self._graph
        batch_of = self._batching.of(graph.count, self._order)
        edges = np.flatnonzero(graph.sources != graph.targets)
        edges = edges[np.argsort(batch_of[graph.sources[edges]], kind="stable")]
        ends = np.searchsorted(batch_of[graph.sources[edges]], np.arange(self.batches + 1)).tolist()
        parts = [edges[first:last] for first, last in pairwise(ends)]
        return [
            edges_of_nodes(graph.sources[at], graph.targets[at], graph.weights[at], graph.strengths) for at in parts
        ]

    def moves(self, batch: int, decide: Decision) -> tuple[Numbers, Numbers]:
        """Return the moves of the nodes of a batch."""
        checkpoint()
        return decide(self._edges[batch])


def edges_of_nodes(sources: Numbers, targets: Numbers, weights: Floats, strengths: Floats) -> NodeEdges:
    """Return edges that are sorted by source and have no loops; `strengths` has one value per node of the graph."""
    nodes, owners = np.unique(sources, return_inverse=True)
    return NodeEdges(nodes, strengths[nodes], owners, targets, weights)


def louvain(edges: EdgeList, *, resolution: float, batching: Batching = LOUVAIN_BATCHING) -> tuple[Numbers, float, int]:
    """Return the community of each node, the modularity of the partition, and the number of levels.

    Nodes move to the community that raises the modularity most. When no move raises it, each community becomes one
    node, and the method starts again. At the end, single nodes move between the communities once more, and the passes
    repeat while the modularity rises. Community 0 is the largest.
    """
    graph = Symmetric.of(edges)
    orders = _ORDERS if edges.count <= batching.single_max else 1
    runs = [
        louvain_groups(BatchedArrays(graph, batching, order), resolution=resolution, batching=batching, order=order)
        for order in range(orders)
    ]
    groups, reached, levels = max(runs, key=lambda run: run[1])
    return name_components(groups), reached, levels


def louvain_groups(
    graph: MovableGraph, *, resolution: float, batching: Batching, order: int = 0
) -> tuple[Numbers, float, int]:
    """Return the group of each node, the modularity, and the number of levels. Merged levels are arrays."""
    groups, levels = np.arange(graph.count), 0
    reached = modularity(graph, groups, resolution)
    for _ in range(PASSES_MAX):
        moved, _ = _moved(graph, groups, reached, resolution)
        found = compacted(moved)
        joined, now, merged = _merged_groups(graph.merged(found), resolution, order, batching)
        if now <= reached + GAIN_MIN:
            break
        groups, reached, levels = joined[found], now, levels + merged
    return groups, reached, levels


def _merged_groups(graph: Symmetric, resolution: float, order: int, batching: Batching) -> tuple[Numbers, float, int]:
    """Merge nodes while that raises the modularity; return the groups, the modularity and the number of levels."""
    groups, levels = np.arange(graph.count), 1
    reached = modularity(graph, groups, resolution)
    while True:
        moved, now = _moved(BatchedArrays(graph, batching, order), np.arange(graph.count), reached, resolution)
        found = compacted(moved)
        merged = graph.merged(found)
        if merged.count == graph.count:
            return groups, reached, levels
        graph, groups, reached, levels = merged, found[groups], now, levels + 1


def compacted(groups: Numbers) -> Numbers:
    """Number the groups that have nodes from 0, in the same order."""
    used = np.zeros(int(groups.max()) + 1 if len(groups) else 0, bool)
    used[groups] = True
    found: Numbers = (np.cumsum(used) - 1)[groups]
    return found


class _Grouped(Protocol):
    @property
    def strengths(self) -> Floats: ...

    def within(self, groups: Numbers) -> float: ...


def modularity(graph: _Grouped, groups: Numbers, resolution: float = 1.0) -> float:
    """Return the share of weight within groups, less the share expected of random edges with the same degrees."""
    total = float(graph.strengths.sum())
    if not total:
        return 0.0
    squares = float((np.bincount(groups, weights=graph.strengths) ** 2).sum())
    return graph.within(groups) / total - resolution * squares / total**2


def _moved(graph: MovableGraph, groups: Numbers, reached: float, resolution: float) -> tuple[Numbers, float]:
    """Move single nodes between groups while that raises the modularity from `reached`; return both."""
    strengths, best = graph.strengths, groups
    total = float(strengths.sum())
    for _ in range(SWEEPS_MAX if total else 0):
        groups, changed = compacted(groups), False
        for batch in range(graph.batches):
            decide = GainDecision.of(groups, strengths, total, resolution)
            nodes, to = graph.moves(batch, decide)
            if len(nodes):
                groups, changed = groups.copy(), True
                groups[nodes] = to
        found = modularity(graph, groups, resolution) if changed else reached
        if found <= reached + GAIN_MIN:
            break
        best, reached = groups, found
    return best, reached


@dataclass(frozen=True)
class GainDecision:
    """Moves each node to the group with the largest gain of modularity, if that is larger than the gain of staying."""

    groups: Numbers
    sums: Floats
    """The strength of each group."""
    single: np.ndarray[Any, np.dtype[np.bool_]]
    """The groups of one node."""
    total: float
    resolution: float

    @classmethod
    def of(cls, groups: Numbers, strengths: Floats, total: float, resolution: float) -> GainDecision:
        """Add up the strengths of the groups."""
        sums: Floats = np.bincount(groups, weights=strengths).astype(np.float64, copy=False)
        return cls(narrowed(groups, len(groups)), sums, np.bincount(groups) == 1, total, resolution)

    def __call__(self, edges: NodeEdges) -> tuple[Numbers, Numbers]:
        """Return the nodes that move, and their groups."""
        tied = edges.tied(self.groups)
        own = self.groups[edges.nodes]
        strengths = edges.strengths[tied.owners]
        stays = tied.groups == own[tied.owners]
        rest = self.sums[tied.groups] - np.where(stays, strengths, 0.0)
        gains = tied.weights - self.resolution * strengths * rest / self.total
        # A node alone in its group joins another such node only if that one has a smaller name: no swaps.
        alone = self.single[own][tied.owners] & self.single[tied.groups]
        gains[~stays & alone & (tied.groups > own[tied.owners])] = -np.inf
        # Without a neighbour in its own group, a node that stays gains what its own group takes away.
        staying = -self.resolution * edges.strengths * (self.sums[own] - edges.strengths) / self.total
        held = tied.owners[stays]
        staying[held] = np.maximum(staying[held], gains[stays])
        choice = tied.best(gains)
        least = staying + GAIN_MIN * np.maximum(edges.strengths, 1e-300)
        better = gains[choice] > least[tied.owners[choice]]
        chosen = choice[better]
        return edges.nodes[tied.owners[chosen]], tied.groups[chosen]


def label_propagation(edges: EdgeList, *, rounds_max: int, batching: Batching = LABEL_BATCHING) -> tuple[Numbers, int]:
    """Return the community of each node and the number of rounds.

    Each node takes the label that most of its neighbours have, by weight, and keeps its own if that is one of them. The
    rounds end when no label changes.
    """
    labels, rounds = propagated_labels(BatchedArrays(Symmetric.of(edges), batching), rounds_max=rounds_max)
    return name_components(compacted(labels)), rounds


def propagated_labels(graph: MovableGraph, *, rounds_max: int) -> tuple[Numbers, int]:
    """Return the label of each node and the number of rounds."""
    labels, rounds = np.arange(graph.count), 0
    for rounds in range(1, rounds_max + 1):  # noqa: B007
        changed = False
        for batch in range(graph.batches):
            nodes, to = graph.moves(batch, LabelDecision(narrowed(labels, graph.count)))
            if len(nodes):
                labels, changed = labels.copy(), True
                labels[nodes] = to
        if not changed:
            break
    return labels, rounds


@dataclass(frozen=True)
class LabelDecision:
    """Gives each node the label with the largest weight among its neighbours."""

    labels: Numbers

    def __call__(self, edges: NodeEdges) -> tuple[Numbers, Numbers]:
        """Return the nodes whose label changes, and their labels."""
        tied = edges.tied(self.labels)
        own = self.labels[edges.nodes]
        # Among equal weights the own label is first; others rank by a hash, so that none spreads by its name.
        ranks = np.where(tied.groups == own[tied.owners], 0, label_ranks(tied.groups))
        choice = tied.best(tied.weights, prefer=ranks)
        chosen = choice[tied.groups[choice] != own[tied.owners[choice]]]
        return edges.nodes[tied.owners[chosen]], tied.groups[chosen]


def label_ranks(labels: Numbers) -> Numbers:
    """Return the order of labels of equal weight: a hash above 0."""
    ranks: Numbers = (mixed(labels) >> np.uint64(1) | np.uint64(1)).astype(np.int64)
    return ranks


def mixed(numbers: Numbers) -> Numbers:
    """Return a hash of each number."""
    spread = numbers.astype(np.uint64) * _MIX
    found: Numbers = spread ^ (spread >> np.uint64(29))
    return found
