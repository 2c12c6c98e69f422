"""Classes of parameter values: values of one class share a plan.

A value that half of the nodes have needs another plan than one that a single node has. The class of a value is the
magnitude of the share of rows that pass its condition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.engine.optimizer.selectivity import Selectivity, share_with_constant
from omnigraph.engine.plan.variable_types import edge_types, node_types
from omnigraph.engine.statistics.column_statistics import ColumnStatistics
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.plan import ir

ParameterClass = tuple[int, ...]
_MAGNITUDE = 8.0
"""Shares that differ by less than this factor are of one class."""
_SMALLEST = 1e-6
_PLAIN = (str, int, float)


class ParameterClasses:
    """The conditions of a plan whose selectivity depends on a parameter."""

    def __init__(self, plan: ir.QueryIR, statistics: GraphStatistics) -> None:
        selectivity = Selectivity(statistics, node_types(plan.pipeline), edge_types(plan.pipeline))
        self._tests: list[tuple[str, str, ColumnStatistics]] = []
        for condition in _conditions(plan.pipeline):
            column = selectivity.column_compared(condition)
            if column is not None:
                assert isinstance(condition, ir.Compare)
                assert isinstance(condition.right, ir.ParamRef)
                self._tests.append((condition.right.name, condition.op, column))

    def __bool__(self) -> bool:
        return bool(self._tests)

    def of(self, values: Mapping[str, Any]) -> ParameterClass:
        """Return the class of some values, as they were given by the caller."""
        return tuple(_magnitude(values.get(name), op, column) for name, op, column in self._tests)


def _magnitude(value: Any, op: str, column: ColumnStatistics) -> int:
    if not isinstance(value, _PLAIN):
        return 1  # no share is larger than one
    return round(math.log(max(share_with_constant(column, op, value), _SMALLEST), _MAGNITUDE))


def plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and texts among some values; other values are not compared with statistics."""
    return {name: value for name, value in values.items() if isinstance(value, _PLAIN)}


def _conditions(pipeline: ir.Pipeline) -> Iterator[ir.Condition]:
    for op in pipeline:
        match op:
            case ir.NodeScan():
                yield from op.filters
            case ir.Expand():
                yield from (*op.dst_filters, *op.edge_filters)
            case ir.Filter():
                yield op.condition
            case ir.AntiJoin() | ir.LeftJoin() | ir.InnerJoin():
                yield from _conditions(op.inner)
            case ir.Stage():
                yield from _conditions(op.query.pipeline)
            case ir.FindPaths() | ir.PathSteps():
                pass
