"""The printer alone, driven by a formatter that knows one construct: `word` lines and `word { … }` blocks."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from omnigraph.lang.comment_printer import INDENT, WIDTH, Printer, quote
from omnigraph.lang.cursor import decode_string
from omnigraph.lang.spans import Source, Span
from omnigraph.lang.tokens import lex


def tidy(text: str) -> str:
    """Print words one to a line and blocks indented."""
    lexed = lex(text)
    tokens = lexed.tokens
    printer = Printer(Source(text, "test"), lexed.comments)
    index = 0
    while tokens[index].kind != "end":
        token, after = tokens[index], tokens[index + 1]
        if token.text == "}":
            printer.close(token.end)
            index += 1
        elif after.text == "{":
            printer.open(f"{token.text} {{", token.start, after.start, apart=token.text == "apart")
            index += 2
        else:
            printer.item(token.text, Span(token.start, token.end), apart=token.text == "apart")
            index += 1
    return printer.finish()


LAYOUTS = {
    "nothing": ("", ""),
    "spaces only": (" \n\n ", ""),
    "words": ("a b\nc", "a\nb\nc\n"),
    "a block": ("a { b c { d } }", "a {\n    b\n    c {\n        d\n    }\n}\n"),
    "an empty block": ("a { }", "a {\n}\n"),
    "one blank line is kept": ("a\n\nb", "a\n\nb\n"),
    "many become one": ("a\n\n\n\n\nb", "a\n\nb\n"),
    "none at the start": ("\n\n\na", "a\n"),
    "none at the end": ("a\n\n\n", "a\n"),
    "none at the start of a block": ("a {\n\n\nb }", "a {\n    b\n}\n"),
    "none at the end of a block": ("a { b\n\n\n}", "a {\n    b\n}\n"),
    "one inside a block": ("a { b\n\nc }", "a {\n    b\n\n    c\n}\n"),
    "one behind a block": ("a { b }\n\nc", "a {\n    b\n}\n\nc\n"),
    "asked for": ("a\napart\nb", "a\n\napart\nb\n"),
    "asked for and there": ("a\n\napart", "a\n\napart\n"),
    "asked for at the start": ("apart a", "apart\na\n"),
    "asked for at the start of a block": ("a { apart }", "a {\n    apart\n}\n"),
    "a comment behind a line": ("a // c\nb", "a  // c\nb\n"),
    "a comment before a line": ("// c\na", "// c\na\n"),
    "a comment between lines": ("a\n// c\nb", "a\n// c\nb\n"),
    "a blank line before a comment": ("a\n\n// c\nb", "a\n\n// c\nb\n"),
    "a blank line behind a comment": ("a\n// c\n\nb", "a\n// c\n\nb\n"),
    "asked for, before the comment": ("a\n// c\napart", "a\n\n// c\napart\n"),
    "asked for, but the comment trails": ("a // c\napart", "a  // c\n\napart\n"),
    "a comment alone": ("// c", "// c\n"),
    "a comment at the end": ("a\n// c", "a\n// c\n"),
    "a comment behind an opening brace": ("a { // c\nb }", "a {  // c\n    b\n}\n"),
    "a comment before an opening brace": ("a /* c */ { b }", "a {\n    /* c */\n    b\n}\n"),
    "a comment before a closing brace": ("a { b\n// c\n}", "a {\n    b\n    // c\n}\n"),
    "a comment behind a closing brace": ("a { b } // c\nd", "a {\n    b\n}  // c\nd\n"),
    "a comment in an empty block": ("a { /* c */ }", "a {  /* c */\n}\n"),
    "two comments in a row": ("a /* b */ /* c */ d", "a  /* b */  /* c */\nd\n"),
    "nothing behind a line comment": ("a // b\n// c\nd", "a  // b\n// c\nd\n"),
    "behind a block comment of lines": ("a /* b\nb */ // c\nd", "a  /* b\nb */  // c\nd\n"),
    "a block comment keeps its lines": ("a {\n  /* b\n     c */ d }", "a {\n    /* b\n     c */\n    d\n}\n"),
    "spaces behind a comment go": ("a // b \t \n/* c */ \nd", "a  // b\n/* c */\nd\n"),
    "carriage returns go": ("a // b\r\nc\r\n\r\nd", "a  // b\nc\n\nd\n"),
}


@pytest.mark.parametrize(("text", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_layout(text: str, expected: str) -> None:
    assert tidy(text) == expected
    assert tidy(expected) == expected


def test_formatting_random_texts_keeps_comments_and_is_idempotent() -> None:
    pieces = ("a", "apart", "b { ", "} ", "// c\n", "/* d */", "/* e\n */", "\n", "\n\n\n", " ", "//\r\n")
    for seed in range(2_000):
        random = Random(seed)
        text, depth = "", 0
        for _ in range(random.randint(1, 25)):
            piece = random.choice(pieces)
            if piece == "} " and not depth:
                continue
            depth += ("{" in piece) - ("}" in piece)
            text += piece + " "
        text += "} " * depth
        tidied = tidy(text)
        assert tidy(tidied) == tidied, text
        assert Counter(c.text.rstrip() for c in lex(tidied).comments) == Counter(
            c.text.rstrip() for c in lex(text).comments
        )
        assert [token.text for token in lex(tidied).tokens] == [token.text for token in lex(text).tokens]
        assert "\n\n\n" not in tidied


def test_without_a_source() -> None:
    printer = Printer()
    printer.open("a {", 0, 0)
    printer.item("b", Span(0, 0))
    printer.item("c", Span(0, 0), apart=True)
    printer.close(0, "} d")
    printer.item("e", Span(0, 0))
    assert printer.finish() == "a {\n    b\n\n    c\n} d\ne\n"


def test_literal_is_the_source_text() -> None:
    text = r'a "x\ty" b'
    assert Printer(Source(text, "test")).literal(Span(2, 8), "other") == r'"x\ty"'
    assert Printer(Source(text, "test")).literal(Span(0, 0), "other") == "other"
    assert Printer().literal(Span(2, 8), "other") == "other"


def test_fits() -> None:
    text = "a /* c */ b d"
    printer = Printer(Source(text, "test"), lex(text).comments)
    assert printer.fits("x" * WIDTH, Span(10, 13))
    assert not printer.fits("x" * (WIDTH + 1), Span(10, 13))
    assert not printer.fits("x\ny", Span(10, 13))
    assert not printer.fits("x", Span(0, 11))
    printer.open("a {", 0, 1)
    assert printer.fits("x" * (WIDTH - len(INDENT)), Span(10, 13))
    assert not printer.fits("x" * (WIDTH - len(INDENT) + 1), Span(10, 13))


def test_has_comment() -> None:
    text = "a // one\nb // two\nc"
    printer = Printer(Source(text, "test"), lex(text).comments)
    assert printer.has_comment(Span(0, 9))
    assert printer.has_comment(Span(9, 12))
    assert not printer.has_comment(Span(8, 11))
    assert not printer.has_comment(Span(18, 19))
    assert not Printer().has_comment(Span(0, 100))


@pytest.mark.parametrize("text", ["", "plain", '"', "\\", "\n\r\t", "a\\nb", "é🙂", "\x00\x1b", '\\"\\'])
def test_quote_reads_back(text: str) -> None:
    (token, end) = lex(quote(text)).tokens
    assert (token.kind, end.kind) == ("string", "end")
    assert decode_string(token) == text
    assert "\n" not in token.text
