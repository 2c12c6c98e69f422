"""The difference of two points of history, to iterate, count and display."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from omnigraph.display import html_of, save, show
from omnigraph.errors import InputError
from omnigraph.versioning.compare.diff import RowChange

_SHOWN = 50


@dataclass(frozen=True, slots=True)
class ChangeSetView:
    """The content of a change set for display."""

    title: str
    changes: tuple[RowChange, ...]
    """The first changes."""
    is_complete: bool
    """True if there are no other changes."""
    schema_steps: tuple[str, ...]


class ChangeSet:
    """The changes between two points. Each iteration reads them again; only the changes of a page are kept."""

    def __init__(
        self,
        changes: Callable[[], Iterator[RowChange]],
        title: str = "changes",
        schema_steps: tuple[str, ...] = (),
        next: str | None = None,
        *,
        commits: tuple[str, str],
        as_graph: Callable[[int], Any] | None = None,
        aliases: tuple[str, ...] = (),
    ) -> None:
        self._changes = changes
        self._as_graph = as_graph
        self.title = title
        """What is compared, in words."""
        self.schema_steps = schema_steps
        """The differences of the schemas, one line per change."""
        self.aliases = aliases
        """The differences of the aliases of unified nodes, one line per alias."""
        self.next = next
        """The cursor of the next page; None if there is none or no page was requested."""
        self.commits = commits
        """The ids of the commits that are compared."""

    def __iter__(self) -> Iterator[RowChange]:
        return self._changes()

    def __repr__(self) -> str:
        return f"ChangeSet({self.title})"

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the numbers of inserted, updated and deleted rows, by table key."""
        counted: dict[str, dict[str, int]] = {}
        for change in self:
            ops = counted.setdefault(change.table_key, {"insert": 0, "update": 0, "delete": 0})
            ops[change.op] += 1
        return counted

    def as_graph(self, limit: int) -> Any:
        """Return the first changes as a graph with one ring of unchanged neighbours; see `Graph.diff_graph`."""
        if self._as_graph is None:
            raise InputError(
                "these changes have no picture", hint="show the difference of two points: graph.diff(a, b)"
            )
        return self._as_graph(limit)

    def show(self) -> Any:
        """Return a widget with the changes as a picture and a table for a notebook (extra `notebook`)."""
        return show(self)

    def save(self, path: str | Path) -> Path:
        """Write the changes as one HTML file, which loads nothing, and return its path."""
        return save(self, path)

    def _repr_html_(self) -> str:
        changes = tuple(islice(self, _SHOWN + 1))
        return html_of(ChangeSetView(self.title, changes[:_SHOWN], len(changes) <= _SHOWN, self.schema_steps))
