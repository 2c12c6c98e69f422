"""Hops as frames of pairs: which far ends a near end reaches, each pair once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from omnigraph.pipeline.job import Job
from omnigraph.query.plan.ir import Direction
from omnigraph.spark.scans import Scan
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Pairs:
    """A frame of two columns of ids."""

    frame: DataFrame
    near: str
    far: str


def edge_pairs(
    spark: SparkSession, job: Job, edge_types: Sequence[str], direction: Direction, new_name: Callable[[], str]
) -> Pairs:
    """The ends of the edges of one type or another, walked out, in, or both ways."""
    near, far = new_name(), new_name()
    ends = {"src": far, "dst": near} if direction == "in" else {"src": near, "dst": far}
    frames = [Scan(job, TableKey.edge(name), ends).frame(spark).select(near, far) for name in edge_types]
    frame = reduce(lambda one, other: one.unionAll(other), frames)
    if direction == "both":
        frame = frame.unionAll(frame.select(far, near))
    return Pairs(frame.distinct(), near, far)


def reached(
    pairs: Pairs,
    sources: DataFrame,
    least: int,
    most: int,
    backward: bool,
    new_name: Callable[[], str],
    put_down: Callable[[DataFrame], DataFrame],
    is_empty: Callable[[DataFrame], bool],
) -> Pairs:
    """For each source the nodes at distance `least` to `most`, as `engine.adjacency.bfs` finds them.

    A node counts at its shortest distance only; the source itself does not come back by a cycle; a node with a loop
    counts once more at its distance plus one. `backward` walks from where the hop ends, so it is the source's loop
    that counts. Every step is put down on the cluster, and the walk ends when a step is empty.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    hops = put_down(pairs.frame)
    looped = new_name()
    loops = put_down(hops.filter(f.col(pairs.near) == f.col(pairs.far)).select(f.col(pairs.near).alias(looped)))
    source, node = new_name(), new_name()
    start = sources.columns[0]
    frontier = put_down(sources.select(f.col(start).alias(source), f.col(start).alias(node)))
    seen = frontier
    found = frontier.limit(0)
    for distance in range(most + 1):
        if distance and least <= distance:
            found = found.unionAll(frontier)
        if least <= distance + 1 <= most:
            at = source if backward else node
            found = found.unionAll(frontier.join(loops, f.col(at) == f.col(looped), "left_semi"))
        if distance == most or is_empty(frontier):
            break
        stepped = frontier.join(hops, f.col(node) == f.col(pairs.near))
        new = stepped.select(source, f.col(pairs.far).alias(node)).distinct()
        frontier = put_down(new.join(seen, [source, node], "left_anti"))
        seen = seen.unionAll(frontier)
    return Pairs(found.distinct(), source, node)
