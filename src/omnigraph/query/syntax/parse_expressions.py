"""Parser of expressions.

From lowest to highest precedence: `or`, `and`, `not`, one comparison, `+ -`, `* / %`, a minus sign, primary
expressions. No word is reserved, so a word is an operator only if an operand can follow it: `{ a: 1 in: 2 }` assigns to
a property called `in`.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import cast

from omnigraph.errors import ValueFormatError
from omnigraph.lang.comment_printer import quote
from omnigraph.lang.cursor import decode_string, name_of
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.error_recovery import FileParser
from omnigraph.lang.spans import Name, Span
from omnigraph.lang.tokens import DECIMAL, DIGITS, END, LOWER, PUNCT, STRING, UPPER, VAR, Token
from omnigraph.query.functions import FUNCTIONS
from omnigraph.query.syntax.ast import (
    ArithmeticExpr,
    ArithmeticOp,
    CallExpr,
    CompareExpr,
    CompareOp,
    Expr,
    Field,
    IsNullExpr,
    ListExpr,
    LiteralExpr,
    LogicExpr,
    NegativeExpr,
    NotExpr,
    ObjectExpr,
    PropertyExpr,
    QueryDefinition,
    VarExpr,
    WordExpr,
)
from omnigraph.query.syntax.dialect_hints import about_function
from omnigraph.query.syntax.parse_cases import case_starts, parse_case
from omnigraph.scalar_types.registry import LITERAL_CALLS
from omnigraph.suggestions import did_you_mean
from omnigraph.types import INTEGER_RANGES

SYMBOLS = frozenset({"=", "!=", "<", "<=", ">", ">="})
WORD_OPERATORS = frozenset(
    {"contains", "starts_with", "ends_with", "icontains", "istarts_with", "iends_with", "matches", "in"}
)
OPERATOR_WORDS = WORD_OPERATORS | {"and", "or", "not", "is"}
"""Words that can be operators behind an operand."""

_SUMS = ("+", "-")
_PRODUCTS = ("*", "/", "%")
_ARITHMETIC = frozenset({*_SUMS, *_PRODUCTS})
_U64_MAX = INTEGER_RANGES["U64"][1]
_I64_MIN = INTEGER_RANGES["I64"][0]
_NO_OPERAND = (":", ",", "}", ")", "]", "as")
_EXPONENT = re.compile(r"[eE][0-9]+")
CLAUSE = "a clause ('$x: Type', '$a edge $b', a comparison, 'not { … }' or 'search(…)')"
NO_ARROWS = "a hop is written '$a edge $b', without arrows or parentheses"
_FOREIGN_OPERATORS = {
    "==": "equality is written with one '='",
    "<>": "'not equal' is written '!='",
    "=>": "'at least' is written '>='",
    "=<": "'at most' is written '<='",
}


class ExpressionParser(FileParser[QueryDefinition]):
    """The expression part of the parser."""

    @cached_property
    def case_starts(self) -> frozenset[int]:
        """The positions of the words `case` that begin an expression."""
        return case_starts(self.cursor.tokens)

    def expression(self, expected: str) -> Expr:
        """Parse an expression; `expected` describes it in the error for a token that cannot begin one."""
        return self.joined("or", expected)

    def joined(self, op: str, expected: str) -> Expr:
        """Parse `a or b or …`, or on the next level `a and b and …`."""
        cursor = self.cursor
        mark = cursor.mark
        parts = [self.joined("and", expected) if op == "or" else self.denied(expected)]
        while self.at_word(op):
            cursor.take()
            parts.append(self.joined("and", "a condition") if op == "or" else self.denied("a condition"))
        if len(parts) == 1:
            return parts[0]
        return LogicExpr("or" if op == "or" else "and", tuple(parts), cursor.since(mark))

    def denied(self, expected: str) -> Expr:
        """Parse `not a`; the tokens behind `not` distinguish it from a name."""
        cursor = self.cursor
        if cursor.token.text != "not":
            return self.comparison(expected)
        after = cursor.ahead()
        if after.text in SYMBOLS or after.text in OPERATOR_WORDS - {"not"}:
            return self.comparison(expected)
        if after.kind == END or after.text in (*_NO_OPERAND, *_SUMS, *_PRODUCTS, ".", "asc", "desc"):
            return self.comparison(expected)
        mark = cursor.mark
        cursor.enter()
        cursor.take()
        expr = self.denied("a condition behind 'not'")
        cursor.leave()
        return NotExpr(expr, cursor.since(mark))

    def comparison(self, expected: str) -> Expr:
        """Parse `a = b` and other comparisons, `a is null`, or just `a`."""
        cursor = self.cursor
        mark = cursor.mark
        left = self.sum(expected)
        if self.at_word("is") and self.null_follows():
            cursor.take()
            negated = cursor.accept("not")
            cursor.take()
            return IsNullExpr(left, negated, cursor.since(mark))
        op = self.comparison_operator()
        if op is None:
            return left
        self.refuse_foreign_operator(op)
        if op == "<" and isinstance(left, VarExpr) and cursor.at("-") and cursor.ahead().kind in (LOWER, UPPER, PUNCT):
            raise cursor.fault("a value to compare with", hint=NO_ARROWS)
        right = self.sum("a value to compare with")
        if cursor.token.text in SYMBOLS:
            raise cursor.fault("one comparison", hint="compare two values at a time: a < b and b < c")
        return CompareExpr(op, left, right, cursor.since(mark))

    def comparison_operator(self) -> CompareOp | None:
        """Consume a comparison operator if there is one."""
        cursor = self.cursor
        text = cursor.token.text
        if text in SYMBOLS or (text in WORD_OPERATORS and self.at_word(text)):
            cursor.take()
            return cast(CompareOp, text)
        if text == "not" and cursor.ahead().text == "in" and cursor.ahead(2).text not in _NO_OPERAND:
            cursor.take()
            cursor.take()
            return "not in"
        return None

    def at_word(self, word: str) -> bool:
        """True if the next word is an operator and not a name, because an operand can follow it."""
        cursor = self.cursor
        if cursor.token.text != word or cursor.token.kind != LOWER:
            return False
        after = cursor.ahead()
        return after.text not in _NO_OPERAND and after.kind != END

    def null_follows(self) -> bool:
        """True if `is` begins `is null` or `is not null`."""
        cursor = self.cursor
        after = cursor.ahead().text
        return after == "null" or (after == "not" and cursor.ahead(2).text == "null")

    def refuse_foreign_operator(self, op: str) -> None:
        """Refuse `==`, `<>` and other operators of other languages, with a hint."""
        hint = _FOREIGN_OPERATORS.get(op + self.cursor.token.text)
        if hint is not None:
            raise self.cursor.fault("a value", hint=hint)

    # -- arithmetic ------------------------------------------------------------------------------

    def sum(self, expected: str) -> Expr:
        """Parse `a + b * c - …`; each operator counts as a level of nesting, because the tree is nested."""
        cursor = self.cursor
        mark = cursor.mark
        left = self.signed(expected)
        if cursor.token.text not in _ARITHMETIC:
            return left
        return self.chain(_SUMS, self.chain(_PRODUCTS, left, mark), mark)

    def chain(self, operators: tuple[str, ...], left: Expr, mark: int) -> Expr:
        """Parse the operands of one level, left-associative; the first operand has been parsed."""
        cursor = self.cursor
        levels = 0
        while cursor.token.text in operators and cursor.token.kind == PUNCT:
            op = cast(ArithmeticOp, self.arithmetic_operator())
            cursor.enter()
            levels += 1
            start = cursor.mark
            right = self.signed("a value")
            if operators is _SUMS:
                right = self.chain(_PRODUCTS, right, start)
            left = ArithmeticExpr(op, left, right, cursor.since(mark))
        for _ in range(levels):
            cursor.leave()
        return left

    def arithmetic_operator(self) -> str:
        """Consume an arithmetic operator; an arrow is not one."""
        cursor = self.cursor
        after = [cursor.ahead(distance).text for distance in (1, 2, 3)]
        if cursor.at("-") and (after[0] in ("->", ">") or (after[0] == "[" and ":" in after[1:])):
            raise cursor.fault("a comparison", hint=NO_ARROWS)
        return cursor.take().text

    def signed(self, expected: str) -> Expr:
        """Parse `-a`; a sign directly before a number is part of the number."""
        cursor = self.cursor
        if not cursor.at("-"):
            return self.operand(expected)
        mark = cursor.mark
        if cursor.ahead().kind in (DIGITS, DECIMAL):
            cursor.take()
            return self.scalar_literal(mark)
        cursor.enter()
        cursor.take()
        expr = self.signed("a value")
        cursor.leave()
        return NegativeExpr(expr, cursor.since(mark))

    # -- primary expressions ---------------------------------------------------------------------

    def operand(self, expected: str) -> Expr:
        """Parse a variable, a property, a literal, a call, or an expression in parentheses."""
        cursor = self.cursor
        token = cursor.token
        kind = token.kind
        if kind == VAR:
            cursor.take()
            if not cursor.at("."):
                return VarExpr(token.text[1:], Span(token.start, token.end))
            cursor.take()
            property_ = name_of(cursor.expect_lower("a property name"))
            return PropertyExpr(
                Name(token.text[1:], Span(token.start, token.end)), property_, Span(token.start, property_.span.end)
            )
        if kind == LOWER:
            return self.word_or_call()
        if kind in (STRING, DIGITS, DECIMAL):
            return self.scalar_literal(token.start)
        if token.text == "[":
            return self.list_literal()
        if token.text == "{" and self.at_object():
            return self.object_literal()
        if token.text == "(":
            cursor.enter()
            cursor.take()
            expr = self.expression("a value or a condition")
            cursor.expect(")", " to close the parentheses")
            cursor.leave()
            return expr
        if token.text == "'":
            raise self.single_quoted(token)
        raise cursor.fault(expected, hint=_about_operand(token, in_clause=expected is CLAUSE))

    def single_quoted(self, opened: Token) -> Fault:
        """Return the error for a text in single quotes."""
        text = self.cursor.source.text
        closed = text.find("'", opened.end)
        inside = text[opened.end : closed]
        if closed < 0 or len(inside) > 80 or "\n" in inside:
            return self.cursor.fault("a value")
        span = Span(opened.start, closed + 1)
        return Fault("text is written in double quotes, not in single ones", span, hint=f"write {quote(inside)}")

    def word_or_call(self) -> Expr:
        """Parse `true`, `false`, a bare name, or a call."""
        cursor = self.cursor
        token = cursor.take()
        span = Span(token.start, token.end)
        if token.text in ("true", "false"):
            return LiteralExpr("bool", token.text == "true", span)
        if cursor.at(".") and cursor.ahead().kind == LOWER:
            raise no_dollar(token.text, span, f"{token.text}.{cursor.ahead().text}")
        if token.text == "case" and token.start in self.case_starts:
            return parse_case(self, token.start)
        if not cursor.at("("):
            return WordExpr(token.text, span)
        if token.text in LITERAL_CALLS:
            return self.literal_call(token)
        return self.call(token)

    def call(self, token: Token) -> CallExpr:
        """Parse the arguments of `function(argument, …)` behind the name."""
        cursor = self.cursor
        function = FUNCTIONS.get(token.text)
        if function is None:
            raise Fault(
                f"there is no function '{token.text}'",
                Span(token.start, token.end),
                hint=about_function(token.text) or did_you_mean(token.text, (*FUNCTIONS, *LITERAL_CALLS)),
            )
        cursor.enter()
        cursor.take()
        arguments: list[Expr] = []
        distinct = function.family == "aggregate" and self.at_word("distinct") and bool(cursor.take())
        if not cursor.at(")"):
            if cursor.at("*"):
                raise cursor.fault("an argument", hint=f"count rows by a variable: {token.text}($x)")
            arguments.append(self.expression("an argument"))
            while cursor.accept(","):
                arguments.append(self.expression("an argument"))
        where = self.aggregate_filter(token, aggregates=function.family == "aggregate") if arguments else None
        cursor.expect(")", f" to close '{token.text}'")
        cursor.leave()
        span = cursor.since(token.start)
        if not function.least <= len(arguments) <= function.most:
            plural = "argument" if function.wanted == "1" else "arguments"
            message = f"'{token.text}' takes {function.wanted} {plural}, not {len(arguments)}"
            raise Fault(message, span, hint=f"write {function.usage}")
        if token.text == "nearest" and not isinstance(arguments[0], PropertyExpr):
            raise Fault("'nearest' ranks a vector property", arguments[0].span, hint=f"write {function.usage}")
        return CallExpr(token.text, tuple(arguments), span, distinct, where)

    def aggregate_filter(self, function: Token, *, aggregates: bool) -> Expr | None:
        """Parse `where condition` behind the argument of an aggregate; None if there is none."""
        cursor = self.cursor
        if not cursor.at("where"):
            return None
        if not aggregates:
            hint = "'where' selects the rows of an aggregate: count($x where $x.size > 1)"
            raise cursor.fault(f"')' to close '{function.text}'", hint=hint)
        cursor.take()
        return self.expression("a condition")

    # -- literals --------------------------------------------------------------------------------

    def atom(self) -> Expr:
        """Parse a value of a pattern: a literal, a parameter or `now()`."""
        token = self.cursor.token
        expr = self.signed("a value (a literal, '$param' or now())")
        if isinstance(expr, LiteralExpr | ListExpr | VarExpr) or (
            isinstance(expr, CallExpr) and expr.function == "now"
        ):
            return expr
        hint = "compute the value beforehand and pass it as a parameter"
        if isinstance(expr, WordExpr):
            hint = f'text is written in double quotes: "{expr.name}"'
            if expr.name == "null":
                hint = "to find null values, write a clause: '$x.property is null'"
        raise Fault("only a literal, a '$param' or now() is allowed here", self.cursor.since(token.start), hint=hint)

    def scalar_literal(self, mark: int) -> LiteralExpr:
        """Parse a string or a number; `mark` is the position of its sign, if it has one."""
        cursor = self.cursor
        token = cursor.take()
        if token.kind == STRING:
            return LiteralExpr("string", decode_string(token), Span(token.start, token.end))
        exponent = self.exponent(token.end)
        span = cursor.since(mark)
        sign = -1 if mark < token.start else 1
        if token.kind == DIGITS and not exponent:
            value = sign * whole_number(token)
            if value < _I64_MIN:
                raise Fault("the number does not fit 64 bits", span)
            return LiteralExpr("int", value, span)
        number = sign * float(token.text + exponent)
        if abs(number) == float("inf"):
            raise Fault("the number is too large for a 64-bit float", span)
        return LiteralExpr("decimal", number, span)

    def exponent(self, end: int) -> str:
        """Consume the exponent of a number that ends at `end`; empty if there is none."""
        cursor = self.cursor
        token, sign, digits = cursor.token, cursor.ahead(), cursor.ahead(2)
        if token.start != end or token.kind not in (LOWER, UPPER):
            return ""
        if _EXPONENT.fullmatch(token.text):
            return cursor.take().text
        if token.text not in ("e", "E") or sign.text not in _SUMS or digits.kind != DIGITS:
            return ""
        if sign.start != token.end or digits.start != sign.end:
            return ""
        return "".join(cursor.take().text for _ in range(3))

    def literal_call(self, word: Token) -> LiteralExpr:
        """Parse the rest of `date("…")` and other literals of this form, behind the word."""
        kind = LITERAL_CALLS[word.text]
        assert kind.literal_call is not None
        cursor = self.cursor
        cursor.take()
        text_at = cursor.here
        text = cursor.expect_string("a text in double quotes")
        cursor.expect(")")
        try:
            kind.read(text)
        except ValueFormatError as error:
            raise Fault(error.message, text_at, hint=error.hint) from None
        return LiteralExpr(kind.literal_call, text, cursor.since(word.start))

    def list_literal(self) -> ListExpr:
        """Parse `[a, b, …]`."""
        cursor = self.cursor
        mark = cursor.mark
        cursor.enter()
        cursor.take()
        items: list[Expr] = []
        while not (cursor.at("]") and not items):
            items.append(self.expression("a value or ']'"))
            if not cursor.accept(","):
                break
        cursor.expect("]", " to close the list")
        cursor.leave()
        return ListExpr(tuple(items), cursor.since(mark))

    def at_object(self) -> bool:
        """True if a brace begins an object, and not a misplaced block."""
        first, second = self.cursor.ahead(), self.cursor.ahead(2)
        return first.text == "}" or (second.text == ":" and first.kind in (LOWER, STRING))

    def object_literal(self) -> ObjectExpr:
        """Parse `{ name: value, … }`."""
        cursor = self.cursor
        mark = cursor.mark
        cursor.enter()
        cursor.take()
        fields: list[Field] = []
        while not cursor.at("}"):
            start = cursor.mark
            if cursor.token.kind == STRING:
                name = decode_string(cursor.token)
                raise Fault("a field is named without quotes", cursor.here, hint=f"write {name}: …")
            name_ = name_of(cursor.expect_lower("a field: 'name: value'"))
            cursor.expect(":", " and a value")
            value = self.expression("a value")
            fields.append(Field(name_, value, cursor.since(start)))
            if not cursor.accept(","):
                break
        cursor.expect("}", " to close the object")
        cursor.leave()
        return ObjectExpr(tuple(fields), cursor.since(mark))

    def integer(self, what: str) -> int:
        """Parse an unsigned integer."""
        return whole_number(self.cursor.expect_digits(what))


def whole_number(token: Token) -> int:
    """Return the value of a digits token, which must fit in 64 bits."""
    # The length is tested first: Python refuses to convert thousands of digits.
    digits = token.text.lstrip("0") or "0"
    if len(digits) > 20 or int(digits) > _U64_MAX:
        raise Fault("the number does not fit 64 bits", Span(token.start, token.end))
    return int(digits)


def no_dollar(word: str, span: Span, meant: str) -> Fault:
    """Parse a variable; the name has no dollar sign."""
    return Fault(f"'{word}' is not a variable", span, hint=f"variables are written with a dollar sign: '${meant}'")


def _about_operand(token: Token, *, in_clause: bool) -> str | None:
    """Return a hint for a token that begins neither a value nor a clause."""
    if token.kind == UPPER:
        bound = f"a node type is bound by a variable: '$x: {token.text}'"
        return bound if in_clause else f'text is written in double quotes: "{token.text}"'
    if token.text == "," and in_clause:
        return "clauses are not separated by commas: end the line"
    if token.kind == PUNCT and token.text in ("(", "-", "->", "<"):
        return NO_ARROWS
    return None
