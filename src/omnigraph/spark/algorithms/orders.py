"""Topological order on DataFrames."""

from __future__ import annotations

import numpy as np

from omnigraph.engine.algorithms.orders import CycleFound, level_positions
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.spark.algorithms.edge_frames import EdgeFrames


def topological_order(graph: EdgeFrames) -> tuple[Numbers, Numbers]:
    """Return the position and the level of each node.

    The driver counts the open edges to each node. Each round sends the nodes of one level to the edges and gets the
    number of edges from them to each other node.
    """
    f = graph.f
    loop = graph.table(graph.edges.filter("s = d").orderBy("e").limit(1).select("s"), "loops")
    if loop.num_rows:
        raise CycleFound([loop["s"][0].as_py()])
    waiting = graph.numbers(graph.edges.groupBy("d").count(), "degrees")
    levels = np.full(graph.count, -1, np.int64)
    ready, level = np.flatnonzero(waiting == 0), 0
    while len(ready):
        levels[ready] = level
        level += 1
        reached = graph.edges.join(graph.frame(n=ready), f.col("s") == f.col("n")).groupBy("d").count()
        found = graph.table(reached, f"level {level}")
        targets = found["d"].to_numpy()
        waiting[targets] -= found["count"].to_numpy()
        ready = np.sort(targets[waiting[targets] == 0])
    if (levels < 0).any():
        raise CycleFound(_cycle(graph, levels))
    return level_positions(levels), levels


def _cycle(graph: EdgeFrames, levels: Numbers) -> list[int]:
    """Walk back from a node without a level, each time to the smallest such source."""
    f = graph.f
    left = np.flatnonzero(levels < 0)
    frame = graph.checkpoint(graph.frame(n=left), "cycle")
    edges = graph.edges.join(frame, f.col("s") == f.col("n"), "left_semi")
    edges = edges.join(frame, f.col("d") == f.col("n"), "left_semi")
    before = graph.numbers(edges.groupBy("d").agg(f.min("s").alias("s")), "cycle")
    at, walked, path = int(left[0]), dict[int, int](), list[int]()
    while at not in walked:
        walked[at] = len(path)
        path.append(at)
        at = int(before[at])
    return path[walked[at] :][::-1]
