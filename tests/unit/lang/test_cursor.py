from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.lang.cursor import DEPTH_MAX, Cursor, decode_string, name_of
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name, Source, Span
from omnigraph.lang.tokens import lex


def cursor_at(text: str) -> Cursor:
    return Cursor(Source(text, "test"))


def fault_of(act: Callable[[], object]) -> Fault:
    with pytest.raises(Fault) as raised:
        act()
    return raised.value


def test_lookahead_does_not_advance() -> None:
    cursor = cursor_at("a b")
    assert cursor.at("a")
    assert not cursor.at("b")
    assert [cursor.ahead(n).text for n in (0, 1, 2, 3, 99)] == ["a", "b", "", "", ""]
    assert cursor.here == Span(0, 1)
    assert not cursor.at_end()
    assert cursor.take().text == "a"


def test_the_end_is_never_passed() -> None:
    cursor = cursor_at("a")
    cursor.take()
    assert cursor.at_end()
    assert [cursor.take().kind for _ in range(3)] == ["end"] * 3


def test_accept() -> None:
    cursor = cursor_at("a b")
    assert not cursor.accept("b")
    assert cursor.accept("a")
    assert cursor.accept("b")
    assert not cursor.accept("b")


def test_a_string_does_not_match_its_content() -> None:
    assert not cursor_at('"a"').at("a")


def test_since_ends_with_the_last_taken_token() -> None:
    cursor = cursor_at(" ab  cd  ")
    mark = cursor.mark
    assert cursor.since(mark) == Span(1, 1)
    cursor.take()
    assert cursor.since(mark) == Span(1, 3)
    cursor.take()
    assert cursor.since(mark) == Span(1, 7)


def test_starts_line() -> None:
    cursor = cursor_at("a b\nc /* \n */ d")
    seen = []
    while not cursor.at_end():
        seen.append(cursor.starts_line())
        cursor.take()
    assert seen == [True, False, True, True]


EXPECTED = {
    "punctuation": (lambda c: c.expect("{", " to open it"), "}", "expected '{' to open it, found '}'", None),
    "lower": (lambda c: c.expect_lower("a name"), "1", "expected a name, found '1'", None),
    "lower, is upper": (
        lambda c: c.expect_lower("a name"),
        "AbC",
        "expected a name, found 'AbC'",
        "a name begins with a lower-case letter: 'abC'",
    ),
    "upper": (lambda c: c.expect_upper("a type"), "", "expected a type, found the end of the text", None),
    "upper, is lower": (
        lambda c: c.expect_upper("a type"),
        "abC",
        "expected a type, found 'abC'",
        "a type begins with an upper-case letter: 'AbC'",
    ),
    "variable": (lambda c: c.expect_variable("a variable"), "X", "expected a variable, found 'X'", None),
    "variable, is a name": (
        lambda c: c.expect_variable("a variable"),
        "x",
        "expected a variable, found 'x'",
        "variables are written with a dollar sign: '$x'",
    ),
    "digits": (lambda c: c.expect_digits("a number"), "1.5", "expected a number, found '1.5'", None),
    "string": (lambda c: c.expect_string("a text"), "x", "expected a text, found 'x'", None),
}


@pytest.mark.parametrize(("act", "text", "message", "hint"), EXPECTED.values(), ids=EXPECTED)
def test_expect_reports_the_actual_token(
    act: Callable[[Cursor], object], text: str, message: str, hint: str | None
) -> None:
    cursor = cursor_at(f"  {text}")
    fault = fault_of(lambda: act(cursor))
    assert (fault.message, fault.hint, fault.span) == (message, hint, Span(2, 2 + len(text)))
    assert cursor.token.text == text, "a fault takes nothing"


def test_expect_returns_the_token() -> None:
    cursor = cursor_at('{ a A $a 1 "x\\n"')
    assert cursor.expect("{").text == "{"
    assert cursor.expect_lower("").text == "a"
    assert cursor.expect_upper("").text == "A"
    assert cursor.expect_variable("").text == "$a"
    assert cursor.expect_digits("").text == "1"
    assert cursor.expect_string("") == "x\n"
    assert cursor.at_end()


