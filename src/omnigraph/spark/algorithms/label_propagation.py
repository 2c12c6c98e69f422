"""Label propagation on DataFrames."""

from __future__ import annotations

import numpy as np

from omnigraph.engine.algorithms import communities
from omnigraph.engine.algorithms.communities import BATCHING, Batching, label_ranks
from omnigraph.engine.algorithms.components import name_components
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.spark.algorithms.edge_frames import EdgeFrames


def label_propagation(graph: EdgeFrames, *, rounds_max: int, batching: Batching = BATCHING) -> tuple[Numbers, int]:
    """Return the community of each node and the number of rounds.

    The batches and the order of equal labels are those in process. A batch is one job. A graph so small that its nodes
    take their labels one at a time is collected.
    """
    if graph.count <= batching.single_max:
        return communities.label_propagation(graph.edge_list(), rounds_max=rounds_max, batching=batching)
    f = graph.f
    numbers = np.arange(graph.count)
    nodes = graph.nodes("label", rank=label_ranks(numbers), batch=batching.of(graph.count))
    labels = graph.checkpoint(nodes.withColumn("before", f.col("label")), "labels")
    batch_of = labels.select(f.col("n").alias("node"), "batch")
    edges = graph.symmetric().filter("s <> d").join(batch_of, f.col("s") == f.col("node"))
    edges = graph.checkpoint(edges.select("s", "d", "w", f.col("batch").alias("of")), "edges")
    rounds = 0
    for rounds in range(1, rounds_max + 1):
        for batch in range(batching.number):
            step = f"round {rounds}"
            held = labels.select("n", "label", "rank")
            tied = edges.filter(f.col("of") == batch).join(held, f.col("d") == f.col("n"))
            tied = tied.groupBy("s", "label", "rank").agg(f.sum("w").alias("w"))
            tied = tied.join(labels.select(f.col("n").alias("node"), f.col("label").alias("own")), f.expr("s = node"))
            order = f.struct(
                (-f.col("w")).alias("w"), f.expr("if(label = own, 0, rank)").alias("prefer"), "label", "rank"
            )
            best = tied.groupBy(f.col("s").alias("to")).agg(f.min(order).alias("best"))
            joined = labels.join(best, f.col("n") == f.col("to"), "left")
            label, rank = (f.coalesce(f.col(f"best.{name}"), f.col(name)).alias(name) for name in ("label", "rank"))
            labels = graph.checkpoint(joined.select("n", label, rank, "batch", "before"), step)
        if not graph.any(labels.filter("label <> before"), f"round {rounds}"):
            break
        labels = labels.withColumn("before", f.col("label"))
    _, groups = np.unique(graph.numbers(labels.select("n", "label"), "labels"), return_inverse=True)
    return name_components(groups), rounds
