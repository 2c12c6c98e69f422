"""Weakly connected components on DataFrames."""

from __future__ import annotations

from omnigraph.engine.algorithms.components import name_components
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.spark.algorithms.edge_frames import EdgeFrames


def components(graph: EdgeFrames) -> Numbers:
    """Return the connected component of each node: join the pointers of edge ends, then compress them."""
    f, step = graph.f, "components"
    ends = graph.edges.select(f.least("s", "d").alias("low"), f.greatest("s", "d").alias("high"))
    left = graph.checkpoint(ends.filter("low < high").distinct(), step)
    roots = graph.nodes("root")
    while graph.any(left, step):
        points = left.groupBy(f.col("high").alias("node")).agg(f.min("low").alias("at"))
        points = graph.compressed(graph.checkpoint(points, step), step)
        roots = graph.checkpoint(graph.replaced(roots, "root", points), step)
        ends = graph.replaced(graph.replaced(left, "low", points), "high", points)
        ends = ends.select(f.least("low", "high").alias("low"), f.greatest("low", "high").alias("high"))
        left = graph.checkpoint(ends.filter("low < high").distinct(), step)
    return name_components(graph.numbers(roots.select("n", "root"), step))
