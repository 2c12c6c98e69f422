"""Liveness: the variables that are used after each operator of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never, overload

from omnigraph.checkpoints import checkpoint
from omnigraph.query.plan import ir


def required_variables(exprs: Iterable[ir.Expr]) -> frozenset[str]:
    """Return the variables that some columns, or keys and aggregates, use.

    `count($x)` counts rows and does not use `$x`.
    """
    found: set[str] = set()
    for expr in exprs:
        if not isinstance(expr, ir.Aggregate):
            found |= set(ir.variables_of(expr))
            continue
        if expr.function != "count" or expr.distinct or not isinstance(expr.argument, ir.Entity | ir.PathPart):
            found |= set(ir.variables_of(expr.argument))
        if expr.where is not None:
            found |= set(ir.variables_of(expr.where))
    return frozenset(found)


def ignores_duplicates(plan: ir.QueryIR) -> bool:
    """Return True if it does not matter how often a row of the match occurs: the match is then a set of rows."""
    if not plan.is_aggregate:
        return False
    calls = [part for expr in plan.group_exprs for part in ir.walk(expr) if isinstance(part, ir.Aggregate)]
    return all(call.distinct or call.function in ("min", "max") for call in calls)


class Liveness(Sequence[frozenset[str]]):
    """The variables used after each operator of a pipeline.

    The variables are kept once, those whose last use is latest first, with their number after each operator: the sets
    of a long pipeline would take memory that is quadratic in its length.
    """

    __slots__ = ("_counts", "_names")

    def __init__(self, names: Sequence[str], counts: Sequence[int]) -> None:
        self._names = names
        self._counts = counts

    def __len__(self) -> int:
        return len(self._counts)

    @overload
    def __getitem__(self, at: int) -> frozenset[str]: ...

    @overload
    def __getitem__(self, at: slice) -> Liveness: ...

    def __getitem__(self, at: int | slice) -> frozenset[str] | Liveness:
        if isinstance(at, slice):
            return Liveness(self._names, self._counts[at])
        return frozenset(self._names[: self._counts[at]])


def live_after(pipeline: ir.Pipeline, at_end: frozenset[str]) -> Liveness:
    """Return for each operator the variables used after it, given those used after the last one."""
    needed = dict.fromkeys(at_end)
    counts: list[int] = []
    for op in reversed(pipeline):
        checkpoint()
        counts.append(len(needed))
        match op:
            case ir.Expand():
                needed[op.src_var] = None
                if op.dst_bound:
                    needed[op.dst_var] = None
            case ir.FindPaths() | ir.PathSteps():
                needed.update(dict.fromkeys(op.bound_vars))
            case ir.Filter():
                needed.update(dict.fromkeys(ir.variables_of(op.condition)))
            case ir.AntiJoin() | ir.LeftJoin() | ir.InnerJoin():
                needed.update(dict.fromkeys(op.outer_vars))
            case ir.NodeScan() | ir.Stage():
                pass
            case _:
                assert_never(op)
    return Liveness(tuple(needed), counts[::-1])
