"""Degrees on DataFrames."""

from __future__ import annotations

from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.spark.algorithms.edge_frames import EdgeFrames


def degrees(graph: EdgeFrames) -> tuple[Numbers, Numbers]:
    """Return the in-degree and out-degree of each node."""
    incoming, outgoing = (graph.numbers(graph.edges.groupBy(end).count(), "degrees") for end in ("d", "s"))
    return incoming, outgoing
