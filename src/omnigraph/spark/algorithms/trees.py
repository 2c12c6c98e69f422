"""Minimum spanning forest on DataFrames."""

from __future__ import annotations

import numpy as np

from omnigraph.engine.algorithms.trees import Flags, joined_roots
from omnigraph.spark.algorithms.edge_frames import EdgeFrames


def spanning_forest(graph: EdgeFrames) -> tuple[Flags, float]:
    """Return True for the edges of a spanning forest of least weight, and its weight.

    The algorithm is that of Borůvka. Edges have the trees of their ends `a` and `b`; the driver joins the trees.
    """
    f, step = graph.f, "trees"
    chosen = np.zeros(graph.edge_count, bool)
    weights = np.zeros(graph.edge_count)
    left = graph.edges.select("e", "w", f.col("s").alias("a"), f.col("d").alias("b")).filter("a <> b")
    while True:
        order = f.struct("w", "e", "a", "b").alias("edge")
        ends = left.select(f.col("a").alias("tree"), order).unionAll(left.select(f.col("b").alias("tree"), order))
        lightest = ends.groupBy("tree").agg(f.min("edge").alias("edge")).select("tree", "edge.*")
        table = graph.table(lightest, step)
        if not table.num_rows:
            return chosen, float(weights[chosen].sum())
        trees, taken, sources, targets = (table[name].to_numpy() for name in ("tree", "e", "a", "b"))
        chosen[taken] = True
        weights[taken] = table["w"].to_numpy()
        roots = joined_roots(graph.count, trees, sources, targets)
        points = graph.checkpoint(graph.frame(node=trees, at=roots[trees]), step)
        left = graph.replaced(graph.replaced(left, "a", points), "b", points).filter("a <> b")
        left = graph.checkpoint(left, step)
