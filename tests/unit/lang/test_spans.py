from __future__ import annotations

import pytest

from omnigraph.lang.spans import NOWHERE, Name, Source, Span

TEXT = "ab\n\n  cd\r\né🙂x\n"


def test_line_and_column_agree_with_a_scan() -> None:
    source = Source(TEXT, "test")
    line = column = 1
    for offset, character in enumerate(TEXT):
        assert source.line_and_column(offset) == (line, column)
        assert source.line_of(offset) == line
        line, column = (line + 1, 1) if character == "\n" else (line, column + 1)
    assert source.line_and_column(len(TEXT)) == (line, column)


@pytest.mark.parametrize("text", ["", "ascii only\n", TEXT, "a\ud800b"])
def test_byte_offsets(text: str) -> None:
    source = Source(text, "test")
    for offset in range(len(text) + 1):
        assert source.byte_offset(offset) == len(text[:offset].encode("utf-8", "surrogatepass"))
    assert source.byte_offset(len(text) + 5) == len(text.encode("utf-8", "surrogatepass"))


def test_span_to() -> None:
    assert Span(3, 5).to(Span(9, 12)) == Span(3, 12)


def test_equality_of_names_ignores_positions() -> None:
    assert Name("a", Span(1, 2)) == Name("a") != Name("b")
    assert hash(Name("a", Span(1, 2))) == hash(Name("a", NOWHERE))
    assert str(Name("a")) == "a"


EXCERPTS = {
    "a word": ("one two three", (4, 7), "   1 | one two three\n     |     ^^^"),
    "the second line": ("one\ntwo three\nfour", (8, 13), "   2 | two three\n     |     ^^^^^"),
    "the first character": ("one", (0, 1), "   1 | one\n     | ^"),
    "an empty span": ("one two", (4, 4), "   1 | one two\n     |     ^"),
    "the end of the text": ("one", (3, 3), "   1 | one\n     |    ^"),
    "the end of a line": ("one\ntwo", (3, 3), "   1 | one\n     |    ^"),
    "an empty line": ("one\n\ntwo", (4, 4), "   2 | \n     | ^"),
    "an empty text": ("", (0, 0), "   1 | \n     | ^"),
    "several lines": ("one {\n  two\n}", (4, 13), "   1 | one {\n     |     ^"),
    "from the middle over several lines": ("one two\nthree", (4, 13), "   1 | one two\n     |     ^^^"),
    "tabs before": ("\t\tone", (2, 5), "   1 |         one\n     |         ^^^"),
    "a tab inside": ("a\tb", (0, 3), "   1 | a    b\n     | ^^^^^^"),
    "carriage return": ("one\r\ntwo", (0, 5), "   1 | one\n     | ^^^"),
    "letters outside ASCII": ("é ü x", (2, 3), "   1 | é ü x\n     |   ^"),
    "unprintable": ("a\x00\x1bb c", (5, 6), "   1 | a��b c\n     |      ^"),
    "unpaired surrogate": ("a\ud800b", (1, 2), "   1 | a�b\n     |  ^"),
    "line numbers of five digits": ("\n" * 12344 + "x", (12344, 12345), "12345 | x\n      | ^"),
}


@pytest.mark.parametrize(("text", "span", "expected"), EXCERPTS.values(), ids=EXCERPTS)
def test_excerpt(text: str, span: tuple[int, int], expected: str) -> None:
    assert Source(text, "test").excerpt(Span(*span)) == expected


def underlined(excerpt: str) -> str:
    """Return the underlined part of the line."""
    shown, carets = excerpt.split("\n")
    start = carets.index("^")
    return shown[start : start + carets.count("^")]


@pytest.mark.parametrize("place", [0, 10, 20, 21, 79, 80, 140, 159, 160, 300, 800, 840, 990, 997])
def test_long_lines_are_cut_around_the_span(place: int) -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(1000))
    excerpt = Source(f"first\n{text}\nlast", "test").excerpt(Span(6 + place, 9 + place))
    shown = excerpt.split("\n")[0]
    assert underlined(excerpt) == text[place : place + 3]
    assert len(shown) <= 170
    assert shown.startswith("   2 | …") == (place > 20)
    assert shown.endswith("…") == (place < 860)


def test_a_line_that_just_fits_is_not_cut() -> None:
    text = "a" * 160
    assert Source(text, "test").excerpt(Span(150, 160)).split("\n")[0] == f"   1 | {text}"


def test_a_span_longer_than_the_excerpt() -> None:
    shown, carets = Source("ab" * 500, "test").excerpt(Span(0, 1000)).split("\n")
    assert shown.endswith("…")
    assert len(carets) <= len(shown)


def test_carets_in_a_long_line_with_tabs() -> None:
    text = "\t" * 50 + "x" * 200 + "target" + "y" * 200
    excerpt = Source(text, "test").excerpt(Span(250, 256))
    assert underlined(excerpt) == "target"
