"""Groups and aggregates.

Rows with equal keys are one group, null among them; without keys all rows are one, even when there are
none. Values are summed as 64-bit floats; nulls do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.data import Numbers
from omnigraph.engine.evaluate import Evaluator
from omnigraph.engine.frames import Frame
from omnigraph.engine.ranks import ranks_of
from omnigraph.query import ir
from omnigraph.schema.arrow import arrow_type


def aggregate(plan: ir.QueryIR, frame: Frame, evaluator: Evaluator) -> pa.Table:
    """The result of an aggregate query, ordered and cut."""
    keys = [column.expr for column in plan.columns if not isinstance(column.expr, ir.Aggregate)]
    groups, first = _groups(keys, frame, evaluator)
    heads = frame.take(first)
    count = len(first) if keys else 1
    arrays: list[pa.Array] = []
    for column in plan.columns:
        if isinstance(column.expr, ir.Aggregate):
            arrays.append(_aggregate(column.expr, frame, groups, count, evaluator))
        else:
            arrays.append(evaluator.value(column.expr, heads))
    order = _order(plan, arrays, heads, evaluator)
    names = [column.name for column in plan.columns]
    return pa.Table.from_arrays([array.take(pa.array(order)) for array in arrays], names=names)


def _groups(keys: Sequence[ir.Expr], frame: Frame, evaluator: Evaluator) -> tuple[Numbers, Numbers]:
    """(the group of each row, the first row of each group)."""
    groups = np.zeros(frame.count, np.int64)
    if not keys:
        return groups, np.zeros(0, np.int64)
    count = 1
    for key in keys:
        codes = evaluator.codes(key, frame) + 1
        groups, count = _dense(groups * (int(codes.max(initial=0)) + 1) + codes)
    first = np.zeros(count, np.int64)
    first[groups[::-1]] = np.arange(frame.count)[::-1]  # The last write to a place is the first row of its group.
    return groups, first


def _dense(codes: Numbers) -> tuple[Numbers, int]:
    """The same codes without gaps, and how many there are."""
    space = int(codes.max(initial=-1)) + 1
    if space > 4 * len(codes) + 1024:
        distinct, places = np.unique(codes, return_inverse=True)
        return places, len(distinct)
    present = np.zeros(space, bool)
    present[codes] = True
    numbers: Numbers = np.cumsum(present) - 1
    return numbers[codes], int(present.sum())


def _aggregate(call: ir.Aggregate, frame: Frame, groups: Numbers, count: int, evaluator: Evaluator) -> pa.Array:
    weight = frame.weight
    if isinstance(call.argument, ir.Entity):
        return pa.array(np.bincount(groups, weights=weight, minlength=count).astype(np.int64)[:count])
    values = evaluator.value(call.argument, frame)
    known = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    some = weight[known] if weight is not None else None
    sizes: np.ndarray[Any, Any] = np.bincount(groups[known], weights=some, minlength=count)[:count]
    if call.function == "count":
        return pa.array(sizes.astype(np.int64))
    empty = sizes == 0
    if call.function in ("sum", "avg"):
        numbers = pc.fill_null(values.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False)
        if weight is not None:
            numbers = numbers * weight
        # Of no rows at all `bincount` makes integers, whatever they would have weighed.
        totals = np.bincount(groups, weights=numbers, minlength=count)[:count].astype(np.float64)
        if call.function == "avg":
            totals = totals / np.where(empty, 1, sizes)
        return pa.array(totals, mask=empty)
    return _extreme(call, values, groups, count, known)


def _extreme(
    call: ir.Aggregate, values: pa.Array, groups: Numbers, count: int, known: np.ndarray[Any, Any]
) -> pa.Array:
    """min or max by the order of the values, whatever their type."""
    rows = np.flatnonzero(known)
    ranks = ranks_of(values)[rows]
    order = np.lexsort((ranks if call.function == "max" else -ranks, groups[rows]))
    chosen = np.full(count, -1, np.int64)
    chosen[groups[rows][order]] = rows[order]  # The last of a group wins: the largest, or the smallest.
    places = pa.array(chosen, mask=chosen < 0)
    return values.take(places).cast(arrow_type(call.type))


def _order(plan: ir.QueryIR, arrays: list[pa.Array], heads: Frame, evaluator: Evaluator) -> Numbers:
    count = len(arrays[0])
    if not plan.order_by:
        return np.arange(count)[: plan.limit]
    keys: list[np.ndarray[Any, Any]] = []
    for key in plan.order_by:
        assert isinstance(key.expr, ir.ColumnRef), "the type checker turns every key of a group into a column"
        codes = _codes(plan, key.expr.index, arrays, heads, evaluator)
        keys.append(-codes if key.descending else codes)
    for index, column in enumerate(plan.columns):
        if not isinstance(column.expr, ir.Aggregate):
            keys.append(_codes(plan, index, arrays, heads, evaluator))
    return np.lexsort(tuple(reversed(keys)))[: plan.limit]


def _codes(plan: ir.QueryIR, index: int, arrays: list[pa.Array], heads: Frame, evaluator: Evaluator) -> Numbers:
    expr = plan.columns[index].expr
    if isinstance(expr, ir.Entity):
        codes: Numbers = evaluator.codes(expr, heads)
        return codes
    return ranks_of(arrays[index])