HINTS = {
    "single quotes": ("'x'", "strings are written in double quotes"),
    "curly quotes": ("“x”", "strings are written in double quotes"),
    "semicolon": (";", "nothing is needed between clauses: end the line"),
    "dollar and a capital": ("$X", "a variable is '$' and a name that begins with a lower-case letter or underscore"),
    "other letters": ("ä", "names are written in the letters a to z, digits and underscores"),
    "other signs": ("~", None),
}


@pytest.mark.parametrize(("text", "hint"), HINTS.values(), ids=HINTS)
def test_hints_about_bad_characters(text: str, hint: str | None) -> None:
    assert fault_of(lambda: cursor_at(text).expect_lower("a name")).hint == hint


def test_hint_about_exponents() -> None:
    cursor = cursor_at("1e5")
    cursor.take()
    hint = fault_of(lambda: cursor.expect(")")).hint
    assert hint == "numbers are written as digits, with an optional fraction"


UNCLOSED = {
    'a "bc': ("a string that is never closed", Span(2, 3)),
    "a /* b": ("a comment that is never closed", Span(2, 4)),
}


@pytest.mark.parametrize(("text", "expected"), UNCLOSED.items(), ids=["string", "comment"])
def test_unclosed_tokens_are_reported_at_their_start(text: str, expected: tuple[str, Span]) -> None:
    cursor = cursor_at(text)
    cursor.take()
    fault = fault_of(lambda: cursor.expect("}"))
    assert (fault.message, fault.span) == expected


def test_nesting_has_a_limit() -> None:
    cursor = cursor_at("a")
    for _ in range(DEPTH_MAX):
        cursor.enter()
    fault = fault_of(cursor.enter)
    assert fault.message == f"nested more than {DEPTH_MAX} levels deep"
    cursor.leave()
    cursor.enter()
    fault_of(cursor.enter)


def test_skipping_resets_the_nesting() -> None:
    cursor = cursor_at("a b c")
    for _ in range(DEPTH_MAX):
        cursor.enter()
    cursor.skip_past(lambda c: c.at("b"))
    assert cursor.at("b")
    for _ in range(DEPTH_MAX):
        cursor.enter()
    cursor.skip_past(lambda _: False)
    assert cursor.at_end()


def test_name_of() -> None:
    tokens = lex("a B $c").tokens
    assert [name_of(token) for token in tokens[:3]] == [Name("a"), Name("B"), Name("c")]
    assert name_of(tokens[2]).span == Span(4, 6)


DECODED = {
    r'""': "",
    r'"plain é"': "plain é",
    r'"\""': '"',
    r'"\\"': "\\",
    r'"\n\r\t"': "\n\r\t",
    r'"a\\nb"': "a\\nb",
    r'"\\\\\""': '\\\\"',
    '"two\nlines"': "two\nlines",
    '"\x00"': "\x00",
}


@pytest.mark.parametrize(("text", "value"), DECODED.items(), ids=range(len(DECODED)))
def test_decode_string(text: str, value: str) -> None:
    assert decode_string(lex(text).tokens[0]) == value


@pytest.mark.parametrize("escape", ["x", "0", "u", "'", "N", " ", "/", "a", "é", "\n"])
def test_unknown_escapes_are_refused_at_their_position(escape: str) -> None:
    fault = fault_of(lambda: decode_string(lex(f'  "ab\\n\\{escape}c"').tokens[0]))
    assert fault.message == f"unsupported escape '\\{escape}' in a string"
    assert fault.span == Span(7, 9)


@pytest.mark.parametrize("half", [0xD800, 0xDFFF, 0xD83D])
def test_an_unpaired_surrogate_is_refused(half: int) -> None:
    fault = fault_of(lambda: cursor_at(f'é "{chr(half)}"'))
    assert fault.message == "unpaired surrogate: the text is not valid Unicode"
    assert fault.span == Span(3, 4)


def test_a_surrogate_pair_is_accepted() -> None:
    assert cursor_at('"\U0001f642"').expect_string("") == "🙂"
