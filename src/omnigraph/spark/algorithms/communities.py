"""Louvain's method on DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from omnigraph.engine.algorithms import communities
from omnigraph.engine.algorithms.communities import (
    BATCHING,
    GAIN_MIN,
    PASSES_MAX,
    SWEEPS_MAX,
    Batching,
    merged_groups,
    modularity_of,
)
from omnigraph.engine.algorithms.components import name_components
from omnigraph.engine.algorithms.edge_list import Symmetric
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.spark.algorithms.edge_frames import EdgeFrames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def louvain(graph: EdgeFrames, *, resolution: float, batching: Batching = BATCHING) -> tuple[Numbers, float, int]:
    """Return the community of each node, the modularity, and the number of levels.

    Single nodes move on the cluster, in the batches of the process. The graph whose nodes are the communities of the
    first level is smaller by far; the driver merges them. A graph so small that its nodes move one at a time is
    collected.
    """
    if graph.count <= batching.single_max:
        return communities.louvain(graph.edge_list(), resolution=resolution, batching=batching)
    moves = _Moves(graph, resolution, batching)
    groups, levels = np.arange(graph.count), 0
    reached = moves.modularity(moves.state(groups))
    for _ in range(PASSES_MAX):
        state = moves.moved(groups)
        moved = graph.numbers(state.select("n", "g"), "communities")
        _, compact = np.unique(moved, return_inverse=True)
        level = moves.level(compact)
        joined, merged = merged_groups(level, np.arange(level.count), resolution, 0, batching)
        found = joined[compact]
        now = moves.modularity(moves.state(found))
        if now <= reached + GAIN_MIN:
            break
        groups, reached, levels = found, now, levels + merged
    return name_components(groups), reached, levels


class _Moves:
    """Moves of single nodes. A state has the group `g`, the strength `k` and the batch of each node `n`."""

    def __init__(self, graph: EdgeFrames, resolution: float, batching: Batching) -> None:
        f = graph.f
        self._graph, self._resolution, self._batching = graph, resolution, batching
        self._both = graph.symmetric()
        strengths = self._both.groupBy(f.col("s").alias("n")).agg(f.sum("w").alias("k"))
        self._strengths = graph.array(strengths, "strengths", np.float64)
        self._total = float(self._strengths.sum())
        self._batch = batching.of(graph.count)
        batches = graph.nodes(of=self._batch).withColumnRenamed("n", "node")
        edges = self._both.filter("s <> d").join(batches, f.col("s") == f.col("node"))
        self._edges = graph.checkpoint(edges.select("s", "d", "w", "of"), "edges")

    def state(self, groups: Numbers) -> DataFrame:
        """Return the state with these groups."""
        return self._graph.checkpoint(self._graph.nodes(g=groups, k=self._strengths, batch=self._batch), "communities")

    def moved(self, groups: Numbers) -> DataFrame:
        """Move nodes while that raises the modularity; return the state."""
        best = self.state(groups)
        if not self._total:
            return best
        state, reached = best, self.modularity(best)
        for sweep in range(1, SWEEPS_MAX + 1):
            for batch in range(self._batching.batches(self._graph.count)):
                state = self._after_batch(state, batch, f"sweep {sweep}")
            found = self.modularity(state)
            if found <= reached + GAIN_MIN:
                break
            best, reached = state, found
        return best

    def _after_batch(self, state: DataFrame, batch: int, step: str) -> DataFrame:
        """Move the nodes of one batch, each to the group with the largest gain."""
        f, resolution, total = self._graph.f, repr(float(self._resolution)), repr(self._total)
        sums = state.groupBy("g").agg(f.sum("k").alias("sum"), f.count("*").alias("size"))
        held = state.select("n", "g")
        tied = self._edges.filter(f.col("of") == batch).join(held, f.col("d") == f.col("n"))
        tied = tied.groupBy("s", "g").agg(f.sum("w").alias("w")).join(sums, "g")
        own = state.filter(f.col("batch") == batch).select(f.col("n").alias("s"), f.col("g").alias("own"), "k")
        own = own.join(sums.toDF("own", "own_sum", "own_size"), "own")
        tied = tied.join(own, "s")
        gain = f"w - {resolution}D * k * (sum - if(g = own, k, 0D)) / {total}D"
        # A node alone in its group joins another such node only if that one has a smaller name: no swaps.
        swap = "g <> own and own_size = 1 and size = 1 and g > own"
        tied = tied.withColumn("gain", f.expr(f"if({swap}, double('-infinity'), {gain})"))
        best = tied.groupBy("s", "own", "k", "own_sum").agg(
            f.min(f.struct((-f.col("gain")).alias("loss"), "g")).alias("best"),
            f.max(f.expr("if(g = own, gain, null)")).alias("staying"),
        )
        # Without a neighbour in its own group, a node that stays gains what its own group takes away.
        lonely = f"-{resolution}D * k * (own_sum - k) / {total}D"
        least = f"greatest(coalesce(staying, double('-infinity')), {lonely}) + {GAIN_MIN!r}D * greatest(k, 1e-300D)"
        moves = best.filter(f.expr(f"-best.loss > {least}")).select(f.col("s").alias("n"), f.col("best.g").alias("to"))
        joined = state.join(moves, "n", "left")
        group = f.coalesce("to", "g").alias("g")
        return self._graph.checkpoint(joined.select("n", group, "k", "batch"), step)

    def modularity(self, state: DataFrame) -> float:
        """Return the modularity of a state."""
        f = self._graph.f
        one = state.select(f.col("n").alias("s"), f.col("g").alias("one"))
        other = state.select(f.col("n").alias("d"), f.col("g").alias("other"))
        inside = self._both.join(one, "s").join(other, "d").filter("one = other").agg(f.sum("w").alias("w"))
        squares = state.groupBy("g").agg(f.sum("k").alias("k")).agg(f.sum(f.expr("k * k")).alias("squares"))
        found = self._graph.first(inside.crossJoin(squares), "modularity")
        return modularity_of(self._total, found["w"] or 0.0, found["squares"] or 0.0, self._resolution)

    def level(self, groups: Numbers) -> Symmetric:
        """Return the graph whose nodes are the groups."""
        graph, f = self._graph, self._graph.f
        points = graph.checkpoint(graph.nodes(at=groups).withColumnRenamed("n", "node"), "level")
        ends = graph.replaced(graph.replaced(self._both, "s", points), "d", points)
        table = graph.table(ends.groupBy("s", "d").agg(f.sum("w").alias("w")), "level")
        sources, targets, weights = (table[name].to_numpy() for name in ("s", "d", "w"))
        count = int(groups.max()) + 1 if len(groups) else 0
        return Symmetric.summed(count, sources, targets, weights)
