"""Sums, averages and extremes of a number over all rows of a variable, without a look at any group.

Rows that a mask picks out of a table need not be written out for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.cache.table_cache import Mask
from omnigraph.engine.exec.binding_table import Bound, is_number
from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.exec.integer_sums import sum_of
from omnigraph.query.aggregates import AggregateFunction

Values = np.ndarray[Any, Any]

_BLOCK = 65_536
"""Values added up between two checkpoints."""


def total(function: AggregateFunction, bound: Bound, name: str) -> pa.Array | None:
    """One aggregate of a property of all rows; null when there is no value. None where it is not for numpy to say."""
    column = bound.data.column(name)
    if not is_number(column.type):
        return None
    values, passing = _values(bound, column)
    count = len(values) if passing is None else int(np.count_nonzero(passing))
    if function == "count":
        return pa.array([count], pa.int64())
    if function in ("min", "max"):
        found = _extreme(values, passing, largest=function == "max") if count else None
        # Arrow has an order for what is not a number, numpy has none.
        return None if found is not None and found != found else pa.array([found], column.type)
    selected = _selected(values, passing, count)
    if function == "sum" and pa.types.is_integer(column.type):
        wide = column.type == pa.uint64()
        whole = sum_of(selected, "U64" if wide else "I64")
        return pa.array([whole if count else None], pa.uint64() if wide else pa.int64())
    added = float_sum(selected)
    return pa.array([added / count if function == "avg" else added] if count else [None], pa.float64())


def _values(bound: Bound, column: pa.Array) -> tuple[Values, Mask | None]:
    """Values, and which of them count; None when all do."""
    type_ = column.type.to_pandas_dtype()
    end = column.offset + len(column)
    values = np.frombuffer(column.buffers()[1], type_, end)[column.offset :] if len(column) else np.zeros(0, type_)
    known = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False)) if column.null_count else None
    if bound.whole:
        return values, known
    if bound.mask is not None:
        return values, bound.mask if known is None else bound.mask & known
    numbers = bound.numbers
    return values[numbers], None if known is None else known[numbers]


def float_sum(values: Values) -> float:
    """The sum of an array as a 64-bit float.

    This is the only way in which the engine adds up the values of all rows. The result depends on the values and their
    order alone: not on how the rows were selected, on the storage type of equal values or on earlier queries.
    """
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(values), _BLOCK):
            checkpoint()
            total += float(values[start : start + _BLOCK].astype(np.float64, copy=False).sum())
    return total


def _selected(values: Values, passing: Mask | None, count: int) -> Values:
    """The values that a mask selects, without a list of all their row numbers."""
    if passing is None or count == len(values):
        return values
    selected = np.empty(count, values.dtype)
    end = 0
    for start in range(0, len(values), _BLOCK):
        checkpoint()
        rows = np.flatnonzero(passing[start : start + _BLOCK])
        begin, end = end, end + len(rows)
        np.take(values[start : start + _BLOCK], rows, out=selected[begin:end], mode="clip")
    return selected


def _extreme(values: Values, passing: Mask | None, *, largest: bool) -> Any:
    some = values if passing is None else values[passing]
    return some.max() if largest else some.min()
