"""Types of aggregate calls: which arguments an aggregate accepts, and the type of its result (T8)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.query.aggregates import AGGREGATES
from omnigraph.query.check.errors import type_fault
from omnigraph.query.check.object_literals import refuse_constructed
from omnigraph.query.check.operators import check_condition
from omnigraph.query.check.paths import no_value
from omnigraph.query.check.scopes import Scope
from omnigraph.query.plan import ir
from omnigraph.query.scalars.signature import is_null
from omnigraph.query.syntax import ast
from omnigraph.types import ListType

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import ExpressionChecker


def check_aggregate(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope) -> ir.Aggregate:
    """Return the typed call of an aggregate of `query.aggregates`, with the condition on its rows."""
    call = _checked(checker, expr, scope)
    return call if expr.where is None else replace(call, where=check_condition(checker, expr.where, scope.rows))


def _checked(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope) -> ir.Aggregate:
    (inner,) = expr.arguments
    argument = checker.check(inner, scope.rows)
    if isinstance(argument, ir.Aggregate):
        raise type_fault(None, "aggregates cannot be nested", inner.span)
    if any(isinstance(part, ir.Rrf) for part in ir.walk(argument)):
        raise type_fault("T21", "'rrf' ranks rows and cannot be aggregated", inner.span)
    if isinstance(argument, ir.Constructed):
        return _of_constructed(checker, expr, argument)
    if isinstance(argument, ir.Entity):
        return _of_node(expr, argument, scope)
    if isinstance(argument, ir.PathPart):
        return _of_path(checker, expr, argument)
    assert not isinstance(argument, ir.ColumnRef)
    return _of_value(checker, expr, argument)


def _of_value(checker: ExpressionChecker, expr: ast.CallExpr, argument: ir.Value) -> ir.Aggregate:
    """An aggregate of plain values, typed by its entry in the registry."""
    (inner,) = expr.arguments
    checker.refuse_blob(inner, argument)
    spec = AGGREGATES[expr.function]
    if isinstance(argument, ir.Rank) and not spec.accepts_rankings:
        raise type_fault("T8", f"'{spec.name}' cannot aggregate a ranking", inner.span)
    if not spec.accepts(argument.type) or (is_null(argument) and not spec.accepts_null):
        message = f"'{spec.name}' needs {spec.takes}, but {checker.typed(inner, argument)}"
        raise type_fault("T8", message, inner.span)
    return ir.Aggregate(spec.name, argument, spec.gives(argument.type), expr.distinct)


def _of_node(expr: ast.CallExpr, node: ir.Entity, scope: Scope) -> ir.Aggregate:
    """Nodes can be counted and collected."""
    (inner,) = expr.arguments
    if expr.function == "collect":
        return ir.Aggregate("collect", node, ListType(replace(node.type, nullable=False)), expr.distinct)
    if expr.function != "count":
        raise type_fault("T8", f"'{expr.function}' needs a value, not a whole node", inner.span, "name a property")
    variable = scope.find(inner.name) if isinstance(inner, ast.VarExpr) else None
    if variable is not None and variable.optional and not expr.distinct:
        # The id is null in the rows in which the optional node is absent, so these are not counted.
        return ir.Aggregate("count", ir.Prop(node.var, "id", ir.NULL), ir.I64, expr.distinct)
    return ir.Aggregate("count", node, ir.I64, expr.distinct)


def _of_path(checker: ExpressionChecker, expr: ast.CallExpr, path: ir.PathPart) -> ir.Aggregate:
    """Paths can be counted."""
    (inner,) = expr.arguments
    if expr.function != "count" or expr.distinct or path.part != "path":
        hint = "count($p) counts paths; length($p) can be aggregated"
        raise type_fault("T36", f"{checker.text(expr)} cannot aggregate paths", inner.span, hint)
    if path.type.nullable:
        # The length is null in the rows in which the optional path is absent, so these are not counted.
        return ir.Aggregate("count", ir.Prop(path.var, ir.LENGTH, ir.I64.with_nullable(True)), ir.I64)
    return ir.Aggregate("count", path, ir.I64)


def _of_constructed(checker: ExpressionChecker, expr: ast.CallExpr, argument: ir.Constructed) -> ir.Aggregate:
    """Objects and lists built by the query can be collected."""
    (inner,) = expr.arguments
    why = next((part for part in ir.walk(argument) if isinstance(part, ir.Why)), None)
    if expr.function != "collect" or why is not None:
        raise refuse_constructed(checker, inner, why or argument)
    if any(isinstance(part, ir.PathPart) for part in ir.walk(argument)):
        raise no_value(checker.text(inner), inner.span)
    return ir.Aggregate("collect", argument, ListType(argument.type), expr.distinct)
