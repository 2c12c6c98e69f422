"""Plans of one query in random orders, to compare estimates with measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from omnigraph.engine.optimizer.drop_repeated_hops import drop_repeated_hops
from omnigraph.engine.optimizer.pattern import pattern_of
from omnigraph.engine.optimizer.pattern_optimizer import PatternOptimizer
from omnigraph.engine.optimizer.search import Order, OrderSearch
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.plan.liveness import required_variables
from omnigraph.engine.plan.variable_types import edge_types, node_types
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.plan import ir


@dataclass(frozen=True)
class Candidate:
    """One of several plans of a query and its estimated cost."""

    plan: ir.QueryIR
    cost: float


def candidate_plans(plan: ir.QueryIR, statistics: GraphStatistics, count: int, random: Random) -> list[Candidate]:
    """Return the cheapest plan, then plans in random orders without repeats, to compare estimates with measurements."""
    optimizer = PatternOptimizer(statistics, node_types(plan.pipeline), edge_types(plan.pipeline), {})
    live = required_variables(plan.group_exprs) if plan.is_aggregate else None
    pattern = pattern_of(plan.pipeline, node_types(plan.pipeline))
    assert pattern is not None, "the order of steps of paths and of long matches is fixed"
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
