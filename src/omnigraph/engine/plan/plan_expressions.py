"""The expressions of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from omnigraph.query.plan import ir


def plan_expressions(plan: ir.QueryIR) -> Iterator[ir.Expr]:
    """Yield the expressions of a plan: columns, groups, sort keys, and conditions of all operators but stages."""
    yield from (column.expr for column in plan.columns)
    yield from plan.grouped
    yield from (key.expr for key in plan.order_by)
    yield from plan.having
    yield from _conditions(plan.pipeline)


def _conditions(pipeline: ir.Pipeline) -> Iterator[ir.Expr]:
    for op in pipeline:
        match op:
            case ir.NodeScan():
                yield from op.filters
            case ir.Expand():
                yield from (*op.dst_filters, *op.edge_filters)
            case ir.Filter():
                yield op.condition
            case ir.FindPaths():
                yield from (condition for step in op.steps for condition in step.filters)
            case ir.PathSteps():
                yield from op.filters
            case ir.AntiJoin() | ir.LeftJoin() | ir.InnerJoin():
                yield from _conditions(op.inner)
            case ir.Stage():
                pass
            case _:
                assert_never(op)
