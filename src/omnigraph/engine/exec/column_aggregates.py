"""Aggregates of a numeric property over all rows of a variable, without groups.

Rows that a mask selects are aggregated without a list of their row numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import kernels, tuning
from omnigraph.engine.cache.column_access import is_numeric
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.table_cache import Mask
from omnigraph.engine.exec.binding_table import Binding
from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.exec.integer_sums import sum_of, within_range
from omnigraph.engine.exec.reducers import reduce_numbers
from omnigraph.query.aggregates import AggregateFunction

Values = np.ndarray[Any, Any]

_BLOCK = 524_288
"""Values selected between two checkpoints: 4 MiB at most."""


def column_aggregate(function: AggregateFunction, bound: Binding, name: str) -> pa.Array | None:
    """Return an aggregate of a property of all rows, null if there is no value; None if numpy cannot compute it."""
    column = bound.data.column(name) if bound.whole else bound.data.column_for(name, bound.count)
    if column is None:
        # The rows are read alone; they are all rows of a table of their own.
        column = bound.column(name)
        bound = Binding(MemoryTable({name: column}, len(column)))
    if function == "collect" or not is_numeric(column.type):
        return None
    values, passing = _values(bound, column)
    count = len(values) if passing is None else int(np.count_nonzero(passing))
    match function:
        case "count":
            return pa.array([count], pa.int64())
        case "min" | "max":
            found = _extreme(values, passing, largest=function == "max") if count else None
            # Arrow orders NaN, numpy does not.
            return None if found is not None and found != found else pa.array([found], column.type)
        case "sum" if passing is not None and count and values.dtype == np.int64:
            return pa.array([_masked_sum(values, passing, count)], pa.int64())
        case numeric:
            return reduce_numbers(numeric, _selected(values, passing, count), None, None, 1)


def _values(bound: Binding, column: pa.Array) -> tuple[Values, Mask | None]:
    """Return the values, and a mask of the rows to aggregate; None selects all."""
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


def _selected(values: Values, passing: Mask | None, count: int) -> Values:
    """Return the values that a mask selects, without an array of all row numbers."""
    if passing is None or count == len(values):
        return values
    selected = np.empty(count, values.dtype)
    end = 0
    for start in range(0, len(values), _BLOCK):
        checkpoint()
        some = passing[start : start + _BLOCK]
        # Arrow filters by bits three times faster than numpy by bytes.
        bits = pa.py_buffer(np.packbits(some, bitorder="little"))
        mask = pa.Array.from_buffers(pa.bool_(), len(some), [None, bits])
        found = pa.array(values[start : start + _BLOCK]).filter(mask)
        begin, end = end, end + len(found)
        selected[begin:end] = found.to_numpy()
    return selected


def _masked_sum(values: Values, passing: Mask, count: int) -> int:
    """Return the exact sum of the values that a mask selects."""
    loops = kernels.find("masked_sums", len(values) * tuning.current.masked_sum_fallback_s)
    if loops is None:
        with kernels.timed_fallback():
            return sum_of(_selected(values, passing, count), "I64")
    total = 0
    for start in range(0, len(values), tuning.current.batch_values):
        checkpoint()
        some = slice(start, start + tuning.current.batch_values)
        total += loops.masked_sum(values[some], passing[some])
    return within_range(total, "I64")


def _extreme(values: Values, passing: Mask | None, *, largest: bool) -> Any:
    some = values if passing is None else values[passing]
    return some.max() if largest else some.min()
