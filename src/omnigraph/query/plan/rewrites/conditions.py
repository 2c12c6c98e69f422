"""Changes of conditions, shared by rewrites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.query.plan.ir import CompareOp, Condition, Filter, Logic, Not, Pipeline

FLIPPED: dict[CompareOp, CompareOp] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparisons whose sides can be exchanged, and the operator of the exchanged sides."""


def change_conditions(pipeline: Pipeline, change: Callable[[Condition], Condition]) -> Pipeline:
    """Return the pipeline with `change` applied to the conditions of its filters, inner conditions first."""
    return tuple(Filter(_changed(op.condition, change)) if isinstance(op, Filter) else op for op in pipeline)


def _changed(condition: Condition, change: Callable[[Condition], Condition]) -> Condition:
    if isinstance(condition, Logic):
        condition = replace(condition, parts=tuple(_changed(part, change) for part in condition.parts))
    elif isinstance(condition, Not):
        condition = Not(_changed(condition.part, change))
    return change(condition)
