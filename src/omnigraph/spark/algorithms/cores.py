"""Core numbers on DataFrames."""

from __future__ import annotations

from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.spark.algorithms.edge_frames import EdgeFrames


def core_numbers(graph: EdgeFrames) -> Numbers:
    """Return the core number of each node.

    Each node starts with its degree. In each round it takes the largest k such that k of its neighbours have at least
    k. The numbers only fall, and end at the core numbers.
    """
    from pyspark.sql import Window  # noqa: PLC0415

    f, step = graph.f, "cores"
    pairs = graph.neighbors("both")
    cores = graph.checkpoint(pairs.groupBy(f.col("s").alias("n")).agg(f.count("*").alias("core")), step)
    largest_first = Window.partitionBy("s").orderBy(f.desc("value"))
    while True:
        own = cores.toDF("node", "own")
        values = pairs.join(cores, f.col("d") == f.col("n")).join(own, f.col("s") == f.col("node"))
        # A value above the own number counts like it, so a node has no more distinct values than its number.
        counts = values.groupBy("s", "own", f.least("core", "own").alias("value")).agg(f.count("*").alias("nodes"))
        reached = counts.select("s", "own", "value", f.sum("nodes").over(largest_first).alias("with"))
        found = reached.groupBy("s", "own").agg(f.max(f.least("value", "with")).alias("core"))
        after = graph.checkpoint(found, step)
        cores = after.select(f.col("s").alias("n"), "core")
        if not graph.any(after.filter("core < own"), step):
            return graph.numbers(cores, step)
