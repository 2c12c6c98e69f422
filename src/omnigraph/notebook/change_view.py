"""A difference of two points of history as an HTML table."""

from __future__ import annotations

from typing import Any

from omnigraph.display import html_of
from omnigraph.notebook.tables import table
from omnigraph.versioning.compare.changeset import ChangeSetView
from omnigraph.versioning.compare.diff import RowChange

_MARKS = {"insert": "+", "update": "~", "delete": "-"}


@html_of.register
def change_set_html(view: ChangeSetView) -> str:
    """Return the first changes of a change set as a table."""
    rows = [(_MARKS[change.op], change.table_key, change.id, describe(change)) for change in view.changes]
    steps = "".join(f"; schema: {step}" for step in view.schema_steps)
    count = f": {len(view.changes)}" if view.is_complete else f", the first {len(view.changes)}"
    return table(("", "table", "id", "what"), rows, caption=f"{view.title}{count}{steps}")


def describe(change: RowChange) -> str:
    """Return the changed properties as text, with the values before and after."""
    before, after = change.before or {}, change.after or {}
    names = [name for name in change.properties if name != "id"]
    if change.op == "update":
        return ", ".join(f"{name}: {_short(before.get(name))} → {_short(after.get(name))}" for name in names)
    row = after or before
    return ", ".join(f"{name}: {_short(row[name])}" for name in names if row.get(name) is not None)


def _short(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
