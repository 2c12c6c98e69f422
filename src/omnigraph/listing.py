"""Lists that print as tables: commits, branches and tags.

A `Listing` is an ordinary list. Only `str`, `repr` and the notebook form differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from omnigraph.notebook.tables import table as html_table
from omnigraph.text_table import TableStyle, record_table, terminal_width
from omnigraph.versioning.model.manifest_objects import Commit, Tag

T = TypeVar("T")


class Listing(list[T]):
    """A list whose items are shown as the rows of a table."""

    def __init__(self, items: Iterable[T], describe: Callable[[T], dict[str, Any]]) -> None:
        super().__init__(items)
        self._describe = describe

    def __str__(self) -> str:
        return record_table(map(self._describe, self), TableStyle(total_width=terminal_width())) if self else "(none)"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [self._describe(item) for item in self]
        return html_table(list(rows[0]) if rows else [], [list(row.values()) for row in rows])


def describe_commit(commit: Commit) -> dict[str, Any]:
    """Return the columns of a commit."""
    return {
        "commit": commit.id,
        "time": _second(commit.created_at),
        "branch": f"{commit.branch}@{commit.manifest_version}",
        "actor": commit.actor or "",
        "message": commit.message or commit.kind,
    }


def describe_branch(name: str, commit: Commit | None) -> dict[str, Any]:
    """Return the columns of a branch and its head; a branch that was deleted after the listing has no head."""
    if commit is None:
        return {"branch": name, "head": "", "time": "", "actor": "", "message": "(deleted)"}
    actor, message = commit.actor or "", commit.message or commit.kind
    return {"branch": name, "head": commit.id, "time": _second(commit.created_at), "actor": actor, "message": message}


def describe_tag(tag: Tag) -> dict[str, Any]:
    """Return the columns of a tag."""
    return {
        "tag": tag.name,
        "commit": tag.commit_id,
        "time": _second(tag.created_at),
        "actor": tag.actor or "",
        "message": tag.message or "",
    }


def _second(time: datetime) -> str:
    """Format a time to the second."""
    return f"{time:%Y-%m-%d %H:%M:%S}"
