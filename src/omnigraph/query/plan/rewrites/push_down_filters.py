"""Move a condition on one variable into the operation that binds the variable.

    scan $p: Person | filter $p.age > 30              scan $p: Person where $p.age > 30
    scan $a: A | expand $a -e-> $b | filter $b.x = 1  scan $a: A | expand $a -e-> $b where $b.x = 1

A condition on a variable of an outer pipeline stays a filter. A condition on several variables stays a filter behind
the operation that binds the last of them. A condition on a variable of an `optional` block stays a filter, because it
also applies to rows in which the variable is null. A condition on a variable of an earlier stage stays a filter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from omnigraph.query.plan.ir import (
    AntiJoin,
    Condition,
    Expand,
    Filter,
    FindPaths,
    InnerJoin,
    LeftJoin,
    NodeScan,
    Op,
    PathStep,
    PathSteps,
    Pipeline,
    Stage,
    variables_of,
)


def push_down_filters(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with every condition at its earliest position."""
    binder: dict[str, int] = {}
    for position, op in enumerate(pipeline):
        for var in _bound_by(op):
            binder[var] = position
    # A condition without variables comes first, but a stage is the first operation.
    start = 0 if pipeline and isinstance(pipeline[0], Stage) else -1
    pushed: dict[int, list[Condition]] = {}
    behind: dict[int, list[Filter]] = {}
    for op in pipeline:
        if isinstance(op, Filter):
            variables = set(variables_of(op.condition))
            positions = {binder[var] for var in variables if var in binder}
            joined = any(isinstance(pipeline[position], LeftJoin | Stage) for position in positions)
            if len(variables) == 1 and positions and not joined:
                pushed.setdefault(positions.pop(), []).append(op.condition)
            else:
                behind.setdefault(max(positions, default=start), []).append(op)
    result: list[Op] = [*behind.get(-1, ())]
    for position, op in enumerate(pipeline):
        if not isinstance(op, Filter):
            result.append(_with_conditions(op, pushed.get(position, ())))
            result += behind.get(position, ())
    return tuple(result)


def _bound_by(op: Op) -> Iterator[str]:
    match op:
        case NodeScan():
            yield op.var
        case Expand():
            if not op.dst_bound:
                yield op.dst_var
            if op.edge_var:
                yield op.edge_var
        case FindPaths():
            yield op.var
            yield from (step.dst_var for step in op.steps if not step.dst_bound)
        case PathSteps():
            yield from op.new_vars
        case LeftJoin() | Stage():
            yield from op.variables
        case Filter() | AntiJoin() | InnerJoin():
            return
        case _:
            assert_never(op)


def _with_conditions(op: Op, conditions: list[Condition] | tuple[()]) -> Op:
    if not conditions:
        return op
    if isinstance(op, NodeScan | PathSteps):
        return replace(op, filters=(*op.filters, *conditions))
    if isinstance(op, FindPaths):
        return _of_paths(op, conditions)
    assert isinstance(op, Expand), "only scans, expansions and paths bind variables"
    of_edge = [c for c in conditions if variables_of(c)[0] == op.edge_var]
    of_node = [c for c in conditions if variables_of(c)[0] != op.edge_var]
    return replace(op, dst_filters=(*op.dst_filters, *of_node), edge_filters=(*op.edge_filters, *of_edge))


def _of_paths(op: FindPaths, conditions: list[Condition]) -> FindPaths:
    """Add a condition on a node to the step that reaches the node."""

    def of(var: str) -> tuple[Condition, ...]:
        return tuple(condition for condition in conditions if variables_of(condition)[0] == var)

    def with_filters(steps: tuple[PathStep, ...]) -> tuple[PathStep, ...]:
        return tuple(
            step if step.dst_bound else replace(step, filters=(*step.filters, *of(step.dst_var))) for step in steps
        )

    return replace(op, ahead=with_filters(op.ahead), back=with_filters(op.back), filters=(*op.filters, *of(op.var)))
