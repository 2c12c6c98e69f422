"""HTML tables, with everything escaped that came from data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_CELL_MOST = 200


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "") -> str:
    """A table; a cell that is no text is shown as JSON."""
    parts = ["<table>"]
    if caption:
        parts.append(f'<caption style="text-align:left">{escape(caption)}</caption>')
    parts.append("<thead><tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr></thead><tbody>")
    parts += ["<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows]
    return "".join([*parts, "</tbody></table>"])


def cell(value: Any) -> str:
    """A value in a cell: long ones are cut, what is missing is grey."""
    if value is None:
        return '<span style="opacity:.5">null</span>'
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return escape(text if len(text) <= _CELL_MOST else text[: _CELL_MOST - 1] + "…")


def side_by_side(*parts: str) -> str:
    """Parts beside one another where there is room."""
    shown = "".join(f'<div style="margin-right:2em">{part}</div>' for part in parts if part)
    return f'<div style="display:flex;flex-wrap:wrap;align-items:flex-start">{shown}</div>'
