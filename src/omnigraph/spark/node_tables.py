"""The entities of a variable as a DataFrame; nodes of several types have a column of their type."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.spark.arrow_interop import spark_name
from omnigraph.spark.arrow_udfs import FrameColumn, ScanPredicates
from omnigraph.spark.bindings import ID
from omnigraph.spark.lowering_context import LoweringContext
from omnigraph.spark.scans import Scan
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Columns = dict[tuple[str, str], FrameColumn]


def node_table(
    context: LoweringContext, type_name: str, var: str, filters: tuple[ir.Condition, ...], props: Iterable[str]
) -> tuple[DataFrame, Columns]:
    """Scan the nodes of a variable that satisfy its own predicates, with the given properties.

    The nodes of a union are those of its members, each with the name of its type.
    """
    if not context.is_union(type_name):
        return entity_table(context, TableKey.node(type_name), var, filters, props)
    wanted, ranks = _named(context, [prop for prop in props if prop != ir.TYPE])
    type_column = context.new_name()
    frames = []
    for member in context.catalog.members(type_name):
        conditions = ScanPredicates(var, filters, context.params, member) if filters else None
        values = {name: context.ranks[prop] for prop, name in ranks.items()}
        scan = Scan(context.job, TableKey.node(member), wanted, conditions=conditions, values=values)
        frames.append(scan.frame(context.spark).withColumn(type_column, context.f.lit(member)))
    properties = context.catalog.node(type_name).properties
    columns: Columns = {
        (var, prop): FrameColumn(name, pa.utf8() if prop == ID else arrow_type(properties[prop].type))
        for prop, name in wanted.items()
    }
    columns |= {(var, prop): FrameColumn(name, pa.float64()) for prop, name in ranks.items()}
    columns[var, ir.TYPE] = FrameColumn(type_column, pa.utf8())
    if not frames:
        empty = [context.f.lit(None).cast(spark_name(column.type)).alias(column.name) for column in columns.values()]
        return context.spark.range(0).select(*empty), columns
    return reduce(lambda one, other: one.unionByName(other), frames), columns


def entity_table(
    context: LoweringContext, key: str, var: str, filters: tuple[ir.Condition, ...], props: Iterable[str]
) -> tuple[DataFrame, Columns]:
    """Scan one table: the entities of a variable that satisfy its own predicates, with the given columns."""
    wanted, ranks = _named(context, props)
    conditions = ScanPredicates(var, filters, context.params) if filters else None
    values = {name: context.ranks[prop] for prop, name in ranks.items()}
    scan = Scan(context.job, key, wanted, conditions=conditions, values=values)
    types = scan.schema
    named = {**wanted, **ranks}
    columns = {(var, prop): FrameColumn(name, types.field(name).type) for prop, name in named.items()}
    return scan.joined_frame(context.spark), columns


def _named(context: LoweringContext, props: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the column names of the stored properties, the id first, and those of the ranks."""
    names = {prop: context.new_name() for prop in dict.fromkeys([ID, *props])}
    ranks = {prop: name for prop, name in names.items() if prop in context.ranks}
    return {prop: name for prop, name in names.items() if prop not in ranks}, ranks
