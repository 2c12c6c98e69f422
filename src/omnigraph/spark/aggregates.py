"""Aggregates as Spark column expressions, with the semantics of `engine.exec.aggregate`.

Integer sums are exact; other sums and all averages use 64-bit floats. Nulls are ignored; the sum of a group without
values is null. Collected values are sorted.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, assert_never

import pyarrow as pa

from omnigraph.query.plan import ir
from omnigraph.scalar_types.registry import ScalarKind
from omnigraph.schema.arrow import arrow_type
from omnigraph.spark.arrow_interop import spark_name
from omnigraph.types import INTEGER_RANGES, PropertyType

_OVERFLOW = re.compile(r"omnigraph-overflow-([IU]64)")


def aggregate_column(call: ir.Aggregate, value: Any, f: Any) -> Any:
    """Return the aggregate of a column, which is null in the rows to ignore; `f` is `pyspark.sql.functions`."""
    kind = _kind(call.argument)
    if call.distinct and kind is not None and kind.is_float:
        value = value + f.lit(0.0).cast(kind.spark)  # -0.0 and 0.0 are equal
    match call.function:
        case "count":
            return f.count_distinct(value) if call.distinct else f.count(value)
        case "min" | "max":
            return getattr(f, call.function)(value)
        case "collect":
            return f.sort_array(f.collect_set(value) if call.distinct else f.collect_list(value))
        case "sum" if _is_integer_sum(call):
            return _integer_sum(call, value, f)
        case "sum" | "avg":
            return _float_total(call, value, f)
        case "median":
            return _median(call, value, f)
        case _:
            assert_never(call.function)


def aggregate_type(call: ir.Aggregate) -> pa.DataType:
    """Return the Arrow type of an aggregate."""
    if call.function == "count":
        return pa.int64()
    return arrow_type(call.type)


def overflow_type(report: str) -> str | None:
    """Return the type of the sum that overflowed according to an error of Spark; None for other errors."""
    found = _OVERFLOW.search(report)
    return found[1] if found else None


def _is_integer_sum(call: ir.Aggregate) -> bool:
    return isinstance(call.type, PropertyType) and call.type.is_integer


def _integer_sum(call: ir.Aggregate, value: Any, f: Any) -> Any:
    """Sum as a decimal, check the range of the result, then convert it."""
    assert isinstance(call.type, PropertyType)
    scalar = call.type.scalar
    low, high = INTEGER_RANGES[scalar]
    exact = value.cast("decimal(20,0)")
    total = f.sum_distinct(exact) if call.distinct else f.sum(exact)
    wide = spark_name(arrow_type(call.type))
    inside = total.between(f.lit(low).cast("decimal(38,0)"), f.lit(str(high)).cast("decimal(38,0)"))
    failed = f.raise_error(f.lit(f"omnigraph-overflow-{scalar}"))
    return f.when(total.isNull() | inside, total.cast(wide)).otherwise(failed.cast(wide))


def _float_total(call: ir.Aggregate, value: Any, f: Any) -> Any:
    """Return the sum or average as 64-bit floats."""
    if not call.distinct:
        return getattr(f, call.function)(value.cast("double"))
    # Values are compared before they are converted, because different integers can convert to the same float.
    values = f.transform(f.collect_set(value), lambda item: item.cast("double"))
    summed = f.aggregate(values, f.lit(0.0), lambda total, item: total + item)
    size = f.size(values)
    return f.when(size > 0, summed / size if call.function == "avg" else summed)


def _median(call: ir.Aggregate, value: Any, f: Any) -> Any:
    """Return the median, rounded like `engine.exec.medians`."""
    kind = _kind(call.argument)
    wide = kind is not None and kind.name in ("I64", "U64")
    if not call.distinct and not wide:
        # 64-bit floats represent these values exactly. `+ 0.0` turns -0.0 into 0.0.
        return f.percentile(value.cast("double"), f.lit(0.5)) + f.lit(0.0)
    values = f.sort_array(f.collect_set(value) if call.distinct else f.collect_list(value))
    size = f.size(values)
    low, high = (
        f.get(values, f.floor(position / 2).cast("int")).cast("decimal(20,0)" if wide else "double")
        for position in (size - 1, size)
    )
    if wide:
        mean = ((low + high) * f.lit(Decimal("0.5"))).cast("double")
    else:
        mean = f.when(low == high, low).otherwise(low * 0.5 + high * 0.5)
    return f.when(size > 0, mean + f.lit(0.0))


def _kind(expr: ir.Expr) -> ScalarKind | None:
    type_ = getattr(expr, "type", None)
    return type_.kind if isinstance(type_, PropertyType) and not type_.is_list else None
