"""Parser of `case … when … then … else … end`.

No word is reserved, so `case` can also be a name. It begins an expression if `when` and then `then` follow before the
enclosing brackets close. One pass over the tokens finds these positions for a whole text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.lang.tokens import DECIMAL, DIGITS, LOWER, STRING, VAR, Token
from omnigraph.query.syntax.ast import Branch, CaseExpr, Expr

if TYPE_CHECKING:
    from omnigraph.query.syntax.parse_expressions import ExpressionParser

_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
_WORDS = ("as", "asc", "desc", "and", "or", "is", "in", "contains", "starts_with", "ends_with", "icontains")
_MORE_WORDS = ("istarts_with", "iends_with", "matches", "else", "then", "end")
_NO_SUBJECT = frozenset({*_WORDS, *_MORE_WORDS})


def case_starts(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the positions of the tokens `case` that begin an expression."""
    found = set()
    ahead = [0]
    """For each open bracket: 1 if `then` follows inside it, 2 if `when` follows before that."""
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token.text in _CLOSE and token.kind not in (STRING, LOWER):
            ahead.append(0)
        elif token.text in _OPEN and token.kind not in (STRING, LOWER):
            ahead.pop()
            ahead = ahead or [0]
        elif token.kind == LOWER and token.text == "then":
            ahead[-1] = 1
        elif token.kind == LOWER and token.text == "when" and ahead[-1]:
            ahead[-1] = 2
        elif token.kind == LOWER and token.text == "case" and ahead[-1] == 2 and _can_follow(tokens[index + 1]):
            found.add(token.start)
    return frozenset(found)


def _can_follow(token: Token) -> bool:
    if token.kind == LOWER:
        return token.text not in _NO_SUBJECT
    return token.kind in (VAR, STRING, DIGITS, DECIMAL) or token.text in ("(", "[", "-")


def parse_case(parser: ExpressionParser, start: int) -> CaseExpr:
    """Parse the expression behind the word `case`."""
    cursor = parser.cursor
    cursor.enter()
    subject = None if cursor.at("when") else parser.expression("'when' or a value")
    branches: list[Branch] = []
    while not branches or cursor.at("when"):
        mark = cursor.mark
        cursor.expect("when", " in a 'case'")
        condition = parser.expression("a value" if subject is not None else "a condition")
        cursor.expect("then", " and a value")
        branches.append(Branch(condition, parser.expression("a value"), cursor.since(mark)))
    otherwise: Expr | None = parser.expression("a value") if cursor.accept("else") else None
    cursor.expect("end", " to close 'case'")
    cursor.leave()
    return CaseExpr(subject, tuple(branches), otherwise, cursor.since(start))
