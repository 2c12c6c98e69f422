"""Types of the pattern of a binding, `{ p: value, … }`."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.query.check.errors import type_fault
from omnigraph.query.check.expressions import ExpressionChecker
from omnigraph.query.check.literals import compatible, fit_literal, literal
from omnigraph.query.check.scopes import NO_SCOPE, Variable
from omnigraph.query.check.unions import not_shared
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import NodeType, Property, UnionType
from omnigraph.suggestions import did_you_mean, listing


def check_match(
    checker: ExpressionChecker,
    variable: Variable,
    type_: NodeType,
    match: ast.PropertyMatch,
    *,
    known: Callable[[str], Variable | None],
) -> ir.Condition:
    """Return `p: value` as a condition; `known` finds variables, which are not allowed as the value."""
    name = match.property
    property_ = type_.properties.get(name.text)
    if property_ is None:
        if isinstance(type_, UnionType):
            raise not_shared(checker.catalog, type_, name)
        hint = did_you_mean(name.text, type_.properties) or f"its properties are {listing(type_.properties)}"
        raise type_fault("T2", f"node type '{type_.name}' has no property '{name}'", name.span, hint)
    prop = ir.Prop(variable.ir_name, property_.name, property_.type)
    value = match.value
    if isinstance(value, ast.VarExpr) and value.name not in checker.params:
        carried = known(value.name)
        if carried is not None and carried.kind == "value":
            hint = f"to compare with a carried value, write a clause: '${variable.name}.{name} = ${value.name}'"
        elif carried is not None:
            hint = f"to compare two nodes, write a clause: '${variable.name}.{name} = ${value.name}.{name}'"
        else:
            hint = checker.undeclared(value.name, property_.type.item if property_.type.is_list else property_.type)
        raise type_fault(None, f"'${value.name}' is not a parameter", value.span, hint)
    wanted = _value(checker, type_, property_, match)
    return ir.Compare("contains_item" if property_.type.is_list else "=", prop, wanted)


def _value(checker: ExpressionChecker, owner: NodeType, property_: Property, match: ast.PropertyMatch) -> ir.Expr:
    """Return the value that a property is compared with; a list property is tested for one item."""
    what = f"'{owner.name}.{property_.name}'"
    type_, value = property_.type, match.value
    wanted = type_.item if type_.is_list else type_.with_nullable(False)
    if type_.scalar == "Blob":
        raise type_fault("T3", f"{what} is Blob and cannot be matched", match.span)
    if type_.scalar == "Vector" and isinstance(value, ast.LiteralExpr | ast.ListExpr):
        raise type_fault("T3", f"{what} is {type_} and cannot be matched", value.span, "rank by nearest(…) instead")
    if isinstance(value, ast.ListExpr):
        hint = "a list property is matched by one item it holds" if type_.is_list else None
        raise type_fault("T3", f"{what} is {type_} and cannot be matched with a list", value.span, hint)
    if isinstance(value, ast.LiteralExpr):
        if wanted.is_numeric and value.kind in ("int", "decimal"):
            # Numbers compare by value: 2.7, or a number out of range of the column, equals no integer, which is not an
            # error.
            return literal(value)
        return fit_literal(checker, value, wanted, what)
    checked = checker.check(value, NO_SCOPE)
    assert isinstance(checked, ir.ParamRef)
    if checked.type.scalar == "Vector" or not compatible(checked.type, wanted):
        shown = checker.shown(value, checked)
        hint = checker.value_hint(value, wanted)
        raise type_fault("T7", f"cannot match {what} ({type_}) with {shown}", value.span, hint)
    return checked
