"""The operators of a pattern in their cheapest order, and its blocks in their cheapest form."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.engine import tuning
from omnigraph.engine.exec.adaptive import MeasuredHop
from omnigraph.engine.optimizer import cost
from omnigraph.engine.optimizer.drop_implied_branches import drop_implied_branches
from omnigraph.engine.optimizer.drop_repeated_hops import drop_repeated_hops
from omnigraph.engine.optimizer.first_rows import FirstRows
from omnigraph.engine.optimizer.join_far_part import FarPart, far_parts
from omnigraph.engine.optimizer.pattern import Pattern, Vertex, ordered, pattern_of
from omnigraph.engine.optimizer.search import Order, OrderSearch, Step
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.plan.expected_rows import ExpectedOperator, ExpectedRows
from omnigraph.engine.plan.order_choice import BlockChoice, OrderChoice
from omnigraph.engine.plan.variable_types import bound_by
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.plan import ir

_ORDERS_SHOWN = 3
_EARLY_SHARE = 0.7
"""The start at the ordered variable is preferred if it is not much more expensive: its cost has an upper bound."""
_ONCE_SHARE = 0.5
"""An optional block runs once if that costs at most this share: its rows are all materialised."""
_JOIN_SHARE = 0.5
"""The rest of a match is joined with a part that is found from its far end if that costs at most this share."""
_SEED_SHARE = 0.5
"""A block starts from the nodes of an outer variable if that costs at most this share of a run for all nodes."""
_DELAY_SHARE = 0.5
"""A negation waits for a later operator that leaves at most this share of the rows."""


@dataclass(frozen=True)
class OptimizedPattern:
    """Operators of a pattern in an order, their estimated rows and cost."""

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

    def optimized(self, rows: float, spent: float) -> OptimizedPattern:
        expected = ExpectedRows(self._before, tuple(self._expected))
        return OptimizedPattern(tuple(self._ops), rows, spent, expected=expected)


class PatternOptimizer:
    """Plans the patterns of one query: its match and its blocks."""

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
        self._depth = 0
        """The number of blocks around the pipeline that is planned."""
        self._bound_at: dict[str, int] = {}
        """The position at which each variable is bound."""
        self.blocks: list[tuple[ir.Op, BlockChoice]] = []
        """The planned blocks, those of discarded plans included."""

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
    ) -> OptimizedPattern:
        """Return a pipeline in its cheapest order, for `outer_rows` rows with the variables `outer`.

        With `distinct`, the rows are a set.
        """
        pattern = pattern_of(pipeline, self._types)
        if pattern is None:
            return OptimizedPattern(pipeline, outer_rows, math.inf)
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
    ) -> OptimizedPattern | None:
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

    def seeded(
        self, block: ir.Pipeline, seeds: Mapping[str, int], live: frozenset[str] | None
    ) -> tuple[str, OptimizedPattern] | None:
        """Return a block that runs once, for given nodes of the variable for which that is the cheapest, and this
        variable; None if all nodes cost little more. `seeds` are numbers of nodes.
        """
        pattern = pattern_of(block, self._types)
        if pattern is None:
            return None
        pattern = self._simplified(pattern, live)
        best, limit = None, self._of_pattern(pattern, live, 1.0, frozenset()).cost * _SEED_SHARE
        for var, rows in seeds.items():
            at = pattern.number(var)
            if at is None:
                continue
            given = pattern.vertices[at]
            vertices = (*pattern.vertices[:at], Vertex(var, given.type_name, outer=True), *pattern.vertices[at + 1 :])
            filters = (*pattern.filters, *map(ir.Filter, given.filters))
            seeded = replace(pattern, vertices=vertices, filters=filters)
            found = self._of_pattern(seeded, live, float(rows), frozenset({var}))
            if found.cost < limit:
                best, limit = (var, found), found.cost
        return best

    def _joined(
        self, part: FarPart, live: frozenset[str] | None, rows: float, outer: frozenset[str]
    ) -> OptimizedPattern:
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
        return OptimizedPattern((op, *rest.pipeline), rest.rows, spent, expected=expected)

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
    ) -> OptimizedPattern:
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
        chosen = self._ranked([search.best()], pattern, search, first)[0]
        choice = None
        if compare and chosen.steps and not any(vertex.outer for vertex in pattern.vertices):
            start = chosen.steps[0].vertex
            others = self._ranked(search.by_start(), pattern, search, first)
            orders = [chosen, *(order for order in others if order.steps[0].vertex != start)][:_ORDERS_SHOWN]
            if len(orders) > 1:
                bound = tuple(_names(pattern, order) for order in orders)
                choice = OrderChoice(bound, tuple(order.cost for order in orders))
        early = (
            first is not None
            and bool(chosen.steps)
            and (first.var is None or pattern.number(first.var) == chosen.steps[0].vertex)
        )
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

    def _ranked(
        self, orders: list[Order], pattern: Pattern, search: OrderSearch, first: FirstRows | None
    ) -> list[Order]:
        """Return orders, the cheapest first, with those of which only the first rows are matched.

        An order that starts at the variable that determines the first rows ranks its nodes and matches the rest for the
        best of them. The others match all rows before they rank them. Without an order of the query, every order
        matches the rest for some nodes of its first variable.
        """
        if first is None:
            return orders
        if first.var is None:
            known = {order.steps[0].vertex for order in orders}
            more = [search.best(start) for start in search.cheap_starts() if start not in known]
            return sorted((_until(first, order) for order in (*orders, *more)), key=lambda order: order.cost)
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
    ) -> OptimizedPattern:
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

        if filters or negations:
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
            if filters or negations:
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
        self._depth += 1
        each = self.pipeline(op.inner, frozenset(), combinations, outer, distinct=True)
        once = self._independent(op)
        self._depth -= 1
        passing = math.exp(-min(each.rows / max(combinations, 1e-9), 50.0)) if math.isfinite(each.cost) else 0.5
        passing = min(max(passing, 0.02), 0.98)
        each_cost = each.cost + rows * cost.SOURCE
        once_cost = math.inf if once is None else once.cost + rows * cost.MATCH
        found, chosen = op, each
        if once is not None and once_cost < each.cost:
            found, chosen = replace(op, independent=True), once
        found = replace(found, inner=chosen.pipeline)
        self._compared(found, each_cost, once_cost)
        return found, passing, once_cost if found.independent else each_cost, chosen.expected

    def _optional(self, op: ir.LeftJoin, rows: float, outer: frozenset[str]) -> tuple[ir.LeftJoin, ExpectedRows | None]:
        """Return an optional block in its cheapest form, and its estimates."""
        self._depth += 1
        each = self.pipeline(op.inner, None, rows, outer)
        once = self._independent(op) if math.isfinite(each.cost) else None
        self._depth -= 1
        once_cost = math.inf if once is None else once.cost + once.rows * cost.ROW + rows * cost.MATCH
        found, chosen = op, each
        if once is not None and once_cost < each.cost * _ONCE_SHARE:
            found, chosen = replace(op, independent=True), once
        found = replace(found, inner=chosen.pipeline)
        self._compared(found, each.cost, once_cost)
        return found, chosen.expected

    def _compared(self, op: ir.AntiJoin | ir.LeftJoin, each: float, once: float) -> None:
        """Record the costs of a block for each row and once for all rows."""
        kind = "without" if isinstance(op, ir.AntiJoin) else "optional"
        self.blocks.append((op, BlockChoice(kind, op.outer_vars, each, once, op.independent)))

    def _independent(self, op: ir.AntiJoin | ir.LeftJoin) -> OptimizedPattern | None:
        """Return the inner pipeline as one that binds the outer variables; None if hops do not bind all of them.

        Each of the two forms plans the blocks inside again, so the work doubles with each level: deep blocks have one.
        """
        if self._depth > tuning.current.nested_blocks_max:
            return None
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


def _until(first: FirstRows, order: Order) -> Order:
    """Return an order with its cost if it stops when it has the first rows."""
    scan = order.steps[0]
    matching = min(scan.rows, order.rows)
    part = min(first.wanted / max(matching, 1e-9), 1.0)
    return replace(order, cost=scan.cost + (order.cost - scan.cost) * part)


def _names(pattern: Pattern, order: Order) -> tuple[str, ...]:
    """Return the variables of vertices in the order in which they are bound."""
    found: dict[int, None] = {}
    for step in order.steps:
        if step.vertex >= 0:
            found[step.vertex] = None
        for at in step.paths:
            found.update(dict.fromkeys(pattern.paths[at].ends))
    return tuple(pattern.vertices[at].var for at in found)
