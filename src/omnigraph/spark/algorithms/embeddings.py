"""Node embeddings on DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.engine.algorithms.edge_list import Floats
from omnigraph.engine.algorithms.embeddings import normalized, projection
from omnigraph.spark.algorithms.edge_frames import EdgeFrames

_COLUMNS = 64
"""Dimensions that one job averages."""


def walk_embeddings(graph: EdgeFrames, *, dimensions: int, steps: Sequence[float], seed: int) -> Floats:
    """Return a vector of length 1 for each node.

    The driver holds the vectors, which are the result; the cluster averages those of neighbours.
    """
    f = graph.f
    both = graph.symmetric()
    strengths = both.groupBy(f.col("s").alias("n")).agg(f.sum("w").alias("k")).filter("k > 0")
    shares = both.join(strengths, f.col("s") == f.col("n"))
    shares = graph.checkpoint(shares.select("s", "d", (f.col("w") / f.col("k")).alias("share")), "shares")
    vectors = projection(graph.count, dimensions, seed)
    total = np.zeros_like(vectors)
    for number, weight in enumerate(steps, 1):
        averaged = np.zeros_like(vectors)
        for first in range(0, dimensions, _COLUMNS):
            part = vectors[:, first : first + _COLUMNS]
            columns = [f"v{at}" for at in range(part.shape[1])]
            held = graph.frame(
                n=np.arange(graph.count), **dict(zip(columns, np.ascontiguousarray(part.T), strict=True))
            )
            joined = shares.join(held, f.col("d") == f.col("n"))
            sums = [f.sum(f.col("share") * f.col(name)).alias(name) for name in columns]
            found: pa.Table = graph.table(joined.groupBy("s").agg(*sums), f"step {number}")
            rows = found["s"].to_numpy()
            for at, name in enumerate(columns):
                averaged[rows, first + at] = found[name].to_numpy()
        vectors = averaged
        total += weight * normalized(vectors)
    return normalized(total)
