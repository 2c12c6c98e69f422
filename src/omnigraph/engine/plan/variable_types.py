"""Types of the variables of a plan."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.query.plan import ir


def node_types(pipeline: ir.Pipeline) -> dict[str, str]:
    """Return variable → node type, including the variables of nested pipelines."""
    return dict(_node_types(pipeline))


def edge_types(pipeline: ir.Pipeline) -> dict[str, str]:
    """Return edge variable → edge type, including the variables of nested pipelines."""
    return dict(_edge_types(pipeline))


def bound_by(op: ir.Op) -> Iterator[str]:
    """Yield the variables of a scan, a hop, a search of paths or a stage."""
    if isinstance(op, ir.NodeScan):
        yield op.var
    elif isinstance(op, ir.Stage):
        yield from op.variables
    elif isinstance(op, ir.FindPaths):
        yield from (op.var, *(step.dst_var for step in op.steps))
    elif isinstance(op, ir.Expand):
        yield from filter(None, (op.dst_var, op.edge_var))


def _node_types(pipeline: ir.Pipeline) -> Iterator[tuple[str, str]]:
    for op in pipeline:
        if isinstance(op, ir.NodeScan):
            yield op.var, op.type_name
        elif isinstance(op, ir.Expand):
            yield op.dst_var, op.dst_type
        elif isinstance(op, ir.FindPaths):
            yield from ((step.dst_var, step.dst_type) for step in op.steps)
        elif isinstance(op, ir.PathSteps):
            yield from ((var, op.type_name) for var in op.new_vars)
        elif isinstance(op, ir.AntiJoin | ir.LeftJoin | ir.InnerJoin):
            yield from _node_types(op.inner)
        elif isinstance(op, ir.Stage):
            yield from _node_types(op.query.pipeline)


def _edge_types(pipeline: ir.Pipeline) -> Iterator[tuple[str, str]]:
    for op in pipeline:
        if isinstance(op, ir.Expand) and op.edge_var is not None:
            yield op.edge_var, op.edge_type
        elif isinstance(op, ir.AntiJoin | ir.LeftJoin | ir.InnerJoin):
            yield from _edge_types(op.inner)
        elif isinstance(op, ir.Stage):
            yield from _edge_types(op.query.pipeline)


def followed_edges(pipeline: ir.Pipeline) -> set[str]:
    """Return the edge types that a pipeline follows, including those of nested pipelines."""
    found: set[str] = set()
    for op in pipeline:
        if isinstance(op, ir.Expand | ir.FindPaths):
            found.update(op.edge_types)
        elif isinstance(op, ir.AntiJoin | ir.LeftJoin | ir.InnerJoin):
            found |= followed_edges(op.inner)
        elif isinstance(op, ir.Stage):
            found |= followed_edges(op.query.pipeline)
    return found
