"""Aggregates as Spark computes them, with the meaning they have in `engine.aggregate`.

Sums and means are of 64-bit floats, nulls do not count, a group of nothing has none; values that are collected come in
their order.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.query import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.types import PropertyType

_FLOATS: dict[str | None, str] = {"F32": "float", "F64": "double"}


def total_of(call: ir.Aggregate, name: str, f: Any) -> Any:
    """The column of an aggregate over the column `name`; `f` is PySpark's module of functions."""
    value = f.col(name)
    float_ = _FLOATS.get(_scalar(call.argument))
    if call.distinct and float_ is not None:
        value = value + f.lit(0.0).cast(float_)  # there is one zero
    match call.function:
        case "count":
            return f.count_distinct(value) if call.distinct else f.count(value)
        case "min" | "max":
            return getattr(f, call.function)(value)
        case "collect":
            return f.sort_array(f.collect_set(value) if call.distinct else f.collect_list(value))
        case "sum" | "avg" if not call.distinct:
            return getattr(f, call.function)(value.cast("double"))
        case _:
            # Which values are equal is decided before they are floats.
            values = f.transform(f.collect_set(value), lambda item: item.cast("double"))
            summed = f.aggregate(values, f.lit(0.0), lambda total, item: total + item)
            size = f.size(values)
            return f.when(size > 0, summed / size if call.function == "avg" else summed)


def total_type(call: ir.Aggregate) -> pa.DataType:
    """How an aggregate is stored."""
    if call.function == "count":
        return pa.int64()
    return pa.float64() if call.function in ("sum", "avg") else arrow_type(call.type)


def _scalar(expr: ir.Expr) -> str | None:
    type_ = getattr(expr, "type", None)
    return type_.scalar if isinstance(type_, PropertyType) and not type_.is_list else None
