"""Cardinality estimates: rows after each operator of a plan, from table statistics.

They show where a query gets large before it runs and, beside the actual numbers, where an estimate is wrong. The
optimizer uses the same statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, assert_never

from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.plan.variable_types import edge_types, node_types
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.plan import ir

_STEPS = 3
"""The assumed number of edges of a path."""
_HOPS_MAX = 16
"""Lengths of a bounded hop that are added up."""


class CardinalityEstimates:
    """Estimated rows after each operator of a plan.

    `starts` are the rows that blocks which ran for given nodes were applied to, by the identity of the first operator.
    """

    def __init__(
        self,
        plan: ir.QueryIR,
        statistics: GraphStatistics,
        values: Mapping[str, Any] | None = None,
        starts: Mapping[int, float] | None = None,
    ) -> None:
        self._starts = starts or {}
        self._statistics = statistics
        self._selectivity = Selectivity(statistics, node_types(plan.pipeline), edge_types(plan.pipeline), values)
        self._after: dict[int, float] = {}
        rows = self._run(plan.pipeline, 1.0)
        if plan.is_aggregate:
            keys = [expr for expr in plan.group_exprs if not isinstance(expr, ir.Aggregate)]
            rows = rows**0.5 if keys else 1.0
        self.result = min(rows, rows if plan.limit is None else plan.limit)

    def after(self, op: ir.Op) -> float:
        """Return the estimated rows after an operator."""
        return self._after[id(op)]

    def _run(self, pipeline: ir.Pipeline, rows: float) -> float:
        for op in pipeline:
            match op:
                case ir.NodeScan():
                    rows *= self._statistics.nodes(op.type_name) * self._selectivity.share(op.filters)
                case ir.Expand():
                    rows *= self._hop(op)
                case ir.FindPaths():
                    rows *= self._paths(op)
                case ir.PathSteps():
                    rows *= _STEPS * (2 if op.both_ways else 1) * self._selectivity.share(op.filters)
                case ir.Filter():
                    rows *= self._selectivity.of(op.condition)
                case ir.LeftJoin():
                    rows = max(rows, self._run(op.inner, self._start(op, rows)))
                case ir.AntiJoin():
                    rows *= self._unmatched(op, rows)
                case ir.InnerJoin():
                    matches = self._run(op.inner, 1.0)
                    rows *= matches / math.prod(self._size(var) for var in op.outer_vars)
                case ir.Stage():
                    rows *= self._stage(op)
                case _:
                    assert_never(op)
            self._after[id(op)] = rows
        return rows

    def _start(self, op: ir.AntiJoin | ir.LeftJoin, rows: float) -> float:
        """Return the rows that the inner pipeline of a block is applied to."""
        if not op.independent:
            return rows
        return self._starts.get(id(op.inner[0]), 1.0) if op.inner else 1.0

    def _stage(self, op: ir.Stage) -> float:
        """Return the estimated rows of a stage; groups of nodes are not more than there are nodes that pass."""
        query = op.query
        rows = self._run(query.pipeline, 1.0)
        if query.is_aggregate:
            keys = [expr for expr in query.group_exprs if not isinstance(expr, ir.Aggregate)]
            if all(isinstance(key, ir.Entity) for key in keys):
                passing = (self._passing(key.var, query.pipeline) for key in keys if isinstance(key, ir.Entity))
                rows = min(rows, math.prod(passing))
            else:
                rows = rows**0.5
        rows *= self._selectivity.share(query.having)
        return rows if query.limit is None else min(rows, float(query.limit))

    def _unmatched(self, op: ir.AntiJoin, rows: float) -> float:
        """Return the share of rows without a match, if matches are spread at random."""
        matches = self._run(op.inner, self._start(op, rows))
        of = math.prod(self._size(var) for var in op.outer_vars) if op.independent else rows
        if all(isinstance(inner, ir.Filter) for inner in op.inner):
            return 1 - matches / max(of, 1e-9)
        return min(max(math.exp(-min(matches / max(of, 1e-9), 50.0)), 0.02), 0.98)

    def _passing(self, var: str, pipeline: ir.Pipeline) -> float:
        """Return the estimated nodes of a variable that pass the conditions of the operator that binds it."""
        for op in pipeline:
            match op:
                case ir.NodeScan(var=name, filters=filters) if name == var:
                    return self._size(var) * self._selectivity.share(filters)
                case ir.Expand(dst_var=name, dst_filters=filters) if name == var:
                    return self._size(var) * self._selectivity.share(filters)
        return self._size(var)

    def _size(self, var: str) -> float:
        return float(max(self._statistics.nodes(self._selectivity.type_of(var)), 1))

    def _hop(self, op: ir.Expand) -> float:
        """Return the factor by which a hop multiplies the rows."""
        edges = self._statistics.edges(op.edge_types) * (2 if op.direction == "both" else 1)
        far = self._statistics.nodes(op.dst_type)
        degree = edges / max(self._statistics.nodes(self._near(op)), 1)
        hops = range(op.min_hops, min(op.max_hops, op.min_hops + _HOPS_MAX) + 1)
        reached = min(sum(degree**number for number in hops), max(far, degree))
        share = self._selectivity.share((*op.dst_filters, *op.edge_filters))
        return min(reached / max(far, 1), 1.0) * share if op.dst_bound else reached * share

    def _near(self, op: ir.Expand) -> str:
        if op.src_type is not None:
            return op.src_type
        edge = self._statistics.catalog.edges[op.edge_type]
        return edge.to_type if op.direction == "in" else edge.from_type

    def _paths(self, op: ir.FindPaths) -> float:
        """Return the factor by which paths multiply the rows: the product of the factors of their hops."""
        factor, near = 1.0, op.src_var
        for step in op.steps:
            edge_type, *also = step.edge_types
            hop = ir.Expand(
                near, step.dst_var, edge_type, step.direction, step.dst_type, step.min_hops, step.max_hops,
                step.dst_bound, dst_filters=step.filters, also=tuple(also),
            )  # fmt: skip
            factor *= self._hop(hop)
            near = step.dst_var
        return factor * self._selectivity.share(op.filters)
