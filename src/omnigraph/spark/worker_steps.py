"""Expressions over the rows of a match: conditions and values that the workers compute."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

from omnigraph.query.plan import ir
from omnigraph.spark.arrow_interop import quoted, spark_name
from omnigraph.spark.arrow_udfs import (
    BatchStep,
    BatchStepTask,
    FrameColumn,
    columns_in,
    entities_as_ids,
    for_workers,
    path_part_column,
)
from omnigraph.spark.bindings import ID, Bindings
from omnigraph.spark.lowering_context import LoweringContext, type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def filtered(context: LoweringContext, rows: Bindings, conditions: tuple[ir.Condition, ...]) -> Bindings:
    """Return the rows that satisfy some conditions."""
    return rows.with_frame(_step(context, rows, conditions, ())) if conditions else rows


def evaluated(
    context: LoweringContext, rows: Bindings, exprs: Iterable[ir.Expr], whole: Container[int] = ()
) -> tuple[Bindings, list[FrameColumn]]:
    """Return the column of each expression; an entity is represented by its id unless its index is in `whole`."""
    found: list[FrameColumn] = []
    computed: list[tuple[str, ir.Expr]] = []
    seen: list[tuple[ir.Expr, bool]] = []
    for number, expr in enumerate(exprs):
        seen.append((expr, number in whole))
        if seen.index(seen[-1]) < number:
            found.append(found[seen.index(seen[-1])])
        elif isinstance(expr, ir.Prop):
            found.append(rows.columns[expr.var, expr.name])
        elif isinstance(expr, ir.GroupValue):
            found.append(rows.columns[ir.GROUP, str(expr.index)])
        elif isinstance(expr, ir.PathPart):
            found.append(rows.columns[expr.var, path_part_column(expr.part)])
        elif isinstance(expr, ir.Entity) and number not in whole:
            found.append(rows.columns[expr.var, ID])
        else:
            found.append(FrameColumn(context.new_name(), type_of(expr)))
            computed.append((found[-1].name, expr))
    if computed:
        rows = rows.with_frame(_step(context, rows, (), tuple(computed)))
    return rows, found


def _step(
    context: LoweringContext,
    rows: Bindings,
    conditions: tuple[ir.Condition, ...],
    values: tuple[tuple[str, ir.Expr], ...],
) -> DataFrame:
    """Evaluate expressions in the workers: filter rows by conditions, add columns of values."""
    frame = rows.frame if rows.frame is not None else context.spark.range(1)
    conditions, values = entities_as_ids(conditions), tuple((name, for_workers(value)) for name, value in values)
    exprs = (*conditions, *(value for _, value in values))
    seen = {there: rows.columns[key] for expr in exprs for there, key in columns_in(expr, context.catalog)}
    step = BatchStep(context.job, context.params, seen, conditions, values)
    added = [(name, spark_name(type_of(expr))) for name, expr in values]
    fields = [*((f.name, _type_name(f.dataType)) for f in frame.schema.fields), *added]
    return frame.mapInArrow(BatchStepTask(step), ", ".join(f"`{name}` {kind}" for name, kind in fields))


def _type_name(type_: Any) -> str:
    """Return the Spark SQL name of a type; the names of fields are quoted."""
    match type_.typeName():
        case "array":
            return f"array<{_type_name(type_.elementType)}>"
        case "struct":
            return f"struct<{', '.join(f'{quoted(one.name)}: {_type_name(one.dataType)}' for one in type_.fields)}>"
        case _:
            name: str = type_.simpleString()
            return name
