"""Queries that return the first rows: by the rank or the properties of one variable, or in any order."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.engine import tuning
from omnigraph.engine.exec.order_by import ordered_variable
from omnigraph.query.plan import ir


@dataclass(frozen=True)
class FirstRows:
    """The variable whose nodes determine the first rows, and how many of its nodes are tried first.

    Without an order, `var` is None: the nodes of the variable that is bound first are tried.
    """

    var: str | None
    wanted: int
    ranked: ir.Prop | None = None
    """The vector that ranks the nodes; nodes without one are not returned. None for other orders."""
    fused: bool = False
    """True for a fusion, in which a rank depends on all nodes with a match."""


def first_rows_of(plan: ir.QueryIR) -> FirstRows | None:
    """Return what determines the first rows of a plan with a limit; None if all rows must be matched."""
    if plan.is_aggregate or (plan.limit is None and plan.limit_param is None):
        return None
    limit = plan.skip + (plan.limit or 0)
    wanted = max(tuning.current.ranked_candidates_min, tuning.current.ranked_overfetch * limit)
    if not plan.order_by:
        return FirstRows(None, wanted)
    rank = plan.order_by[0].expr
    if isinstance(rank, ir.Rrf):
        return FirstRows(rank.arms[0].prop.var, wanted, fused=True)
    if isinstance(rank, ir.Nearest | ir.Bm25):
        return FirstRows(rank.prop.var, wanted, rank.prop if isinstance(rank, ir.Nearest) else None)
    var = ordered_variable(plan)
    return None if var is None else FirstRows(var, wanted)
