"""`ColumnType`: the type proposed for a column, and the reason; the rules that texts of all sources share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.types import PropertyType

ENUM_VALUES_MAX = 12
ENUM_ROWS_MIN = 20
ENUM_REPEATS_MIN = 5
"""An enum has at most so many values, in at least so many rows, each in so many rows on average."""
LONG_TEXT_CHARS = 80
"""Texts of this length on average are indexed for search."""

_ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+")
_TEXT = PropertyType("String")


@dataclass(frozen=True)
class ColumnType:
    """The type of a column without nullability; None if no property can hold its values."""

    type: PropertyType | None
    reason: str = ""
    is_indexed: bool = False
    null_word: str | None = None
    """A text in the column that seems to stand for no value."""


def text_type(counts: Mapping[str, int], note: str = "") -> ColumnType:
    """Return the type of texts, given with their numbers of rows: a String, an enum or an indexed String."""
    rows = sum(counts.values())
    if note:
        return ColumnType(_TEXT, note)
    if _is_enum(counts, rows):
        kind = PropertyType("String", enum_values=tuple(sorted(counts)))
        return ColumnType(kind, f"{len(counts)} distinct values in {rows:,} rows: an enum? String if open")
    average = sum(len(text) * count for text, count in counts.items()) / max(rows, 1)
    if average >= LONG_TEXT_CHARS:
        return ColumnType(_TEXT, f"{average:.0f} characters on average: indexed for search", is_indexed=True)
    return ColumnType(_TEXT, f"{len(counts):,} distinct {'text' if len(counts) == 1 else 'texts'}")


def _is_enum(counts: Mapping[str, int], rows: int) -> bool:
    return (
        2 <= len(counts) <= ENUM_VALUES_MAX
        and rows >= max(ENUM_ROWS_MIN, ENUM_REPEATS_MIN * len(counts))
        and all(map(_ENUM_VALUE.fullmatch, counts))
    )
