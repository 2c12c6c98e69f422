"""Classes of parameter values: values of one class share a plan.

A value that half of the nodes have needs another plan than one that a single node has. The class of a value is the
magnitude of the share of rows that pass its condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.plan.variable_types import edge_types, node_types
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.params import valid_params
from omnigraph.query.plan import ir

ParameterClass = tuple[int, ...]
_MAGNITUDE = 8.0
"""Shares that differ by less than this factor are of one class."""
_SMALLEST = 1e-6
_UNKNOWN = 1
"""The class of null and of values that are not given: no share is larger than one."""
_REMEMBERED = 256
"""Values whose class is remembered, for each condition: to find it, a text is compared with a sample."""


class ParameterClasses:
    """The conditions of a plan whose selectivity depends on a parameter."""

    def __init__(self, plan: ir.QueryIR, statistics: GraphStatistics) -> None:
        selectivity = Selectivity(statistics, node_types(plan.pipeline), edge_types(plan.pipeline))
        found = [selectivity.by_value(condition) for condition in _conditions(plan.pipeline)]
        self._tests = [(one[0].name, _magnitude_of(one[1])) for one in found if one is not None]
        names = {name for name, _ in self._tests}
        self._declared = [param for param in plan.params if param.name in names]

    def __bool__(self) -> bool:
        return bool(self._tests)

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that determine the class of some parameters, in stored form."""
        return valid_params(self._declared, given)

    def of(self, values: Mapping[str, Any]) -> ParameterClass:
        """Return the class of some values in stored form."""
        hashable = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        return tuple(magnitude(hashable[name]) if name in hashable else _UNKNOWN for name, magnitude in self._tests)


def _magnitude_of(share: Callable[[Any], float]) -> Callable[[Any], int]:
    """Return a function from a value to the magnitude of its share."""
    return lru_cache(_REMEMBERED)(lambda value: round(math.log(max(share(value), _SMALLEST), _MAGNITUDE)))


def _conditions(pipeline: ir.Pipeline) -> Iterator[ir.Condition]:
    for op in pipeline:
        match op:
            case ir.NodeScan():
                yield from _parts(op.filters)
            case ir.Expand():
                yield from _parts((*op.dst_filters, *op.edge_filters))
            case ir.Filter():
                yield from _parts((op.condition,))
            case ir.FindPaths():
                for step in op.steps:
                    yield from _parts(step.filters)
            case ir.AntiJoin() | ir.LeftJoin() | ir.InnerJoin():
                yield from _conditions(op.inner)
            case ir.Stage():
                yield from _conditions(op.query.pipeline)
            case ir.PathSteps():
                pass


def _parts(conditions: tuple[ir.Condition, ...]) -> Iterator[ir.Condition]:
    """Yield the comparisons and text matches of some conditions."""
    for condition in conditions:
        match condition:
            case ir.Logic():
                yield from _parts(condition.parts)
            case ir.Not():
                yield from _parts((condition.part,))
            case _:
                yield condition
