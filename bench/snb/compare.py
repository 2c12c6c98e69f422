"""Comparison of answers: rows of any system in one form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any


class Disagreement(Exception):
    """Two systems returned different rows: nothing is timed."""


def normal(rows: Iterable[Any], ordered: bool) -> list[tuple[Any, ...]]:
    """Rows as tuples of plain values; sorted if their order is not defined."""
    found = [tuple(_plain(value) for value in (row.values() if isinstance(row, dict) else row)) for row in rows]
    return found if ordered else sorted(found, key=repr)


def _plain(value: Any) -> Any:
    """A value in one form: floats to nine digits, times without zone, lists of objects sorted."""
    match value:
        case bool() | None | str():
            return value
        case float():
            return float(f"{value:.9g}") if math.isfinite(value) else str(value)
        case datetime():
            return value.replace(tzinfo=None).isoformat(timespec="milliseconds")
        case date():
            return value.isoformat()
        case dict():
            return tuple(_plain(part) for part in value.values())
        case list() | tuple():
            parts = [_plain(part) for part in value]
            return tuple(sorted(parts, key=repr)) if parts and isinstance(parts[0], tuple) else tuple(parts)
        case _:
            return value
