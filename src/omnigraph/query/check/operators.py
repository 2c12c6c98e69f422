"""Types of operators, scalar functions and `case`.

A condition is an expression of type Bool (T25). Arithmetic takes numbers, and `+` also two Strings (T26). Integers give
I64, or U64 if one is U64 and none is signed; `/` and any operation with a float give F64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Span
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.literals import compatible
from omnigraph.query.check.paths import length_of, path_variable
from omnigraph.query.check.scopes import Scope
from omnigraph.query.plan import ir
from omnigraph.query.scalars import SCALARS, Scalar
from omnigraph.query.scalars.signature import is_null, is_unsigned, type_of_all
from omnigraph.query.syntax import ast
from omnigraph.schema.patterns import why_bad_pattern
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.types import PropertyType

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import ExpressionChecker

CASELESS: dict[str, ast.CompareOp] = {
    "icontains": "contains",
    "istarts_with": "starts_with",
    "iends_with": "ends_with",
}


# -- conditions --------------------------------------------------------------------------------------


def check_condition(checker: ExpressionChecker, expr: ast.Expr, scope: Scope) -> ir.Condition:
    """Return an expression of type Bool."""
    checked = checker.operand(expr, scope)
    if isinstance(checked, ir.Entity):
        hint = "use one of its properties"
        raise type_fault("T25", f"{checker.text(expr)} is a whole node, not a condition", expr.span, hint)
    if checked.type.scalar != "Bool" or checked.type.is_list or is_null(checked):
        hint = "a condition compares: =, !=, <, <=, >, >=, contains, in, is null, …"
        raise type_fault("T25", f"{checker.typed(expr, checked)}, not a condition", expr.span, hint)
    assert not isinstance(checked, ir.Rank | ir.Aggregate)
    return checked


def check_logic(checker: ExpressionChecker, expr: ast.LogicExpr, scope: Scope) -> ir.Logic:
    """Check `a and b`, `a or b`."""
    parts = [checker.attempt(check_condition, checker, part, scope) for part in expr.parts]
    sound = [part for part in parts if part is not None]
    if len(sound) < len(parts):
        raise Silenced
    return ir.Logic(expr.op, tuple(sound))


def check_not(checker: ExpressionChecker, expr: ast.NotExpr, scope: Scope) -> ir.Not:
    """Check `not a`."""
    return ir.Not(check_condition(checker, expr.expr, scope))


def check_is_null(checker: ExpressionChecker, expr: ast.IsNullExpr, scope: Scope) -> ir.Condition:
    """Check `a is null`, `a is not null`."""
    path = path_variable(checker, expr.expr, scope)
    if path is not None:
        value = scope.of_group(length_of(path), checker.text(expr.expr), expr.expr.span)
    else:
        value = checker.operand(expr.expr, scope)
    checker.refuse_blob(expr.expr, value)
    test = ir.IsNull(value)
    return ir.Not(test) if expr.negated else test


def check_in(checker: ExpressionChecker, expr: ast.CompareExpr, scope: Scope) -> ir.Condition:
    """Check `a in [b, c]`, `a in $list`, `a in $x.list`, and the negated forms."""
    left = checker.attempt(checker.plain_operand, expr.left, scope)
    if isinstance(expr.right, ast.ListExpr) and not all_literals(expr.right):
        items = [checker.attempt(checker.plain_operand, item, scope) for item in expr.right.items]
        if left is None or any(item is None for item in items):
            raise Silenced
        tests: list[ir.Condition] = []
        for item, written in zip(items, expr.right.items, strict=True):
            assert item is not None
            equal = ast.CompareExpr("=", expr.left, written, expr.span)
            tests.append(ir.Compare(checker.comparison(equal, left, item), left, item))
        test: ir.Condition = ir.Logic("or", tuple(tests)) if len(tests) > 1 else tests[0]
    else:
        right = checker.attempt(checker.plain_operand, expr.right, scope)
        if left is None or right is None:
            raise Silenced
        empty = isinstance(right, ir.Const) and right.value == []
        fits = right.type.is_list and (empty or compatible(left.type, right.type.item))
        if not fits or left.type.is_list or left.type.scalar in ("Vector", "Blob"):
            hint = None if right.type.is_list else "'in' takes a list: [1, 2], a list parameter or a list property"
            one, other = checker.shown(expr.left, left), checker.shown(expr.right, right)
            raise type_fault("T7", f"cannot search for {one} in {other}", expr.span, hint)
        if empty:
            right = ir.Const([], PropertyType(left.type.scalar, is_list=True))
        test = ir.Compare("contains_item", right, left)
    return ir.Not(test) if expr.op == "not in" else test


def check_matches(checker: ExpressionChecker, expr: ast.CompareExpr, scope: Scope) -> ir.Compare:
    """Check `a matches "pattern"`: true if the text contains a match. The pattern is a constant in RE2 syntax."""
    left, right = _text_operands(checker, expr, scope)
    if not isinstance(right, ir.Const | ir.ParamRef):
        hint = "to look for another property's text, use 'contains'"
        raise type_fault("T27", "a pattern is a text or a String parameter", expr.right.span, hint)
    if isinstance(right, ir.Const):
        reason = why_bad_pattern(str(right.value))
        if reason is not None:
            raise type_fault("T27", f"the pattern is not a regular expression (RE2): {reason}", expr.right.span)
    return ir.Compare("matches", left, right)


def check_caseless(checker: ExpressionChecker, expr: ast.CompareExpr, scope: Scope) -> ir.Compare:
    """Check `icontains`, `istarts_with`, `iends_with`: the plain comparison of both texts in lower case."""
    left, right = _text_operands(checker, expr, scope)
    plain = ast.CompareExpr(CASELESS[expr.op], expr.left, expr.right, expr.span)
    return ir.Compare(checker.comparison(plain, left, right), _lower(left), _lower(right))


def _text_operands(checker: ExpressionChecker, expr: ast.CompareExpr, scope: Scope) -> tuple[ir.Value, ir.Value]:
    """Check both operands of an operator that compares texts."""
    left = checker.attempt(checker.plain_operand, expr.left, scope)
    right = checker.attempt(checker.plain_operand, expr.right, scope)
    if left is None or right is None:
        raise Silenced
    if not left.type.is_text or not right.type.is_text:
        one, other = checker.shown(expr.left, left), checker.shown(expr.right, right)
        raise type_fault("T7", f"cannot apply '{expr.op}' to {one} and {other}", expr.span)
    return left, right


def _lower(value: ir.Value) -> ir.Function:
    return ir.Function("lower", (value,), ir.STRING.with_nullable(value.type.nullable))


def refuse_null(checker: ExpressionChecker, expr: ast.CompareExpr) -> None:
    """T28: a comparison with `null` is never true, so it is refused."""
    for side, other in ((expr.left, expr.right), (expr.right, expr.left)):
        if isinstance(side, ast.WordExpr) and side.name == "null":
            word = "is not null" if expr.op == "!=" else "is null"
            raise type_fault(
                "T28",
                f"a comparison with null is never true, not even '{expr.op}'",
                side.span,
                f"write '{checker.text(other)} {word}'",
            )


# -- values ------------------------------------------------------------------------------------------


def check_arithmetic(checker: ExpressionChecker, expr: ast.ArithmeticExpr, scope: Scope) -> ir.Value:
    """Check `a + b` and the other arithmetic operators."""
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
    # Any operation can lack a result, so its type is always nullable.
    return ir.Arithmetic(expr.op, left, right, type_.with_nullable(True))


def arithmetic_type(op: ir.ArithmeticOp, left: ir.Value, right: ir.Value) -> PropertyType | None:
    """Return the type of the result; None if the operands are not numbers."""
    a, b = left.type, right.type
    if not a.is_numeric or not b.is_numeric:
        return None
    if a.is_float or b.is_float:
        return None if op == "%" else ir.F64
    if op == "/":
        return ir.F64
    wide = "U64" in (a.scalar, b.scalar)
    return PropertyType("U64") if wide and is_unsigned(left) and is_unsigned(right) else ir.I64


def check_negative(checker: ExpressionChecker, expr: ast.NegativeExpr, scope: Scope) -> ir.Negative:
    """Check `-a`."""
    value = checker.plain_operand(expr.expr, scope)
    if not value.type.is_numeric:
        message = f"'-' needs a number, but {checker.typed(expr.expr, value)}"
        raise type_fault("T26", message, expr.span)
    return ir.Negative(value, (ir.F64 if value.type.is_float else ir.I64).with_nullable(True))


def _t26(checker: ExpressionChecker, expr: ast.ArithmeticExpr, left: ir.Value, right: ir.Value) -> Fault:
    hint = None
    if expr.op == "%" and left.type.is_numeric and right.type.is_numeric:
        hint = "'%' takes whole numbers"
    elif expr.op == "+" and "String" in (left.type.scalar, right.type.scalar):
        hint = "'+' adds numbers or joins Strings, and converts nothing"
    elif {left.type.scalar, right.type.scalar} & {"Date", "DateTime"}:
        hint = "use date_add($x.date, 3, days) or date_diff($x.from, $x.to, days)"
    shown = f"{checker.shown(expr.left, left)} and {checker.shown(expr.right, right)}"
    return type_fault("T26", f"cannot compute '{expr.op}' of {shown}", expr.span, hint)


def check_value_function(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope) -> ir.Function:
    """Check a call of a scalar function."""
    scalar = SCALARS[expr.function]
    found = [
        checker.attempt(_argument, checker, scalar, position, argument, scope)
        for position, argument in enumerate(expr.arguments)
    ]
    arguments = [argument for argument in found if argument is not None]
    if len(arguments) < len(found):
        raise Silenced
    type_ = scalar.result(arguments)
    if type_ is None:
        shown = listing(dict.fromkeys(_type_words(scalar, *pair) for pair in enumerate(arguments)))
        message = f"'{scalar.name}' needs compatible values, not {shown}"
        raise type_fault("T26", message, expr.span, f"write {scalar.usage}")
    return ir.Function(scalar.name, tuple(arguments), type_)


def _argument(checker: ExpressionChecker, scalar: Scalar, position: int, expr: ast.Expr, scope: Scope) -> ir.Value:
    """Return an argument of a scalar function; T26 if its type is not accepted."""
    kind = scalar.kind(position)
    if kind.units:
        if isinstance(expr, ast.WordExpr) and expr.name in kind.units:
            return ir.Const(expr.name, ir.STRING)
        near = did_you_mean(expr.name, kind.units) if isinstance(expr, ast.WordExpr) else None
        message = f"'{scalar.name}' needs {kind.words}, which {checker.text(expr)} is not"
        raise type_fault("T26", message, expr.span, near or f"the units are {listing(kind.units[1::2])}")
    value = checker.plain_operand(expr, scope)
    if (is_null(value) and scalar.null_result) or not kind.accepts(value.type):
        message = f"'{scalar.name}' needs {kind.words}, but {checker.typed(expr, value)}"
        raise type_fault("T26", message, expr.span)
    return value


def _type_words(scalar: Scalar, position: int, value: ir.Value) -> str:
    if scalar.kind(position).units:
        assert isinstance(value, ir.Const)
        return str(value.value)
    return "null" if is_null(value) else str(value.type)


def check_case(checker: ExpressionChecker, expr: ast.CaseExpr, scope: Scope) -> ir.Function:
    """Check `case when a then b else c end` and `case x when a then b end`, which compares."""
    conditions: list[ir.Condition | None] = []
    values: list[ir.Value | None] = []
    for branch in expr.branches:
        test = branch.condition
        if expr.subject is not None:
            test = ast.CompareExpr("=", expr.subject, test, Span(test.span.start, test.span.end))
        conditions.append(checker.attempt(check_condition, checker, test, scope))
        values.append(checker.attempt(checker.plain_operand, branch.value, scope))
    if expr.otherwise is not None:
        values.append(checker.attempt(checker.plain_operand, expr.otherwise, scope))
    tests = [test for test in conditions if test is not None]
    sound = [value for value in values if value is not None]
    if len(tests) < len(conditions) or len(sound) < len(values):
        raise Silenced
    type_ = type_of_all(sound)
    if type_ is None:
        types = listing(dict.fromkeys("null" if is_null(value) else str(value.type) for value in sound))
        raise type_fault("T26", f"'case' needs values of one type, not {types}", expr.span)
    if expr.otherwise is None:
        sound.append(ir.Const(None, ir.NULL))
    nullable = any(value.type.nullable for value in sound)
    arguments = [part for pair in zip(tests, sound, strict=False) for part in pair]
    return ir.Function("case", (*arguments, sound[-1]), type_.with_nullable(nullable))


def all_literals(expr: ast.ListExpr) -> bool:
    """True if a list contains only constants."""
    return all(isinstance(item, ast.LiteralExpr | ast.ListExpr) for item in expr.items)
