"""The physical plan of a read: the operators of its logical plan in the cheapest order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.engine.exec.adaptive import MeasuredHop, Replanned
from omnigraph.engine.optimizer.first_rows import first_rows_of
from omnigraph.engine.optimizer.fold_distinct import fold_distinct
from omnigraph.engine.optimizer.pattern_optimizer import PatternOptimizer
from omnigraph.engine.optimizer.share_blocks import share_blocks
from omnigraph.engine.plan.cardinality import CardinalityEstimates
from omnigraph.engine.plan.expected_rows import ExpectedOperator, ExpectedRows
from omnigraph.engine.plan.liveness import ignores_duplicates, required_variables
from omnigraph.engine.plan.order_choice import BlockChoice, OrderChoice
from omnigraph.engine.plan.prepared_query import is_single_scan
from omnigraph.engine.plan.variable_types import edge_types, node_types
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.plan import ir


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

    `values` are values of parameters, in stored form, that the plan is made for. It is correct for all other values.
    """
    if is_single_scan(plan):
        return PhysicalPlan(fold_distinct(plan, statistics.catalog), None)
    if isinstance(plan.pipeline[0], ir.Stage):
        return _after_stage(plan, plan.pipeline[0], statistics, values, compare=compare)
    optimizer = PatternOptimizer(statistics, node_types(plan.pipeline), edge_types(plan.pipeline), values or {})
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
    choice = _with_blocks(found.choice, found.pipeline, optimizer.blocks) if compare else None
    return PhysicalPlan(folded, choice, found.expected)


def _with_blocks(
    choice: OrderChoice | None, pipeline: ir.Pipeline, planned: list[tuple[ir.Op, BlockChoice]]
) -> OrderChoice | None:
    """Return the compared orders with the compared forms of the blocks of a pipeline; None if there are neither."""
    blocks = tuple(block for op in pipeline for made, block in planned if made is op)
    if not blocks:
        return choice
    return OrderChoice((), (), blocks) if choice is None else replace(choice, blocks=blocks)


def _after_stage(
    plan: ir.QueryIR,
    stage: ir.Stage,
    statistics: GraphStatistics,
    values: Mapping[str, Any] | None,
    *,
    compare: bool,
) -> PhysicalPlan:
    """Return the cheapest plan of a part of a read and of the stage that it starts from.

    The variables of the stage are bound before the part; the estimated rows of the stage are its rows. A stage is not
    planned again, so no rows are expected before it. The part has one start, so the orders of the stage are compared.
    """
    inner = optimize(stage.query, statistics, values, compare=compare)
    chosen = replace(stage, query=inner.plan)
    rows = CardinalityEstimates(replace(plan, pipeline=(stage,)), statistics, values).after(stage)
    first = ExpectedOperator(stage, rows, math.inf, inner.expected)
    rest = plan.pipeline[1:]
    if not rest:
        return PhysicalPlan(replace(plan, pipeline=(chosen,)), inner.choice, ExpectedRows(math.inf, (first,)))
    optimizer = PatternOptimizer(statistics, node_types(plan.pipeline), edge_types(plan.pipeline), values or {})
    live = required_variables(plan.group_exprs) if plan.is_aggregate else None
    found = optimizer.pipeline(rest, live, rows, frozenset(stage.variables), distinct=ignores_duplicates(plan))
    pipeline = (chosen, *share_blocks(found.pipeline))
    expected = None if found.expected is None else ExpectedRows(math.inf, (first, *found.expected.operators))
    return PhysicalPlan(replace(plan, pipeline=pipeline), inner.choice, expected)


class RestOptimizer:
    """Plans the rest of a match that has begun."""

    def __init__(self, plan: ir.QueryIR, statistics: GraphStatistics, values: Mapping[str, Any]) -> None:
        types, edges = node_types(plan.pipeline), edge_types(plan.pipeline)
        self._optimizer = PatternOptimizer(statistics, types, edges, values)

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

    def seeded(
        self, block: ir.Pipeline, seeds: Mapping[str, int], live: frozenset[str] | None
    ) -> tuple[str, Replanned] | None:
        """Return operators of a block for given nodes of one of some variables, and the variable; None if that does not
        pay.
        """
        found = self._optimizer.seeded(block, seeds, live)
        if found is None or found[1].expected is None:
            return None
        return found[0], Replanned(found[1].pipeline, found[1].expected)
