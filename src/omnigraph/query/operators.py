"""Types of what is put together by operators: conditions joined and denied, arithmetic, value functions.

A condition is an expression of type Bool (T25). Arithmetic takes numbers, and `+` also two Strings (T26):
whole numbers give I64, or U64 where one of them is U64 and none is signed; `/` and anything with a float
give F64. Which values come out is the engine's; here it is settled which questions make sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from omnigraph.lang.diagnostics import Fault
from omnigraph.names import listing
from omnigraph.query import ast, ir
from omnigraph.query.faults import Silenced, type_fault
from omnigraph.query.literals import compatible
from omnigraph.query.paths import length_of, path_variable
from omnigraph.query.scopes import Scope
from omnigraph.schema.patterns import why_bad_pattern
from omnigraph.types import PropertyType

if TYPE_CHECKING:
    from omnigraph.query.expressions import ExpressionChecker

_UNSIGNED = ("U32", "U64")
CASELESS: dict[str, ast.CompareOp] = {
    "icontains": "contains",
    "istarts_with": "starts_with",
    "iends_with": "ends_with",
}


# -- conditions --------------------------------------------------------------------------------------


def check_condition(checker: ExpressionChecker, expr: ast.Expr, scope: Scope) -> ir.Condition:
    """An expression that must be true, false or unknown."""
    checked = checker.operand(expr, scope)
    if isinstance(checked, ir.Entity):
        hint = "ask for one of its properties"
        raise type_fault("T25", f"{checker.text(expr)} is a whole node, not a condition", expr.span, hint)
    if checked.type.scalar != "Bool" or checked.type.is_list or is_null(checked):
        hint = "a condition compares: =, !=, <, <=, >, >=, contains, in, is null, …"
        raise type_fault("T25", f"{checker.typed(expr, checked)}, not a condition", expr.span, hint)
    assert not isinstance(checked, ir.Rank | ir.Aggregate)
    return checked


def check_logic(checker: ExpressionChecker, expr: ast.Logic, scope: Scope) -> ir.Logic:
    """`a and b`, `a or b`."""
    parts = [checker.attempt(check_condition, checker, part, scope) for part in expr.parts]
    sound = [part for part in parts if part is not None]
    if len(sound) < len(parts):
        raise Silenced
    return ir.Logic(expr.op, tuple(sound))


def check_not(checker: ExpressionChecker, expr: ast.Not, scope: Scope) -> ir.Not:
    """`not a`."""
    return ir.Not(check_condition(checker, expr.expr, scope))


def check_is_null(checker: ExpressionChecker, expr: ast.IsNull, scope: Scope) -> ir.Condition:
    """`a is null`, `a is not null`."""
    path = path_variable(checker, expr.expr, scope)
    if path is not None:
        value = scope.of_group(length_of(path), checker.text(expr.expr), expr.expr.span)
    else:
        value = checker.operand(expr.expr, scope)
    checker.refuse_blob(expr.expr, value)
    test = ir.IsNull(value)
    return ir.Not(test) if expr.negated else test


def check_in(checker: ExpressionChecker, expr: ast.Compare, scope: Scope) -> ir.Condition:
    """`a in [b, c]`, `a in $list`, `a in $x.list`, and the same with `not`."""
    left = checker.attempt(checker.plain_operand, expr.left, scope)
    if isinstance(expr.right, ast.ListLiteral) and not all_literals(expr.right):
        items = [checker.attempt(checker.plain_operand, item, scope) for item in expr.right.items]
        if left is None or any(item is None for item in items):
            raise Silenced
        tests: list[ir.Condition] = []
        for item, written in zip(items, expr.right.items, strict=True):
            assert item is not None
            equal = ast.Compare("=", expr.left, written, expr.span)
            tests.append(ir.Compare(checker.comparison(equal, left, item), left, item))
        test: ir.Condition = ir.Logic("or", tuple(tests)) if len(tests) > 1 else tests[0]
    else:
        right = checker.attempt(checker.plain_operand, expr.right, scope)
        if left is None or right is None:
            raise Silenced
        empty = isinstance(right, ir.Const) and right.value == []
        fits = right.type.is_list and (empty or compatible(left.type, right.type.item))
        if not fits or left.type.is_list or left.type.scalar in ("Vector", "Blob"):
            hint = None if right.type.is_list else "'in' asks a list: [1, 2], a list parameter or a list property"
            one, other = checker.shown(expr.left, left), checker.shown(expr.right, right)
            raise type_fault("T7", f"cannot look for {one} in {other}", expr.span, hint)
        if empty:
            right = ir.Const([], PropertyType(left.type.scalar, is_list=True))
        test = ir.Compare("contains_item", right, left)
    return ir.Not(test) if expr.op == "not in" else test


def check_matches(checker: ExpressionChecker, expr: ast.Compare, scope: Scope) -> ir.Compare:
    """`a matches "pattern"`: the text holds a match; the pattern is constant, and RE2."""
    left = checker.attempt(checker.plain_operand, expr.left, scope)
    right = checker.attempt(checker.plain_operand, expr.right, scope)
    if left is None or right is None:
        raise Silenced
    if not left.type.is_text or not right.type.is_text:
        one, other = checker.shown(expr.left, left), checker.shown(expr.right, right)
        raise type_fault("T7", f"cannot apply 'matches' to {one} and {other}", expr.span)
    if not isinstance(right, ir.Const | ir.ParamRef):
        hint = "to look for another property's text, use 'contains'"
        raise type_fault("T27", "a pattern is a text or a String parameter", expr.right.span, hint)
    if isinstance(right, ir.Const):
        reason = why_bad_pattern(str(right.value))
        if reason is not None:
            raise type_fault("T27", f"the pattern is no regular expression (RE2): {reason}", expr.right.span)
    return ir.Compare("matches", left, right)


def check_caseless(checker: ExpressionChecker, expr: ast.Compare, scope: Scope) -> ir.Compare:
    """`icontains` and its kin: the plain test on both texts in lower case."""
    left = checker.attempt(checker.plain_operand, expr.left, scope)
    right = checker.attempt(checker.plain_operand, expr.right, scope)
    if left is None or right is None:
        raise Silenced
    if not left.type.is_text or not right.type.is_text:
        one, other = checker.shown(expr.left, left), checker.shown(expr.right, right)
        raise type_fault("T7", f"cannot apply '{expr.op}' to {one} and {other}", expr.span)
    plain = ast.Compare(CASELESS[expr.op], expr.left, expr.right, expr.span)
    return ir.Compare(checker.comparison(plain, left, right), _lower(left), _lower(right))


def _lower(value: ir.Value) -> ir.Function:
    return ir.Function("lower", (value,), ir.STRING.with_nullable(value.type.nullable))


def refuse_null(checker: ExpressionChecker, expr: ast.Compare) -> None:
    """T28: a comparison with `null` is never true, so it is not what was meant."""
    for side, other in ((expr.left, expr.right), (expr.right, expr.left)):
        if isinstance(side, ast.Word) and side.name == "null":
            word = "is not null" if expr.op == "!=" else "is null"
            raise type_fault(
                "T28",
                f"a comparison with null is never true, not even '{expr.op}'",
                side.span,
                f"write '{checker.text(other)} {word}'",
            )


# -- values ------------------------------------------------------------------------------------------


def check_arithmetic(checker: ExpressionChecker, expr: ast.Arithmetic, scope: Scope) -> ir.Value:
    """`a + b` and its kin."""
    left = checker.attempt(checker.plain_operand, expr.left, scope)
    right = checker.attempt(checker.plain_operand, expr.right, scope)
    if left is None or right is None:
        raise Silenced
    nullable = left.type.nullable or right.type.nullable
    if expr.op == "+" and left.type.is_text and right.type.is_text and not (is_null(left) or is_null(right)):
        return ir.Function("concat", (left, right), ir.STRING.with_nullable(nullable))
    type_ = arithmetic_type(expr.op, left, right)
    if type_ is None:
        raise _t26(checker, expr, left, right)
    # Any operation may have no result, so what comes out can always be null.
    return ir.Arithmetic(expr.op, left, right, type_.with_nullable(True))


def arithmetic_type(op: ir.ArithmeticOp, left: ir.Value, right: ir.Value) -> PropertyType | None:
    """The type of the result; None when these cannot be computed with."""
    a, b = left.type, right.type
    if not a.is_numeric or not b.is_numeric:
        return None
    if a.is_float or b.is_float:
        return None if op == "%" else ir.F64
    if op == "/":
        return ir.F64
    wide = "U64" in (a.scalar, b.scalar)
    return PropertyType("U64") if wide and _unsigned(left) and _unsigned(right) else ir.I64


def _unsigned(value: ir.Value) -> bool:
    if value.type.scalar in _UNSIGNED:
        return True
    return isinstance(value, ir.Const) and value.type.is_numeric and value.value >= 0


def check_negative(checker: ExpressionChecker, expr: ast.Negative, scope: Scope) -> ir.Negative:
    """`-a`."""
    value = checker.plain_operand(expr.expr, scope)
    if not value.type.is_numeric:
        message = f"only a number has a sign, but {checker.typed(expr.expr, value)}"
        raise type_fault("T26", message, expr.span)
    return ir.Negative(value, (ir.F64 if value.type.is_float else ir.I64).with_nullable(True))


def _t26(checker: ExpressionChecker, expr: ast.Arithmetic, left: ir.Value, right: ir.Value) -> Fault:
    hint = None
    if expr.op == "%" and left.type.is_numeric and right.type.is_numeric:
        hint = "'%' takes whole numbers"
    elif expr.op == "+" and "String" in (left.type.scalar, right.type.scalar):
        hint = "'+' adds numbers or joins Strings, and converts nothing"
    elif {left.type.scalar, right.type.scalar} & {"Date", "DateTime"}:
        hint = "dates are compared, not computed with: pass the bound as a parameter"
    shown = f"{checker.shown(expr.left, left)} and {checker.shown(expr.right, right)}"
    return type_fault("T26", f"cannot compute '{expr.op}' of {shown}", expr.span, hint)


def check_value_function(checker: ExpressionChecker, expr: ast.Call, scope: Scope) -> ir.Function:
    """`lower`, `upper`, `length`, `coalesce`."""
    found = [checker.attempt(checker.plain_operand, argument, scope) for argument in expr.arguments]
    arguments = [argument for argument in found if argument is not None]
    if len(arguments) < len(found):
        raise Silenced
    name = cast(ir.ValueFunction, expr.function)
    first = arguments[0]
    if name == "coalesce":
        return _coalesce(expr, arguments)
    if is_null(first) or not (first.type.is_text or (name == "length" and first.type.is_list)):
        wanted = "a String or a list" if name == "length" else "a String"
        message = f"'{name}' needs {wanted}, but {checker.typed(expr.arguments[0], first)}"
        raise type_fault("T26", message, expr.arguments[0].span)
    type_ = ir.I64 if name == "length" else ir.STRING
    return ir.Function(name, (first,), type_.with_nullable(first.type.nullable))


def _coalesce(expr: ast.Call, arguments: list[ir.Value]) -> ir.Function:
    """The first that is not null: all of one type, numbers of several widths in the widest."""
    typed = [argument for argument in arguments if not is_null(argument)]
    if not typed:
        raise type_fault("T26", "'coalesce' of nothing but null", expr.span)
    wrong = [a for a in typed if not compatible(a.type, typed[0].type) or a.type.scalar == "Blob"]
    signed = not all(_unsigned(argument) or argument.type.is_float for argument in typed)
    wide = any(argument.type.scalar == "U64" for argument in typed)
    if wrong or (wide and signed and not any(argument.type.is_float for argument in typed)):
        types = listing(str(argument.type) for argument in typed)
        raise type_fault("T26", f"'coalesce' needs values of one type, not {types}", expr.span)
    nullable = all(argument.type.nullable for argument in arguments)
    return ir.Function(
        "coalesce", tuple(arguments), common_type([value.type for value in typed]).with_nullable(nullable)
    )


def common_type(types: Sequence[PropertyType]) -> PropertyType:
    """The type that holds values of mutually compatible types."""
    first = types[0]
    scalars = {type_.scalar for type_ in types}
    plain = PropertyType(first.scalar, is_list=first.is_list, dim=first.dim)
    if len(scalars) == 1:
        return plain
    if scalars & {"F32", "F64"}:
        return PropertyType("F64", is_list=first.is_list)
    return PropertyType("U64" if "U64" in scalars else "I64", is_list=first.is_list)


def is_null(value: ir.Expr) -> bool:
    """Whether an expression is the `null` literal."""
    return isinstance(value, ir.Const) and value.value is None


def all_literals(expr: ast.ListLiteral) -> bool:
    """Whether a list holds nothing but constants."""
    return all(isinstance(item, ast.Literal | ast.ListLiteral) for item in expr.items)
