"""Communities: Louvain's method and label propagation.

Both move nodes between groups in parallel. A node considers the groups of its neighbours; the moves of one batch of
nodes are decided together on arrays and then applied. Batches are small enough that few neighbours are in the same one,
so the result is close to that of moving nodes one at a time. Direction does not count; weights do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.components import name_components
from omnigraph.engine.algorithms.edge_list import EdgeList, Floats, Symmetric, sums_by
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

    number: int = 16
    single_max: int = 256
    """Nodes of a graph up to this size move one at a time."""

    def of(self, count: int, order: int = 0) -> Numbers:
        """Return the batch of each node, in one of several pseudo-random orders."""
        ranks: Numbers = np.argsort(np.argsort(mixed(np.arange(count) + order * _MIX_STEP)))
        return ranks % self.batches(count)

    def batches(self, count: int) -> int:
        """Return the number of batches."""
        return count if count <= self.single_max else self.number


BATCHING = Batching()


def louvain(edges: EdgeList, *, resolution: float, batching: Batching = BATCHING) -> tuple[Numbers, float, int]:
    """Return the community of each node, the modularity of the partition, and the number of levels.

    Nodes move to the community that raises the modularity most. When no move raises it, each community becomes one
    node, and the method starts again. At the end, single nodes move between the communities once more, and the passes
    repeat while the modularity rises. Community 0 is the largest.
    """
    graph = Symmetric.of(edges)
    orders = _ORDERS if edges.count <= batching.single_max else 1
    runs = [_louvain(graph, resolution, order, batching) for order in range(orders)]
    groups, reached, levels = max(runs, key=lambda run: run[1])
    return name_components(groups), reached, levels


def _louvain(graph: Symmetric, resolution: float, order: int, batching: Batching) -> tuple[Numbers, float, int]:
    groups, levels = np.arange(graph.count), 0
    reached = modularity(graph, groups, resolution)
    for _ in range(PASSES_MAX):
        moved = _moved(graph, groups, resolution, order, batching)
        found, merged = merged_groups(graph, moved, resolution, order, batching)
        now = modularity(graph, found, resolution)
        if now <= reached + GAIN_MIN:
            break
        groups, reached, levels = found, now, levels + merged
    return groups, reached, levels


def merged_groups(
    graph: Symmetric, groups: Numbers, resolution: float, order: int, batching: Batching
) -> tuple[Numbers, int]:
    """Merge whole groups while that raises the modularity; return the groups and the number of levels."""
    levels = 1
    while True:
        _, groups = np.unique(groups, return_inverse=True)
        count = int(groups.max()) + 1 if len(groups) else 0
        level = Symmetric.summed(count, groups[graph.sources], groups[graph.targets], graph.weights)
        moved = _moved(level, np.arange(count), resolution, order, batching)
        if len(np.unique(moved)) == count:
            return groups, levels
        groups, levels = moved[groups], levels + 1


def modularity(graph: Symmetric, groups: Numbers, resolution: float = 1.0) -> float:
    """Return the share of weight within groups, less the share expected of random edges with the same degrees."""
    within = float(graph.weights[groups[graph.sources] == groups[graph.targets]].sum())
    strengths = np.bincount(groups, weights=graph.strengths)
    return modularity_of(float(graph.weights.sum()), within, float((strengths**2).sum()), resolution)


def modularity_of(total: float, within: float, squares: float, resolution: float) -> float:
    """Return the modularity from all weight, the weight within groups, and the squared strengths of groups."""
    return within / total - resolution * squares / total**2 if total else 0.0


def _moved(graph: Symmetric, groups: Numbers, resolution: float, order: int, batching: Batching) -> Numbers:
    """Move single nodes between groups while that raises the modularity; return the groups."""
    total = float(graph.weights.sum())
    if not total:
        return groups
    best, reached = groups, modularity(graph, groups, resolution)
    strengths = graph.strengths
    batches = list(_batches(graph, batching, order))
    for _ in range(SWEEPS_MAX):
        for batch in batches:
            checkpoint()
            tied = batch.tied(groups)
            sums = sums_by(groups, strengths, graph.count)
            sizes = np.bincount(groups, minlength=graph.count)
            own = strengths[tied.nodes]
            stays = tied.groups == groups[tied.nodes]
            rest = sums[tied.groups] - np.where(stays, own, 0.0)
            gains = tied.weights - resolution * own * rest / total
            # A node alone in its group joins another such node only if that one has a smaller name: no swaps.
            alone = (sizes[groups[tied.nodes]] == 1) & (sizes[tied.groups] == 1)
            gains[~stays & alone & (tied.groups > groups[tied.nodes])] = -np.inf
            nodes, choice = tied.best(gains)
            staying = np.full(graph.count, -np.inf)
            staying[tied.nodes[stays]] = gains[stays]
            # Without a neighbour in its own group, a node that stays gains what its own group takes away.
            lonely = -resolution * strengths[nodes] * (sums[groups[nodes]] - strengths[nodes]) / total
            least = np.maximum(staying[nodes], lonely) + GAIN_MIN * np.maximum(strengths[nodes], 1e-300)
            better = gains[choice] > least
            groups = groups.copy()
            groups[nodes[better]] = tied.groups[choice[better]]
        found = modularity(graph, groups, resolution)
        if found <= reached + GAIN_MIN:
            break
        best, reached = groups, found
    return best


def label_propagation(edges: EdgeList, *, rounds_max: int, batching: Batching = BATCHING) -> tuple[Numbers, int]:
    """Return the community of each node and the number of rounds.

    Each node takes the label that most of its neighbours have, by weight, and keeps its own if that is one of them. The
    rounds end when no label changes.
    """
    graph = Symmetric.of(edges)
    labels = np.arange(edges.count)
    batches = list(_batches(graph, batching))
    rounds = 0
    for rounds in range(1, rounds_max + 1):  # noqa: B007
        before = labels
        for batch in batches:
            checkpoint()
            tied = batch.tied(labels)
            # Among equal weights the own label is first; others rank by a hash, so that none spreads by its name.
            own = tied.groups == labels[tied.nodes]
            nodes, choice = tied.best(tied.weights, prefer=np.where(own, 0, label_ranks(tied.groups)))
            labels = labels.copy()
            labels[nodes] = tied.groups[choice]
        if np.array_equal(before, labels):
            break
    _, groups = np.unique(labels, return_inverse=True)
    return name_components(groups), rounds


@dataclass(frozen=True)
class _Tied:
    """Pairs of a node and a group of its neighbours, with the weight between them, sorted by node."""

    nodes: Numbers
    groups: Numbers
    weights: Floats

    def best(self, scores: Floats, prefer: Numbers | None = None) -> tuple[Numbers, Numbers]:
        """Return the nodes, and the pair of each with the highest score; ties by `prefer`, then by group."""
        order = np.lexsort((self.groups, self.groups if prefer is None else prefer, -scores, self.nodes))
        nodes, first = np.unique(self.nodes[order], return_index=True)
        return nodes, order[first]


@dataclass(frozen=True)
class _Batch:
    """The edges of some nodes, without loops."""

    sources: Numbers
    targets: Numbers
    weights: Floats
    count: int

    def tied(self, groups: Numbers) -> _Tied:
        """Add up the weights between each node and each group."""
        keys, places = np.unique(self.sources * self.count + groups[self.targets], return_inverse=True)
        nodes, names = np.divmod(keys, self.count)
        return _Tied(nodes, names, sums_by(places, self.weights, len(keys)))


def _batches(graph: Symmetric, batching: Batching, order: int = 0) -> Iterator[_Batch]:
    """Divide the nodes, and yield the edges of each batch."""
    batch_of, number = batching.of(graph.count, order), batching.batches(graph.count)
    edges = np.flatnonzero(graph.sources != graph.targets)
    sorted_edges = edges[np.argsort(batch_of[graph.sources[edges]], kind="stable")]
    ends = np.searchsorted(batch_of[graph.sources[sorted_edges]], np.arange(number + 1))
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if last > first:
            part = sorted_edges[first:last]
            yield _Batch(graph.sources[part], graph.targets[part], graph.weights[part], graph.count)


def label_ranks(labels: Numbers) -> Numbers:
    """Return the order of labels of equal weight: a hash above 0."""
    ranks: Numbers = (mixed(labels) >> np.uint64(1) | np.uint64(1)).astype(np.int64)
    return ranks


def mixed(numbers: Numbers) -> Numbers:
    """Return a hash of each number."""
    spread = numbers.astype(np.uint64) * _MIX
    found: Numbers = spread ^ (spread >> np.uint64(29))
    return found
