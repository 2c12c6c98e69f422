"""Types of search functions: text predicates, vector distance, text relevance, and rank fusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from omnigraph.lang.diagnostics import Fault
from omnigraph.query.check.errors import Silenced, type_fault
from omnigraph.query.check.literals import fit_literal
from omnigraph.query.check.scopes import Scope, not_an_entity
from omnigraph.query.functions import RANK
from omnigraph.query.plan import ir
from omnigraph.query.syntax import ast

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import ExpressionChecker


def check_text_match(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope) -> ir.TextMatch:
    """Check `search`, `match_text`, `fuzzy`."""
    code = "T20" if expr.function == "match_text" else "T19"
    prop, query = _text_arguments(checker, expr, scope, code)
    edits: ir.Expr | None = None
    every = False
    if expr.function != "fuzzy" and len(expr.arguments) == 3:
        every = _requires_all(expr, code)
    elif expr.function == "fuzzy":
        edits = ir.Const(2, ir.I64)
        if len(expr.arguments) == 3:
            edits = _count_argument(checker, expr.arguments[2], scope, code, "max_edits of 'fuzzy'", least=0)
    return ir.TextMatch(cast(ir.TextFunction, expr.function), prop, query, edits, every)


def _requires_all(expr: ast.CallExpr, code: str) -> bool:
    """True if the third argument is the word `all`; any other third argument is an error."""
    word = expr.arguments[2]
    if not isinstance(word, ast.WordExpr) or word.name != "all":
        hint = "write 'all' to require every word, or omit it: any word suffices"
        raise type_fault(code, f"the third argument of '{expr.function}' is the word 'all'", word.span, hint)
    return True


def check_bm25(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope) -> ir.Bm25:
    """Check `bm25(text, query)`."""
    return ir.Bm25(*_text_arguments(checker, expr, scope, "T20"))


def _text_arguments(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope, code: str) -> tuple[ir.Prop, ir.Expr]:
    prop = checker.attempt(_text_field, checker, expr, scope, code)
    query = checker.attempt(_text_query, checker, expr, scope, code)
    if prop is None or query is None:
        raise Silenced
    return prop, query


def _text_field(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope, code: str) -> ir.Prop:
    field = expr.arguments[0]
    if not isinstance(field, ast.PropertyExpr):
        raise type_fault(code, f"'{expr.function}' searches a text property", field.span, "write $x.property")
    prop = _node_field(checker, expr, field, scope)
    if not prop.type.is_text:
        raise type_fault(code, f"'{expr.function}' needs a String, but {checker.typed(field, prop)}", field.span)
    return prop


def _node_field(checker: ExpressionChecker, expr: ast.CallExpr, field: ast.PropertyExpr, scope: Scope) -> ir.Prop:
    """Return the property that a search function reads; it must be a property of a node."""
    if scope.get(field.var).kind == "value":
        raise not_an_entity(field.var.text, field.span, f"'{expr.function}' searches a property of a node")
    if scope.get(field.var).optional:
        message = f"'{expr.function}' cannot search an optional node, and '${field.var}' comes from 'optional'"
        raise type_fault("T31", message, field.span, "search inside the block, or without 'optional'")
    if scope.get(field.var).kind == "edge":
        raise type_fault(
            "T23",
            f"'{expr.function}' works on nodes, and '${field.var}' is an edge variable",
            field.span,
            "filter an edge property with a comparison",
        )
    return checker.property(field, scope)


def _text_query(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope, code: str) -> ir.Expr:
    argument = expr.arguments[1]
    query = checker.check(argument, scope)
    if not isinstance(query, ir.Const | ir.ParamRef) or not query.type.is_text:
        raise type_fault(
            code,
            f"'{expr.function}' looks for a text or a String parameter, not {checker.shown(argument, query)}",
            argument.span,
        )
    return query


def _count_argument(
    checker: ExpressionChecker, expr: ast.Expr, scope: Scope, code: str, what: str, *, least: int
) -> ir.Expr:
    checked = checker.check(expr, scope)
    is_count = isinstance(checked, ir.Const | ir.ParamRef) and checked.type.is_integer
    if not is_count or (isinstance(checked, ir.Const) and checked.value < least):
        raise type_fault(code, f"{what} must be a whole number of at least {least}", expr.span)
    return checked


def check_nearest(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope) -> ir.Nearest:
    """Check `nearest($x.vector, query)`, `nearest($x.vector, query, approx)`."""
    field, argument = expr.arguments[:2]
    assert isinstance(field, ast.PropertyExpr), "the parser lets nothing else through"
    approx = len(expr.arguments) == 3 and _is_approximate(expr.arguments[2])
    try:
        prop = _node_field(checker, expr, field, scope)
    except Fault as fault:
        # An unknown property violates the rule of the function, not T6.
        raise type_fault("T15" if fault.code == "T6" else fault.code, fault.message, fault.span, fault.hint) from None
    if prop.type.scalar != "Vector":
        raise type_fault("T15", f"'nearest' needs a Vector, but {checker.typed(field, prop)}", field.span)
    if isinstance(argument, ast.ListExpr):
        numbers = [
            item for item in argument.items if isinstance(item, ast.LiteralExpr) and item.kind in ("int", "decimal")
        ]
        if len(numbers) != len(argument.items):
            raise type_fault("T15", "a vector holds numbers only", argument.span)
        if len(numbers) != prop.type.dim:
            raise type_fault(
                "T15",
                f"'{field.property}' has {prop.type.dim} dimensions; the query is a list of {len(argument.items)}",
                argument.span,
            )
        return ir.Nearest(prop, fit_literal(checker, argument, prop.type.with_nullable(False), "the query"), approx)
    query = checker.check(argument, scope)
    if not isinstance(query, ir.Const | ir.ParamRef) or not (query.type.is_text or query.type.scalar == "Vector"):
        raise type_fault(
            "T15",
            f"the query of 'nearest' must be a Vector or a text, not {checker.shown(argument, query)}",
            argument.span,
        )
    if query.type.scalar == "Vector" and query.type.dim != prop.type.dim:
        raise type_fault(
            "T15",
            f"'{field.property}' has {prop.type.dim} dimensions, {checker.text(argument)} has {query.type.dim}",
            argument.span,
        )
    return ir.Nearest(prop, query, approx)


def _is_approximate(word: ast.Expr) -> bool:
    """True if the third argument of `nearest` is the word `approx`; any other one is an error."""
    if not isinstance(word, ast.WordExpr) or word.name != "approx":
        hint = "write 'approx' to permit an approximate index, or omit it: the search is exact"
        raise type_fault("T15", "the third argument of 'nearest' is the word 'approx'", word.span, hint)
    return True


def check_rrf(checker: ExpressionChecker, expr: ast.CallExpr, scope: Scope) -> ir.Rrf:
    """Check `rrf(arm, arm * weight, …, k)`: at least two rankings; the constant `k` comes last."""
    arguments = list(expr.arguments)
    last = arguments.pop() if len(arguments) > 2 and not _ranks(arguments[-1]) else None
    found = [checker.attempt(_weighted_arm, checker, argument, scope) for argument in arguments]
    arms = [arm for arm in found if arm is not None]
    if len(arms) < len(found):
        raise Silenced
    if len({arm.prop.var for arm, _ in arms}) > 1:
        raise type_fault("T21", "the rankings of 'rrf' must rank the same variable", expr.span)
    k: ir.Expr = ir.Const(60, ir.I64)
    if last is not None:
        k = _count_argument(checker, last, scope, "T21", "k of 'rrf'", least=1)
    weights = tuple(weight for _, weight in arms)
    return ir.Rrf(tuple(arm for arm, _ in arms), k, weights if any(w is not None for w in weights) else ())


def _weighted_arm(
    checker: ExpressionChecker, expr: ast.Expr, scope: Scope
) -> tuple[ir.Nearest | ir.Bm25, ir.Expr | None]:
    """Check `ranking` or `ranking * weight`; a weight is a number above 0."""
    if not isinstance(expr, ast.ArithmeticExpr) or not _ranks(expr):
        return _arm(checker, expr, scope), None
    weight = checker.check(expr.right, scope)
    constant = isinstance(weight, ir.Const | ir.ParamRef) and weight.type.is_numeric
    if expr.op != "*" or not constant or (isinstance(weight, ir.Const) and not weight.value > 0):
        raise type_fault("T21", "a weight is written '* number', with a number above 0", expr.right.span)
    return _arm(checker, expr.left, scope), weight


def _arm(checker: ExpressionChecker, expr: ast.Expr, scope: Scope) -> ir.Nearest | ir.Bm25:
    arm = checker.check(expr, scope)
    if not isinstance(arm, ir.Nearest | ir.Bm25):
        raise type_fault("T21", f"'rrf' fuses nearest(…) and bm25(…), not {checker.text(expr)}", expr.span)
    return arm


def _ranks(expr: ast.Expr) -> bool:
    """True if an argument of `rrf` is a ranking, with or without a weight."""
    inner = expr.left if isinstance(expr, ast.ArithmeticExpr) else expr
    return isinstance(inner, ast.CallExpr) and inner.function in RANK
