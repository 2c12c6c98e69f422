"""Write comparisons of two properties in the order of their names.

filter $q.age > $p.age      filter $p.age < $q.age
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.ir import Compare, Condition, Pipeline, Prop
from omnigraph.query.plan.rewrites.conditions import FLIPPED, change_conditions


def sides_by_name(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with the sides of comparisons of two properties in the order of their names."""
    return change_conditions(pipeline, _by_name)


def _by_name(condition: Condition) -> Condition:
    if not isinstance(condition, Compare) or condition.op not in FLIPPED:
        return condition
    left, right = condition.left, condition.right
    if not isinstance(left, Prop) or not isinstance(right, Prop) or (left.var, left.name) <= (right.var, right.name):
        return condition
    return replace(condition, op=FLIPPED[condition.op], left=right, right=left)
