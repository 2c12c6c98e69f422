"""Matches in parts: a match that is only counted or grouped runs for a part of its rows after the other.

An operator that would produce more rows than a limit permits is tested before it produces them. Its input rows are then
divided, and the rest of the match runs for each part. The rows that the parts lead to are merged, so a count needs one
row. A join with a pipeline that runs once is divided by the rows of that pipeline. A part that exceeds the limit is
divided again. One row that exceeds it alone cannot be divided, and `tuning.match_parts_max` bounds the parts of an
execution: a match that is larger still is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.engine.exec.binding_table import Binding, BindingTable, weighted_counts
from omnigraph.engine.exec.context import MatchTooLarge
from omnigraph.engine.expr.key_codes import combine_codes, first_rows
from omnigraph.query.plan import ir

_DIVISIBLE = (ir.NodeScan, ir.Expand, ir.Filter, ir.AntiJoin, ir.LeftJoin)
"""Operators whose rows for a part of the input are a part of their rows, over tables that all parts share."""


def parts_of(pipeline: ir.Pipeline, bindings: BindingTable, exceeded: MatchTooLarge) -> int:
    """Return into how many parts the input of an operator is divided; 0 if the rest of the match cannot be."""
    if bindings.count < 2 or exceeded.actual is None or not all(isinstance(op, _DIVISIBLE) for op in pipeline):
        return 0
    # Rows lead to different numbers of rows, and later operators add variables.
    return min(bindings.count, math.ceil(2 * exceeded.actual / exceeded.limit))


def divided(bindings: BindingTable, parts: int) -> Iterator[BindingTable]:
    """Yield the rows of a binding table in parts of about equal length, in their order."""
    bounds = np.linspace(0, bindings.count, parts + 1).astype(np.int64)
    for first, last in itertools.pairwise(bounds):
        yield bindings.take(np.arange(first, last), unique=True)


def combined(one: BindingTable, other: BindingTable) -> BindingTable:
    """Return the rows of two parts, with equal rows merged if that is cheap. The parts have equal variables."""
    if not one.count or not other.count:
        return one if one.count else other
    weight = None
    if one.weight is not None or other.weight is not None:
        weight = np.concatenate([_weights(one), _weights(other)])
    bound = {
        name: Binding(first.data, np.concatenate([first.numbers, other.bound[name].numbers]))
        for name, first in one.bound.items()
    }
    return BindingTable(one.count + other.count, bound, weight).merged()


def distinct_rows(bindings: BindingTable) -> BindingTable:
    """Return the same multiset with all equal rows merged."""
    if len(bindings.bound) < 2:
        return bindings
    codes, count = combine_codes([bound.numbers for bound in bindings.bound.values()])
    if count == bindings.count:
        return bindings
    first = bindings.take(first_rows(codes, count))
    return BindingTable(count, first.bound, weighted_counts(codes, bindings.weight, count))


def _weights(part: BindingTable) -> Numbers:
    return np.ones(part.count, np.int64) if part.weight is None else part.weight
