"""Positions in a source text.

Inside the compiler a position is a `Span` of character offsets, which index Python strings. Outside, positions are
bytes of UTF-8, lines and columns; `Source` converts.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from functools import cached_property
from typing import NamedTuple

from omnigraph.fast_dataclass import dataclass

_TAB = "    "
_EXCERPT_WIDTH = 160


class Span(NamedTuple):
    """A half-open range of character offsets."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """Return the range from the start of this one to the end of `other`."""
        return Span(self.start, other.end)


NOWHERE = Span(0, 0)
"""Position of a tree that was built by a program."""


@dataclass(frozen=True, slots=True)
class Name:
    """Name with its position; equality ignores the position."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return self.text


class Source:
    """Named text that converts offsets to lines, columns and bytes."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        position = find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = find("\n", position + 1)
        return starts

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column, both from 1; the column counts characters."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_of(self, offset: int) -> int:
        """Return the line number, from 1."""
        return bisect_right(self._line_starts, offset)

    def byte_offset(self, offset: int) -> int:
        """Return the span in bytes of the UTF-8 text."""
        if self.text.isascii():
            return min(offset, len(self.text))
        return len(self.text[:offset].encode("utf-8", "surrogatepass"))

    def excerpt(self, span: Span) -> str:
        """Return the line of `span` and, below it, carets under the span.

        Long lines are cut around the span; a span over several lines is underlined to the end of its
        first line; an empty one gets one caret.
        """
        line, column = self.line_and_column(span.start)
        start = self._line_starts[line - 1]
        end = self.text.find("\n", start)
        text = self.text[start : len(self.text) if end < 0 else end].rstrip("\r")
        first, last = column - 1, max(column, min(span.end - start, len(text)))
        if len(text) > _EXCERPT_WIDTH:
            cut = max(0, min(first - 20, len(text) - _EXCERPT_WIDTH))
            rest = "…" if cut + _EXCERPT_WIDTH < len(text) else ""
            text = ("…" if cut else "") + text[cut : cut + _EXCERPT_WIDTH] + rest
            shift = cut - (1 if cut else 0)
            first, last = first - shift, min(last - shift, len(text))
        shown = _printable(text)
        pad = len(_printable(text[:first]))
        carets = "^" * max(1, len(_printable(text[first:last])))
        gutter = f"{line:>4}"
        return f"{gutter} | {shown}\n{' ' * len(gutter)} | {' ' * pad}{carets}"


def _printable(text: str) -> str:
    """Expand tabs and replace unprintable characters, one character by one."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_TAB if c == "\t" else c if c.isprintable() and not "\ud800" <= c <= "\udfff" else "�" for c in text)
