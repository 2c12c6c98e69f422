"""Write the membership in a list of one constant as an equality.

filter $p.city in ["x"]       filter $p.city = "x"
"""

from __future__ import annotations

from omnigraph.query.plan.ir import Compare, Condition, Const, Pipeline
from omnigraph.query.plan.rewrites.conditions import change_conditions


def compare_single_items(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with memberships in lists of one constant as equalities."""
    return change_conditions(pipeline, _compared)


def _compared(condition: Condition) -> Condition:
    if not isinstance(condition, Compare) or condition.op != "contains_item":
        return condition
    left, right = condition.left, condition.right
    if not isinstance(left, Const) or isinstance(right, Const) or left.value is None or len(left.value) != 1:
        return condition
    return Compare("=", right, Const(left.value[0], left.type.item))
