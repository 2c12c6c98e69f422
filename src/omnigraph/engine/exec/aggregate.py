"""Groups and aggregates.

Rows with equal keys are one group; nulls are equal. Without keys all rows are one group, even if there are no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrays import narrow_chunks
from omnigraph.engine.adjacency.csr import EMPTY
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.cache.union_table import is_streamed
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.exec.column_aggregates import column_aggregate
from omnigraph.engine.exec.grouping import Groups, over_values, selected_rows
from omnigraph.engine.exec.left_join import NullExtendedTable
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.exec.reducers import group_sizes, reduce_numbers, reduce_values
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.expr.key_codes import combine_codes, first_rows
from omnigraph.query.plan import ir

_FLOAT = ir.F64.with_nullable(True)


def aggregate(plan: ir.QueryIR, bindings: BindingTable, evaluator: Evaluator) -> pa.Table:
    """Return the result of an aggregate query, ordered and limited; keys are fetched for the remaining groups only."""
    groups = grouped_rows(plan, bindings, evaluator)
    columns = [narrow_chunks(column) for column in groups.columns(plan)]
    return pa.Table.from_arrays(columns, names=[column.name for column in plan.columns])


def grouped_rows(plan: ir.QueryIR, bindings: BindingTable, evaluator: Evaluator) -> Groups:
    """Return the groups of an aggregate query, ordered and limited."""
    groups = _group_rows(plan, bindings, evaluator)
    if plan.having:
        groups.keep(groups.satisfying(plan.having))
    if plan.distinct and plan.grouped:
        groups.keep(groups.first_distinct([column.expr for column in plan.columns]))
    order = _order(plan, groups)
    if order is not None:
        groups.keep(order)
    return groups


def _group_rows(plan: ir.QueryIR, bindings: BindingTable, evaluator: Evaluator) -> Groups:
    """Return the groups with all aggregates except `collect`, which is computed later for the groups that remain."""
    exprs = plan.group_exprs
    keys = [number for number, expr in enumerate(exprs) if not isinstance(expr, ir.Aggregate)]
    group_of_row, first = _groups([exprs[number] for number in keys], bindings, evaluator)
    count = len(first) if keys else 1
    found = Groups(exprs, keys, bindings, group_of_row if keys else None, count, evaluator)
    found.heads = bindings.take(first, unique=True) if keys else bindings
    for number, expr in enumerate(exprs):
        if isinstance(expr, ir.Aggregate) and expr.function != "collect":
            found.computed[number] = _aggregate(expr, bindings, found.group_of_row, count, evaluator)
    return found


def _groups(keys: Sequence[ir.Expr], bindings: BindingTable, evaluator: Evaluator) -> tuple[Numbers, Numbers]:
    """Return (the group of each row, the first row of each group)."""
    if not keys:
        return EMPTY, EMPTY
    groups, count = combine_codes(evaluator.groups(key, bindings) for key in keys)
    return groups, first_rows(groups, count)


def _aggregate(
    call: ir.Aggregate, bindings: BindingTable, groups: Numbers | None, count: int, evaluator: Evaluator
) -> pa.Array:
    """Return an aggregate of every group; without `groups` all rows are one group."""
    if call.where is not None:
        call, bindings, groups = selected_rows(call, call.where, bindings, groups, evaluator)
    weight = bindings.weight
    if call.distinct and call.function == "count" and groups is None:
        number = _distinct_entities(call.argument, bindings)
        if number is not None:
            return pa.array([number])
    if call.distinct or _compares_streamed_texts(call, bindings):
        return over_values(call, bindings, groups, count, evaluator)
    if isinstance(call.argument, ir.Entity | ir.PathPart):
        return pa.array(group_sizes(groups, weight, bindings.count, count))
    if groups is None and weight is None and isinstance(call.argument, ir.Prop):
        found = column_aggregate(call.function, bindings.bound[call.argument.var], call.argument.name)
        if found is not None:
            return found
    if (call.function == "sum" or call.function == "avg") and call.type == _FLOAT:
        numbers = evaluator.floats(call.argument, bindings)
        if numbers is not None:
            return reduce_numbers(call.function, numbers, groups, weight, count)
    values = evaluator.value(call.argument, bindings)
    if groups is None:
        groups = np.zeros(bindings.count, np.int64)
    if values.null_count:
        known = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
        values, groups = values.filter(pa.array(known)), groups[known]
        weight = weight[known] if weight is not None else None
    return reduce_values(call, values, groups, weight, count)


def _compares_streamed_texts(call: ir.Aggregate, bindings: BindingTable) -> bool:
    """Return True for `min` and `max` of texts that do not fit the cache: only the chosen texts are read in full."""
    if call.function not in ("min", "max") or not isinstance(call.argument, ir.Prop):
        return False
    return is_streamed(bindings.bound[call.argument.var].data, call.argument.name)


def _distinct_entities(argument: ir.Expr, bindings: BindingTable) -> int | None:
    """Return the number of distinct nodes of a variable; None for other expressions and variables that may be null."""
    if not isinstance(argument, ir.Entity):
        return None
    bound = bindings.bound[argument.var]
    if isinstance(bound.data, NullExtendedTable):
        return None
    if bound.unique:
        return bound.count
    if bound.count * 16 < bound.data.row_count:
        return len(np.unique(bound.numbers))
    marks = np.zeros(bound.data.row_count, bool)
    marks[bound.numbers] = True
    return int(np.count_nonzero(marks))


def _order(plan: ir.QueryIR, groups: Groups) -> Numbers | None:
    """Return the groups in their final order; None if they are in that order already."""
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
        return -found if found.dtype.kind == "f" else ~found  # negating the smallest integer would overflow

    rows: Numbers | None = None
    if limit is not None and 0 < limit < count:
        # Only groups that can be among the first by the first key alone are sorted by all keys.
        first = codes(*wanted[0], None)
        rows = np.flatnonzero(first <= np.partition(first, limit - 1)[limit - 1])
    keys = [codes(*key, rows) for key in reversed(wanted)]
    order = interruptible(lambda: np.lexsort(keys), count)[:limit]
    return order if rows is None else rows[order]
