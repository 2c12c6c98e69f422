"""Reads that start at one node, compiled into a chain of steps.

A query about a node and its neighbourhood takes less time than the executor needs to start. Everything that depends on
the plan alone is therefore computed when the plan is prepared. The chain returns the same rows as the executor, which
tests verify. It returns to the executor if there are too many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrays import narrow_chunks
from omnigraph.engine import tuning
from omnigraph.engine.adjacency.bfs import distinct_nodes
from omnigraph.engine.cache.column_access import is_numeric, select_rows
from omnigraph.engine.cache.id_index import find_visible, id_of_key
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.exec.order_by import column_expr, row_order
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.fastpath.python_rows import PythonRows
from omnigraph.engine.fastpath.steps import ChainRows, ChainStep, TooManyRows, compile_steps
from omnigraph.engine.plan.limit_offset import apply_limit
from omnigraph.engine.plan.liveness import ignores_duplicates, required_variables
from omnigraph.engine.plan.plan_expressions import plan_expressions
from omnigraph.engine.plan.point_lookup import id_tests
from omnigraph.engine.plan.variable_types import bound_by
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog
from omnigraph.table_key import TableKey
from omnigraph.types import PropertyType

_KNOWN = (
    ir.Const, ir.ParamRef, ir.Prop, ir.Entity, ir.Compare, ir.Logic, ir.Not, ir.IsNull, ir.Arithmetic, ir.Negative,
    ir.Function, ir.Aggregate, ir.ColumnRef, ir.Object, ir.ListOf, ir.GroupValue,
)  # fmt: skip
"""Expressions that depend on the columns of their rows only."""

ResultFunction = Callable[[ChainRows], PythonRows | pa.Table]


@dataclass(frozen=True)
class Chain:
    """A compiled plan that starts at the node with a key."""

    start: str
    """The variable of the first node."""
    key: ir.Const | ir.ParamRef
    key_type: PropertyType
    tables: Mapping[str, str]
    """Variable → the key of its table."""
    types: Mapping[str, str]
    """Variable → node type."""
    steps: Sequence[ChainStep]
    end: ResultFunction

    def run(self, context: ExecutionContext, params: Mapping[str, Any]) -> PythonRows | pa.Table | None:
        """Return the result; None if the executor must compute it. The caller applies the watch of the query."""
        key = self.key
        value = params[key.name] if isinstance(key, ir.ParamRef) else key.value
        id_ = id_of_key(value, self.key_type)
        if id_ is None and value is not None:
            return None
        return self.run_from(None if id_ is None else self.find(context, id_), context, params)

    def find(self, context: ExecutionContext, id_: str) -> int | None:
        """Return the row of the start node with an id; None if there is none."""
        return find_visible(context.type_table(self.tables[self.start]), id_)

    def run_from(
        self, start: int | None, context: ExecutionContext, params: Mapping[str, Any]
    ) -> PythonRows | pa.Table | None:
        """Return the result for the start node in a row, None for no node; None if the executor must compute it."""
        rows = ChainRows(context, params, self.tables, self.types, start)
        try:
            for step in self.steps:
                if not rows.count:
                    break
                step(rows)
            return self.end(rows)
        except TooManyRows:
            return None


# -- compilation -------------------------------------------------------------------------------------


def compile_chain(plan: ir.QueryIR, catalog: Catalog, types: Mapping[str, str]) -> Chain | None:
    """Compile a plan; None if it does not start at a key or contains an unsupported expression or operator."""
    if not plan.pipeline or not all(map(_is_known, plan_expressions(plan))):
        return None
    scan, *rest = plan.pipeline
    if not isinstance(scan, ir.NodeScan) or (keyed := next(id_tests(scan, catalog), None)) is None:
        return None
    position, prop, key = keyed
    others = scan.filters[:position] + scan.filters[position + 1 :]
    at_end = required_variables(plan.group_exprs)
    if plan.order_by and not plan.is_aggregate:
        at_end |= {var for op in plan.pipeline for var in bound_by(op)}  # ties are ordered by ids
    distinct = ignores_duplicates(plan)
    ops = (*map(ir.Filter, others), *rest)
    steps = compile_steps(catalog, scan.var, ops, at_end, (), distinct=distinct, counted=plan.is_aggregate)
    if steps is None:
        return None
    tables: dict[str, str] = {var: TableKey.node(type_) for var, type_ in types.items()}
    tables |= dict(_edge_tables(plan.pipeline, catalog))
    return Chain(scan.var, key, prop.type, tables, types, steps, _result_function(plan, scan.var, tuple(at_end)))


def _edge_tables(pipeline: ir.Pipeline, catalog: Catalog) -> Iterator[tuple[str, str]]:
    for op in pipeline:
        if isinstance(op, ir.Expand) and op.edge_var is not None:
            yield op.edge_var, catalog.edges[op.edge_type].table_key
        elif isinstance(op, ir.AntiJoin):
            yield from _edge_tables(op.inner, catalog)


def _is_known(expr: ir.Expr) -> bool:
    if not isinstance(expr, _KNOWN) or (isinstance(expr, ir.ParamRef) and expr.name == ir.NOW):
        return False
    return all(map(_is_known, ir.parts_of(expr)))


# -- results -----------------------------------------------------------------------------------------


def _result_function(plan: ir.QueryIR, start: str, variables: tuple[str, ...]) -> ResultFunction:
    """Return the function that computes the result from rows with these variables."""
    if plan.is_aggregate:
        return _count_function(plan, start) or (
            lambda rows: _aggregate_rows(apply_limit(plan, rows.params), rows, variables)
        )
    exprs = [column_expr(plan, column.expr) for column in plan.columns]
    names = tuple(column.name for column in plan.columns)

    def table(rows: ChainRows) -> pa.Table:
        rows.check_count(rows.count)
        evaluator = rows.evaluator()
        bindings = rows.bindings(variables)
        bindings = bindings.take(_result_rows(apply_limit(plan, rows.params), bindings, evaluator))
        columns = [narrow_chunks(evaluator.value(expr, bindings)) for expr in exprs]
        return pa.Table.from_arrays(columns, names=list(names))

    props = [expr for expr in exprs if isinstance(expr, ir.Prop) and (_is_plain(expr.type) or _is_date(expr.type))]
    if len(props) != len(exprs) or plan.order_by or plan.is_cut:
        return table
    types = tuple(arrow_type(prop.type) for prop in props)
    properties: dict[str, list[str]] = {}
    for prop in props:
        properties.setdefault(prop.var, []).append(prop.name)

    def values(rows: ChainRows) -> PythonRows | pa.Table:
        count = rows.count if plan.limit is None else min(rows.count, plan.limit)
        if count > tuning.current.python_result_rows_max:
            return table(rows)
        columns: list[list[Any] | pa.Array] = []
        bound: dict[str, Binding] = {}
        for prop in props:
            if _is_date(prop.type):
                columns.append(_dates(prop, properties[prop.var], rows, count, bound))
                continue
            data = rows.data(prop.var)
            if prop.var == start and count and prop.var not in bound:
                column = data.column_for(prop.name, 1)
                if column is not None:
                    columns.append([column[rows.start].as_py()] * count)
                    continue
            columns.append(_values(prop, properties[prop.var], rows, count, bound))
        return PythonRows(names, types, tuple(columns))

    return values


def _values(
    prop: ir.Prop, together: Sequence[str], rows: ChainRows, count: int, bound: dict[str, Binding]
) -> list[Any]:
    """Return a property of the first `count` rows; properties of a variable that are not in memory are read together.

    `bound` keeps the variables with the properties that were read.
    """
    some = bound.get(prop.var)
    column = rows.data(prop.var).column_for(prop.name, count) if some is None else None
    values: list[Any]
    if column is not None:
        # There are few rows: no binding is made, and the values are taken at once.
        numbers = rows.numbers(prop.var)[:count]
        numeric = not column.null_count and is_numeric(column.type)
        values = column.to_numpy()[numbers].tolist() if numeric else column.take(pa.array(numbers)).to_pylist()
        return values
    some = _bound(prop.var, together, rows, count, bound)
    plain = some.plain(prop.name)
    values = plain.tolist() if plain is not None else some.column(prop.name).to_pylist()
    return values


def _dates(prop: ir.Prop, together: Sequence[str], rows: ChainRows, count: int, bound: dict[str, Binding]) -> pa.Array:
    """Return a Date or DateTime property of the first `count` rows, as `_values` does."""
    column = rows.data(prop.var).column_for(prop.name, count) if prop.var not in bound else None
    if column is not None:
        return select_rows(column, rows.numbers(prop.var)[:count])
    return _bound(prop.var, together, rows, count, bound).column(prop.name)


def _bound(var: str, together: Sequence[str], rows: ChainRows, count: int, bound: dict[str, Binding]) -> Binding:
    """Return a variable of the first `count` rows, which keeps the properties that are read together."""
    some = bound.get(var)
    if some is None:
        some = bound[var] = Binding(rows.data(var), rows.numbers(var)[:count])
        some.expect(together)
    return some


def _count_function(plan: ir.QueryIR, start: str) -> ResultFunction | None:
    """Return the result function of a plan that only counts its rows or its nodes; None for other plans."""
    if plan.having or plan.distinct or plan.is_cut or plan.limit == 0:
        return None
    exprs = [column.expr for column in plan.columns]
    names = tuple(column.name for column in plan.columns)
    types = tuple(pa.int64() for _ in names)
    if all(map(_counts_rows, exprs)):
        return lambda rows: PythonRows(names, types, tuple([rows.count * rows.times] for _ in names))
    var = _counted_node(exprs)
    if var is None or var == start:
        return None

    def count_nodes(rows: ChainRows) -> PythonRows:
        nodes = distinct_nodes(rows.numbers(var), rows.data(var).row_count) if rows.count else ()
        return PythonRows(names, types, tuple([len(nodes)] for _ in names))

    return count_nodes


def _counted_node(exprs: Sequence[ir.Expr]) -> str | None:
    """Return the variable whose distinct nodes all expressions count; None if there is none."""
    counted: set[str | None] = set()
    for expr in exprs:
        counts = isinstance(expr, ir.Aggregate) and expr.distinct and expr.function == "count" and expr.where is None
        node = expr.argument if counts and isinstance(expr, ir.Aggregate) else None
        counted.add(node.var if isinstance(node, ir.Entity) else None)
    return counted.pop() if len(counted) == 1 else None


def _aggregate_rows(plan: ir.QueryIR, rows: ChainRows, variables: tuple[str, ...]) -> pa.Table:
    from omnigraph.engine.exec.aggregate import aggregate  # noqa: PLC0415 (only for aggregates)

    rows.check_count(rows.count)
    return aggregate(plan, rows.bindings(variables), rows.evaluator()).slice(plan.skip)


def _result_rows(plan: ir.QueryIR, bindings: BindingTable, evaluator: Evaluator) -> Numbers:
    """Return the rows of the result in their order."""
    if plan.order_by:
        return row_order(plan, bindings, evaluator)[plan.skip :]
    return np.arange(
        min(plan.skip, bindings.count), bindings.count if plan.limit is None else min(plan.limit, bindings.count)
    )


def _counts_rows(expr: ir.Expr) -> bool:
    if not isinstance(expr, ir.Aggregate) or expr.function != "count" or expr.distinct:
        return False
    return isinstance(expr.argument, ir.Entity) and expr.where is None


def _is_plain(type_: PropertyType) -> bool:
    return type_.kind.is_python_value and not type_.is_list


def _is_date(type_: PropertyType) -> bool:
    """Return True for a Date or DateTime: its Python values differ from the stored ones."""
    return type_.kind.number is not None and not type_.is_list
