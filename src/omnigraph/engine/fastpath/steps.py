"""Steps of a compiled chain. Each is compiled from one operator and works on columns of row numbers.

Live variables, numeric comparisons and the start of each hop are determined at compile time, so that a step consists of
a few calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.bfs import bounded_hops, distinct_nodes
from omnigraph.engine.adjacency.csr import contains
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.id_index import find_visible, id_of_key
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.expr.evaluator import Evaluator, against_constant
from omnigraph.engine.expr.predicates import make_test
from omnigraph.engine.plan.liveness import live_after
from omnigraph.engine.plan.point_lookup import id_tests
from omnigraph.engine.plan.variable_types import bound_by, node_types
from omnigraph.engine.search.searcher import Searcher
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.table_key import TableKey

_ROW = "_#row"


class TooManyRows(Exception):
    """Raised if a chain has too many rows."""


class ChainRows:
    """The intermediate rows: a column of row numbers for each live variable.

    The start node is the same in every row and has no column.
    """

    __slots__ = ("_tables", "_types", "columns", "context", "count", "params", "start", "times")

    def __init__(
        self,
        context: ExecutionContext,
        params: Mapping[str, Any],
        tables: Mapping[str, str],
        types: Mapping[str, str],
        start: int | None,
    ) -> None:
        self.context = context
        self.params = params
        self._tables = tables
        """Variable → the key of its table."""
        self._types = types
        """Variable → node type."""
        self.start = start
        self.count = 0 if start is None else 1
        self.columns: dict[str, Numbers] = {}
        self.times = 1
        """The number of rows of the match that each row represents, in a query that only counts rows."""

    def check_count(self, rows: int) -> None:
        """Raise `TooManyRows` above the row limit of a chain or of the query, whichever is lower."""
        if rows > tuning.current.chain_rows_max or rows > self.context.limits.rows_max:
            raise TooManyRows

    def check_steps(self, edges: int) -> None:
        """Raise `TooManyRows` if a step to a set of nodes follows more edges than a chain can hold."""
        if edges > tuning.current.chain_steps_max or edges > self.context.limits.rows_max:
            raise TooManyRows

    def numbered(self, name: str) -> ChainRows:
        """Return the rows with one more column: their positions."""
        rows = ChainRows(self.context, self.params, self._tables, self._types, self.start)
        rows.count = self.count
        rows.columns = {**self.columns, name: np.arange(self.count)}
        return rows

    def numbers(self, var: str) -> Numbers:
        """Return the row number of the entity of each row."""
        found = self.columns.get(var)
        if found is not None:
            return found
        start = self.start or 0
        return np.array((start,)) if self.count == 1 else np.full(self.count, start)

    def data(self, var: str) -> ColumnSource:
        """Return the table of a variable."""
        return self.context.table(self._tables[var])

    def bound(self, var: str) -> Binding:
        """Return a variable as a binding."""
        return Binding(self.data(var), self.numbers(var))

    def bindings(self, variables: Sequence[str]) -> BindingTable:
        """Return some variables as a binding table."""
        weight = None if self.times == 1 else np.full(self.count, self.times)
        return BindingTable(self.count, {var: self.bound(var) for var in variables}, weight)

    def evaluator(self) -> Evaluator:
        """Return an evaluator for expressions other than numeric comparisons."""
        catalog, searcher = self.context.catalog, Searcher(self.context.catalog, self.params, None, self._types)
        return Evaluator(catalog, self.params, searcher, self._types, bytes_max=self.context.bytes_max)

    def keep(self, mask: Mask, live: Sequence[str]) -> None:
        """Keep the selected rows and the live variables."""
        self.columns = {var: self.columns[var][mask] for var in live}
        self.count = len(self.columns[live[0]]) if live else int(np.count_nonzero(mask))


ChainStep = Callable[[ChainRows], None]
RowPredicate = Callable[[ChainRows], Mask]


def compile_steps(
    catalog: Catalog,
    start: str,
    pipeline: ir.Pipeline,
    at_end: frozenset[str],
    columns: tuple[str, ...],
    *,
    distinct: bool = False,
    counted: bool = False,
) -> list[ChainStep] | None:
    """Compile operators on rows with these columns; None if a chain does not support one of them.

    With `distinct`, the rows are a set: it does not matter how often a row occurs. With `counted`, a row may represent
    several rows.
    """
    steps: list[ChainStep] = []
    pipeline = tuple(_one_by_one(pipeline, catalog))
    types = node_types(pipeline)
    for op, live in zip(pipeline, live_after(pipeline, at_end), strict=True):
        kept = tuple(var for var in columns if var in live)
        keyed = _key_predicate(op, types, catalog) if isinstance(op, ir.Filter) else None
        if keyed is not None:
            steps.append(_filter(keyed, kept))
            columns = kept
            continue
        step = _times_degree(start, op, live) if counted and not distinct and kept == columns else None
        if step is None:
            step = _compile_step(catalog, start, op, columns, kept, live, distinct=distinct)
        if step is None:
            return None
        steps.append(step)
        columns = (*kept, *(var for var in bound_by(op) if var in live and var != start and var not in kept))
    return steps


def _compile_step(
    catalog: Catalog,
    start: str,
    op: ir.Op,
    columns: tuple[str, ...],
    kept: tuple[str, ...],
    live: frozenset[str],
    *,
    distinct: bool,
) -> ChainStep | None:
    match op:
        case ir.NodeScan():
            return _lookup(op, catalog, kept, arrives=op.var in live)
        case ir.Filter():
            return _filter(_row_predicate(op.condition), kept)
        case ir.AntiJoin():
            return _anti_join(catalog, start, op, columns, kept)
        case ir.Expand() if op.min_hops <= op.max_hops and op.src_type is None:
            if op.edge_var is not None:
                return _edge_hop(op, kept, live)
            if op.dst_bound:
                return _filter(_meets(start, op), kept) if _is_check(op) else None
            single = (op.min_hops, op.max_hops) == (1, 1)
            arrives = op.dst_var in live
            if not single:
                return _reach(op, kept, arrives=arrives)
            if distinct and not arrives:
                return _filter(_has_neighbour(op), kept)
            return _hop_to_set(op) if distinct and not kept else _hop(op, kept, arrives=arrives)
        case _:
            return None


def _one_by_one(pipeline: ir.Pipeline, catalog: Catalog) -> Iterator[ir.Op]:
    """Yield the same operators with each condition as its own filter, except the key of a scan."""
    for op in pipeline:
        keyed = next(id_tests(op, catalog), None) if isinstance(op, ir.NodeScan) else None
        if isinstance(op, ir.NodeScan) and keyed is not None:
            position = keyed[0]
            yield replace(op, filters=(op.filters[position],))
            yield from map(ir.Filter, op.filters[:position] + op.filters[position + 1 :])
        elif isinstance(op, ir.Expand) and (op.dst_filters or op.edge_filters):
            yield replace(op, dst_filters=(), edge_filters=())
            yield from map(ir.Filter, (*op.edge_filters, *op.dst_filters))
        else:
            yield op


def _is_check(op: ir.Expand) -> bool:
    """Return True if a hop only tests whether two nodes are connected."""
    plain = op.edge_var is None and op.src_type is None and not op.dst_filters and not op.edge_filters
    return op.dst_bound and plain and (op.min_hops, op.max_hops) == (1, 1)


# -- steps -------------------------------------------------------------------------------------------


def _lookup(op: ir.NodeScan, catalog: Catalog, kept: tuple[str, ...], *, arrives: bool) -> ChainStep | None:
    """A further node with a key; None if no condition gives the key. An absent node leaves no row."""
    keyed = next(id_tests(op, catalog), None)
    if keyed is None:
        return None
    _, prop, key = keyed

    def step(rows: ChainRows) -> None:
        value = rows.params[key.name] if isinstance(key, ir.ParamRef) else key.value
        id_ = id_of_key(value, prop.type)
        if id_ is None and value is not None:
            raise TooManyRows  # the executor compares the value with the column
        number = None if id_ is None else find_visible(rows.context.type_table(TableKey.node(op.type_name)), id_)
        if number is None:
            rows.count = 0
        rows.columns = {var: rows.columns[var][: rows.count] for var in kept}
        if arrives:
            rows.columns[op.var] = np.full(rows.count, number or 0)

    return step


def _hop(op: ir.Expand, kept: tuple[str, ...], *, arrives: bool) -> ChainStep:
    """One hop; `arrives` is True if the far end is used later."""

    def step(rows: ChainRows) -> None:
        neighbours = rows.context.hops(op.edge_type, op.also).neighbours(op.direction)
        sources = rows.numbers(op.src_var)
        if kept:
            positions, ends = neighbours.expand(sources, rows.check_count)
            rows.columns = {var: rows.columns[var][positions] for var in kept}
        elif arrives:
            ends = neighbours.far(sources, rows.check_count)
            rows.columns = {}
        else:
            rows.columns = {}
            rows.count = int(neighbours.degrees(sources).sum())
            return
        rows.count = len(ends)
        if arrives:
            rows.columns[op.dst_var] = ends

    return step


def _times_degree(start: str, op: ir.Op, live: frozenset[str]) -> ChainStep | None:
    """One hop from the start node to an unused end: every row represents as many rows; None for other operators."""
    if not isinstance(op, ir.Expand) or op.src_var != start or op.dst_var in live or op.dst_bound:
        return None
    if op.edge_var is not None or op.src_type is not None or (op.min_hops, op.max_hops) != (1, 1):
        return None

    def step(rows: ChainRows) -> None:
        neighbours = rows.context.hops(op.edge_type, op.also).neighbours(op.direction)
        degree = int(neighbours.degrees(np.array([rows.start]))[0])
        rows.times *= degree
        if not degree:
            rows.keep(np.zeros(rows.count, bool), tuple(rows.columns))

    return step


def _hop_to_set(op: ir.Expand) -> ChainStep:
    """One hop to the far end alone; every node is reached once."""

    def step(rows: ChainRows) -> None:
        neighbours = rows.context.hops(op.edge_type, op.also).neighbours(op.direction)
        ends = neighbours.far(rows.numbers(op.src_var), rows.check_steps)
        ends = distinct_nodes(ends, rows.data(op.dst_var).row_count)
        rows.columns = {op.dst_var: ends}
        rows.count = len(ends)

    return step


def _reach(op: ir.Expand, kept: tuple[str, ...], *, arrives: bool) -> ChainStep:
    """Bounded hops."""

    def step(rows: ChainRows) -> None:
        adjacency = rows.context.hops(op.edge_type, op.also)
        hops, limit = bounded_hops(op, adjacency), rows.context.check_size
        sources = rows.numbers(op.src_var)
        if len(sources) == 1 and not kept:
            ends = hops.reach_from(int(sources[0]), limit)
            rows.columns = {}
        else:
            positions, ends = hops.reach_rows(sources, limit)
            rows.columns = {var: rows.columns[var][positions] for var in kept}
        rows.count = len(ends)
        if arrives:
            rows.columns[op.dst_var] = ends

    return step


def _edge_hop(op: ir.Expand, kept: tuple[str, ...], live: frozenset[str]) -> ChainStep:
    """One hop with an edge variable."""
    edge = op.edge_var
    assert edge is not None

    def step(rows: ChainRows) -> None:
        adjacency = rows.context.adjacency(op.edge_type)
        positions, edges, ends = adjacency.edge_rows(op.direction).expand(rows.numbers(op.src_var), rows.check_count)
        if op.dst_bound:
            hits = ends == rows.numbers(op.dst_var)[positions]
            positions, edges, ends = positions[hits], edges[hits], ends[hits]
        rows.columns = {var: rows.columns[var][positions] for var in kept}
        rows.count = len(ends)
        if edge in live:
            rows.columns[edge] = edges
        if op.dst_var in live and not op.dst_bound:
            rows.columns[op.dst_var] = ends

    return step


def _filter(predicate: RowPredicate, kept: tuple[str, ...]) -> ChainStep:
    return lambda rows: rows.keep(predicate(rows), kept)


def _row_predicate(condition: ir.Condition) -> RowPredicate:
    """Compile a condition: numeric comparisons use numpy, other conditions the evaluator. The mask is True where it is
    true.
    """
    variables = tuple(dict.fromkeys(ir.variables_of(condition)))

    def evaluate(rows: ChainRows) -> Mask:
        return rows.evaluator().mask(condition, rows.bindings(variables))

    compared = against_constant(condition)
    if compared is None or compared[0].type.is_list or not (compared[0].type.is_integer or compared[0].type.is_float):
        return evaluate
    prop, op, right = compared

    def compare(rows: ChainRows) -> Mask:
        value = rows.params[right.name] if isinstance(right, ir.ParamRef) else right.value
        test = make_test(prop.name, prop.type, op, value)
        numbers = rows.bound(prop.var).plain(prop.name) if test.always is None else None
        return evaluate(rows) if numbers is None else test.of_numbers(numbers)

    return compare


def _key_predicate(op: ir.Filter, types: Mapping[str, str], catalog: Catalog) -> RowPredicate | None:
    """Return the test whether a node has a key: it is found by its key and compared by its row number.

    None if a condition is no such test.
    """
    (var,) = variables if len(variables := {*ir.variables_of(op.condition)}) == 1 else (None,)
    if var is None or var not in types:
        return None
    scan = ir.NodeScan(var, types[var], (op.condition,))
    keyed = next(id_tests(scan, catalog), None)
    if keyed is None:
        return None
    _, prop, key = keyed

    def compare(rows: ChainRows) -> Mask:
        value = rows.params[key.name] if isinstance(key, ir.ParamRef) else key.value
        id_ = id_of_key(value, prop.type)
        if id_ is None and value is not None:
            raise TooManyRows  # the executor compares the value with the column
        number = None if id_ is None else find_visible(rows.context.type_table(TableKey.node(scan.type_name)), id_)
        return np.zeros(rows.count, bool) if number is None else rows.numbers(scan.var) == number

    return compare


def _has_neighbour(op: ir.Expand) -> RowPredicate:
    """Return the test whether a hop leads anywhere."""

    def linked(rows: ChainRows) -> Mask:
        neighbours = rows.context.hops(op.edge_type, op.also).neighbours(op.direction)
        return neighbours.degrees(rows.numbers(op.src_var)) > 0

    return linked


def _meets(start: str, op: ir.Expand) -> RowPredicate:
    """Return the test whether the two ends of a hop are connected."""

    def connected(rows: ChainRows) -> Mask:
        neighbours = rows.context.hops(op.edge_type, op.also).neighbours(op.direction)
        ends = rows.numbers(op.dst_var)
        if op.src_var == start:
            return contains(np.sort(neighbours.far(np.array([rows.start]))), ends)
        return neighbours.connected(rows.numbers(op.src_var), ends)

    return connected


def _anti_join(
    catalog: Catalog, start: str, op: ir.AntiJoin, columns: tuple[str, ...], kept: tuple[str, ...]
) -> ChainStep | None:
    """Drop the rows that have a match of the inner operators."""
    if op.independent:
        return None
    first = op.inner[0] if len(op.inner) == 1 else None
    if isinstance(first, ir.Expand) and _is_check(first):
        meets = _meets(start, first)
        return _filter(lambda rows: ~meets(rows), kept)
    steps = compile_steps(catalog, start, op.inner, frozenset({_ROW}), (*columns, _ROW), distinct=True)
    if steps is None:
        return None

    def unmatched(rows: ChainRows) -> Mask:
        inner = rows.numbered(_ROW)
        for step in steps:
            step(inner)
        left = np.ones(rows.count, bool)
        left[inner.columns[_ROW]] = False
        return left

    return _filter(unmatched, kept)
