"""Constants: the type of a literal, and its conversion to another type."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, cast

from omnigraph.errors import ValueFormatError
from omnigraph.query.check.errors import type_fault
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast
from omnigraph.scalar_types.registry import LITERAL_CALLS, ScalarKind
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.types import INTEGER_RANGES, PropertyType
from omnigraph.values import read_json

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import ExpressionChecker

_LITERAL_TYPES: dict[str, PropertyType] = {
    "string": ir.STRING,
    "decimal": ir.F64,
    "bool": ir.BOOL,
    **{call: PropertyType(kind.name) for call, kind in LITERAL_CALLS.items()},
}


def compatible(a: PropertyType, b: PropertyType) -> bool:
    """True if both are lists or neither is, and the scalars are equal or both numeric; nullability and enums are
    ignored.
    """
    if a.is_list != b.is_list:
        return False
    if a.scalar == b.scalar:
        return a.dim == b.dim
    return _is_number(a) and _is_number(b)


def _is_number(type_: PropertyType) -> bool:
    return type_.scalar in INTEGER_RANGES or type_.kind.is_float


def literal(expr: ast.LiteralExpr | ast.ListExpr) -> ir.Const:
    """Return a constant with its own type."""
    if isinstance(expr, ast.LiteralExpr):
        return ir.Const(_stored(expr), literal_type(expr))
    if not expr.items:
        return ir.Const([], PropertyType("String", is_list=True))
    consts: list[ir.Const] = []
    for item in expr.items:
        if isinstance(item, ast.ListExpr):
            raise type_fault(None, "a list cannot hold lists", item.span)
        if not isinstance(item, ast.LiteralExpr):
            hint = "pass the whole list as a parameter instead"
            raise type_fault(None, "a list holds literals only", item.span, hint)
        const = literal(item)
        if consts and not compatible(const.type, consts[0].type):
            raise type_fault(None, f"a list of {consts[0].type} cannot hold {const.type}", item.span)
        consts.append(const)
    scalars = {const.type.scalar for const in consts}
    scalar = next((wide for wide in ("F64", "U64") if wide in scalars), consts[0].type.scalar)
    widen = scalar == "F64"
    return ir.Const(
        [float(const.value) if widen else const.value for const in consts], PropertyType(scalar, is_list=True)
    )


def fit_literal(
    checker: ExpressionChecker, expr: ast.LiteralExpr | ast.ListExpr, type_: PropertyType, what: str
) -> ir.Const:
    """Return a literal as a value of `type_` in stored form; T3 if it is not one."""

    def wrong(hint: str | None = None) -> NoReturn:
        raise type_fault("T3", f"{what} is {type_}, but {checker.shown(expr)} is not", expr.span, hint)

    values: object
    if isinstance(expr, ast.ListExpr):
        literal(expr)  # mixed and nested lists are refused for every type
        if not type_.is_list and type_.scalar != "Vector":
            wrong()
        if type_.scalar != "Vector":
            items = cast(tuple[ast.LiteralExpr, ...], expr.items)
            return ir.Const([fit_literal(checker, i, type_.item, f"an item of {what}").value for i in items], type_)
        if any(not isinstance(item, ast.LiteralExpr) or item.kind not in ("int", "decimal") for item in expr.items):
            wrong("a vector holds numbers")
        values = [cast(ast.LiteralExpr, item).value for item in expr.items]
    elif type_.is_list or type_.scalar == "Vector":
        wrong()
    elif literal_type(expr).scalar != type_.scalar and not _widens(expr, type_):
        wrong(literal_hint(expr, type_))
    elif type_.enum_values is not None and expr.value not in type_.enum_values:
        hint = did_you_mean(str(expr.value), type_.enum_values) or f"the values are {listing(type_.enum_values)}"
        raise type_fault("T3", f"{checker.shown(expr)} is not a value of {what}", expr.span, hint)
    else:
        values = _stored(expr)
    try:
        return ir.Const(read_json(values, type_), type_)
    except ValueFormatError as error:
        raise type_fault("T3", f"{what}: {error.message}", expr.span) from None


def literal_type(expr: ast.LiteralExpr) -> PropertyType:
    """Return the type of a literal."""
    if expr.kind == "int":
        return ir.I64 if cast(int, expr.value) <= INTEGER_RANGES["I64"][1] else PropertyType("U64")
    return _LITERAL_TYPES[expr.kind]


def _stored(expr: ast.LiteralExpr) -> object:
    kind = LITERAL_CALLS.get(expr.kind)
    return expr.value if kind is None else kind.read(expr.value)


def _widens(expr: ast.LiteralExpr, type_: PropertyType) -> bool:
    """True if a literal of another scalar is a value of `type_`."""
    if type_.scalar == "Blob":
        return expr.kind == "string"
    return (expr.kind == "int" and type_.is_numeric) or (expr.kind == "decimal" and type_.is_float)


def _call_hint(text: str, kind: ScalarKind) -> str:
    """Return how to write a literal such as a date: with the given text if that is valid, else with an example."""
    try:
        kind.read(text)
    except ValueFormatError:
        return f'a {kind.name} is written {kind.literal_call}("{kind.literal_example}")'
    return f'write {kind.literal_call}("{text}")'


def literal_hint(expr: ast.LiteralExpr, type_: PropertyType) -> str | None:
    """Return how to write a literal that is probably meant as a value of `type_`."""
    call = type_.kind.literal_call
    if expr.kind == "string" and call is not None:
        return _call_hint(str(expr.value), type_.kind)
    if expr.kind in LITERAL_CALLS and call is not None:
        return f'a {type_.scalar} is written {call}("…")'
    if expr.kind == "string" and type_.is_numeric:
        return "write the number without quotes"
    if expr.kind == "string" and type_.scalar == "Bool":
        return "write true or false, without quotes"
    if expr.kind == "int" and type_.is_text:
        return f'write the text in quotes: "{expr.value}"'
    return None
