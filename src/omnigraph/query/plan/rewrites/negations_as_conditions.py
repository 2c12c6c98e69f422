"""Write a `not` block of conditions as a condition.

    without any match, for each $p: filter $p.age > 30     filter not $p.age > 30

A `not` block keeps rows for which its conditions are unknown; `not` in a condition drops them. The rewrite therefore
needs conditions whose operands are never null.
"""

from __future__ import annotations

from omnigraph.query.plan.ir import AntiJoin, Compare, Condition, Const, Filter, Logic, Not, Op, Pipeline, Prop


def negations_as_conditions(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with anti-joins as filters, where that is possible."""
    return tuple(_as_filter(op) for op in pipeline)


def _as_filter(op: Op) -> Op:
    if not isinstance(op, AntiJoin):
        return op
    conditions = [inner.condition for inner in op.inner if isinstance(inner, Filter)]
    if not conditions or len(conditions) < len(op.inner) or not all(map(_is_known, conditions)):
        return op
    return Filter(Not(conditions[0] if len(conditions) == 1 else Logic("and", tuple(conditions))))


def _is_known(condition: Condition) -> bool:
    """Return True if a condition is never unknown."""
    if isinstance(condition, Logic):
        return all(map(_is_known, condition.parts))
    if isinstance(condition, Not):
        return _is_known(condition.part)
    if not isinstance(condition, Compare):
        return False
    return all(_has_value(side) for side in (condition.left, condition.right))


def _has_value(expr: object) -> bool:
    if isinstance(expr, Const):
        return expr.value is not None
    return isinstance(expr, Prop) and not expr.type.nullable
