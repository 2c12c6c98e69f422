"""Expands of a counting query without materialising their rows.

Rows have a weight: the number of rows of the match that each represents. If the far end of a hop is not used later,
weights are multiplied by degrees. If only the far end is used, each far node adds up the weights of the rows that lead
to it. If the far end only closes a cycle, by a second hop that must or must not exist, the common neighbours of two
nodes are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.engine.adjacency.adjacency import REVERSED
from omnigraph.engine.adjacency.bfs import bounded_hops
from omnigraph.engine.adjacency.union_expand import union_counts
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.binding_table import Binding, BindingTable, weighted_counts
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.cycle_count import common_counts
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.query.plan import ir
from omnigraph.table_key import TableKey

_Live = Sequence[frozenset[str]]


def count_pushdown(
    context: ExecutionContext, pipeline: ir.Pipeline, position: int, bindings: BindingTable, live: _Live
) -> tuple[BindingTable, int] | None:
    """Return the rows after the operator at `position`, and the number of operators this covers; None if rows must be
    materialised.
    """
    op = pipeline[position]
    if not isinstance(op, ir.Expand) or op.edge_var is not None or op.dst_bound or op.dst_filters:
        return None
    if op.max_hops < op.min_hops:
        return None
    if op.src_type is not None:
        factor = (
            union_counts(context, op, bindings.bound[op.src_var].numbers) if op.dst_var not in live[position] else None
        )
        return None if factor is None else (_multiplied(bindings, factor), 1)
    if (op.min_hops, op.max_hops) != (1, 1):
        return None if op.dst_var in live[position] else (_times_reached(context, op, bindings), 1)
    if position + 1 < len(pipeline) and op.dst_var not in live[position + 1]:
        closer = _closes(op, pipeline[position + 1], bindings)
        if closer is not None:
            return _times_closed(context, op, *closer, bindings), 2
    if op.dst_var not in live[position]:
        sources = bindings.bound[op.src_var]
        adjacency = context.hops(op.edge_type, op.also)
        many = bindings.count * 4 >= sources.data.row_count
        neighbours = adjacency.for_scan(op.direction) if many else adjacency.neighbours(op.direction)
        degrees = neighbours.totals(None) if sources.whole else neighbours.degrees(sources.numbers)
        return _multiplied(bindings, degrees), 1
    if _only_onward(op, bindings, live[position]):
        return _onward(context, op, bindings), 1
    return None


def _multiplied(bindings: BindingTable, factor: Numbers) -> BindingTable:
    if factor.all():
        return bindings.weighted(factor)
    kept = np.flatnonzero(factor)
    return bindings.take(kept, unique=True).weighted(factor[kept])


# -- unused far ends ---------------------------------------------------------------------------------


def _times_reached(context: ExecutionContext, op: ir.Expand, bindings: BindingTable) -> BindingTable:
    adjacency = context.hops(op.edge_type, op.also)
    numbers = bindings.bound[op.src_var].numbers
    sources, inverse = interruptible(lambda: np.unique(numbers, return_inverse=True), len(numbers))
    counts = bounded_hops(op, adjacency).reach_counts(sources)
    return _multiplied(bindings, counts[inverse])


# -- only the far end is used ------------------------------------------------------------------------


def _only_onward(op: ir.Expand, bindings: BindingTable, live: frozenset[str]) -> bool:
    """Return True if only the far end is used and enough rows lead there to scan the whole edge table."""
    bound = bindings.bound
    alone = len(bound) == 1 and op.src_var not in live
    return alone and bindings.count * 4 >= bound[op.src_var].data.row_count


def _onward(context: ExecutionContext, op: ir.Expand, bindings: BindingTable) -> BindingTable:
    sources = bindings.bound[op.src_var]
    back = context.hops(op.edge_type, op.also).for_scan(REVERSED[op.direction])
    each_once = sources.whole and bindings.weight is None
    rows = None if each_once else weighted_counts(sources.numbers, bindings.weight, sources.data.row_count)
    counts = interruptible(lambda: back.totals(rows), context.table(TableKey.edge(op.edge_type)).row_count)
    far = context.table(TableKey.node(op.dst_type))
    numbers = np.flatnonzero(counts)
    if len(numbers) == far.row_count:
        return BindingTable(far.row_count, {op.dst_var: Binding(far)}, counts)
    return BindingTable(len(numbers), {op.dst_var: Binding(far, numbers)}, counts[numbers])


# -- far ends that close a cycle ---------------------------------------------------------------------


def _closes(op: ir.Expand, after: ir.Op, bindings: BindingTable) -> tuple[ir.Expand, bool] | None:
    """Return the hop that closes the cycle of `op`, and whether it must exist; None if another operator follows."""
    required = not isinstance(after, ir.AntiJoin)
    if isinstance(after, ir.AntiJoin):
        if len(after.inner) != 1:
            return None
        (after,) = after.inner
    if not isinstance(after, ir.Expand) or not after.dst_bound or after.edge_var is not None or after.dst_filters:
        return None
    if after.src_type is not None:
        return None
    ends = {after.src_var, after.dst_var}
    other = ends - {op.dst_var}
    single = (after.min_hops, after.max_hops) == (1, 1)
    return (
        (after, required) if single and len(ends) == 2 and len(other) == 1 and other <= bindings.bound.keys() else None
    )


def _times_closed(
    context: ExecutionContext, op: ir.Expand, after: ir.Expand, required: bool, bindings: BindingTable
) -> BindingTable:
    far = op.dst_var
    other, direction = (
        (after.src_var, after.direction) if after.dst_var == far else (after.dst_var, REVERSED[after.direction])
    )
    walkers, closers = bindings.bound[op.src_var].numbers, bindings.bound[other].numbers
    walked = context.hops(op.edge_type, op.also).compacted(op.direction)
    closed = context.hops(after.edge_type, after.also).compacted(direction)
    degrees = walked.degrees(walkers)
    context.check()
    size = context.table(TableKey.node(op.dst_type)).row_count
    common = common_counts(walked, walkers, closed, closers, steps=int(degrees.sum()), size=size)
    return _multiplied(bindings, common if required else degrees - common)
