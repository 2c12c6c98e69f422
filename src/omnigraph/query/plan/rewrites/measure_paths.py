"""Only measure shortest paths that nobody looks at.

Between two ends there is one shortest path, so where only its length or weight is asked for it does not matter which
edges it has: how far the ends are from each other is found much faster. Rows that are tied otherwise are told apart by
the ids of a path's edges; that can only happen where an end has no name.
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
    Pipeline,
    Prop,
    QueryIR,
    parts_of,
)
from omnigraph.query.syntax.ast import ANONYMOUS


def measure_paths(query: QueryIR) -> QueryIR:
    """Return the query with the paths marked that are only measured."""
    shown = {var for expr in query.group_exprs for var in _shown(expr)} | set(_listed(query))
    tied = bool(query.order_by) and not query.is_aggregate
    return replace(query, pipeline=_marked(query.pipeline, shown, tied=tied))


def _shown(expr: Expr) -> Iterator[str]:
    """The paths an expression looks at; counting them does not."""
    if isinstance(expr, PathPart):
        yield expr.var
    if not isinstance(expr, Aggregate) or expr.function != "count":
        for part in parts_of(expr):
            yield from _shown(part)


def _listed(node: object) -> Iterator[str]:
    """The paths of which a property of the nodes or edges is looked at, anywhere in the query."""
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
            told = not tied or not any(end.startswith(f"{ANONYMOUS}#") for end in ends)
            op = replace(op, measured=op.kind == "shortest" and op.var not in shown and told)
        elif isinstance(op, AntiJoin | LeftJoin):
            op = replace(op, inner=_marked(op.inner, shown, tied=tied))
        marked.append(op)
    return tuple(marked)
