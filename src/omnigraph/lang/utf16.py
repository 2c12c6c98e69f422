"""Offsets in UTF-16 code units, which editors and JavaScript count."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from omnigraph.errors import Diagnostic


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def from_utf16(text: str, offset: int) -> int:
    """Return the offset in characters of an offset in UTF-16 code units; one inside a character is its start."""
    if text.isascii():
        return min(offset, len(text))
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * offset]
    return len(units.decode("utf-16-le", "ignore"))


def utf16_diagnostic(diagnostic: Diagnostic, text: str) -> Diagnostic:
    """Return a diagnostic of a text whose offsets and column count UTF-16 code units."""
    if text.isascii():
        return diagnostic
    stored = text.encode("utf-8", "surrogatepass")
    start, end = (
        utf16_length(stored[:offset].decode("utf-8", "surrogatepass")) for offset in (diagnostic.start, diagnostic.end)
    )
    lines = text.split("\n")
    column = utf16_length(lines[diagnostic.line - 1][: diagnostic.column - 1]) + 1
    return replace(diagnostic, start=start, end=end, column=column)


class LineIndex:
    """Converts offsets in characters to lines and UTF-16 columns, both from 0, and back."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(at + 1 for at, sign in enumerate(text) if sign == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset."""
        line = bisect_right(self._starts, offset) - 1
        return line, utf16_length(self._text[self._starts[line] : offset])

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column; one behind the end of a line or text is that end."""
        if line >= len(self._starts):
            return len(self._text)
        start = self._starts[line]
        end = self._starts[line + 1] - 1 if line + 1 < len(self._starts) else len(self._text)
        return start + from_utf16(self._text[start:end], column)
