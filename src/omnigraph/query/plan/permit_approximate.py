"""Permission of approximate rankings: every `nearest` that orders rows gets `approx`."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan import ir


def permit_approximate(plan: ir.QueryIR) -> ir.QueryIR:
    """Return a plan whose vector rankings may be approximate. Returned distances stay exact."""
    pipeline = tuple(
        replace(op, query=permit_approximate(op.query)) if isinstance(op, ir.Stage) else op for op in plan.pipeline
    )
    plan = plan if pipeline == plan.pipeline else replace(plan, pipeline=pipeline)
    keys = tuple(replace(key, expr=_permitted(key.expr)) for key in plan.order_by)
    return plan if keys == plan.order_by else replace(plan, order_by=keys)


def _permitted(expr: ir.Expr) -> ir.Expr:
    if isinstance(expr, ir.Nearest):
        return replace(expr, approx=True)
    if isinstance(expr, ir.Rrf):
        return replace(expr, arms=tuple(replace(a, approx=True) if isinstance(a, ir.Nearest) else a for a in expr.arms))
    return expr
