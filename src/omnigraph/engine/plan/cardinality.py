"""Cardinality estimates: rows after each operator, from row counts, degrees and fixed selectivities.

The estimates do not choose a plan. They show where a query gets large before it runs and, beside the actual numbers,
where an estimate is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import assert_never

from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.table_key import TableKey

_SHARES = {"=": 0.1, "!=": 0.9, "contains_item": 0.1, "contains_text": 0.1, "starts_with": 0.1}
_RANGE_SHARE = 1 / 3
_NULL_SHARE = 0.1
_TEXT_SHARE = 0.05
_NOT_SHARE = 0.5


class CardinalityEstimates:
    """Estimated rows after each operator of a plan."""

    def __init__(self, plan: ir.QueryIR, catalog: Catalog, counts: Mapping[str, int]) -> None:
        self._catalog = catalog
        self._counts = counts
        self._types: dict[str, str] = {}
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
                    self._types[op.var] = op.type_name
                    rows *= self._count(TableKey.node(op.type_name)) * self._share(op.filters)
                case ir.Expand():
                    rows *= self._hop(op)
                case ir.FindPaths():
                    rows *= self._paths(op)
                case ir.Filter():
                    rows *= self._share((op.condition,))
                case ir.LeftJoin():
                    rows = max(rows, self._run(op.inner, rows))
                case ir.AntiJoin():
                    self._run(op.inner, rows)
                    rows *= _NOT_SHARE
                case _:
                    assert_never(op)
            self._after[id(op)] = rows
        return rows

    def _hop(self, op: ir.Expand) -> float:
        self._types.setdefault(op.dst_var, op.dst_type)
        edges = sum(self._count(self._catalog.edges[edge_type].table_key) for edge_type in op.edge_types)
        far = self._count(TableKey.node(op.dst_type))
        degree = edges * (2 if op.direction == "both" else 1) / max(self._count(TableKey.node(self._near(op))), 1)
        reached = min(sum(degree**hops for hops in range(op.min_hops, op.max_hops + 1)), max(far, degree))
        share = self._share((*op.dst_filters, *op.edge_filters))
        return min(reached / max(far, 1), 1.0) * share if op.dst_bound else reached * share

    def _near(self, op: ir.Expand) -> str:
        if op.src_type is not None:
            return op.src_type
        edge = self._catalog.edges[op.edge_type]
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
        return factor * self._share(op.filters)

    def _share(self, conditions: tuple[ir.Condition, ...]) -> float:
        """Return the selectivity of some conditions."""
        share = 1.0
        for condition in conditions:
            share *= self._passing(condition)
        return share

    def _passing(self, condition: ir.Condition) -> float:
        match condition:
            case ir.TextMatch():
                return _TEXT_SHARE
            case ir.Compare():
                return self._compared(condition)
            case ir.Not():
                return 1 - self._passing(condition.part)
            case ir.Logic():
                shares = [self._passing(part) for part in condition.parts]
                return math.prod(shares) if condition.op == "and" else 1 - math.prod(1 - share for share in shares)
            case ir.IsNull():
                return _NULL_SHARE
            case ir.Prop() | ir.ParamRef() | ir.Const() | ir.Arithmetic() | ir.Negative() | ir.Function():
                return 0.5
            case _:
                assert_never(condition)

    def _compared(self, condition: ir.Compare) -> float:
        prop = next((side for side in (condition.left, condition.right) if isinstance(side, ir.Prop)), None)
        if condition.op == "=" and prop is not None:
            node = self._catalog.nodes.get(self._types.get(prop.var, ""))
            if node is not None and (prop.name == "id" or node.key == (prop.name,)):
                return 1 / max(self._count(node.table_key), 1)
            if prop.type.scalar == "Bool":
                return 0.5
            if prop.type.enum_values:
                return 1 / len(prop.type.enum_values)
        return _SHARES.get(condition.op, _RANGE_SHARE)

    def _count(self, table_key: str) -> int:
        kind, name = TableKey.parse(table_key).parts
        keys = [TableKey.node(member) for member in self._catalog.members(name)] if kind == "node" else [table_key]
        return sum(self._counts.get(key, 0) for key in keys)


def format_estimate(rows: float) -> str:
    """Format an estimate with two significant digits."""
    if rows < 10:
        return f"~{max(round(rows), 1 if rows > 0 else 0)}"
    digits = len(str(int(rows)))
    return f"~{round(rows, 2 - digits):,.0f}"
