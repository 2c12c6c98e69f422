"""Lowers the result of a query: columns, groups, order and limit.

The rows of the part that returns are collected on the driver; those of a stage are the rows of the next part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine.exec.order_by import carried_values
from omnigraph.engine.plan.limit_offset import Page
from omnigraph.engine.plan.variable_types import edge_types
from omnigraph.query.plan import ir
from omnigraph.query.syntax.ast import ANONYMOUS
from omnigraph.spark.aggregates import aggregate_column, aggregate_type
from omnigraph.spark.arrow_interop import from_wire
from omnigraph.spark.arrow_udfs import FrameColumn, entity_fields
from omnigraph.spark.bindings import ID, NODES, Bindings
from omnigraph.spark.lowering_context import LoweringContext
from omnigraph.spark.worker_steps import evaluated, filtered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class _OutputColumn:
    """The source of a returned column; an entity is assembled from its fields."""

    column: FrameColumn
    fields: Mapping[str, FrameColumn] = field(default_factory=dict)

    def read(self, given: pa.Table) -> pa.Array:
        """Return the column in its stored type."""
        if not self.fields:
            return from_wire(one_array(given[self.column.name]), self.column.type)
        parts = {name: from_wire(one_array(given[column.name]), column.type) for name, column in self.fields.items()}
        # A node of an optional block can be null.
        return pa.StructArray.from_arrays(list(parts.values()), names=list(parts), mask=parts[ID].is_null())


@dataclass(frozen=True)
class _Found:
    """Ordered rows of a result before its limit, and the source of each column."""

    frame: DataFrame
    shown: list[_OutputColumn]


class ResultLowering:
    """Returns the result of one query, or of one stage, from the rows of its match."""

    def __init__(self, context: LoweringContext, plan: ir.QueryIR, stage: str = "", page: Page | None = None) -> None:
        self._context = context
        self._page = page
        self._rank = context.rankings.get(stage)
        """Ranks the rows, if the query is ordered by a search."""
        self._f = context.f
        self._plan = plan

    def table(self, rows: Bindings) -> tuple[pa.Table, bool]:
        """Return the result or its page, and whether there are rows after the page."""
        found = self._groups(rows, ()) if self._plan.is_aggregate else self._rows(rows, ())
        return self._result(found.frame, found.shown)

    def stage(self, stage: ir.Stage, rows: Bindings) -> Bindings:
        """Return the rows of a stage: the columns of the variables that it keeps, and its values."""
        found = self._groups(rows, stage.kept) if self._plan.is_aggregate else self._rows(rows, stage.kept)
        kept = {key: column for key, column in rows.columns.items() if key[0] in stage.kept}
        values = {
            (stage.var, name): found.shown[number].column
            for name, number in zip(stage.value_names, stage.values, strict=True)
        }
        frame = self._cut(found.frame)
        names = dict.fromkeys(column.name for column in (*kept.values(), *values.values()))
        # A column can be a property of a variable and a value.
        copies = {key: FrameColumn(self._context.new_name(), column.type) for key, column in values.items()}
        added = [self._f.col(values[key].name).alias(copy.name) for key, copy in copies.items()]
        own = [name for name in names if name in {column.name for column in kept.values()}]
        return Bindings(frame.select(*own, *added), {**kept, **copies})

    def _rows(self, rows: Bindings, kept: Collection[str]) -> _Found:
        exprs = [self._resolved(column.expr) for column in self._plan.columns]
        keys = [self._resolved(key.expr) for key in self._plan.order_by]
        order: list[Any] = []
        if self._rank is not None:
            rows, order = self._rank.ranked(rows, self._plan.limit)
        rows, found = evaluated(self._context, rows, [*exprs, *keys])
        assert rows.frame is not None
        frame = rows.frame
        if keys or order:
            ties = [self._sorted(name) for var in self._named(rows) for name in rows.identity(var)]
            ties += [self._sorted(rows.name(value.var, value.name)) for value in carried_values(self._plan)]
            for expr, column, key in zip(keys, found[len(exprs) :], self._plan.order_by, strict=True):
                names = rows.identity(expr.var) if isinstance(expr, ir.Entity) else [column.name]
                order += [self._sorted(name, key.descending) for name in names]
            frame = frame.orderBy(*order, *ties)
        return _Found(frame, [self._shown(*one, rows, kept) for one in zip(exprs, found, strict=False)])

    def _named(self, rows: Bindings) -> list[str]:
        """Return the variables by whose identity ties are broken: by name, paths last.

        The rows of a ranked entity stay together, ordered by their edges.
        """
        named = [var for var, prop in rows.columns if prop == ID and not var.startswith(f"{ANONYMOUS}#")]
        ranked = self._rank.var if self._rank is not None else None
        edges = edge_types(self._plan.pipeline) if ranked is not None else named
        return sorted(named, key=lambda var: (var != ranked, (var, NODES) in rows.columns, var not in edges, var))

    def _groups(self, rows: Bindings, kept: Collection[str]) -> _Found:
        """Return the groups; the columns of the variables `kept`, which are keys, stay columns of the groups."""
        exprs = [self._resolved(expr) for expr in self._plan.group_exprs]
        # For an aggregate, its argument; `count($x)` of an entity counts rows.
        arguments = [e.argument if isinstance(e, ir.Aggregate) else e for e in exprs]
        tests = {at: e.where for at, e in enumerate(exprs) if isinstance(e, ir.Aggregate) and e.where is not None}
        whole = [at for at, e in enumerate(exprs) if self._is_whole(e, kept)]
        rows, found = evaluated(self._context, rows, [*arguments, *tests.values()], whole)
        values = found[: len(exprs)]
        passing = dict(zip(tests, found[len(exprs) :], strict=True))
        assert rows.frame is not None
        shown: list[_OutputColumn] = []
        totals = []
        by: dict[str, None] = {}
        for at, (expr, value) in enumerate(zip(exprs, values, strict=True)):
            if isinstance(expr, ir.Aggregate):
                total = FrameColumn(self._context.new_name(), aggregate_type(expr))
                column = self._argument(rows, expr.argument, value, whole=at in whole)
                if at in passing:
                    column = self._f.when(self._f.col(passing[at].name), column)
                totals.append(aggregate_column(expr, column, self._f).alias(total.name))
                shown.append(_OutputColumn(total))
            else:
                names = rows.identity(expr.var) if isinstance(expr, ir.Entity) and at not in whole else [value.name]
                by.update(dict.fromkeys(names))
                shown.append(_OutputColumn(value) if self._plan.grouped else self._shown(expr, value, rows, kept))
        fields = {column.name for one in shown for column in one.fields.values()} - set(by)
        fields |= {column.name for (var, _), column in rows.columns.items() if var in kept} - set(by)
        totals += [self._f.first(self._f.col(name)).alias(name) for name in sorted(fields)]
        frame = rows.frame.groupBy(*by).agg(*totals) if totals else rows.frame.select(*by).distinct()
        groups = Bindings(frame, {(ir.GROUP, str(at)): one.column for at, one in enumerate(shown)})
        groups = filtered(self._context, groups, self._plan.having)
        return self._group_result(groups, shown, list(by), kept)

    def _argument(self, rows: Bindings, argument: ir.Expr, value: FrameColumn, *, whole: bool) -> Any:
        """Return the argument of an aggregate as a Spark column; a node of several types is its id and type."""
        column = self._f.col(value.name)
        if whole or not isinstance(argument, ir.Entity) or (argument.var, ir.TYPE) not in rows.columns:
            return column
        return self._f.when(column.isNotNull(), self._f.struct(*rows.identity(argument.var)))

    def _is_whole(self, expr: ir.Expr, kept: Collection[str]) -> bool:
        """True if an entity that is a key or an argument is needed with all its fields, not only by its id."""
        if isinstance(expr, ir.Aggregate):
            return expr.function == "collect"
        return bool(self._plan.grouped) and not (isinstance(expr, ir.Entity) and expr.var in kept)

    def _group_result(
        self, groups: Bindings, shown: list[_OutputColumn], ties: list[str], kept: Collection[str]
    ) -> _Found:
        """Return the result columns of groups, sorted; `shown` applies if the columns are plain keys and aggregates."""
        exprs = [column.expr for column in self._plan.columns] if self._plan.grouped else []
        keys = self._plan.group_order
        given = self._plan.group_exprs
        wanted = [ir.group_column(key, given[key]) if isinstance(key, int) else key for key, _ in keys]
        groups, found = evaluated(self._context, groups, [*exprs, *wanted])
        assert groups.frame is not None
        frame = groups.frame
        if exprs:
            shown = [_OutputColumn(column) for column in found[: len(exprs)]]
        if exprs and self._plan.distinct:
            ties = list(dict.fromkeys(one.column.name for one in shown))
            frame = frame.dropDuplicates(ties) if kept else frame.select(*ties).distinct()
        if keys:
            sorts = zip(found[len(exprs) :], keys, strict=True)
            order = [self._sorted(column.name, descending) for column, (_, descending) in sorts]
            frame = frame.orderBy(*order, *(self._sorted(name) for name in ties))
        return _Found(frame, shown)

    def _sorted(self, name: str, descending: bool = False) -> Any:
        column = self._f.col(name)
        return column.desc_nulls_last() if descending else column.asc_nulls_first()

    def _resolved(self, expr: ir.Expr) -> ir.Expr:
        while isinstance(expr, ir.ColumnRef):
            expr = self._plan.columns[expr.index].expr
        return expr

    def _shown(self, expr: ir.Expr, column: FrameColumn, rows: Bindings, kept: Collection[str]) -> _OutputColumn:
        if not isinstance(expr, ir.Entity) or expr.var in kept:
            return _OutputColumn(column)
        fields = entity_fields(expr, self._context.catalog)
        return _OutputColumn(column, {name: rows.columns[expr.var, prop] for name, prop in fields})

    def _cut(self, frame: DataFrame) -> DataFrame:
        if self._plan.limit is not None:
            frame = frame.limit(self._plan.limit)
        return frame.offset(self._plan.skip) if self._plan.skip else frame

    def _result(self, frame: DataFrame, shown: list[_OutputColumn]) -> tuple[pa.Table, bool]:
        frame = self._cut(frame)
        if self._page is not None:
            # One more row shows whether there is a next page.
            frame = frame.limit(self._page.rows + 1)
        names = list(dict.fromkeys(column.name for one in shown for column in (one.column, *one.fields.values())))
        given = self._context.actions.to_arrow(frame.select(*names))
        more = self._page is not None and given.num_rows > self._page.rows
        if self._page is not None:
            given = given.slice(0, self._page.rows)
        found = [one.read(given) for one in shown]
        return pa.Table.from_arrays(found, names=[column.name for column in self._plan.columns]), more
