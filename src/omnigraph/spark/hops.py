"""Expansion on Spark: DataFrames of distinct pairs of nodes, connected by one hop or several.

A node is its id, or its id and type if the ends of the edges have several types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from omnigraph.query.plan import ir
from omnigraph.spark.bindings import all_of
from omnigraph.spark.lowering_context import LoweringContext
from omnigraph.spark.scans import Scan
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Node = tuple[str, ...]
"""The columns of a node: its id, and its type if it varies."""


@dataclass(frozen=True)
class Pairs:
    """A DataFrame of pairs of nodes."""

    frame: DataFrame
    near: Node
    far: Node


@dataclass(frozen=True)
class HopRange:
    """The bounds of a variable-length expansion; `backward` if it starts at the target of the pattern."""

    least: int
    most: int
    backward: bool


def edge_pairs(context: LoweringContext, edge_types: Sequence[str], direction: ir.Direction, *, typed: bool) -> Pairs:
    """Return the ends of all edges of some types, in a direction; with `typed`, each end with its type."""
    near, far = (tuple(context.new_name() for _ in range(2 if typed else 1)) for _ in range(2))
    lit = context.f.lit
    frames = []
    for name in edge_types:
        edge = context.catalog.edges[name]
        from_, to = (far, near) if direction == "in" else (near, far)
        frame = Scan(context.job, TableKey.edge(name), {"src": from_[0], "dst": to[0]}).joined_frame(context.spark)
        if typed:
            frame = frame.withColumn(from_[1], lit(edge.from_type)).withColumn(to[1], lit(edge.to_type))
        frames.append(frame.select(*near, *far))
    frame = reduce(lambda one, other: one.unionAll(other), frames)
    if direction == "both":
        frame = frame.unionAll(frame.select(*far, *near))
    return Pairs(frame.distinct(), near, far)


def same(context: LoweringContext, one: Sequence[str], other: Sequence[str]) -> Any:
    """Return the condition that two nodes are equal."""
    col = context.f.col
    return all_of([col(a) == col(b) for a, b in zip(one, other, strict=True)])


def reachable_pairs(context: LoweringContext, pairs: Pairs, sources: DataFrame, hops: HopRange) -> Pairs:
    """Return the nodes at the distances of `hops` from each source, as `engine.adjacency.bfs` does.

    A node counts only at its shortest distance, and a source is not reached again by a cycle. A node with a loop counts
    once more, at its distance plus one; for a backward expansion, a source with a loop does. Each level is
    checkpointed, and the search ends at an empty level.
    """
    col, actions = context.f.col, context.actions
    edges = actions.checkpoint(pairs.frame)
    looped, source, node = (tuple(context.new_name() for _ in pairs.near) for _ in range(3))
    loops = actions.checkpoint(
        edges.filter(same(context, pairs.near, pairs.far)).select(*_renamed(context, pairs.near, looped))
    )
    frontier = actions.checkpoint(
        sources.select(*_renamed(context, sources.columns, source), *_renamed(context, sources.columns, node))
    )
    seen = frontier
    found = frontier.limit(0)
    for distance in range(hops.most + 1):
        if distance and hops.least <= distance:
            found = found.unionAll(frontier)
        if hops.least <= distance + 1 <= hops.most:
            at = source if hops.backward else node
            found = found.unionAll(frontier.join(loops, same(context, at, looped), "left_semi"))
        if distance == hops.most or actions.is_empty(frontier):
            break
        stepped = frontier.join(edges, same(context, node, pairs.near))
        new = stepped.select(*map(col, source), *_renamed(context, pairs.far, node)).distinct()
        frontier = actions.checkpoint(new.join(seen, [*source, *node], "left_anti"))
        seen = seen.unionAll(frontier)
    return Pairs(found.distinct(), source, node)


def _renamed(context: LoweringContext, names: Sequence[str], new: Sequence[str]) -> list[Any]:
    return [context.f.col(a).alias(b) for a, b in zip(names, new, strict=True)]
