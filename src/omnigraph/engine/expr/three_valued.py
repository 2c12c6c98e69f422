"""Conditions put together, by three-valued logic.

A condition is true, false or unknown in a row. Two questions are enough to work with that: where is it
definitely true, and where definitely false? `not` exchanges the two, `and` is true where all parts are and
false where one is, `or` the other way round. Only rows where a condition is true are kept, so most of the
time only the first question is asked.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.cache.table_cache import Mask
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.query.plan import ir

if TYPE_CHECKING:
    from omnigraph.engine.expr.evaluator import Evaluator


def holds(evaluator: Evaluator, condition: ir.Condition, bindings: BindingTable) -> Mask:
    """Where the condition is definitely true."""
    match condition:
        case ir.Compare() | ir.TextMatch():
            return evaluator.mask(condition, bindings)
        case ir.Logic():
            masks = [holds(evaluator, part, bindings) for part in condition.parts]
            return reduce(np.logical_and if condition.op == "and" else np.logical_or, masks)
        case ir.Not():
            return fails(evaluator, condition.part, bindings)
        case ir.IsNull():
            return ~known(evaluator, condition.value, bindings)
        case _:
            return _mask(pc.fill_null(evaluator.value(condition, bindings), False))


def fails(evaluator: Evaluator, condition: ir.Condition, bindings: BindingTable) -> Mask:
    """Where the condition is definitely false."""
    match condition:
        case ir.TextMatch():
            return ~evaluator.mask(condition, bindings)
        case ir.Compare():
            sure = known(evaluator, condition.left, bindings) & known(evaluator, condition.right, bindings)
            return sure & ~evaluator.mask(condition, bindings)
        case ir.Logic():
            masks = [fails(evaluator, part, bindings) for part in condition.parts]
            return reduce(np.logical_or if condition.op == "and" else np.logical_and, masks)
        case ir.Not():
            return holds(evaluator, condition.part, bindings)
        case ir.IsNull():
            return known(evaluator, condition.value, bindings)
        case _:
            return _mask(pc.invert(pc.fill_null(evaluator.value(condition, bindings), True)))


def truth(evaluator: Evaluator, condition: ir.Condition, bindings: BindingTable) -> pa.Array:
    """The condition as a column: true, false, and null where it is unknown."""
    true = holds(evaluator, condition, bindings)
    return pa.array(true, mask=~(true | fails(evaluator, condition, bindings)))


def known(evaluator: Evaluator, expr: ir.Expr, bindings: BindingTable) -> Mask:
    """Where an expression has a value."""
    if isinstance(expr, ir.Const | ir.ParamRef):
        return np.full(bindings.count, evaluator.constant(expr) is not None)
    if isinstance(expr, ir.Entity):
        bound = bindings.bound[expr.var]
        return _mask(bound.data.take("id", bound.numbers).is_valid())
    return _mask(evaluator.value(expr, bindings).is_valid())


def _mask(array: pa.Array) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)
