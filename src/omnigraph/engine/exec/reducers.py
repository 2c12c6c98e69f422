"""Aggregate functions over the values of groups.

Integers are summed exactly, other numbers as 64-bit floats. Nulls are removed before.
"""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.binding_table import weighted_counts
from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.exec.integer_sums import sum_array
from omnigraph.engine.exec.medians import medians
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.expr.sort_keys import ranks_of
from omnigraph.query.aggregates import NumericAggregate
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type

Values = np.ndarray[Any, Any]

_BLOCK = 65_536
"""Values added up between two checkpoints."""


def reduce_values(
    call: ir.Aggregate, values: pa.Array, groups: Numbers, weight: Numbers | None, count: int
) -> pa.Array:
    """Return an aggregate of the values of each of `count` groups, null for a group without values.

    `groups` is the group of each value, `weight` the number of times each value counts.
    """
    match call.function:
        case "count":
            return pa.array(group_sizes(groups, weight, len(values), count))
        case "min" | "max":
            return _extreme(call, values, groups, count)
        case "collect":
            raise AssertionError("values are collected by 'grouping.over_values'")
        case numeric:
            return reduce_numbers(numeric, values.to_numpy(zero_copy_only=False), groups, weight, count)


def reduce_numbers(
    function: NumericAggregate, values: Values, groups: Numbers | None, weight: Numbers | None, count: int
) -> pa.Array:
    """Return an aggregate of numbers, with the parameters of `reduce_values`; `groups` is None for one group."""
    sizes = group_sizes(groups, weight, len(values), count)
    empty = sizes == 0
    match function:
        case "sum" if values.dtype.kind in "iu":
            return sum_array(values, groups, weight, sizes, "U64" if values.dtype == np.uint64 else "I64")
        case "sum":
            return pa.array(_float_sums(values, groups, weight, count), mask=empty)
        case "avg":
            return pa.array(_float_sums(values, groups, weight, count) / np.where(empty, 1, sizes), mask=empty)
        case "median":
            return medians(values, groups, weight, sizes)
        case _:
            assert_never(function)


def group_sizes(groups: Numbers | None, weight: Numbers | None, rows: int, count: int) -> Numbers:
    """Return the number of rows of each group."""
    if groups is None:
        return np.array([rows if weight is None else int(weight.sum())])
    return weighted_counts(groups, weight, count)[:count]


def _float_sums(values: Values, groups: Numbers | None, weight: Numbers | None, count: int) -> Values:
    if groups is None and weight is None:
        return np.array([float_sum(values)])
    floats = values.astype(np.float64, copy=False)
    weighted = floats if weight is None else floats * weight
    if groups is None:
        return np.array([float_sum(weighted)])
    sums = interruptible(lambda: np.bincount(groups, weights=weighted, minlength=count), len(groups))
    return sums[:count].astype(np.float64)  # of no rows at all `bincount` returns integers


def float_sum(values: Values) -> float:
    """Return the sum of an array as a 64-bit float.

    This is the only way in which the engine adds up the values of all rows. The result depends on the values and their
    order alone: not on how the rows were selected, on the storage type of equal values or on earlier queries.
    """
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(values), _BLOCK):
            checkpoint()
            total += float(values[start : start + _BLOCK].astype(np.float64, copy=False).sum())
    return total


def _extreme(call: ir.Aggregate, values: pa.Array, groups: Numbers, count: int) -> pa.Array:
    """Return the smallest or largest value of each group by the order of the type."""
    ranks = ranks_of(values)
    keys = (ranks if call.function == "max" else -ranks, groups)
    order = interruptible(lambda: np.lexsort(keys), len(values))
    chosen = np.full(count, -1, np.int64)
    chosen[groups[order]] = order  # The last assignment of a group is its largest or smallest value.
    return values.take(pa.array(chosen, mask=chosen < 0)).cast(arrow_type(call.type))
