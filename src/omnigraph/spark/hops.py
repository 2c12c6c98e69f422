"""Expansion on Spark: DataFrames of distinct pairs of node ids, connected by one hop or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from omnigraph.pipeline.job import Job
from omnigraph.query.plan.ir import Direction
from omnigraph.spark.cancellable_action import Actions
from omnigraph.spark.scans import Scan
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


NewName = Callable[[], str]
"""Returns a new column name."""


@dataclass(frozen=True)
class Pairs:
    """A DataFrame with two columns of node ids."""

    frame: DataFrame
    near: str
    far: str


@dataclass(frozen=True)
class HopRange:
    """The bounds of a variable-length expansion; `backward` if it starts at the target of the pattern."""

    least: int
    most: int
    backward: bool


def edge_pairs(
    spark: SparkSession, job: Job, edge_types: Sequence[str], direction: Direction, new_name: NewName
) -> Pairs:
    """Return the ends of all edges of some types, in a direction."""
    near, far = new_name(), new_name()
    ends = {"src": far, "dst": near} if direction == "in" else {"src": near, "dst": far}
    frames = [Scan(job, TableKey.edge(name), ends).frame(spark).select(near, far) for name in edge_types]
    frame = reduce(lambda one, other: one.unionAll(other), frames)
    if direction == "both":
        frame = frame.unionAll(frame.select(far, near))
    return Pairs(frame.distinct(), near, far)


def reachable_pairs(pairs: Pairs, sources: DataFrame, hops: HopRange, new_name: NewName, actions: Actions) -> Pairs:
    """Return the nodes at the distances of `hops` from each source, as `engine.adjacency.bfs` does.

    A node counts only at its shortest distance, and a source is not reached again by a cycle. A node with a loop counts
    once more, at its distance plus one; for a backward expansion, a source with a loop does. Each level is
    checkpointed, and the search ends at an empty level.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    edges = actions.checkpoint(pairs.frame)
    looped = new_name()
    loops = actions.checkpoint(
        edges.filter(f.col(pairs.near) == f.col(pairs.far)).select(f.col(pairs.near).alias(looped))
    )
    source, node = new_name(), new_name()
    start = sources.columns[0]
    frontier = actions.checkpoint(sources.select(f.col(start).alias(source), f.col(start).alias(node)))
    seen = frontier
    found = frontier.limit(0)
    for distance in range(hops.most + 1):
        if distance and hops.least <= distance:
            found = found.unionAll(frontier)
        if hops.least <= distance + 1 <= hops.most:
            at = source if hops.backward else node
            found = found.unionAll(frontier.join(loops, f.col(at) == f.col(looped), "left_semi"))
        if distance == hops.most or actions.is_empty(frontier):
            break
        stepped = frontier.join(edges, f.col(node) == f.col(pairs.near))
        new = stepped.select(source, f.col(pairs.far).alias(node)).distinct()
        frontier = actions.checkpoint(new.join(seen, [source, node], "left_anti"))
        seen = seen.unionAll(frontier)
    return Pairs(found.distinct(), source, node)
