"""Parser of the clauses of valid time: `valid at`, `valid during`, `valid from` and `end … at`."""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.cursor import Cursor, name_of
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name
from omnigraph.query.syntax.ast import EndStatement, Expr, ValidClause

_INSTANT = "an instant ($t, a date or datetime, now())"
_FORMS = "write 'valid at $t' or 'valid during $from, $to' before 'match'"

ParseExpr = Callable[[str], Expr]
"""Parses an expression; the text states what is expected."""


def starts_valid(cursor: Cursor) -> bool:
    """True if a clause of valid time begins here."""
    return cursor.at("valid")


def parse_valid(cursor: Cursor, expression: ParseExpr) -> ValidClause:
    """Parse `valid at $t` or `valid during $a, $b`, which stands before `match` once."""
    mark = cursor.mark
    cursor.take()
    if cursor.accept("at"):
        clause = ValidClause(expression(_INSTANT), None, cursor.since(mark))
    elif cursor.accept("during"):
        start = expression(_INSTANT)
        cursor.expect(",", " and the end of the interval")
        clause = ValidClause(start, expression(_INSTANT), cursor.since(mark))
    else:
        raise cursor.fault("'at' or 'during'", hint=_FORMS)
    if starts_valid(cursor):
        raise Fault("a query has one valid clause", cursor.here, code="T43", hint="remove the second one")
    if not cursor.at("match"):
        raise cursor.fault("'match'", hint=_FORMS)
    return clause


def refuse_valid(cursor: Cursor) -> None:
    """Raise the error of a valid clause behind `match`."""
    if starts_valid(cursor) and cursor.ahead().text in ("at", "during"):
        raise Fault("the valid clause stands before 'match'", cursor.here, code="T43", hint=_FORMS)


def parse_valid_from(cursor: Cursor, expression: ParseExpr) -> Expr | None:
    """Parse an optional `valid from $t` of an update."""
    if not starts_valid(cursor):
        return None
    cursor.take()
    cursor.expect("from", " and the start of the new period")
    return expression(_INSTANT)


def parse_end(cursor: Cursor, type_: Name, where: Expr, mark: int, expression: ParseExpr) -> EndStatement:
    """Parse `at $t as $x` of `end Type where condition`."""
    if not cursor.accept("at"):
        raise cursor.fault("'at' and the end of the period", hint=f"write end {type_} where … at $t")
    at = expression(_INSTANT)
    name = name_of(cursor.expect_variable("a variable for the rows ('as $x')")) if cursor.accept("as") else None
    return EndStatement(type_, where, at, cursor.since(mark), name)
