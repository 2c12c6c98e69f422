"""Compound conditions in three-valued logic.

A condition is true, false or unknown in a row. Two masks represent this: where it is true and where it is false. `not`
exchanges them; `and` is true where all parts are true and false where one part is false; `or` is the reverse. Only rows
where a condition is true are kept, so the second mask is rarely needed.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.cache.table_cache import Mask
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.query.plan import ir

if TYPE_CHECKING:
    from omnigraph.engine.expr.evaluator import Evaluator


def where_true(evaluator: Evaluator, condition: ir.Condition, bindings: BindingTable) -> Mask:
    """Return a mask of the rows where the condition is true."""
    match condition:
        case ir.Compare() | ir.TextMatch():
            return evaluator.mask(condition, bindings)
        case ir.Logic():
            masks = [where_true(evaluator, part, bindings) for part in condition.parts]
            return reduce(np.logical_and if condition.op == "and" else np.logical_or, masks)
        case ir.Not():
            return where_false(evaluator, condition.part, bindings)
        case ir.IsNull():
            return ~where_known(evaluator, condition.value, bindings)
        case ir.Prop() | ir.ParamRef() | ir.Const() | ir.Arithmetic() | ir.Negative() | ir.Function():
            return _mask(pc.fill_null(evaluator.value(condition, bindings), False))
        case _:
            assert_never(condition)


def where_false(evaluator: Evaluator, condition: ir.Condition, bindings: BindingTable) -> Mask:
    """Return a mask of the rows where the condition is false."""
    match condition:
        case ir.TextMatch():
            return ~evaluator.mask(condition, bindings)
        case ir.Compare():
            sure = where_known(evaluator, condition.left, bindings) & where_known(evaluator, condition.right, bindings)
            return sure & ~evaluator.mask(condition, bindings)
        case ir.Logic():
            masks = [where_false(evaluator, part, bindings) for part in condition.parts]
            return reduce(np.logical_or if condition.op == "and" else np.logical_and, masks)
        case ir.Not():
            return where_true(evaluator, condition.part, bindings)
        case ir.IsNull():
            return where_known(evaluator, condition.value, bindings)
        case ir.Prop() | ir.ParamRef() | ir.Const() | ir.Arithmetic() | ir.Negative() | ir.Function():
            return _mask(pc.invert(pc.fill_null(evaluator.value(condition, bindings), True)))
        case _:
            assert_never(condition)


def truth(evaluator: Evaluator, condition: ir.Condition, bindings: BindingTable) -> pa.Array:
    """Return the condition as a column: true, false, or null if unknown."""
    true = where_true(evaluator, condition, bindings)
    return pa.array(true, mask=~(true | where_false(evaluator, condition, bindings)))


def where_known(evaluator: Evaluator, expr: ir.Expr, bindings: BindingTable) -> Mask:
    """Return a mask of the rows where an expression is not null."""
    if isinstance(expr, ir.Const | ir.ParamRef):
        return np.full(bindings.count, evaluator.constant(expr) is not None)
    if isinstance(expr, ir.Entity):
        return bindings.bound[expr.var].known("id")
    if isinstance(expr, ir.Prop):
        return bindings.bound[expr.var].known(expr.name)
    return _mask(evaluator.value(expr, bindings).is_valid())


def _mask(array: pa.Array) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)
