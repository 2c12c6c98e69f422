"""Annotations of a query, between its parameters and its body.

| annotation | meaning for a stored query |
|---|---|
| `@description("…")`, `@instruction("…")` | texts for people and programs that choose a query |
| `@tool_name("…")` | its name as a tool; by default its own |
| `@expose(false)` | it is not listed as a tool |
| `@timeout_ms(n)`, `@rows_max(n)` | limits of a call |
| `@definer` | it runs with the rights of the actor who stored it |
| `@check(expect)`, `@check(expect, required)` | proposals run it and compare its result |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Span
from omnigraph.query.syntax.ast import CheckExpect, Meta, QueryCheck
from omnigraph.query.syntax.parse_expressions import whole_number
from omnigraph.suggestions import did_you_mean, listing

EXPECTATIONS: tuple[CheckExpect, ...] = ("empty", "some", "unchanged", "at_most", "no_more_than_before")
_COUNTED = "at_most"
_I32_MAX = 2**31 - 1


def parse_annotations(cursor: Cursor) -> tuple[Meta, ...]:
    """Parse the annotations of a query, each at most once."""
    found: list[Meta] = []
    while cursor.at("@"):
        mark = cursor.mark
        cursor.take()
        word = cursor.expect_lower("the name of an annotation")
        at = cursor.since(mark)
        if word.text not in _VALUES:
            hint = did_you_mean(word.text, _VALUES)
            raise Fault(f"a query has no '@{word.text}', only {_ALL}", at, hint=hint)
        if any(meta.name == word.text for meta in found):
            raise Fault(f"'@{word.text}' is written twice", at)
        read = _VALUES[word.text]
        if read is None:
            found.append(Meta(word.text, None, at, at))
            continue
        cursor.expect("(", " and the value")
        start = cursor.mark
        value = read(cursor)
        span = cursor.since(start)
        cursor.expect(")")
        found.append(Meta(word.text, value, span, cursor.since(mark)))
    return tuple(found)


def _text(cursor: Cursor) -> str:
    return cursor.expect_string("a text in double quotes")


def _truth(cursor: Cursor) -> bool:
    return _word(cursor, ("true", "false"), "'true' or 'false'") == "true"


def _number(cursor: Cursor) -> int:
    token = cursor.expect_digits("a positive number")
    number = whole_number(token)
    if not 1 <= number <= _I32_MAX:
        raise Fault(f"the number must be from 1 to {_I32_MAX}", Span(token.start, token.end))
    return number


def _check(cursor: Cursor) -> QueryCheck:
    expect = cast(CheckExpect, _word(cursor, EXPECTATIONS, "what is expected"))
    count = whole_number(cursor.expect_digits("the number of rows")) if expect == _COUNTED else None
    required = cursor.accept(",") and bool(_word(cursor, ("required",), "'required'"))
    return QueryCheck(expect, count, required)


def _word(cursor: Cursor, known: tuple[str, ...], what: str) -> str:
    mark = cursor.mark
    word = cursor.expect_lower(what)
    if word.text not in known:
        hint = did_you_mean(word.text, known)
        raise Fault(f"expected one of {listing(known)}, found '{word.text}'", cursor.since(mark), hint=hint)
    return word.text


_VALUES: dict[str, Callable[[Cursor], str | int | bool | QueryCheck] | None] = {
    "description": _text,
    "instruction": _text,
    "tool_name": _text,
    "expose": _truth,
    "timeout_ms": _number,
    "rows_max": _number,
    "definer": None,
    "check": _check,
}
_ALL = listing(f"@{name}" for name in _VALUES)
