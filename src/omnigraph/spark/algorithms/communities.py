"""Louvain's method and label propagation on Spark."""

from __future__ import annotations

from omnigraph.engine.algorithms import communities
from omnigraph.engine.algorithms.communities import (
    LABEL_BATCHING,
    LOUVAIN_BATCHING,
    Batching,
    compacted,
    louvain_groups,
    propagated_labels,
)
from omnigraph.engine.algorithms.components import name_components
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.spark.algorithms.edge_blocks import EdgeBlocks
from omnigraph.spark.algorithms.edge_frames import EdgeFrames


def louvain(
    graph: EdgeFrames, *, resolution: float, batching: Batching = LOUVAIN_BATCHING
) -> tuple[Numbers, float, int]:
    """Return the community of each node, the modularity, and the number of levels.

    Single nodes move on the cluster, one job per batch. The graph whose nodes are the communities of the first level is
    smaller by far; the driver merges them. A graph so small that its nodes move one at a time is collected.
    """
    if graph.count <= batching.single_max:
        return communities.louvain(graph.edge_list(), resolution=resolution, batching=batching)
    groups, reached, levels = louvain_groups(EdgeBlocks(graph, batching), resolution=resolution, batching=batching)
    return name_components(groups), reached, levels


def label_propagation(
    graph: EdgeFrames, *, rounds_max: int, batching: Batching = LABEL_BATCHING
) -> tuple[Numbers, int]:
    """Return the community of each node and the number of rounds; one job per batch.

    A graph so small that its nodes take their labels one at a time is collected.
    """
    if graph.count <= batching.single_max:
        return communities.label_propagation(graph.edge_list(), rounds_max=rounds_max, batching=batching)
    labels, rounds = propagated_labels(EdgeBlocks(graph, batching), rounds_max=rounds_max)
    return name_components(compacted(labels)), rounds
