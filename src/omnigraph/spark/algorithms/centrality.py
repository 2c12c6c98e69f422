"""Betweenness and closeness on DataFrames: one search from all nodes of the sample at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from omnigraph.engine.algorithms.centrality import sample_nodes, scaled_betweenness, scaled_closeness
from omnigraph.engine.algorithms.edge_list import Floats
from omnigraph.spark.algorithms.edge_frames import EdgeFrames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def closeness(graph: EdgeFrames, *, samples: int, seed: int, directed: bool) -> tuple[Floats, int]:
    """Return the closeness of each node, and the sample size."""
    f, starts = graph.f, sample_nodes(graph.count, samples, seed)
    levels = _search(graph, starts, directed=directed)[1]
    sums = np.zeros((2, graph.count))
    for distance, level in enumerate(levels[1:], 1):
        found = graph.numbers(level.groupBy("n").agg(f.count("*").alias("starts")), "distances")
        sums += np.outer([distance, 1], found)
    return scaled_closeness(sums[0], sums[1], len(starts)), len(starts)


def betweenness(graph: EdgeFrames, *, samples: int, seed: int, directed: bool) -> tuple[Floats, int]:
    """Return the betweenness of each node, and the sample size: Brandes' algorithm, level by level."""
    f, starts = graph.f, sample_nodes(graph.count, samples, seed)
    pairs, levels = _search(graph, starts, directed=directed)
    total = np.zeros(graph.count)
    farther = levels[-1].withColumn("share", f.lit(0.0)) if len(levels) > 1 else None
    for level in reversed(levels[:-1]):
        assert farther is not None
        total += graph.array(farther.groupBy("n").agg(f.sum("share").alias("share")), "shares", np.float64)
        beyond = farther.select(
            f.col("start").alias("of"), f.col("n").alias("to"), f.col("paths").alias("to_paths"), "share"
        )
        steps = level.join(pairs, f.col("n") == f.col("s"))
        steps = steps.join(beyond, (f.col("start") == f.col("of")) & (f.col("d") == f.col("to")))
        part = f.col("paths") / f.col("to_paths") * (f.lit(1.0) + f.col("share"))
        shares = steps.groupBy("start", "n").agg(f.sum(part).alias("share"))
        farther = graph.checkpoint(level.join(shares, ["start", "n"], "left").na.fill(0.0, ["share"]), "shares")
    return scaled_betweenness(total, len(starts)), len(starts)


def _search(graph: EdgeFrames, starts: np.ndarray, *, directed: bool) -> tuple[DataFrame, list[DataFrame]]:
    """Search breadth first; return the pairs of neighbours, and `start`, `n` and the number of `paths` by level."""
    f = graph.f
    pairs = graph.neighbors("out" if directed else "both")
    level = graph.checkpoint(graph.frame(start=starts, n=starts, paths=np.ones(len(starts))), "search")
    levels, seen = [level], level.select("start", "n")
    while True:
        step = f"level {len(levels)}"
        steps = level.join(pairs, f.col("n") == f.col("s"))
        found = steps.groupBy("start", f.col("d").alias("n")).agg(f.sum("paths").alias("paths"))
        level = graph.checkpoint(found.join(seen, ["start", "n"], "left_anti"), step)
        if not graph.any(level, step):
            return pairs, levels
        levels.append(level)
        seen = graph.checkpoint(seen.unionAll(level.select("start", "n")), step)
