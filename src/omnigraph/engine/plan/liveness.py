"""Liveness: the variables that are used after each operator of a plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from omnigraph.query.plan import ir


def required_variables(exprs: Iterable[ir.Expr]) -> frozenset[str]:
    """Return the variables that some columns, or keys and aggregates, use.

    `count($x)` counts rows and does not use `$x`.
    """
    found: set[str] = set()
    for expr in exprs:
        if not isinstance(expr, ir.Aggregate):
            found |= set(ir.variables_of(expr))
            continue
        if expr.function != "count" or expr.distinct or not isinstance(expr.argument, ir.Entity | ir.PathPart):
            found |= set(ir.variables_of(expr.argument))
        if expr.where is not None:
            found |= set(ir.variables_of(expr.where))
    return frozenset(found)


def ignores_duplicates(plan: ir.QueryIR) -> bool:
    """Return True if it does not matter how often a row of the match occurs: the match is then a set of rows."""
    if not plan.is_aggregate:
        return False
    calls = [part for expr in plan.group_exprs for part in ir.walk(expr) if isinstance(part, ir.Aggregate)]
    return all(call.distinct or call.function in ("min", "max") for call in calls)


def live_after(pipeline: ir.Pipeline, at_end: frozenset[str]) -> list[frozenset[str]]:
    """Return for each operator the variables used after it, given those used after the last one."""
    needed = set(at_end)
    live: list[frozenset[str]] = []
    for op in reversed(pipeline):
        live.append(frozenset(needed))
        match op:
            case ir.Expand():
                needed |= {op.src_var, *((op.dst_var,) if op.dst_bound else ())}
            case ir.FindPaths() | ir.PathSteps():
                needed |= set(op.bound_vars)
            case ir.Filter():
                needed |= set(ir.variables_of(op.condition))
            case ir.AntiJoin() | ir.LeftJoin() | ir.InnerJoin():
                needed |= set(op.outer_vars)
            case ir.NodeScan() | ir.Stage():
                pass
            case _:
                assert_never(op)
    return live[::-1]
