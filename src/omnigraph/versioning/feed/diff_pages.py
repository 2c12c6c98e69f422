"""Pages of a diff: consecutive changes between two commits.

The cursor of a page names both commits, the requested points, the filter and the last change of the page. The graph
keeps no state between pages, and later writes do not affect them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from omnigraph.errors import InputError, PageCursorRejected
from omnigraph.versioning.compare.diff import Columns, DiffView, RowChange, diff_snapshots
from omnigraph.versioning.feed.commit_changes import ChangeFilter
from omnigraph.versioning.feed.cursors import check_epoch, id_start, is_id, read_token, short_id, write_token
from omnigraph.versioning.model.snapshot import Snapshot

_SHAPE = {"from": str, "to": str, "key": str}


@dataclass(frozen=True)
class DiffPage:
    """One page: its changes and the cursor of the next one, None if there is none."""

    changes: tuple[RowChange, ...]
    next: str | None


@dataclass(frozen=True)
class DiffCursor:
    """Start of a page: two commits and, except on the first page, the last change of the page before."""

    before: str
    after: str
    binding: str
    """Digest of the graph, the requested points and the filter."""
    key: str = ""
    id: Any = None
    """The id of the last change, as `short_id` stores it."""
    rights: str | None = None
    """Digest of what the caller may see of both commits; None if it sees everything."""
    epoch: int = 0
    """The purge epoch of the first commit."""

    def write(self, last: RowChange) -> str:
        """Return the cursor that continues after a change."""
        fields = {"from": self.before, "to": self.after, "key": last.table_key, "id": short_id(last.id)}
        if self.rights is not None:
            fields["rights"] = self.rights
        return write_token("diff-page", self.epoch, {"request": self.binding, **fields})

    @classmethod
    def read(cls, text: object, binding: str) -> DiffCursor:
        """Return the cursor of a token; raise `PageCursorRejected` if it is invalid or of another request."""
        fields = read_token(text, "diff-page", {"request": binding}, _SHAPE, rejected=PageCursorRejected)
        if not isinstance(fields.get("id"), str | list):
            raise PageCursorRejected("it is not a valid token")
        rights, epoch = fields.get("rights"), fields["epoch"]
        return cls(fields["from"], fields["to"], binding, fields["key"], fields["id"], rights, epoch)

    def check(self, rights: str | None, before: Snapshot, after: Snapshot) -> None:
        """Raise `PageCursorRejected` if the commits show the caller something else than at the first page."""
        for snapshot in (before, after):
            check_epoch({"epoch": self.epoch}, snapshot.purge_epoch, PageCursorRejected)
        if self.rights != rights:
            raise PageCursorRejected("what you may see has changed since its first page")


def request_digest(graph_id: str, points: tuple[str, ...], wanted: ChangeFilter) -> str:
    """Return a digest of a requested diff."""
    content = json.dumps([graph_id, points, wanted.to_json()])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def check_limit(limit: object) -> int:
    """Return the size of a page, or raise `InputError`."""
    if type(limit) is not int or limit < 1:
        problem = "a cursor needs a limit" if limit is None else f"the limit must be at least 1 (got {str(limit)[:40]})"
        raise InputError(problem, code="bad_page", hint="give the number of changes: limit=100")
    return limit


def read_changes(
    before: Snapshot,
    after: Snapshot,
    columns: Columns,
    wanted: ChangeFilter,
    cursor: DiffCursor | None = None,
    seen: DiffView | None = None,
) -> Iterator[RowChange]:
    """Yield the changes between two snapshots that pass a filter, from the start or after the change of a cursor.

    With `seen`, only what is visible is compared.
    """
    at = None if cursor is None else (cursor.key, id_start(cursor.id))
    changes = diff_snapshots(before, after, columns, wanted=wanted.has_table, start=at, seen=seen)
    if cursor is not None:
        changes = _after(changes, cursor)
    return (change for change in changes if wanted.has_op(change.op))


def read_page(changes: Iterator[RowChange], cursor: DiffCursor, limit: int) -> DiffPage:
    """Return the first `limit` of the changes that follow a cursor."""
    found = tuple(islice(changes, limit))
    more = next(changes, None) is not None
    return DiffPage(found, cursor.write(found[-1]) if more else None)


def _after(changes: Iterator[RowChange], cursor: DiffCursor) -> Iterator[RowChange]:
    for change in changes:
        if change.table_key == cursor.key and is_id(change.id, cursor.id):
            break
    else:
        raise PageCursorRejected("its position is not in the diff")
    yield from changes
