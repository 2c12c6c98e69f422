"""Lowers a read query to joins of DataFrames, for graphs larger than one machine.

A row of the match is a row of a DataFrame: the ids of its variables, and the properties that later operators need.
Scans and expressions run in the Python workers (`scans`, `arrow_udfs`). Spark itself runs joins by id, distinct,
groups, order and limit.

Ranked searches, nodes of several types and paths are not supported here; the in-process engine runs them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine.plan.limit_offset import apply_limit
from omnigraph.errors import Hint, InputError
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Watch
from omnigraph.query.plan import ir
from omnigraph.query.syntax.ast import ANONYMOUS
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.aggregates import aggregate_column, aggregate_type
from omnigraph.spark.arrow_interop import from_wire, spark_name
from omnigraph.spark.arrow_udfs import (
    BatchStep,
    BatchStepTask,
    FrameColumn,
    ScanPredicates,
    columns_in,
    entities_as_ids,
    for_workers,
    properties_in,
    returned_entities,
    walk_tree,
)
from omnigraph.spark.cancellable_action import Actions
from omnigraph.spark.hops import HopRange, Pairs, edge_pairs, reachable_pairs
from omnigraph.spark.scans import Scan
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ID = "id"
_ENDS = {"out": ("src", "dst"), "in": ("dst", "src"), "both": ("src", "dst")}


def run_on_spark(
    spark: SparkSession,
    plan: ir.QueryIR,
    catalog: Catalog,
    job: Job,
    params: Mapping[str, Any],
    *,
    now_ms: int,
    watch: Watch | None = None,
) -> pa.Table:
    """Run a read on the snapshot that `job` pins; the result equals that of `engine.exec.executor`."""
    _check_supported(plan, catalog)
    plan = apply_limit(plan, params)
    return _Lowering(spark, plan, catalog, job, {**params, ir.NOW: now_ms}, watch).run()


def _check_supported(plan: ir.QueryIR, catalog: Catalog) -> None:
    """Reject a plan that contains an operator or expression without a lowering."""
    for node in walk_tree(plan):
        match node:
            case ir.Nearest() | ir.Bm25() | ir.Rrf():
                # A worker sees only some of the rows, so it cannot rank.
                what = "ranks by search"
            case ir.NodeScan() if node.type_name not in catalog.nodes:
                # DataFrames identify nodes by id only, which is unique within a type.
                what = "matches nodes of several types"
            case ir.Expand() if node.src_type is not None:
                what = "matches nodes of several types"
            case ir.FindPaths():
                what = "searches paths"
            case _:
                continue
        raise InputError(
            f"query '{plan.name}' {what}, which Spark does not support",
            code="not_on_spark",
            hint=Hint("run it with engine='memory'", cli="run it with --engine memory"),
        )


@dataclass(frozen=True)
class _Bindings:
    """The rows matched so far and the column of each bound property; without a DataFrame, one row without bindings."""

    frame: DataFrame | None = None
    columns: Mapping[tuple[str, str], FrameColumn] = field(default_factory=dict)

    def name(self, var: str, prop: str = _ID) -> str:
        """Return the column name of a property."""
        return self.columns[var, prop].name

    def with_frame(self, frame: DataFrame) -> _Bindings:
        """Return bindings with the same columns and other rows."""
        return _Bindings(frame, self.columns)


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
        return pa.StructArray.from_arrays(list(parts.values()), names=list(parts), mask=parts[_ID].is_null())


class _Lowering:
    """State of one query: the plan, the snapshot, and the names used so far."""

    def __init__(
        self,
        spark: SparkSession,
        plan: ir.QueryIR,
        catalog: Catalog,
        job: Job,
        params: Mapping[str, Any],
        watch: Watch | None,
    ) -> None:
        from pyspark.sql import functions  # noqa: PLC0415

        self.f: Any = functions
        self.spark = spark
        self.plan = plan
        self.catalog = catalog
        self.job = job
        self.params = params
        self.actions = Actions(spark, f"query {plan.name}", watch)
        self._numbers = count()
        self._needed = _needed_properties(plan)

    def run(self) -> pa.Table:
        """Return the result."""
        rows = self._pipeline(self.plan.pipeline, _Bindings())
        return self._groups(rows) if self.plan.is_aggregate else self._rows(rows)

    # -- match -----------------------------------------------------------------------------------

    def _pipeline(self, pipeline: ir.Pipeline, rows: _Bindings) -> _Bindings:
        for op in pipeline:
            match op:
                case ir.NodeScan():
                    rows = self._scan(op, rows)
                case ir.Expand():
                    rows = self._expand(op, rows)
                case ir.FindPaths() | ir.PathSteps():
                    raise AssertionError("_check_supported rejects paths")
                case ir.Filter():
                    rows = rows.with_frame(self._step(rows, conditions=(op.condition,)))
                case ir.AntiJoin():
                    rows = self._anti_join(op, rows)
                case ir.LeftJoin():
                    rows = self._left_join(op, rows)
                case ir.InnerJoin():
                    raise AssertionError("a logical plan has no inner join")
                case _:
                    assert_never(op)
        return rows

    def _table(
        self, key: str, var: str, filters: tuple[ir.Condition, ...], props: Iterable[str]
    ) -> tuple[DataFrame, dict[tuple[str, str], FrameColumn]]:
        """Scan the entities of a variable that satisfy its own predicates, with the given columns."""
        wanted = {prop: self._new_name() for prop in dict.fromkeys([_ID, *props])}
        conditions = ScanPredicates(var, filters, self.params) if filters else None
        scan = Scan(self.job, key, wanted, conditions=conditions)
        types = scan.schema
        columns = {(var, prop): FrameColumn(name, types.field(name).type) for prop, name in wanted.items()}
        return scan.frame(self.spark), columns

    def _scan(self, op: ir.NodeScan, rows: _Bindings) -> _Bindings:
        frame, columns = self._table(TableKey.node(op.type_name), op.var, op.filters, self._needed.get(op.var, ()))
        joined = frame if rows.frame is None else rows.frame.crossJoin(frame)
        return _Bindings(joined, {**rows.columns, **columns})

    def _expand(self, op: ir.Expand, rows: _Bindings) -> _Bindings:
        assert rows.frame is not None, "an expansion starts at a bound variable"
        if op.edge_var is not None:
            return self._expand_edges(op, rows)
        pairs = self._pairs(op, rows)
        near = self.f.col(rows.name(op.src_var)) == self.f.col(pairs.near)
        if op.dst_bound:
            far = self.f.col(rows.name(op.dst_var)) == self.f.col(pairs.far)
            return rows.with_frame(rows.frame.join(pairs.frame, near & far, "left_semi"))
        joined = rows.frame.join(pairs.frame, near).drop(pairs.near)
        return self._bind_target(op, _Bindings(joined, rows.columns), pairs.far)

    def _pairs(self, op: ir.Expand, rows: _Bindings) -> Pairs:
        """Return the distinct pairs of nodes that an expansion connects."""
        assert rows.frame is not None
        pairs = edge_pairs(self.spark, self.job, op.edge_types, op.direction, self._new_name)
        if op.max_hops < op.min_hops:
            return Pairs(pairs.frame.limit(0), pairs.near, pairs.far)
        if (op.min_hops, op.max_hops) == (1, 1):
            return pairs
        sources = rows.frame.select(rows.name(op.src_var)).distinct()
        hops = HopRange(op.min_hops, op.max_hops, op.backward)
        return reachable_pairs(pairs, sources, hops, self._new_name, self.actions)

    def _expand_edges(self, op: ir.Expand, rows: _Bindings) -> _Bindings:
        assert op.edge_var is not None
        assert rows.frame is not None
        props = [*self._needed.get(op.edge_var, ()), "src", "dst"]
        edges, columns = self._table(TableKey.edge(op.edge_type), op.edge_var, op.edge_filters, props)
        if op.max_hops < op.min_hops:
            edges = edges.limit(0)
        near, far = self._new_name(), self._new_name()
        from_, to = (columns[op.edge_var, end].name for end in _ENDS[op.direction])
        expanded = edges.withColumn(near, self.f.col(from_)).withColumn(far, self.f.col(to))
        if op.direction == "both":
            # A loop is expanded once.
            other = edges.filter(self.f.col(from_) != self.f.col(to))
            expanded = expanded.unionAll(other.withColumn(near, self.f.col(to)).withColumn(far, self.f.col(from_)))
        meets = self.f.col(rows.name(op.src_var)) == self.f.col(near)
        if op.dst_bound:
            meets = meets & (self.f.col(rows.name(op.dst_var)) == self.f.col(far))
        joined = _Bindings(rows.frame.join(expanded, meets).drop(near), {**rows.columns, **columns})
        assert joined.frame is not None
        return joined.with_frame(joined.frame.drop(far)) if op.dst_bound else self._bind_target(op, joined, far)

    def _bind_target(self, op: ir.Expand, rows: _Bindings, far: str) -> _Bindings:
        """Bind the target node; its table is read only if properties or predicates need it."""
        assert rows.frame is not None
        props = self._needed.get(op.dst_var, ())
        here = FrameColumn(far, pa.utf8())
        if not props and not op.dst_filters:
            return _Bindings(rows.frame, {**rows.columns, (op.dst_var, _ID): here})
        nodes, columns = self._table(TableKey.node(op.dst_type), op.dst_var, op.dst_filters, props)
        same = self.f.col(far) == self.f.col(columns[op.dst_var, _ID].name)
        return _Bindings(rows.frame.join(nodes, same).drop(far), {**rows.columns, **columns})

    def _anti_join(self, op: ir.AntiJoin, rows: _Bindings) -> _Bindings:
        if not op.outer_vars:
            found = self._pipeline(op.inner, _Bindings()).frame
            assert found is not None, "an inner pipeline binds a variable"
            frame = rows.frame if rows.frame is not None else self.spark.range(1)
            return rows.with_frame(frame.join(found.limit(1), self.f.lit(True), "left_anti"))
        return rows.with_frame(self._join_inner(rows, *self._inner_rows(op, rows), (), "left_anti"))

    def _left_join(self, op: ir.LeftJoin, rows: _Bindings) -> _Bindings:
        """Left join; the id and all properties of an absent node are null."""
        inner, outer = self._inner_rows(op, rows)
        new = {key: column for key, column in inner.columns.items() if key[0] in op.variables}
        frame = self._join_inner(rows, inner, outer, [column.name for column in new.values()], "left")
        return _Bindings(frame, {**rows.columns, **new})

    def _inner_rows(self, op: ir.AntiJoin | ir.LeftJoin, rows: _Bindings) -> tuple[_Bindings, list[str]]:
        """Run the inner pipeline once per distinct combination of outer variables; also return their id columns."""
        assert rows.frame is not None, "an inner pipeline starts from outer bindings"
        outer = {key: column for key, column in rows.columns.items() if key[0] in op.outer_vars}
        start = rows.frame.select(*(column.name for column in outer.values())).distinct()
        return self._pipeline(op.inner, _Bindings(start, outer)), [rows.name(var) for var in op.outer_vars]

    def _join_inner(self, rows: _Bindings, inner: _Bindings, by: list[str], more: Sequence[str], how: str) -> DataFrame:
        """Join rows with the inner rows of the same outer variables."""
        assert rows.frame is not None
        assert inner.frame is not None
        other = {name: self._new_name() for name in by}
        found = inner.frame.select(*(self.f.col(name).alias(new) for name, new in other.items()), *more)
        if how == "left_anti":
            found = found.distinct()
        same = (self.f.col(name).eqNullSafe(self.f.col(new)) for name, new in other.items())
        return rows.frame.join(found, reduce(lambda a, b: a & b, same), how).drop(*other.values())

    def _step(
        self, rows: _Bindings, conditions: tuple[ir.Condition, ...] = (), values: tuple[tuple[str, ir.Expr], ...] = ()
    ) -> DataFrame:
        """Evaluate expressions in the workers: filter rows by conditions, add columns of values."""
        frame = rows.frame if rows.frame is not None else self.spark.range(1)
        conditions, values = entities_as_ids(conditions), tuple((name, for_workers(value)) for name, value in values)
        exprs = (*conditions, *(value for _, value in values))
        seen = {key: rows.columns[key] for expr in exprs for key in columns_in(expr)}
        step = BatchStep(self.job, self.params, seen, conditions, values)
        added = [(name, spark_name(_type_of(expr))) for name, expr in values]
        fields = [*((f.name, f.dataType.simpleString()) for f in frame.schema.fields), *added]
        return frame.mapInArrow(BatchStepTask(step), ", ".join(f"`{name}` {kind}" for name, kind in fields))

    # -- result ----------------------------------------------------------------------------------

    def _evaluated(
        self, rows: _Bindings, exprs: Iterable[ir.Expr], whole: Container[int] = ()
    ) -> tuple[_Bindings, list[FrameColumn]]:
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
            elif isinstance(expr, ir.Entity) and number not in whole:
                found.append(rows.columns[expr.var, _ID])
            else:
                found.append(FrameColumn(self._new_name(), _type_of(expr)))
                computed.append((found[-1].name, expr))
        if computed:
            rows = rows.with_frame(self._step(rows, values=tuple(computed)))
        return rows, found

    def _rows(self, rows: _Bindings) -> pa.Table:
        exprs = [self._resolved(column.expr) for column in self.plan.columns]
        keys = [self._resolved(key.expr) for key in self.plan.order_by]
        rows, found = self._evaluated(rows, [*exprs, *keys])
        assert rows.frame is not None
        frame = rows.frame
        if keys:
            named = sorted(var for var, prop in rows.columns if prop == _ID and not var.startswith(f"{ANONYMOUS}#"))
            ties = [self._sorted(rows.name(var)) for var in named]
            sorts = zip(found[len(exprs) :], self.plan.order_by, strict=True)
            frame = frame.orderBy(*(self._sorted(column.name, key.descending) for column, key in sorts), *ties)
        return self._result(frame, [self._shown(*one, rows) for one in zip(exprs, found, strict=False)])

    def _groups(self, rows: _Bindings) -> pa.Table:
        exprs = [self._resolved(expr) for expr in self.plan.group_exprs]
        # For an aggregate, its argument; `count($x)` of an entity counts rows.
        arguments = [e.argument if isinstance(e, ir.Aggregate) else e for e in exprs]
        tests = {at: e.where for at, e in enumerate(exprs) if isinstance(e, ir.Aggregate) and e.where is not None}
        whole = [at for at, e in enumerate(exprs) if self._is_whole(e)]
        rows, found = self._evaluated(rows, [*arguments, *tests.values()], whole)
        values = found[: len(exprs)]
        passing = dict(zip(tests, found[len(exprs) :], strict=True))
        assert rows.frame is not None
        shown: list[_OutputColumn] = []
        totals = []
        by: dict[str, None] = {}
        for at, (expr, value) in enumerate(zip(exprs, values, strict=True)):
            if isinstance(expr, ir.Aggregate):
                total = FrameColumn(self._new_name(), aggregate_type(expr))
                column = self.f.col(value.name)
                if at in passing:
                    column = self.f.when(self.f.col(passing[at].name), column)
                totals.append(aggregate_column(expr, column, self.f).alias(total.name))
                shown.append(_OutputColumn(total))
            else:
                by[value.name] = None
                shown.append(_OutputColumn(value) if self.plan.grouped else self._shown(expr, value, rows))
        fields = {column.name for one in shown for column in one.fields.values()} - set(by)
        totals += [self.f.first(self.f.col(name)).alias(name) for name in sorted(fields)]
        frame = rows.frame.groupBy(*by).agg(*totals) if totals else rows.frame.select(*by).distinct()
        groups = _Bindings(frame, {(ir.GROUP, str(at)): one.column for at, one in enumerate(shown)})
        if self.plan.having:
            groups = groups.with_frame(self._step(groups, conditions=self.plan.having))
        return self._group_result(groups, shown, list(by))

    def _is_whole(self, expr: ir.Expr) -> bool:
        """True if an entity that is a key or an argument is needed with all its fields, not only by its id."""
        if isinstance(expr, ir.Aggregate):
            return expr.function == "collect"
        return bool(self.plan.grouped)

    def _group_result(self, groups: _Bindings, shown: list[_OutputColumn], ties: list[str]) -> pa.Table:
        """Return the result columns of groups, sorted; `shown` applies if the columns are plain keys and aggregates."""
        exprs = [column.expr for column in self.plan.columns] if self.plan.grouped else []
        keys = self.plan.group_order
        given = self.plan.group_exprs
        wanted = [ir.group_column(key, given[key]) if isinstance(key, int) else key for key, _ in keys]
        groups, found = self._evaluated(groups, [*exprs, *wanted])
        assert groups.frame is not None
        frame = groups.frame
        if exprs:
            shown = [_OutputColumn(column) for column in found[: len(exprs)]]
        if exprs and self.plan.distinct:
            ties = list(dict.fromkeys(one.column.name for one in shown))
            frame = frame.select(*ties).distinct()
        if keys:
            sorts = zip(found[len(exprs) :], keys, strict=True)
            order = [self._sorted(column.name, descending) for column, (_, descending) in sorts]
            frame = frame.orderBy(*order, *(self._sorted(name) for name in ties))
        return self._result(frame, shown)

    def _sorted(self, name: str, descending: bool = False) -> Any:
        column = self.f.col(name)
        return column.desc_nulls_last() if descending else column.asc_nulls_first()

    def _resolved(self, expr: ir.Expr) -> ir.Expr:
        while isinstance(expr, ir.ColumnRef):
            expr = self.plan.columns[expr.index].expr
        return expr

    def _shown(self, expr: ir.Expr, column: FrameColumn, rows: _Bindings) -> _OutputColumn:
        if not isinstance(expr, ir.Entity):
            return _OutputColumn(column)
        return _OutputColumn(column, {name: rows.columns[expr.var, name] for name, _ in expr.type.fields})

    def _result(self, frame: DataFrame, shown: list[_OutputColumn]) -> pa.Table:
        if self.plan.limit is not None:
            frame = frame.limit(self.plan.limit)
        names = list(dict.fromkeys(column.name for one in shown for column in (one.column, *one.fields.values())))
        given = self.actions.to_arrow(frame.select(*names))
        return pa.Table.from_arrays(
            [one.read(given) for one in shown], names=[column.name for column in self.plan.columns]
        ).slice(self.plan.skip)

    def _new_name(self) -> str:
        """Return a column name that is unique within the query, so that joins are unambiguous."""
        return f"c{next(self._numbers)}"


def _needed_properties(plan: ir.QueryIR) -> dict[str, list[str]]:
    """Map each variable to the properties that are used outside its own scan."""
    found: dict[str, dict[str, None]] = {}

    def note(exprs: Any) -> None:
        for prop in properties_in(exprs):
            found.setdefault(prop.var, {})[prop.name] = None

    def walk(pipeline: ir.Pipeline) -> None:
        for op in pipeline:
            if isinstance(op, ir.Filter):
                note(op.condition)
            elif isinstance(op, ir.AntiJoin | ir.LeftJoin):
                walk(op.inner)

    walk(plan.pipeline)
    note((plan.group_exprs, tuple(key.expr for key in plan.order_by)))
    for entity in (entity for expr in plan.group_exprs for entity in returned_entities(expr)):
        found.setdefault(entity.var, {}).update(dict.fromkeys(name for name, _ in entity.type.fields))
    return {var: list(props) for var, props in found.items()}


def _type_of(expr: ir.Expr) -> pa.DataType:
    assert not isinstance(expr, ir.ColumnRef), "a column reference is resolved before"
    return arrow_type(expr.type)
