"""PageRank on DataFrames."""

from __future__ import annotations

import numpy as np

from omnigraph.engine.algorithms.edge_list import Floats
from omnigraph.spark.algorithms.edge_frames import EdgeFrames


def pagerank(graph: EdgeFrames, *, damping: float, tolerance: float, rounds_max: int) -> tuple[Floats, int]:
    """Return the PageRank of each node and the number of rounds."""
    if not graph.count:
        return np.zeros(0), 0
    f = graph.f
    leaving = graph.edges.groupBy(f.col("s").alias("from")).agg(f.sum("w").alias("leaving"))
    leaving = graph.checkpoint(leaving.filter("leaving > 0"), "weights")
    shares = graph.edges.join(leaving, f.col("s") == f.col("from"))
    shares = graph.checkpoint(shares.select("s", "d", (f.col("w") / f.col("leaving")).alias("share")), "shares")
    nodes = graph.nodes().join(leaving, f.col("n") == f.col("from"), "left")
    nodes = graph.checkpoint(nodes.select("n", f.col("from").isNull().alias("stuck")), "nodes")
    ranks = nodes.withColumn("r", f.lit(1.0 / graph.count))
    stuck = graph.rows(nodes.filter("stuck"), "nodes") / graph.count
    rounds = 0
    for rounds in range(1, rounds_max + 1):
        arriving = shares.join(ranks.select("n", "r"), f.col("s") == f.col("n"))
        arriving = arriving.groupBy(f.col("d").alias("to")).agg(f.sum(f.col("r") * f.col("share")).alias("a"))
        anywhere = (1.0 - damping + damping * stuck) / graph.count
        value = f.lit(damping) * f.coalesce(f.col("a"), f.lit(0.0)) + f.lit(anywhere)
        step = f"round {rounds}"
        joined = ranks.join(arriving, f.col("n") == f.col("to"), "left")
        after = graph.checkpoint(joined.select("n", "stuck", "r", value.alias("after")), step)
        sums = after.select(
            f.sum("after").alias("total"),
            f.sum(f.abs(f.col("after") - f.col("r"))).alias("moved"),
            f.sum(f.when(f.col("stuck"), f.col("after")).otherwise(0.0)).alias("stuck"),
        )
        sum_row = graph.first(sums, step)
        ranks = after.select("n", "stuck", (f.col("after") / f.lit(sum_row["total"])).alias("r"))
        stuck = sum_row["stuck"] / sum_row["total"]
        if sum_row["moved"] < tolerance:
            break
    return graph.array(ranks.select("n", "r"), "ranks", np.float64), rounds
