"""Plans that start at a node of several types, narrowed to each of them.

The key of an interface or of `A|B` gives one node in most graphs, and then its type is known. Hops from it follow only
the edges of that type, and lead to nodes of known types in turn. A narrowed plan returns the rows of the given plan
that start at a node of its type.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.engine.cache.union_table import depends_on_type
from omnigraph.engine.plan.plan_expressions import plan_expressions
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog, UnionType


class _NotNarrowed(Exception):
    """Raised if a plan cannot be narrowed to a type."""


def narrowed_plans(plan: ir.QueryIR, catalog: Catalog) -> dict[str, ir.QueryIR] | None:
    """Return node type → the plan narrowed to it; None if the plan does not start at a union or cannot be narrowed."""
    scan = plan.pipeline[0] if plan.pipeline else None
    if not isinstance(scan, ir.NodeScan) or not isinstance(union := catalog.node(scan.type_name), UnionType):
        return None
    try:
        return {member: _narrowed(plan, scan, member, catalog) for member in union.members} or None
    except _NotNarrowed:
        return None


def _narrowed(plan: ir.QueryIR, scan: ir.NodeScan, member: str, catalog: Catalog) -> ir.QueryIR:
    known = {scan.var: member}
    pipeline: list[ir.Op] = [replace(scan, type_name=member)]
    for op in plan.pipeline[1:]:
        match op:
            case ir.Filter():
                pipeline.append(op)
            case ir.Expand():
                hop = _narrowed_hop(op, known, catalog)
                if hop.also and (plan.is_cut or plan.limit is not None) and not plan.order_by:
                    raise _NotNarrowed  # the order of the edge types determines the first rows
                known[hop.dst_var] = hop.dst_type
                pipeline.append(hop)
            case _:
                raise _NotNarrowed
    if any(map(_shows_type, plan_expressions(plan))):
        raise _NotNarrowed
    return replace(plan, pipeline=tuple(pipeline))


def _narrowed_hop(op: ir.Expand, known: dict[str, str], catalog: Catalog) -> ir.Expand:
    if op.src_type is None:
        return op
    if (op.min_hops, op.max_hops) != (1, 1) or op.direction == "both":
        raise _NotNarrowed
    near = known[op.src_var]
    far = (known[op.dst_var],) if op.dst_bound else catalog.members(op.dst_type)
    edges = [catalog.edges[name] for name in op.edge_types]
    ends = [(e.name, *((e.from_type, e.to_type) if op.direction == "out" else (e.to_type, e.from_type))) for e in edges]
    followed = [(name, end) for name, start, end in ends if start == near and end in far]
    if len({end for _, end in followed}) != 1:
        raise _NotNarrowed  # no edge, or edges to nodes of several types
    (first, end), *others = followed
    return replace(op, edge_type=first, also=tuple(name for name, _ in others), dst_type=end, src_type=None)


def _shows_type(expr: ir.Expr) -> bool:
    """Return True if a value depends on the type of a node, or contains a whole node."""
    return depends_on_type(expr) or any(
        isinstance(part, ir.Entity) or (isinstance(part, ir.Prop) and part.name == "type") for part in ir.walk(expr)
    )
