"""Plain-text tables for terminals and `print`.

The module handles strings, widths and alignment only. A caller that needs colour passes a function that decorates
finished text.
"""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, field, fields
from typing import Any, Literal

from omnigraph.fast_dataclass import dataclass

WIDTH_DEFAULT = 100
"""Width of a table where no terminal determines it."""
_WIDTH_MIN = 6
"""A column is not narrowed below this width to make a table fit."""
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160))} | {9: "\\t", 10: "\\n", 13: "\\r"}

Decorate = Callable[[str], str]


@dataclass(frozen=True)
class TableStyle:
    """Limits on the width of a table, and the treatment of longer cells."""

    max_width: int = 80
    """Maximum width of a column."""
    cells: Literal["truncate", "wrap"] = "truncate"
    total_width: int | None = None
    """Maximum width of the table; the widest columns are narrowed first. None permits any width."""
    header: Decorate = field(default=str)
    muted: Decorate = field(default=str)
    """Applied to rulers and to null cells."""


def compact(value: Any) -> str:
    """Return a value as JSON without whitespace."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def cell(value: Any) -> str:
    """Return a JSON value as the text of a cell: a string without quotes, any other value as JSON."""
    return value if isinstance(value, str) else compact(value)


def table_lines(
    names: Sequence[str],
    columns: Sequence[Sequence[Any]],
    style: TableStyle | None = None,
    *,
    right: Iterable[int] | None = None,
) -> Iterator[str]:
    """Yield the lines of a table: a header, a ruler and the rows.

    `right` contains the indexes of the right-aligned columns; by default, those of the numeric columns.
    """
    if not names:
        yield "(no rows)"
        return
    style = style or TableStyle()
    texts = [[cell(value).translate(_CONTROL) for value in column] for column in columns]
    aligned = set(right) if right is not None else {n for n, column in enumerate(columns) if _is_numeric(column)}
    widths = _widths(names, texts, style)
    yield style.header(_join([_clip(name, width) for name, width in zip(names, widths, strict=True)], widths, aligned))
    yield style.muted("-+-".join("-" * width for width in widths))
    split = _wrap if style.cells == "wrap" else lambda text, width: [_clip(text, width)]
    for values, row in zip(zip(*columns, strict=True), zip(*texts, strict=True), strict=True):
        parts = [split(text, width) for text, width in zip(row, widths, strict=True)]
        decorated = [style.muted if value is None else str for value in values]
        for line in range(max(map(len, parts))):
            yield _join([part[line] if line < len(part) else "" for part in parts], widths, aligned, decorated)


def record_table(rows: Iterable[dict[str, Any]], style: TableStyle | None = None) -> str:
    """Return rows with the same keys as one table; the keys are the header."""
    listed = list(rows)
    if not listed:
        return "(no rows)"
    names = list(listed[0])
    return "\n".join(
        line.rstrip() for line in table_lines(names, [[row[name] for row in listed] for name in names], style)
    )


def terminal_width() -> int:
    """Return the width of the terminal, or a default if there is no terminal."""
    return shutil.get_terminal_size((WIDTH_DEFAULT, 24)).columns


def text_width(text: str) -> int:
    """Return the number of terminal cells of a text: two for wide East Asian characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _is_numeric(column: Sequence[Any]) -> bool:
    found = False
    for value in column:
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            return False
        found = found or value is not None
    return found


def _widths(names: Sequence[str], texts: Sequence[Sequence[str]], style: TableStyle) -> list[int]:
    """Return the width of each column within the limits of the style."""
    longest = [max(map(text_width, column), default=0) for column in texts]
    widths = [max(text_width(name), min(most, style.max_width)) for name, most in zip(names, longest, strict=True)]
    if style.total_width is None:
        return widths
    excess = sum(widths) + 3 * (len(widths) - 1) - style.total_width
    while excess > 0:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= _WIDTH_MIN:
            break
        second = max((width for number, width in enumerate(widths) if number != widest), default=_WIDTH_MIN)
        cut = min(excess, max(1, widths[widest] - max(second, _WIDTH_MIN)))
        widths[widest] -= cut
        excess -= cut
    return widths


def _join(
    texts: Sequence[str], widths: Sequence[int], right: set[int], decorate: Sequence[Decorate] | None = None
) -> str:
    padded = []
    for number, (text, width) in enumerate(zip(texts, widths, strict=True)):
        blank = " " * (width - text_width(text))
        shown = decorate[number](text) if decorate is not None and text else text
        padded.append(blank + shown if number in right else shown + blank)
    return " | ".join(padded)


def _clip(text: str, width: int) -> str:
    if text_width(text) <= width:
        return text
    return _prefix(text, width - 1) + "…"


def _wrap(text: str, width: int) -> list[str]:
    lines = []
    while text:
        line = _prefix(text, width) or text[0]
        lines.append(line)
        text = text[len(line) :]
    return lines or [""]


def _prefix(text: str, width: int) -> str:
    """Return the longest prefix of at most `width` terminal cells."""
    if text.isascii():
        return text[:width]
    used = 0
    for index, char in enumerate(text):
        used += _char_width(char)
        if used > width:
            return text[:index]
    return text


def brief_repr(instance: Any, hidden: Iterable[str] = ()) -> str:
    """Return the repr of a dataclass without hidden fields and fields with their default value."""
    left_out = set(hidden)
    shown: list[str] = []
    for one in fields(instance):
        value = getattr(instance, one.name)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if one.name not in left_out and (default is MISSING or value != default):
            shown.append(f"{one.name}={value!r}")
    return f"{type(instance).__name__}({', '.join(shown)})"
