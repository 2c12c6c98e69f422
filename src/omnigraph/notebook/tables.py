"""HTML tables; all data is escaped."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

_CELL_MOST = 200
_CHIP_MOST = 40


class Markup(str):
    """HTML that `cell` does not escape again."""

    __slots__ = ()


class Preformatted(str):
    """Text that a notebook shows line by line, not as a quoted string."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<pre style="margin:0;font-family:monospace">{escape(self)}</pre>'


class PlanText(Preformatted):
    """The plan of a query as text; `plan_hash` is equal for queries that differ only in constants.

    `tree` is the plan as nested objects with `op`, `text`, `notes` and `children`, and with `expected`, `rows` and `ms`
    if they are known.
    """

    plan_hash: str
    tree: dict[str, Any]

    def __new__(cls, text: str, plan_hash: str, tree: dict[str, Any]) -> PlanText:
        """Create the text of a plan with its hash and tree."""
        made = super().__new__(cls, text)
        made.plan_hash = plan_hash
        made.tree = tree
        return made


def table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "", right: Collection[int] | None = None
) -> str:
    """Return a table; a cell that is not a string is shown as JSON.

    `right` contains the indices of the right-aligned columns; by default columns of numbers are right-aligned. Jupyter
    aligns every cell to the right, so each cell states its own alignment.
    """
    listed = [list(row) for row in rows]
    aligned = right if right is not None else _numeric(listed)
    sides = ["right" if number in aligned else "left" for number in range(len(head))]
    parts = ["<table>"]
    if caption:
        parts.append(f'<caption style="text-align:left">{escape(caption)}</caption>')
    names = zip(head, sides, strict=True)
    parts.append("<thead><tr>" + "".join(_element("th", side, escape(name)) for name, side in names))
    parts.append("</tr></thead><tbody>")
    for row in listed:
        cells = zip(row, sides, strict=True)
        parts.append("<tr>" + "".join(_element("td", side, cell(value)) for value, side in cells) + "</tr>")
    return "".join([*parts, "</tbody></table>"])


def _element(tag: str, side: str, content: str) -> str:
    return f'<{tag} style="text-align:{side}">{content}</{tag}>'


def _numeric(rows: Sequence[Sequence[Any]]) -> set[int]:
    """Return the indices of the columns that contain only numbers and nulls."""
    columns = list(zip(*rows, strict=True))
    return {
        number
        for number, column in enumerate(columns)
        if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in column)
        and any(value is not None for value in column)
    }


def cell(value: Any) -> str:
    """Return the content of a cell: long values are truncated, null is grey."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return '<span style="opacity:.5">null</span>'
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return escape(text if len(text) <= _CELL_MOST else text[: _CELL_MOST - 1] + "…")


def chip(label: str, colour: str, title: str) -> Markup:
    """Return a node as a rounded label in the colour of its type; `title` is the tooltip."""
    short = label if len(label) <= _CHIP_MOST else label[: _CHIP_MOST - 1] + "…"
    style = f"background:{colour};color:#fff;border-radius:9px;padding:1px 8px;white-space:nowrap"
    return Markup(f'<span style="{style}" title="{escape(title)}">{escape(short)}</span>')


def side_by_side(*parts: str) -> str:
    """Return the parts side by side if there is room."""
    shown = "".join(f'<div style="margin-right:2em">{part}</div>' for part in parts if part)
    return f'<div style="display:flex;flex-wrap:wrap;align-items:flex-start">{shown}</div>'
