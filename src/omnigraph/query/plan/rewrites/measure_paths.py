"""Compute only the length or weight of shortest paths whose nodes and edges are not read.

Between two ends one shortest path is returned, so if only its length or weight is read, its edges do not matter, and
computing the distance is much faster. Ties in the order of rows are broken by the ids of the edges of a path; such ties
can occur only if an end has no name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

from omnigraph.query.plan.ir import (
    PATH_PARTS,
    Aggregate,
    AntiJoin,
    Expr,
    FindPaths,
    LeftJoin,
    PathPart,
    PathSteps,
    Pipeline,
    Prop,
    QueryIR,
    parts_of,
)
from omnigraph.query.syntax.ast import ANONYMOUS


def measure_paths(query: QueryIR) -> QueryIR:
    """Return the query with the paths marked of which only the length or weight is read."""
    if not _has_paths(query.pipeline):
        return query  # most queries: their expressions are not searched
    shown = {var for expr in query.group_exprs for var in _shown(expr)} | set(_listed(query))
    tied = bool(query.order_by) and not query.is_aggregate
    return replace(query, pipeline=_marked(query.pipeline, shown, tied=tied))


def _has_paths(pipeline: Pipeline) -> bool:
    return any(
        isinstance(op, FindPaths) or (isinstance(op, AntiJoin | LeftJoin) and _has_paths(op.inner)) for op in pipeline
    )


def _shown(expr: Expr) -> Iterator[str]:
    """Yield the paths whose contents an expression reads; counting paths does not read them."""
    if isinstance(expr, PathPart):
        yield expr.var
    if isinstance(expr, Aggregate) and expr.function == "count":
        return
    for part in parts_of(expr):
        yield from _shown(part)


def _listed(node: object) -> Iterator[str]:
    """Yield the paths of which the query reads the steps, or a property of the nodes or edges."""
    if isinstance(node, PathSteps):
        yield node.path_var
    if isinstance(node, Prop):
        if node.name.startswith(PATH_PARTS):
            yield node.var
    elif isinstance(node, tuple):
        for part in node:
            yield from _listed(part)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _listed(getattr(node, field.name))


def _marked(pipeline: Pipeline, shown: set[str], *, tied: bool) -> Pipeline:
    marked = []
    for op in pipeline:
        if isinstance(op, FindPaths):
            ends = (op.src_var, *(step.dst_var for step in op.steps))
            untied = not tied or not any(end.startswith(f"{ANONYMOUS}#") for end in ends)
            op = replace(op, measured=op.kind == "shortest" and op.var not in shown and untied)
        elif isinstance(op, AntiJoin | LeftJoin):
            op = replace(op, inner=_marked(op.inner, shown, tied=tied))
        marked.append(op)
    return tuple(marked)
