"""Types of aggregates: what each can summarise, and what comes out (T8)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from omnigraph.query.check.errors import type_fault
from omnigraph.query.check.object_literals import refuse_made
from omnigraph.query.check.paths import no_value
from omnigraph.query.check.scopes import Scope
from omnigraph.query.plan import ir
from omnigraph.query.scalars.signature import is_null
from omnigraph.query.syntax import ast
from omnigraph.types import ListType, PropertyType

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import ExpressionChecker


def check_aggregate(checker: ExpressionChecker, expr: ast.Call, scope: Scope) -> ir.Aggregate:
    """`count`, `sum`, `avg`, `min`, `max`, `collect`."""
    function = cast(ir.AggregateFunction, expr.function)
    (inner,) = expr.arguments
    argument = checker.check(inner, scope.rows)
    if isinstance(argument, ir.Aggregate):
        raise type_fault(None, "an aggregate cannot hold an aggregate", inner.span)
    if any(isinstance(part, ir.Rrf) for part in ir.walk(argument)):
        raise type_fault("T21", "'rrf' ranks rows and cannot be counted or summarised", inner.span)
    if isinstance(argument, ir.Made):
        return _made(checker, expr, argument)
    if isinstance(argument, ir.Entity):
        if function == "collect":
            return ir.Aggregate(function, argument, ListType(replace(argument.type, nullable=False)), expr.distinct)
        if function != "count":
            raise type_fault("T8", f"'{function}' needs a value, not a whole node", inner.span, "name a property")
        variable = scope.find(inner.name) if isinstance(inner, ast.Var) else None
        if variable is not None and variable.optional and not expr.distinct:
            # Rows without it are not counted: it is its id that is, or is not there.
            return ir.Aggregate(function, ir.Prop(argument.var, "id", ir.NULL), ir.I64, expr.distinct)
        return ir.Aggregate(function, argument, ir.I64, expr.distinct)
    if isinstance(argument, ir.PathPart):
        return _of_path(checker, expr, argument)
    assert not isinstance(argument, ir.ColumnRef)
    checker.refuse_blob(inner, argument)
    if function == "count":
        return ir.Aggregate(function, argument, ir.I64, expr.distinct)
    if isinstance(argument, ir.Rank):
        raise type_fault("T8", f"'{function}' cannot summarise a ranking", inner.span)
    type_ = argument.type
    if function in ("sum", "avg"):
        if not type_.is_numeric:
            raise type_fault("T8", f"'{function}' needs numbers, but {checker.typed(inner, argument)}", inner.span)
        result = _sum_type(type_) if function == "sum" else ir.F64
        return ir.Aggregate(function, argument, result.with_nullable(True), expr.distinct)
    if function == "collect":
        if type_.is_list or type_.scalar in ("Vector", "Blob") or is_null(argument):
            raise type_fault("T8", f"'collect' needs plain values, but {checker.typed(inner, argument)}", inner.span)
        return ir.Aggregate(function, argument, PropertyType(type_.scalar, is_list=True), expr.distinct)
    if type_.is_list or type_.scalar in ("Vector", "Blob"):
        message = f"'{function}' needs values with an order, but {checker.typed(inner, argument)}"
        raise type_fault("T8", message, inner.span)
    return ir.Aggregate(function, argument, type_.with_nullable(True), expr.distinct)


def _sum_type(type_: PropertyType) -> PropertyType:
    """The type of a sum: integers add up to an integer."""
    if not type_.is_integer:
        return ir.F64
    return PropertyType("U64") if type_.scalar == "U64" else ir.I64


def _of_path(checker: ExpressionChecker, expr: ast.Call, path: ir.PathPart) -> ir.Aggregate:
    """Paths are counted, and nothing else."""
    (inner,) = expr.arguments
    if expr.function != "count" or expr.distinct or path.part != "path":
        hint = "count($p) counts paths; length($p) can be summarised"
        raise type_fault("T36", f"{checker.text(expr)} cannot summarise paths", inner.span, hint)
    if path.type.nullable:
        # Rows without one are not counted.
        return ir.Aggregate("count", ir.Prop(path.var, ir.LENGTH, ir.I64.with_nullable(True)), ir.I64)
    return ir.Aggregate("count", path, ir.I64)


def _made(checker: ExpressionChecker, expr: ast.Call, argument: ir.Made) -> ir.Aggregate:
    """Objects and lists can be collected, and nothing else."""
    (inner,) = expr.arguments
    why = next((part for part in ir.walk(argument) if isinstance(part, ir.Why)), None)
    if expr.function != "collect" or why is not None:
        raise refuse_made(checker, inner, why or argument)
    if any(isinstance(part, ir.PathPart) for part in ir.walk(argument)):
        raise no_value(checker.text(inner), inner.span)
    return ir.Aggregate("collect", argument, ListType(argument.type), expr.distinct)
