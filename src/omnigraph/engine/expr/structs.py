"""Objects and lists built from the columns of their parts.

They are equal if all parts are equal, and they are ordered by their parts from first to last. Their codes are therefore
combined from the codes of the parts, without building them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrays import concatenate
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.expr.key_codes import combine_codes
from omnigraph.engine.expr.sort_keys import ranks_of
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.types import PropertyType, ResultType

Value = Callable[[ir.Expr], pa.Array]
CodesOf = Callable[[ir.Expr], "np.ndarray[Any, Any]"]


def build_nested(expr: ir.Object | ir.ListOf, value: Value) -> pa.Array:
    """Build the objects or lists of every row."""
    if isinstance(expr, ir.Object):
        arrays = [value(part) for _, part in expr.fields]
        return pa.StructArray.from_arrays(arrays, names=[name for name, _ in expr.fields])
    return interleaved([as_type(value(item), expr.type.item) for item in expr.items])


def interleaved(columns: Sequence[pa.Array]) -> pa.Array:
    """Return a list for each row with its values in columns of one type."""
    count, width = len(columns[0]), len(columns)
    positions = np.arange(count * width).reshape(width, count).T.ravel()
    offsets = pa.array(np.arange(count + 1) * width, pa.int32())
    return pa.ListArray.from_arrays(offsets, concatenate(columns).take(pa.array(positions)))


def as_type(values: pa.Array, type_: ResultType) -> pa.Array:
    """Cast values to a type that can represent them; an untyped null has any type."""
    wanted = arrow_type(type_)
    if values.type == wanted:
        return values
    return pa.nulls(len(values), wanted) if values.null_count == len(values) else values.cast(wanted, safe=False)


def codes_of(expr: ir.Object | ir.ListOf, value: Value, codes: CodesOf) -> Numbers:
    """Return sort codes of the objects or lists; equal values have equal codes."""
    if isinstance(expr, ir.ListOf) and isinstance(expr.type.item, PropertyType):
        # Numbers of different widths are compared in their common type.
        parts = [ranks_of(as_type(value(item), expr.type.item)) for item in expr.items]
    else:
        parts = [codes(part) for part in ir.parts_of(expr)]
    return combine_codes(parts)[0]
