"""The difference of two points of history, to iterate, count and display."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from omnigraph.notebook.tables import table
from omnigraph.versioning.compare.diff import RowChange

_SHOWN = 50
_MARKS = {"insert": "+", "update": "~", "delete": "-"}


class ChangeSet:
    """The changes between two points. Each iteration reads them again; none is kept."""

    def __init__(
        self, changes: Callable[[], Iterator[RowChange]], title: str = "changes", schema_steps: tuple[str, ...] = ()
    ) -> None:
        self._changes = changes
        self._title = title
        self.schema_steps = schema_steps
        """The differences of the schemas, one line per change."""

    def __iter__(self) -> Iterator[RowChange]:
        return self._changes()

    def __repr__(self) -> str:
        return f"ChangeSet({self._title})"

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the numbers of inserted, updated and deleted rows, by table key."""
        counted: dict[str, dict[str, int]] = {}
        for change in self:
            ops = counted.setdefault(change.table_key, {"insert": 0, "update": 0, "delete": 0})
            ops[change.op] += 1
        return counted

    def _repr_html_(self) -> str:
        changes = list(islice(self, _SHOWN + 1))
        rows = [(_MARKS[change.op], change.table_key, change.id, _describe(change)) for change in changes[:_SHOWN]]
        steps = "".join(f"; schema: {step}" for step in self.schema_steps)
        more = f", the first {_SHOWN}" if len(changes) > _SHOWN else f": {len(changes)}"
        return table(("", "table", "id", "what"), rows, caption=f"{self._title}{more}{steps}")


def _describe(change: RowChange) -> str:
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
