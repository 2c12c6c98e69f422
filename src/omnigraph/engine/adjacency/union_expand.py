"""Expand over unions of node types, which renumbers nodes.

Edges refer to nodes by their row numbers in their own tables; a variable of several types has row numbers in a union
table. Nodes of types that the edges do not connect are dropped. Edges between different node types are traversed in the
union of all their ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from omnigraph.engine.adjacency.adjacency import Adjacency
from omnigraph.engine.adjacency.bfs import bounded_hops
from omnigraph.engine.adjacency.multi_edge import UnionAdjacency
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.cache.union_table import UnionTable
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import union_name
from omnigraph.table_key import TableKey

_NEAR, _FAR = "_#near", "_#far"

Walk = Callable[[ir.Expand, BindingTable, Adjacency, ColumnSource], BindingTable]
"""Expands a hop between nodes that are numbered as its edges number them."""


def expand_union(context: ExecutionContext, op: ir.Expand, bindings: BindingTable, walk: Walk) -> BindingTable:
    """Expand a hop, without the conditions on its far end."""
    assert op.src_type is not None
    near, far, adjacency = _adjacency_of(context, op)
    bindings = _renumbered(context, bindings, op.src_var, op.src_type, near, _NEAR)
    if op.dst_bound:
        bindings = _renumbered(context, bindings, op.dst_var, op.dst_type, far, _FAR)
    inner = replace(op, src_var=_NEAR, dst_var=_FAR, dst_type=far, dst_filters=(), src_type=None)
    bindings = walk(inner, bindings, adjacency, context.table(TableKey.node(far)))
    if not op.dst_bound:
        bindings = _renumbered(context, bindings, _FAR, far, op.dst_type, op.dst_var)
    return bindings.only(name for name in bindings.bound if name not in (_NEAR, _FAR))


def union_counts(context: ExecutionContext, op: ir.Expand, sources: Numbers) -> Numbers | None:
    """Return the number of neighbours of each source; None if some may be of a type that the hop excludes."""
    assert op.src_type is not None
    edges = [context.catalog.edges[name] for name in op.edge_types]
    ends = {edge.to_type for edge in edges} if op.direction != "in" else set()
    ends |= {edge.from_type for edge in edges} if op.direction != "out" else set()
    if not ends <= {*context.catalog.members(op.dst_type)}:
        return None
    near, _, adjacency = _adjacency_of(context, op)
    numbers = sources if near == op.src_type else renumber(context, sources, op.src_type, near)
    there = np.flatnonzero(numbers >= 0)
    counts = np.zeros(len(sources), np.int64)
    neighbours = adjacency.neighbours(op.direction)
    if (op.min_hops, op.max_hops) == (1, 1):
        counts[there] = neighbours.degrees(numbers[there])
        return counts
    known = numbers[there]
    distinct, places = interruptible(lambda: np.unique(known, return_inverse=True), len(known))
    reached = bounded_hops(op, adjacency).reach_counts(distinct)
    counts[there] = reached[places]
    return counts


def _adjacency_of(context: ExecutionContext, op: ir.Expand) -> tuple[str, str, Adjacency]:
    """Return the type names that number the near and the far nodes, and the adjacency between them."""
    edges = [context.catalog.edges[name] for name in op.edge_types]
    ends = {(edge.from_type, edge.to_type) for edge in edges}
    from_, to = edges[0].from_type, edges[0].to_type
    if len(ends) == 1 and (op.direction != "both" or from_ == to):
        near, far = (to, from_) if op.direction == "in" else (from_, to)
        return near, far, context.hops(op.edge_type, op.also)
    space = union_name(end for pair in ends for end in pair)
    begins = _first_rows(context, space)
    parts = [context.adjacency(edge.name) for edge in edges]
    starts = [(begins[edge.from_type], begins[edge.to_type]) for edge in edges]
    return space, space, UnionAdjacency(parts, starts, context.table(TableKey.node(space)))


def _renumbered(
    context: ExecutionContext, bindings: BindingTable, name: str, given: str, wanted: str, new: str
) -> BindingTable:
    """Keep the rows whose node is of a wanted type, and bind a variable to its row number there."""
    bound = bindings.bound[name]
    if given == wanted:
        return BindingTable(bindings.count, {**bindings.bound, new: bound}, bindings.weight)
    numbers = renumber(context, bound.numbers, given, wanted)
    kept = np.flatnonzero(numbers >= 0)
    return bindings.take(kept, unique=True).bind(
        new, context.table(TableKey.node(wanted)), numbers[kept], unique=bound.unique
    )


def renumber(context: ExecutionContext, numbers: Numbers, given: str, wanted: str) -> Numbers:
    """Return the row numbers of nodes in another union; -1 for nodes that are not in it."""
    before, after = _first_rows(context, given), _first_rows(context, wanted)
    if not before:
        return numbers
    kinds = np.searchsorted(np.array([*before.values()][1:]), numbers, side="right")
    shifts = np.array([after[name] - start if name in after else 0 for name, start in before.items()])
    there = np.array([name in after for name in before])
    return np.where(there[kinds], numbers + shifts[kinds], -1)


def _first_rows(context: ExecutionContext, type_name: str) -> dict[str, int]:
    """Return the first row number of each node type."""
    table = context.table(TableKey.node(type_name))
    starts = table.starts.tolist() if isinstance(table, UnionTable) else [0]
    return dict(zip(context.catalog.members(type_name), starts, strict=False))
