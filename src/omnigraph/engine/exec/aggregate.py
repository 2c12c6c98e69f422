"""Groups and aggregates.

Rows with equal keys are one group, null among them; without keys all rows are one, even when there are
none. Integers are summed exactly, other numbers as 64-bit floats; nulls do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.adjacency.csr import NONE
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.binding_table import Frame, added_up
from omnigraph.engine.exec.column_aggregates import float_sum, total
from omnigraph.engine.exec.grouping import Groups, over_values
from omnigraph.engine.exec.integer_sums import sum_array
from omnigraph.engine.exec.native import stoppable
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.expr.sort_keys import ranks_of
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.types import PropertyType


def aggregate(plan: ir.QueryIR, frame: Frame, evaluator: Evaluator) -> pa.Table:
    """The result of an aggregate query, ordered and cut; keys are fetched for the groups that are left."""
    groups = _grouped(plan, frame, evaluator)
    if plan.having:
        groups.keep(groups.judged(plan.having))
    if plan.distinct and plan.grouped:
        groups.keep(groups.first_of_equals([column.expr for column in plan.columns]))
    order = _order(plan, groups)
    if order is not None:
        groups.keep(order)
    return pa.Table.from_arrays(groups.columns(plan), names=[column.name for column in plan.columns])


def _grouped(plan: ir.QueryIR, frame: Frame, evaluator: Evaluator) -> Groups:
    """The groups; what only shows single values of them is left for later, when fewer groups may be left."""
    exprs = plan.group_exprs
    keys = [number for number, expr in enumerate(exprs) if not isinstance(expr, ir.Aggregate)]
    places, first = _groups([exprs[number] for number in keys], frame, evaluator)
    count = len(first) if keys else 1
    found = Groups(exprs, keys, frame, places if keys else None, count, evaluator)
    found.heads = frame.take(first, once=True) if keys else frame
    for number, expr in enumerate(exprs):
        if isinstance(expr, ir.Aggregate) and expr.function != "collect":
            found.computed[number] = _aggregate(expr, frame, found.places, count, evaluator)
    return found


def _groups(keys: Sequence[ir.Expr], frame: Frame, evaluator: Evaluator) -> tuple[Numbers, Numbers]:
    """(the group of each row, the first row of each group)."""
    if not keys:
        return NONE, NONE
    groups, count = _dense(evaluator.groups(keys[0], frame).astype(np.int64) + 1)
    for key in keys[1:]:
        codes = evaluator.groups(key, frame).astype(np.int64) + 1
        groups, count = _dense(groups * (int(codes.max(initial=0)) + 1) + codes)
    first = np.zeros(count, np.int64)
    first[groups[::-1]] = np.arange(frame.count)[::-1]  # The last write to a place is the first row of its group.
    return groups, first


def _dense(codes: Numbers) -> tuple[Numbers, int]:
    """The same codes without gaps, and how many there are."""
    space = int(codes.max(initial=-1)) + 1
    if space > 4 * len(codes) + 1024:
        distinct, places = stoppable(lambda: np.unique(codes, return_inverse=True), len(codes))
        return places, len(distinct)
    present = np.zeros(space, bool)
    present[codes] = True
    numbers: Numbers = np.cumsum(present) - 1
    return numbers[codes], int(present.sum())


def _aggregate(call: ir.Aggregate, frame: Frame, groups: Numbers | None, count: int, evaluator: Evaluator) -> pa.Array:
    """One aggregate of every group; without groups all rows are one."""
    weight = frame.weight
    if call.distinct:
        return over_values(call, frame, groups, count, evaluator)
    if isinstance(call.argument, ir.Entity | ir.PathPart):
        return pa.array(_sizes(groups, weight, frame.count, count))
    if groups is None and weight is None and isinstance(call.argument, ir.Prop):
        found = total(call.function, frame.bound[call.argument.var], call.argument.name)
        if found is not None:
            return found
    whole = call.function == "sum" and isinstance(call.type, PropertyType) and call.type.is_integer
    if call.function in ("sum", "avg") and not whole:
        numbers = evaluator.floats(call.argument, frame)
        if numbers is not None:
            return _mean(call, numbers, groups, weight, count)
    values = evaluator.value(call.argument, frame)
    known = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    if groups is None:
        groups = np.zeros(frame.count, np.int64)
    if call.function in ("min", "max"):
        return _extreme(call, values, groups, count, known)
    if not known.all():
        values, groups = values.filter(pa.array(known)), groups[known]
        weight = weight[known] if weight is not None else None
    if call.function == "count":
        return pa.array(_sizes(groups, weight, len(groups), count))
    if whole:
        sizes = _sizes(groups, weight, len(groups), count)
        return sum_array(values.to_numpy(zero_copy_only=False), groups, weight, sizes, call.type)
    floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return _mean(call, floats, groups, weight, count)


def _sizes(groups: Numbers | None, weight: Numbers | None, rows: int, count: int) -> Numbers:
    if groups is None:
        return np.array([rows if weight is None else int(weight.sum())])
    return added_up(groups, weight, count)[:count]


def _mean(
    call: ir.Aggregate,
    values: np.ndarray[Any, Any],
    groups: Numbers | None,
    weight: Numbers | None,
    count: int,
) -> pa.Array:
    """The sum or average of each group; null for a group of nothing."""
    sizes = _sizes(groups, weight, len(values), count)
    weighed = values if weight is None else values * weight
    if groups is None:
        totals = np.array([float_sum(weighed)])
    else:
        # Of no rows at all `bincount` makes integers, whatever they would have weighed.
        weights = stoppable(lambda: np.bincount(groups, weights=weighed, minlength=count), len(groups))
        totals = weights[:count].astype(np.float64)
    empty = sizes == 0
    return pa.array(totals / np.where(empty, 1, sizes) if call.function == "avg" else totals, mask=empty)


def _extreme(
    call: ir.Aggregate, values: pa.Array, groups: Numbers, count: int, known: np.ndarray[Any, Any]
) -> pa.Array:
    """min or max by the order of the values, whatever their type."""
    rows = np.flatnonzero(known)
    ranks = ranks_of(values)[rows]
    keys = (ranks if call.function == "max" else -ranks, groups[rows])
    order = stoppable(lambda: np.lexsort(keys), len(rows))
    chosen = np.full(count, -1, np.int64)
    chosen[groups[rows][order]] = rows[order]  # The last of a group wins: the largest, or the smallest.
    places = pa.array(chosen, mask=chosen < 0)
    return values.take(places).cast(arrow_type(call.type))


def _order(plan: ir.QueryIR, groups: Groups) -> Numbers | None:
    """The groups in their final order; None when that is the order they are in."""
    limit, count = plan.limit, groups.count
    if not plan.order_by:
        return None if limit is None or limit >= count else np.arange(limit)
    if not count:
        return None
    wanted = plan.group_order
    if plan.distinct and plan.grouped:
        wanted += [(column.expr, False) for column in plan.columns]
    else:
        wanted += [(number, False) for number in groups.keys]

    def codes(key: int | ir.Expr, descending: bool, rows: Numbers | None) -> np.ndarray[Any, Any]:
        found = groups.codes(key, rows)
        if not descending:
            return found
        return -found if found.dtype.kind == "f" else ~found  # the least integer has no negative

    rows: Numbers | None = None
    if limit is not None and 0 < limit < count:
        # Only those that can be among the first by the first key alone are looked at any further.
        first = codes(*wanted[0], None)
        rows = np.flatnonzero(first <= np.partition(first, limit - 1)[limit - 1])
    keys = [codes(*key, rows) for key in reversed(wanted)]
    order = stoppable(lambda: np.lexsort(keys), count)[:limit]
    return order if rows is None else rows[order]
