"""Types of objects and lists built by a query (T38), and where they are allowed (T39).

They can only be returned. They can contain any expression that can be returned, including objects and lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.lang.diagnostics import Fault
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.literals import compatible
from omnigraph.query.check.scopes import Scope
from omnigraph.query.plan import ir
from omnigraph.query.scalars.signature import common_type, is_null
from omnigraph.query.syntax import ast
from omnigraph.suggestions import listing
from omnigraph.types import ListType, ObjectType, PropertyType, ResultType

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import ExpressionChecker


def check_object(checker: ExpressionChecker, expr: ast.ObjectExpr, scope: Scope) -> ir.Object:
    """Check `{ name: value, … }`."""
    if not expr.fields:
        raise type_fault("T38", "an object needs a field", expr.span, "write { name: value }")
    seen: set[str] = set()
    for field in expr.fields:
        if field.name.text in seen:
            checker.report(type_fault("T38", f"the field '{field.name}' is given twice", field.name.span))
        seen.add(field.name.text)
    values = _parts(checker, [field.value for field in expr.fields], scope)
    if len(seen) < len(expr.fields):
        raise Silenced
    return ir.Object(tuple((field.name.text, value) for field, value in zip(expr.fields, values, strict=True)))


def check_list(checker: ExpressionChecker, expr: ast.ListExpr, scope: Scope) -> ir.ListOf:
    """Check `[a, b, …]` with items that are not constants: values of one type, or numbers in the widest type."""
    items = _parts(checker, expr.items, scope)
    known = [item for item in items if not is_null(item)]
    type_ = _common([_wide(item, known) for item in known]) if known else ir.STRING
    if type_ is None:
        types = listing(dict.fromkeys(str(item.type) for item in known))
        raise type_fault("T38", f"a list holds values of one type, not {types}", expr.span)
    return ir.ListOf(tuple(items), ListType(type_ if len(known) == len(items) else replace(type_, nullable=True)))


def refuse_constructed(checker: ExpressionChecker, expr: ast.Expr, checked: ir.Constructed) -> Fault:
    """T39: an object or a list where only plain values are allowed."""
    if isinstance(checked, ir.Why):
        return type_fault("T39", "'why' explains a ranked row and can only be returned", expr.span)
    what = "an object" if isinstance(checked.type, ObjectType) else "a list"
    hint = "it can only be returned, or collected: compute with what is inside it"
    return type_fault("T39", f"{checker.text(expr)} is {what} and is not allowed here", expr.span, hint)


def _parts(checker: ExpressionChecker, exprs: Sequence[ast.Expr], scope: Scope) -> list[ir.Expr]:
    found = [checker.attempt(_part, checker, expr, scope) for expr in exprs]
    valid = [part for part in found if part is not None]
    if len(valid) < len(found):
        raise Silenced
    return valid


def _part(checker: ExpressionChecker, expr: ast.Expr, scope: Scope) -> ir.Expr:
    checked = checker.of_group(expr, scope)
    if isinstance(checked, ir.Aggregate):
        raise type_fault(None, "aggregates cannot be nested", expr.span)
    checker.refuse_blob(expr, checked)
    return checked


def _wide(item: ir.Expr, beside: Sequence[ir.Expr]) -> ResultType:
    """Return the type of an item; a nonnegative integer literal is U64 beside a U64 item."""
    unsigned = any(isinstance(other.type, PropertyType) and other.type.scalar == "U64" for other in beside)
    if unsigned and isinstance(item, ir.Const) and item.type == ir.I64 and item.value >= 0:
        return PropertyType("U64")
    return item.type


def _common(types: Sequence[ResultType]) -> ResultType | None:
    """Return the common type of all items; None if there is none."""
    nullable = any(type_.nullable for type_ in types)
    plain = [type_ for type_ in types if isinstance(type_, PropertyType)]
    if len(plain) == len(types):
        scalars = {type_.scalar for type_ in plain}
        signs = "U64" in scalars and scalars & {"I32", "I64"} and not scalars & {"F32", "F64"}
        if signs or not all(compatible(type_, plain[0]) for type_ in plain):
            return None
        return common_type(plain).with_nullable(nullable)
    lists = [type_ for type_ in types if isinstance(type_, ListType)]
    if len(lists) == len(types):
        item = _common([type_.item for type_ in lists])
        return item and ListType(item, nullable)
    objects = [type_ for type_ in types if isinstance(type_, ObjectType)]
    shapes = {(type_.name, *(name for name, _ in type_.fields)) for type_ in objects}
    if len(objects) < len(types) or len(shapes) > 1:
        return None
    columns = zip(*(type_.fields for type_ in objects), strict=True)
    fields = [(column[0][0], _common([type_ for _, type_ in column])) for column in columns]
    valid = tuple((name, type_) for name, type_ in fields if type_ is not None)
    return ObjectType(valid, nullable, objects[0].name) if len(valid) == len(fields) else None
