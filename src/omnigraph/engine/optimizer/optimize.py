"""The physical plan of a read: the operators of its logical plan in the cheapest order."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from omnigraph.engine.exec.adaptive import MeasuredHop, Replanned
from omnigraph.engine.optimizer import cost
from omnigraph.engine.optimizer.drop_implied_branches import drop_implied_branches
from omnigraph.engine.optimizer.drop_repeated_hops import drop_repeated_hops
from omnigraph.engine.optimizer.first_rows import FirstRows, first_rows_of
from omnigraph.engine.optimizer.fold_distinct import fold_distinct
from omnigraph.engine.optimizer.join_far_part import FarPart, far_parts
from omnigraph.engine.optimizer.parameter_classes import plain_values
from omnigraph.engine.optimizer.pattern import Pattern, Vertex, ordered, pattern_of
from omnigraph.engine.optimizer.search import Order, OrderSearch, Step
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.optimizer.share_blocks import share_blocks
from omnigraph.engine.plan.cardinality import CardinalityEstimates
from omnigraph.engine.plan.expected_rows import ExpectedOperator, ExpectedRows
from omnigraph.engine.plan.liveness import ignores_duplicates, required_variables
from omnigraph.engine.plan.order_choice import OrderChoice
from omnigraph.engine.plan.prepared_query import is_single_scan
from omnigraph.engine.plan.variable_types import bound_by, edge_types, node_types
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.plan import ir

_ORDERS_SHOWN = 3
_EARLY_SHARE = 0.7
"""The start at the ordered variable is preferred if it is not much more expensive: its cost has an upper bound."""
_ONCE_SHARE = 0.5
"""An optional block runs once if that costs at most this share: its rows are all materialised."""
_JOIN_SHARE = 0.5
"""The rest of a match is joined with a part that is found from its far end if that costs at most this share."""
_DELAY_SHARE = 0.5
"""A negation waits for a later operator that leaves at most this share of the rows."""


@dataclass(frozen=True)
class PhysicalPlan:
    """A plan to execute and how it was chosen."""

    plan: ir.QueryIR
    choice: OrderChoice | None
    """None if there was nothing to choose, or nothing was to be compared."""
    expected: ExpectedRows | None = None
    """The estimated rows; None if there was nothing to choose."""


def optimize(
    plan: ir.QueryIR,
    statistics: GraphStatistics,
    values: Mapping[str, Any] | None = None,
    *,
    compare: bool = False,
) -> PhysicalPlan:
    """Return the cheapest plan with the results of a logical plan; with `compare`, also the best alternatives.

    `values` are values of parameters, as given, that the plan is made for. It is correct for all other values too.
    """
    if is_single_scan(plan):
        return PhysicalPlan(fold_distinct(plan, statistics.catalog), None)
    if isinstance(plan.pipeline[0], ir.Stage):
        return _after_stage(plan, plan.pipeline[0], statistics, values)
    known = plain_values(values or {})
    optimizer = _Optimizer(statistics, node_types(plan.pipeline), edge_types(plan.pipeline), known)
    live = required_variables(plan.group_exprs) if plan.is_aggregate else None
    found = optimizer.pipeline(
        plan.pipeline,
        live,
        1.0,
        frozenset(),
        compare=compare,
        first=first_rows_of(plan),
        distinct=ignores_duplicates(plan),
    )
    folded = fold_distinct(replace(plan, pipeline=share_blocks(found.pipeline)), statistics.catalog)
    return PhysicalPlan(folded, found.choice, found.expected)


def _after_stage(
    plan: ir.QueryIR, stage: ir.Stage, statistics: GraphStatistics, values: Mapping[str, Any] | None
) -> PhysicalPlan:
    """Return the cheapest plan of a part of a read and of the stage that it starts from.

    The variables of the stage are bound before the part; the estimated rows of the stage are its rows. A stage is not
    planned again, so no rows are expected before it.
    """
    known = plain_values(values or {})
    inner = optimize(stage.query, statistics, values)
    chosen = replace(stage, query=inner.plan)
    rows = CardinalityEstimates(replace(plan, pipeline=(stage,)), statistics, known).after(stage)
    first = ExpectedOperator(stage, rows, math.inf, inner.expected)
    rest = plan.pipeline[1:]
    if not rest:
        return PhysicalPlan(replace(plan, pipeline=(chosen,)), None, ExpectedRows(math.inf, (first,)))
    optimizer = _Optimizer(statistics, node_types(plan.pipeline), edge_types(plan.pipeline), known)
    live = required_variables(plan.group_exprs) if plan.is_aggregate else None
    found = optimizer.pipeline(rest, live, rows, frozenset(stage.variables), distinct=ignores_duplicates(plan))
    pipeline = (chosen, *share_blocks(found.pipeline))
    expected = None if found.expected is None else ExpectedRows(math.inf, (first, *found.expected.operators))
    return PhysicalPlan(replace(plan, pipeline=pipeline), None, expected)


class RestOptimizer:
    """Plans the rest of a match that has begun."""

    def __init__(self, plan: ir.QueryIR, statistics: GraphStatistics, values: Mapping[str, Any]) -> None:
        types, edges = node_types(plan.pipeline), edge_types(plan.pipeline)
        self._optimizer = _Optimizer(statistics, types, edges, plain_values(values))

    def rest(
        self,
        pipeline: ir.Pipeline,
        bound: frozenset[str],
        rows: int,
        live: frozenset[str] | None,
        measured: MeasuredHop | None,
        *,
        joins: bool,
    ) -> Replanned | None:
        """Return some operators in their cheapest order for `rows` rows; None if their order is fixed."""
        found = self._optimizer.rest(pipeline, bound, float(rows), live, measured, joins=joins)
        return None if found is None or found.expected is None else Replanned(found.pipeline, found.expected)


@dataclass(frozen=True)
class Candidate:
    """One of several plans of a query and its estimated cost."""

    plan: ir.QueryIR
    cost: float


def candidate_plans(plan: ir.QueryIR, statistics: GraphStatistics, count: int, random: Random) -> list[Candidate]:
    """Return the cheapest plan, then plans in random orders without repeats, to compare estimates with measurements."""
    optimizer = _Optimizer(statistics, node_types(plan.pipeline), edge_types(plan.pipeline), {})
    live = required_variables(plan.group_exprs) if plan.is_aggregate else None
    pattern = pattern_of(plan.pipeline, node_types(plan.pipeline))
    assert pattern is not None, "the order of steps of paths is fixed"
    pattern = drop_repeated_hops(pattern)
    search = OrderSearch(pattern, statistics, Selectivity(statistics, node_types(plan.pipeline)), live)
    orders = [search.best(), *(search.random(random) for _ in range(4 * count))]
    different: dict[object, Order] = {}
    for order in orders:
        different.setdefault(tuple((step.vertex, step.hop) for step in order.steps), order)
    return [
        Candidate(replace(plan, pipeline=optimizer.emitted(pattern, order, 1.0, frozenset()).pipeline), order.cost)
        for order in [*different.values()][: count + 1]
    ]


@dataclass(frozen=True)
class _Optimized:
    pipeline: ir.Pipeline
    rows: float
    cost: float
    choice: OrderChoice | None = None
    expected: ExpectedRows | None = None


class _Operators:
    """Operators and their estimates, appended one by one."""

    def __init__(self, before: float) -> None:
        self._before = before
        self._ops: list[ir.Op] = []
        self._expected: list[ExpectedOperator] = []

    def add(
        self,
        op: ir.Op,
        rows: float = math.inf,
        followed: float = math.inf,
        *,
        given: ir.Op | None = None,
        inner: ExpectedRows | None = None,
    ) -> None:
        self._ops.append(op)
        self._expected.append(ExpectedOperator(op if given is None else given, rows, followed, inner))

    def optimized(self, rows: float, spent: float) -> _Optimized:
        expected = ExpectedRows(self._before, tuple(self._expected))
        return _Optimized(tuple(self._ops), rows, spent, expected=expected)


class _Optimizer:
    def __init__(
        self,
        statistics: GraphStatistics,
        types: Mapping[str, str],
        edge_types: Mapping[str, str],
        values: Mapping[str, Any],
    ) -> None:
        self._statistics = statistics
        self._types = types
        self._edge_types = edge_types
        self._selectivity = Selectivity(statistics, types, edge_types, values)
        self._bound_at: dict[str, int] = {}
        """The position at which each variable is bound."""

    def pipeline(
        self,
        pipeline: ir.Pipeline,
        live: frozenset[str] | None,
        outer_rows: float,
        outer: frozenset[str],
        *,
        compare: bool = False,
        first: FirstRows | None = None,
        distinct: bool = False,
    ) -> _Optimized:
        """Return a pipeline in its cheapest order, for `outer_rows` rows with the variables `outer`.

        With `distinct`, the rows are a set.
        """
        pattern = pattern_of(pipeline, self._types)
        if pattern is None:
            return _Optimized(pipeline, outer_rows, math.inf)
        pattern = self._simplified(pattern, live if distinct else None)
        return self._of_pattern(pattern, live, outer_rows, outer, compare=compare, first=first)

    def rest(
        self,
        pipeline: ir.Pipeline,
        outer: frozenset[str],
        rows: float,
        live: frozenset[str] | None,
        measured: MeasuredHop | None,
        *,
        joins: bool,
    ) -> _Optimized | None:
        """Return the rest of a pipeline in its cheapest order for `rows` rows; None if its order is fixed.

        With `joins`, a part of the pattern may be found from its far end and joined.
        """
        pattern = pattern_of(pipeline, self._types)
        if pattern is None:
            return None
        pattern = self._simplified(pattern, None)
        best = self._of_pattern(pattern, live, rows, outer, measured=measured)
        limit = best.cost * _JOIN_SHARE
        for part in far_parts(pattern) if joins else ():
            found = self._joined(part, live, rows, outer)
            if found.cost < limit:
                best, limit = found, found.cost
        return best

    def _joined(self, part: FarPart, live: frozenset[str] | None, rows: float, outer: frozenset[str]) -> _Optimized:
        """Return a join with a part that is found from its far end, then the rest of the pattern."""
        on = frozenset(part.outer_vars)
        later = None
        if live is not None:
            used = {var for one in part.rest.filters for var in ir.variables_of(one.condition)}
            used.update(var for negation in part.rest.negations for var in negation.outer_vars)
            used.update(var for optional in part.rest.optionals for var in optional.outer_vars)
            later = on | (part.variables & (used | live))
        once = self._of_pattern(part.pattern, later, 1.0, frozenset())
        joined = rows * once.rows / math.prod(self._size(var) for var in on)
        rest = self._of_pattern(part.rest, live, joined, outer | part.variables)
        assert rest.expected is not None
        op = ir.InnerJoin(part.outer_vars, once.pipeline)
        first = ExpectedOperator(op, joined, math.inf, once.expected)
        spent = once.cost + once.rows * cost.ROW + rows * cost.MATCH + joined * cost.ROW + rest.cost
        expected = ExpectedRows(rows, (first, *rest.expected.operators))
        return _Optimized((op, *rest.pipeline), rest.rows, spent, expected=expected)

    def _of_pattern(
        self,
        pattern: Pattern,
        live: frozenset[str] | None,
        outer_rows: float,
        outer: frozenset[str],
        *,
        compare: bool = False,
        first: FirstRows | None = None,
        measured: MeasuredHop | None = None,
    ) -> _Optimized:
        free = sum(not vertex.outer for vertex in pattern.vertices)
        if live is not None:
            later = (one.condition for one in pattern.filters)
            names = {vertex.var for vertex in pattern.vertices} | pattern.edge_variables.keys()
            names |= {path.op.var for path in pattern.paths}
            # Conditions on variables of optional blocks are evaluated at the end.
            live |= {
                var
                for condition in later
                if not (variables := set(ir.variables_of(condition))) <= names | outer
                for var in variables
            }
        search = OrderSearch(pattern, self._statistics, self._selectivity, live, outer_rows, measured)
        orders = search.by_start() if compare and free == len(pattern.vertices) else [search.best()]
        if first is not None:
            orders = self._with_first_rows(pattern, search, orders, first)
        chosen, orders = orders[0], orders[:_ORDERS_SHOWN]
        choice = None
        if len(orders) > 1:
            names_of = [_names(pattern, order) for order in orders]
            choice = OrderChoice(tuple(names_of), tuple(order.cost for order in orders))
        early = first is not None and bool(chosen.steps) and pattern.number(first.var) == chosen.steps[0].vertex
        few = float(first.wanted) if first is not None and early else math.inf
        found = self.emitted(pattern, chosen, outer_rows, outer, few)
        return found if choice is None else replace(found, choice=choice)

    def _simplified(self, pattern: Pattern, live: frozenset[str] | None) -> Pattern:
        """Return a pattern without what it repeats; with `live`, the variables used later, the rows are a set."""
        pattern = drop_repeated_hops(pattern)
        if live is not None:
            pattern = drop_implied_branches(pattern, live)
        return self._with_cheap_filters_first(pattern)

    def _with_cheap_filters_first(self, pattern: Pattern) -> Pattern:
        """Order the conditions of each vertex: those that exclude the most rows for their cost come first."""
        if all(len(vertex.filters) < 2 for vertex in pattern.vertices):
            return pattern

        def rank(condition: ir.Condition) -> float:
            if self._selectivity.is_key(condition):
                return -math.inf
            return (self._selectivity.of(condition) - 1) / cost.condition_cost(condition)

        vertices = tuple(
            vertex if len(vertex.filters) < 2 else replace(vertex, filters=tuple(sorted(vertex.filters, key=rank)))
            for vertex in pattern.vertices
        )
        return replace(pattern, vertices=vertices)

    def _with_first_rows(
        self, pattern: Pattern, search: OrderSearch, orders: list[Order], first: FirstRows
    ) -> list[Order]:
        """Compare the orders with one that starts at the variable that determines the first rows.

        The other orders match all rows before they rank them. This one ranks the nodes of one variable and matches the
        rest for the best of them.
        """
        start = pattern.number(first.var)
        if start is None:
            return orders
        complete = [replace(order, cost=order.cost + order.rows * cost.RANK) for order in orders]
        early = search.best(start)
        scan = early.steps[0]
        rest = early.cost - scan.cost
        passing = min(early.rows / scan.rows, 1.0) if scan.rows else 1.0
        ranked = scan.rows * (1.0 if first.ranked is None else self._selectivity.coverage(first.ranked))
        part = min(first.wanted / max(ranked * passing, 1e-9), 1.0)
        spent = scan.cost + ranked * cost.RANK + rest * part * min(ranked / max(scan.rows, 1e-9), 1.0)
        if first.fused and (len(early.steps) > 2 or pattern.negations or pattern.filters):
            # The ranks depend on all nodes with a match, which are found first.
            exists = OrderSearch(pattern, self._statistics, self._selectivity, frozenset({first.var}))
            spent += exists.best(start).cost
        found = replace(early, cost=spent * _EARLY_SHARE)
        kept = [order for order in complete if order.steps[0].vertex != start]
        return sorted([found, *kept], key=lambda order: order.cost)

    # -- operators -------------------------------------------------------------------------------

    def emitted(
        self, pattern: Pattern, order: Order, outer_rows: float, outer: frozenset[str], few: float = math.inf
    ) -> _Optimized:
        """Return the operators of an order with their estimates.

        Optional blocks extend `few` rows at most.
        """
        bound = set(outer) | {vertex.var for vertex in pattern.vertices if vertex.outer}
        filters, negations = list(pattern.filters), list(pattern.negations)
        left = [step.matched for step in order.steps]
        ops = _Operators(outer_rows)
        share, spent = 1.0, order.cost

        def place(rows: float, fewest: float) -> None:
            """Append the conditions and negations whose variables are bound."""
            nonlocal share, spent
            for one in [one for one in filters if bound.issuperset(ir.variables_of(one.condition))]:
                filters.remove(one)
                ops.add(one, rows * share)
            for negation in [one for one in negations if bound.issuperset(one.outer_vars)]:
                if fewest <= rows * _DELAY_SHARE:
                    continue
                negations.remove(negation)
                op, passing, extra, inner = self._negation(negation, rows * share)
                share *= passing
                ops.add(op, rows * share, given=negation, inner=inner)
                spent += extra

        place(outer_rows, min(left, default=math.inf))
        for at, step in enumerate(order.steps):
            made = [*self._step(pattern, step, bound)]
            for op in made:
                # The rows before the checks of a step are not estimated.
                rows = step.matched * share if op is made[-1] else math.inf
                ops.add(op, rows, step.followed * share if op is made[0] and step.vertex >= 0 else math.inf)
                for var in bound_by(op):
                    bound.add(var)
                    self._bound_at.setdefault(var, len(self._bound_at))
            place(step.matched, min(left[at + 1 :], default=math.inf))
        rows = (left[-1] if left else outer_rows) * share
        for optional in pattern.optionals:
            matched, inner = self._optional(optional, min(rows, few), frozenset(bound))
            ops.add(matched, given=optional, inner=inner)
            bound.update(optional.variables)
            place(rows, math.inf)
        for one in filters:
            ops.add(one)
        for negation in negations:
            op, passing, extra, inner = self._negation(negation, rows)
            ops.add(op, given=negation, inner=inner)
            rows *= passing
            spent += extra
        return ops.optimized(rows, spent)

    def _step(self, pattern: Pattern, step: Step, bound: Collection[str]) -> Iterator[ir.Op]:
        vertices = pattern.vertices
        known = {*bound, vertices[step.vertex].var} if step.vertex >= 0 else {*bound}
        if step.vertex >= 0:
            if step.hop is None:
                vertex = vertices[step.vertex]
                yield ir.NodeScan(vertex.var, vertex.type_name, vertex.filters)
            else:
                hop = pattern.hops[step.hop]
                yield hop.expand(vertices, hop.other(step.vertex), bound=False)
        searches = [pattern.paths[at] for at in step.paths]
        if step.vertex < 0 and searches:
            # The search binds the ends of the hops that are checked.
            search = searches.pop(0).search(vertices, known)
            known.update(bound_by(search))
            yield search
        for at in step.checks:
            hop = pattern.hops[at]
            # The variable bound first has the fewest different values.
            yield hop.expand(vertices, min(hop.ends, key=lambda end: self._position(vertices[end])), bound=True)
        for path in searches:
            yield path.search(vertices, known)

    def _position(self, vertex: Vertex) -> tuple[int, str]:
        return self._bound_at.get(vertex.var, len(self._bound_at)), vertex.var

    # -- negations -------------------------------------------------------------------------------

    def _negation(self, op: ir.AntiJoin, rows: float) -> tuple[ir.AntiJoin, float, float, ExpectedRows | None]:
        """Return a negation in its cheapest form, the share of rows that it leaves, its cost and its estimates."""
        outer = frozenset(op.outer_vars)
        combinations = min(rows, math.prod(self._size(var) for var in op.outer_vars))
        each = self.pipeline(op.inner, frozenset(), combinations, outer, distinct=True)
        passing = math.exp(-min(each.rows / max(combinations, 1e-9), 50.0)) if math.isfinite(each.cost) else 0.5
        passing = min(max(passing, 0.02), 0.98)
        once = self._independent(op)
        if once is not None and once.cost + rows * cost.MATCH < each.cost:
            found = replace(op, inner=once.pipeline, independent=True)
            return found, passing, once.cost + rows * cost.MATCH, once.expected
        return replace(op, inner=each.pipeline), passing, each.cost + rows * cost.SOURCE, each.expected

    def _optional(self, op: ir.LeftJoin, rows: float, outer: frozenset[str]) -> tuple[ir.LeftJoin, ExpectedRows | None]:
        """Return an optional block in its cheapest form, and its estimates."""
        each = self.pipeline(op.inner, None, rows, outer)
        once = self._independent(op) if math.isfinite(each.cost) else None
        if once is not None and once.cost + once.rows * cost.ROW + rows * cost.MATCH < each.cost * _ONCE_SHARE:
            return replace(op, inner=once.pipeline, independent=True), once.expected
        return replace(op, inner=each.pipeline), each.expected

    def _independent(self, op: ir.AntiJoin | ir.LeftJoin) -> _Optimized | None:
        """Return the inner pipeline as one that binds the outer variables; None if hops do not bind all of them."""
        pattern = pattern_of(op.inner, self._types)
        if pattern is None or pattern.optionals or pattern.paths:
            return None
        outer = {vertex.var for vertex in pattern.vertices if vertex.outer}
        if outer != set(op.outer_vars) or any(var not in self._types for var in outer):
            return None
        own: dict[str, list[ir.Condition]] = {}
        rest: list[ir.Filter] = []
        for one in pattern.filters:
            variables = set(ir.variables_of(one.condition))
            if len(variables) == 1 and variables <= outer:
                own.setdefault(variables.pop(), []).append(one.condition)
            else:
                rest.append(one)
        vertices = tuple(
            Vertex(vertex.var, vertex.type_name, ordered((*vertex.filters, *own.get(vertex.var, ()))))
            for vertex in pattern.vertices
        )
        live = frozenset(op.outer_vars) if isinstance(op, ir.AntiJoin) else None
        free = self._simplified(replace(pattern, vertices=vertices, filters=tuple(rest)), live)
        return self._of_pattern(free, live, 1.0, frozenset())

    def _size(self, var: str) -> float:
        if var in self._edge_types:
            return float(max(self._statistics.edges((self._edge_types[var],)), 1))
        type_name = self._types.get(var)
        return math.inf if type_name is None else float(max(self._statistics.nodes(type_name), 1))


def _names(pattern: Pattern, order: Order) -> tuple[str, ...]:
    """Return the variables of vertices in the order in which they are bound."""
    found: dict[int, None] = {}
    for step in order.steps:
        if step.vertex >= 0:
            found[step.vertex] = None
        for at in step.paths:
            found.update(dict.fromkeys(pattern.paths[at].ends))
    return tuple(pattern.vertices[at].var for at in found)
