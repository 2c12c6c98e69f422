"""Write comparisons with their constant on the right.

filter 30 < $p.age        filter $p.age > 30
filter $key = $p.name     filter $p.name = $key
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.ir import Compare, Condition, Const, ParamRef, Pipeline
from omnigraph.query.plan.rewrites.conditions import FLIPPED, change_conditions


def constants_on_the_right(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with the sides of comparisons exchanged whose left side alone is constant."""
    return change_conditions(pipeline, _flipped)


def _flipped(condition: Condition) -> Condition:
    if not isinstance(condition, Compare) or condition.op not in FLIPPED:
        return condition
    left, right = condition.left, condition.right
    if not isinstance(left, Const | ParamRef) or isinstance(right, Const | ParamRef):
        return condition
    return replace(condition, op=FLIPPED[condition.op], left=right, right=left)
