"""The estimated memory of a match: the largest set of rows of an operator, from the estimates of the optimizer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from omnigraph.engine.plan.expected_rows import ExpectedOperator, ExpectedRows
from omnigraph.engine.plan.liveness import live_after, required_variables
from omnigraph.engine.plan.variable_types import bound_by
from omnigraph.query.plan import ir

_NUMBER_BYTES = 8
_WORK_COLUMNS = 2
"""Columns of row numbers that an operator uses besides those of its variables."""


def estimated_bytes(plan: ir.QueryIR, expected: ExpectedRows | None, live: Sequence[frozenset[str]] | None) -> float:
    """Return the estimated size of the largest set of rows of a match; 0 without an estimate.

    With `live`, rows are only counted, and only the variables used later are kept. A query that stops after its first
    rows has no estimate.
    """
    if expected is None or _stops_early(plan):
        return 0.0
    return _largest(plan.pipeline, expected, live, 0)


def _largest(pipeline: ir.Pipeline, expected: ExpectedRows, live: Sequence[frozenset[str]] | None, outer: int) -> float:
    """Return the size of the largest set of rows of some operators; `outer` variables are bound before."""
    largest = 0.0
    bound = outer
    for position, (op, one) in enumerate(zip(pipeline, expected.operators, strict=True)):
        before, bound = bound, bound + _new_variables(op)
        if isinstance(op, ir.AntiJoin | ir.LeftJoin | ir.InnerJoin) and one.inner is not None:
            inner = 0 if isinstance(op, ir.InnerJoin) or op.independent else before
            largest = max(largest, _largest(op.inner, one.inner, None, inner))
        if isinstance(op, ir.Stage) and one.inner is not None:
            query = op.query
            used = live_after(query.pipeline, required_variables(query.group_exprs)) if query.is_aggregate else None
            largest = max(largest, estimated_bytes(query, one.inner, used))
        columns = bound if live is None else len(live[position])
        if columns:
            largest = max(largest, _rows(op, one, crossed=before > 0) * (columns + _WORK_COLUMNS) * _NUMBER_BYTES)
    return largest


def _rows(op: ir.Op, one: ExpectedOperator, *, crossed: bool) -> float:
    """Return the rows that an operator holds before the conditions after it; `crossed` if a scan is a cross product.

    A scan applies its own conditions before the product, a hop those of its far end afterwards.
    """
    rows = one.rows if math.isfinite(one.rows) else 0.0
    product = isinstance(op, ir.NodeScan) and crossed and not op.filters
    if (product or (isinstance(op, ir.Expand) and not op.dst_bound)) and math.isfinite(one.followed):
        rows = max(rows, one.followed)
    return rows


def _new_variables(op: ir.Op) -> int:
    if isinstance(op, ir.LeftJoin):
        return len(op.variables)
    if isinstance(op, ir.PathSteps):
        return len(op.new_vars)
    return len(list(bound_by(op)))


def _stops_early(plan: ir.QueryIR) -> bool:
    """True if the first rows are found without the rest: by the order of the first variable, or in any order."""
    if plan.is_aggregate or (plan.limit is None and plan.limit_param is None) or not plan.pipeline:
        return False
    first = plan.pipeline[0]
    if not plan.order_by:
        return True
    return isinstance(first, ir.NodeScan) and set(_order_variables(plan)) == {first.var}


def _order_variables(plan: ir.QueryIR) -> list[str]:
    found: list[str] = []
    for key in plan.order_by:
        expr = key.expr
        while isinstance(expr, ir.ColumnRef):
            expr = plan.columns[expr.index].expr
        found += ir.variables_of(expr)
    return found
