"""A read query as joins of frames, for graphs larger than a machine.

A row of the match is a row of a frame: the ids of its variables, and those of their properties that something later
asks for. Scans, and whatever looks at values, run in the workers (`scans`, `evaluation`); what Spark does is what it
is good at: joins by id, distinct pairs, groups, order and limit.

Ranked searches, nodes of several types and paths are left to the engine in process.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine.plan.limit_offset import cut
from omnigraph.errors import Hint, InputError
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Watch
from omnigraph.query.plan import ir
from omnigraph.query.syntax.ast import ANONYMOUS
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.aggregates import total_of, total_type
from omnigraph.spark.arrow_interop import from_wire, spark_name
from omnigraph.spark.arrow_udfs import (
    Column,
    Conditions,
    Step,
    StepTasks,
    by_id,
    in_workers,
    nodes_of,
    props_of,
    seen_by,
    shown_in,
)
from omnigraph.spark.cancellable_action import run_action
from omnigraph.spark.hops import Pairs, edge_pairs, reached
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
    """The result of a read on the snapshot `job` pins; equal to what `engine.exec.executor` gives."""
    _refuse(plan, catalog)
    plan = cut(plan, params)
    return _Lowering(spark, plan, catalog, job, {**params, ir.NOW: now_ms}, watch).run()


def _refuse(plan: ir.QueryIR, catalog: Catalog) -> None:
    """Refuse what is left to the engine in process, wherever in the plan it is."""
    for node in nodes_of(plan):
        match node:
            case ir.Nearest() | ir.Bm25() | ir.Rrf():
                # A worker sees some rows only, and would rank by those.
                what = "ranks by a search"
            case ir.NodeScan() if node.type_name not in catalog.nodes:
                # Frames tell nodes by their id alone.
                what = "asks for nodes of several types"
            case ir.Expand() if node.src_type is not None:
                what = "asks for nodes of several types"
            case ir.FindPaths():
                what = "looks for paths"
            case _:
                continue
        raise InputError(
            f"query '{plan.name}' {what}, which Spark does not do",
            code="not_on_spark",
            hint=Hint("run it with engine='memory'", cli="run it with --engine memory"),
        )


@dataclass(frozen=True)
class _Rows:
    """The match so far: a frame, and where it has what. Without a frame it is one row that binds nothing."""

    frame: DataFrame | None = None
    columns: Mapping[tuple[str, str], Column] = field(default_factory=dict)

    def name(self, var: str, prop: str = _ID) -> str:
        """The column of a property."""
        return self.columns[var, prop].name

    def with_frame(self, frame: DataFrame) -> _Rows:
        """Other rows of the same columns."""
        return _Rows(frame, self.columns)


@dataclass(frozen=True)
class _Shown:
    """Where the frame has a returned column; an entity is put together from its fields."""

    column: Column
    fields: Mapping[str, Column] = field(default_factory=dict)

    def read(self, given: pa.Table) -> pa.Array:
        """The column as it is stored."""
        if not self.fields:
            return from_wire(one_array(given[self.column.name]), self.column.type)
        parts = {name: from_wire(one_array(given[column.name]), column.type) for name, column in self.fields.items()}
        # A node of an optional block may not be there.
        return pa.StructArray.from_arrays(list(parts.values()), names=list(parts), mask=parts[_ID].is_null())


class _Lowering:
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
        self.watch = watch
        self._numbers = count()
        self._carried = _carried(plan)

    def run(self) -> pa.Table:
        """The result."""
        rows = self._pipeline(self.plan.pipeline, _Rows())
        return self._grouped(rows) if self.plan.is_aggregate else self._listed(rows)

    # -- the match -------------------------------------------------------------------------------

    def _pipeline(self, pipeline: ir.Pipeline, rows: _Rows) -> _Rows:
        for op in pipeline:
            match op:
                case ir.NodeScan():
                    rows = self._scan(op, rows)
                case ir.Expand():
                    rows = self._expand(op, rows)
                case ir.FindPaths():
                    raise AssertionError("paths are refused before")
                case ir.Filter():
                    rows = rows.with_frame(self._step(rows, conditions=(op.condition,)))
                case ir.AntiJoin():
                    rows = self._anti_join(op, rows)
                case ir.LeftJoin():
                    rows = self._left_join(op, rows)
                case _:
                    assert_never(op)
        return rows

    def _table(
        self, key: str, var: str, filters: tuple[ir.Condition, ...], props: Iterable[str]
    ) -> tuple[DataFrame, dict[tuple[str, str], Column]]:
        """The entities of a variable that pass their own conditions, with some of their columns."""
        wanted = {prop: self._new_name() for prop in dict.fromkeys([_ID, *props])}
        conditions = Conditions(var, filters, self.params) if filters else None
        scan = Scan(self.job, key, wanted, conditions=conditions)
        types = scan.schema
        columns = {(var, prop): Column(name, types.field(name).type) for prop, name in wanted.items()}
        return scan.frame(self.spark), columns

    def _scan(self, op: ir.NodeScan, rows: _Rows) -> _Rows:
        frame, columns = self._table(TableKey.node(op.type_name), op.var, op.filters, self._carried.get(op.var, ()))
        joined = frame if rows.frame is None else rows.frame.crossJoin(frame)
        return _Rows(joined, {**rows.columns, **columns})

    def _expand(self, op: ir.Expand, rows: _Rows) -> _Rows:
        assert rows.frame is not None, "a hop starts at a variable that is bound"
        if op.edge_var is not None:
            return self._expand_edges(op, rows)
        pairs = self._pairs(op, rows)
        near = self.f.col(rows.name(op.src_var)) == self.f.col(pairs.near)
        if op.dst_bound:
            far = self.f.col(rows.name(op.dst_var)) == self.f.col(pairs.far)
            return rows.with_frame(rows.frame.join(pairs.frame, near & far, "left_semi"))
        joined = rows.frame.join(pairs.frame, near).drop(pairs.near)
        return self._arrive(op, _Rows(joined, rows.columns), pairs.far)

    def _pairs(self, op: ir.Expand, rows: _Rows) -> Pairs:
        """Which ends a hop joins, each pair once."""
        assert rows.frame is not None
        pairs = edge_pairs(self.spark, self.job, op.edge_types, op.direction, self._new_name)
        if op.max_hops < op.min_hops:
            return Pairs(pairs.frame.limit(0), pairs.near, pairs.far)
        if (op.min_hops, op.max_hops) == (1, 1):
            return pairs
        sources = rows.frame.select(rows.name(op.src_var)).distinct()
        return reached(
            pairs, sources, op.min_hops, op.max_hops, op.backward, self._new_name, self._put_down, self._is_empty
        )

    def _expand_edges(self, op: ir.Expand, rows: _Rows) -> _Rows:
        assert op.edge_var is not None
        assert rows.frame is not None
        props = [*self._carried.get(op.edge_var, ()), "src", "dst"]
        edges, columns = self._table(TableKey.edge(op.edge_type), op.edge_var, op.edge_filters, props)
        if op.max_hops < op.min_hops:
            edges = edges.limit(0)
        near, far = self._new_name(), self._new_name()
        from_, to = (columns[op.edge_var, end].name for end in _ENDS[op.direction])
        walked = edges.withColumn(near, self.f.col(from_)).withColumn(far, self.f.col(to))
        if op.direction == "both":
            # A loop is one way only.
            other = edges.filter(self.f.col(from_) != self.f.col(to))
            walked = walked.unionAll(other.withColumn(near, self.f.col(to)).withColumn(far, self.f.col(from_)))
        meets = self.f.col(rows.name(op.src_var)) == self.f.col(near)
        if op.dst_bound:
            meets = meets & (self.f.col(rows.name(op.dst_var)) == self.f.col(far))
        joined = _Rows(rows.frame.join(walked, meets).drop(near), {**rows.columns, **columns})
        assert joined.frame is not None
        return joined.with_frame(joined.frame.drop(far)) if op.dst_bound else self._arrive(op, joined, far)

    def _arrive(self, op: ir.Expand, rows: _Rows, far: str) -> _Rows:
        """Bind the far node; its table is read only for what is asked of it, because an edge has both its ends."""
        assert rows.frame is not None
        props = self._carried.get(op.dst_var, ())
        here = Column(far, pa.utf8())
        if not props and not op.dst_filters:
            return _Rows(rows.frame, {**rows.columns, (op.dst_var, _ID): here})
        nodes, columns = self._table(TableKey.node(op.dst_type), op.dst_var, op.dst_filters, props)
        same = self.f.col(far) == self.f.col(columns[op.dst_var, _ID].name)
        return _Rows(rows.frame.join(nodes, same).drop(far), {**rows.columns, **columns})

    def _anti_join(self, op: ir.AntiJoin, rows: _Rows) -> _Rows:
        if not op.outer_vars:
            found = self._pipeline(op.inner, _Rows()).frame
            assert found is not None, "an inner match binds something"
            frame = rows.frame if rows.frame is not None else self.spark.range(1)
            return rows.with_frame(frame.join(found.limit(1), self.f.lit(True), "left_anti"))
        return rows.with_frame(self._joined(rows, *self._inner(op, rows), (), "left_anti"))

    def _left_join(self, op: ir.LeftJoin, rows: _Rows) -> _Rows:
        """What is not there has null for its id, and so for all its properties."""
        inner, outer = self._inner(op, rows)
        new = {key: column for key, column in inner.columns.items() if key[0] in op.variables}
        frame = self._joined(rows, inner, outer, [column.name for column in new.values()], "left")
        return _Rows(frame, {**rows.columns, **new})

    def _inner(self, op: ir.AntiJoin | ir.LeftJoin, rows: _Rows) -> tuple[_Rows, list[str]]:
        """The matches inside, each combination of the outer variables tried once; and the columns these are told by."""
        assert rows.frame is not None, "an inner match starts from what is bound outside"
        outer = {key: column for key, column in rows.columns.items() if key[0] in op.outer_vars}
        start = rows.frame.select(*(column.name for column in outer.values())).distinct()
        return self._pipeline(op.inner, _Rows(start, outer)), [rows.name(var) for var in op.outer_vars]

    def _joined(self, rows: _Rows, inner: _Rows, by: list[str], more: Sequence[str], how: str) -> DataFrame:
        """Rows and the matches of their combination."""
        assert rows.frame is not None
        assert inner.frame is not None
        other = {name: self._new_name() for name in by}
        found = inner.frame.select(*(self.f.col(name).alias(new) for name, new in other.items()), *more)
        if how == "left_anti":
            found = found.distinct()
        same = (self.f.col(name).eqNullSafe(self.f.col(new)) for name, new in other.items())
        return rows.frame.join(found, reduce(lambda a, b: a & b, same), how).drop(*other.values())

    def _step(
        self, rows: _Rows, conditions: tuple[ir.Condition, ...] = (), values: tuple[tuple[str, ir.Expr], ...] = ()
    ) -> DataFrame:
        """Let the workers look at values: keep rows, or add columns."""
        frame = rows.frame if rows.frame is not None else self.spark.range(1)
        conditions, values = by_id(conditions), tuple((name, in_workers(value)) for name, value in values)
        exprs = (*conditions, *(value for _, value in values))
        seen = {key: rows.columns[key] for expr in exprs for key in seen_by(expr)}
        step = Step(self.job, self.params, seen, conditions, values)
        added = [(name, spark_name(_type_of(expr))) for name, expr in values]
        fields = [*((f.name, f.dataType.simpleString()) for f in frame.schema.fields), *added]
        return frame.mapInArrow(StepTasks(step), ", ".join(f"`{name}` {kind}" for name, kind in fields))

    # -- the result ------------------------------------------------------------------------------

    def _valued(self, rows: _Rows, exprs: Iterable[ir.Expr], whole: Container[int] = ()) -> tuple[_Rows, list[Column]]:
        """The column of each expression; a node is known by its id, unless it is one of the `whole` ones."""
        found: list[Column] = []
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
                found.append(Column(self._new_name(), _type_of(expr)))
                computed.append((found[-1].name, expr))
        if computed:
            rows = rows.with_frame(self._step(rows, values=tuple(computed)))
        return rows, found

    def _listed(self, rows: _Rows) -> pa.Table:
        exprs = [self._resolved(column.expr) for column in self.plan.columns]
        keys = [self._resolved(key.expr) for key in self.plan.order_by]
        rows, found = self._valued(rows, [*exprs, *keys])
        assert rows.frame is not None
        frame = rows.frame
        if keys:
            named = sorted(var for var, prop in rows.columns if prop == _ID and not var.startswith(f"{ANONYMOUS}#"))
            ties = [self._sorted(rows.name(var)) for var in named]
            sorts = zip(found[len(exprs) :], self.plan.order_by, strict=True)
            frame = frame.orderBy(*(self._sorted(column.name, key.descending) for column, key in sorts), *ties)
        return self._result(frame, [self._shown(*one, rows) for one in zip(exprs, found, strict=False)])

    def _grouped(self, rows: _Rows) -> pa.Table:
        exprs = [self._resolved(expr) for expr in self.plan.group_exprs]
        # Of an aggregate the value to aggregate; `count($x)` counts rows, whatever `$x` is.
        arguments = [e.argument if isinstance(e, ir.Aggregate) else e for e in exprs]
        rows, values = self._valued(rows, arguments, [at for at, e in enumerate(exprs) if self._is_whole(e)])
        assert rows.frame is not None
        shown: list[_Shown] = []
        totals = []
        by: dict[str, None] = {}
        for expr, value in zip(exprs, values, strict=True):
            if isinstance(expr, ir.Aggregate):
                total = Column(self._new_name(), total_type(expr))
                totals.append(total_of(expr, value.name, self.f).alias(total.name))
                shown.append(_Shown(total))
            else:
                by[value.name] = None
                shown.append(_Shown(value) if self.plan.grouped else self._shown(expr, value, rows))
        beside = {column.name for one in shown for column in one.fields.values()} - set(by)
        totals += [self.f.first(self.f.col(name)).alias(name) for name in sorted(beside)]
        frame = rows.frame.groupBy(*by).agg(*totals) if totals else rows.frame.select(*by).distinct()
        groups = _Rows(frame, {(ir.GROUP, str(at)): one.column for at, one in enumerate(shown)})
        if self.plan.having:
            groups = groups.with_frame(self._step(groups, conditions=self.plan.having))
        return self._of_groups(groups, shown, list(by))

    def _is_whole(self, expr: ir.Expr) -> bool:
        """Whether a node that is a key or an argument is needed as a whole, and not only told by its id."""
        if isinstance(expr, ir.Aggregate):
            return expr.function == "collect"
        return bool(self.plan.grouped)

    def _of_groups(self, groups: _Rows, shown: list[_Shown], ties: list[str]) -> pa.Table:
        """What is returned of groups, in its order; `shown` where the columns are keys and aggregates as they are."""
        exprs = [column.expr for column in self.plan.columns] if self.plan.grouped else []
        keys = self.plan.group_order
        given = self.plan.group_exprs
        wanted = [ir.group_column(key, given[key]) if isinstance(key, int) else key for key, _ in keys]
        groups, found = self._valued(groups, [*exprs, *wanted])
        assert groups.frame is not None
        frame = groups.frame
        if exprs:
            shown = [_Shown(column) for column in found[: len(exprs)]]
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

    def _shown(self, expr: ir.Expr, column: Column, rows: _Rows) -> _Shown:
        if not isinstance(expr, ir.Entity):
            return _Shown(column)
        return _Shown(column, {name: rows.columns[expr.var, name] for name, _ in expr.type.fields})

    def _result(self, frame: DataFrame, shown: list[_Shown]) -> pa.Table:
        if self.plan.limit is not None:
            frame = frame.limit(self.plan.limit)
        names = list(dict.fromkeys(column.name for one in shown for column in (one.column, *one.fields.values())))
        given = run_action(self.spark, f"query {self.plan.name}", frame.select(*names).toArrow, watch=self.watch)
        return pa.Table.from_arrays(
            [one.read(given) for one in shown], names=[column.name for column in self.plan.columns]
        ).slice(self.plan.skip)

    def _new_name(self) -> str:
        """A name no column of the query has yet: joins need no more to tell sides apart."""
        return f"c{next(self._numbers)}"

    def _is_empty(self, frame: DataFrame) -> bool:
        return run_action(self.spark, f"query {self.plan.name}", frame.isEmpty, watch=self.watch)

    def _put_down(self, frame: DataFrame) -> DataFrame:
        """The rows, left on the cluster and without their history: else plans double with every step of a walk."""
        return run_action(self.spark, f"query {self.plan.name}", frame.localCheckpoint, watch=self.watch)


def _carried(plan: ir.QueryIR) -> dict[str, list[str]]:
    """Variable → the properties that are looked at outside its own scan."""
    found: dict[str, dict[str, None]] = {}

    def note(exprs: Any) -> None:
        for prop in props_of(exprs):
            found.setdefault(prop.var, {})[prop.name] = None

    def walk(pipeline: ir.Pipeline) -> None:
        for op in pipeline:
            if isinstance(op, ir.Filter):
                note(op.condition)
            elif isinstance(op, ir.AntiJoin | ir.LeftJoin):
                walk(op.inner)

    walk(plan.pipeline)
    note((plan.group_exprs, tuple(key.expr for key in plan.order_by)))
    for entity in (entity for expr in plan.group_exprs for entity in shown_in(expr)):
        found.setdefault(entity.var, {}).update(dict.fromkeys(name for name, _ in entity.type.fields))
    return {var: list(props) for var, props in found.items()}


def _type_of(expr: ir.Expr) -> pa.DataType:
    assert not isinstance(expr, ir.ColumnRef), "a reference has no column of its own"
    return arrow_type(expr.type)
