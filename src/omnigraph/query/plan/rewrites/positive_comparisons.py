"""Write negated comparisons as comparisons.

    filter not $p.city = "x"      filter $p.city != "x"
    filter not $p.age < 30        filter $p.age >= 30

Both are unknown if an operand is null. Floats keep the negation of `<` and its like: every comparison with NaN is
false.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.ir import Compare, CompareOp, Condition, Expr, Not, Pipeline
from omnigraph.query.plan.rewrites.conditions import change_conditions
from omnigraph.types import PropertyType

_OPPOSITE: dict[CompareOp, CompareOp] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def positive_comparisons(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline without negations of single comparisons."""
    return change_conditions(pipeline, _opposite)


def _opposite(condition: Condition) -> Condition:
    if not isinstance(condition, Not) or not isinstance(condition.part, Compare):
        return condition
    compare = condition.part
    if compare.op not in _OPPOSITE or _is_float(compare.left) or _is_float(compare.right):
        return condition
    return replace(compare, op=_OPPOSITE[compare.op])


def _is_float(expr: Expr) -> bool:
    return not isinstance(expr.type, PropertyType) or expr.type.is_float
