"""Core numbers."""

from __future__ import annotations

import numpy as np

from omnigraph.checkpoints import checkpoint
from omnigraph.engine.algorithms.edge_list import EdgeList
from omnigraph.engine.cache.table_cache import Numbers


def core_numbers(edges: EdgeList) -> Numbers:
    """Return the largest k for each node such that it belongs to a subgraph whose nodes all have k neighbours.

    Nodes of the smallest remaining degree are removed first. Direction, parallel edges and loops do not count.
    """
    neighbors = edges.both
    left = neighbors.degrees.copy()
    cores = np.zeros(edges.count, np.int64)
    is_left = np.ones(edges.count, bool)
    nodes, level = np.arange(edges.count), 0
    while len(nodes):
        level = max(level, int(left[nodes].min()))
        leaving = nodes[left[nodes] <= level]
        while len(leaving):
            checkpoint()
            cores[leaving] = level
            is_left[leaving] = False
            touched, _ = neighbors.of(leaving)
            touched = touched[is_left[touched]]
            np.subtract.at(left, touched, 1)
            leaving = np.unique(touched[left[touched] <= level])
        nodes = nodes[is_left[nodes]]
    return cores
