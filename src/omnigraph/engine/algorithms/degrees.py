"""Degrees."""

from __future__ import annotations

import numpy as np

from omnigraph.engine.algorithms.edge_list import EdgeList
from omnigraph.engine.cache.table_cache import Numbers


def degrees(edges: EdgeList) -> tuple[Numbers, Numbers]:
    """Return the in-degree and the out-degree of each node; parallel edges count once each."""
    incoming = np.bincount(edges.targets, minlength=edges.count)
    return incoming, np.bincount(edges.sources, minlength=edges.count)
