"""Similarity of nodes on DataFrames."""

from __future__ import annotations

import numpy as np

from omnigraph.engine.algorithms.similarity import Direction, Measure, SimilarPairs
from omnigraph.spark.algorithms.edge_frames import EdgeFrames


def similar_nodes(
    graph: EdgeFrames, *, measure: Measure, limit: int, least: float, degree_max: int, direction: Direction
) -> SimilarPairs:
    """Return for each node the `limit` most similar nodes: a join of the neighbour lists with themselves."""
    from pyspark.sql import Window  # noqa: PLC0415

    f, step = graph.f, "similarity"
    pairs = graph.neighbors(direction)
    popular = pairs.groupBy(f.col("d").alias("hub")).count().filter(f.col("count") > degree_max).select("hub")
    popular = graph.checkpoint(popular, step)
    hubs = graph.rows(popular, step)
    kept = pairs.join(popular, f.col("d") == f.col("hub"), "left_anti") if hubs else pairs
    sizes = kept.groupBy("s").agg(f.count("*").alias("size"))
    kept = graph.checkpoint(kept.join(sizes.withColumnRenamed("s", "n"), f.col("s") == f.col("n")).drop("n"), step)
    firsts = kept.select(f.col("s").alias("one"), f.col("size").alias("one_size"), "d")
    others = kept.select(f.col("s").alias("other"), f.col("size").alias("other_size"), f.col("d").alias("to"))
    shared = firsts.join(others, (f.col("d") == f.col("to")) & (f.col("one") != f.col("other")))
    shared = shared.groupBy("one", "other", "one_size", "other_size").agg(f.count("*").alias("shared"))
    either = f.col("one_size") + f.col("other_size") - f.col("shared")
    mean = f.sqrt(f.col("one_size").cast("double") * f.col("other_size"))
    values = shared.select(
        "one", "other", (f.col("shared") / (either if measure == "jaccard" else mean)).alias("value")
    )
    rank = f.row_number().over(Window.partitionBy("one").orderBy(f.desc("value"), "other"))
    best = values.filter(f.col("value") >= least).withColumn("place", rank).filter(f.col("place") <= limit)
    table = graph.table(best.select("one", "other", "value"), step)
    nodes, beside, found = (table[name].to_numpy() for name in ("one", "other", "value"))
    order = np.lexsort((beside, -found, nodes))
    return SimilarPairs(nodes[order], beside[order], found[order], hubs)
