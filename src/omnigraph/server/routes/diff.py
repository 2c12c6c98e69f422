"""The differences between two points."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import UNSET, UnsetType

from omnigraph.errors import PageCursorRejected
from omnigraph.server.answers import Answer, Chunks
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.content_negotiation import CONTENT_TYPES, LIST_HINT, check_json, line_chunks
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.diff import RowChange
from omnigraph.versioning.feed.cursors import is_id, read_token, short_id, write_token
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.wire.changes import DiffDocument, RowChangeDocument
from omnigraph.wire.document import encoder
from omnigraph.wire.json_lines import EndDocument, StreamMetadataDocument
from omnigraph.wire.json_values import row_value
from omnigraph.wire.requests.changes import DiffQuery


def diff(caller: Caller, body: DiffQuery) -> Answer | Chunks:
    """Return the changed nodes and edges between two points, with their values before and after."""
    cursor = _read_cursor(body) if body.after is not None else None
    first = caller.graph.snapshot(at=cursor["from"] if cursor else point_of(body.from_))
    last = caller.graph.snapshot(at=cursor["to"] if cursor else point_of(body.to))
    found = caller.graph.diff(
        first.commit_id,
        last.commit_id,
        kinds=body.kind,
        types=_types_from(first, last, body, cursor),
        ops=body.op,
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )
    changes = _after(iter(found), cursor)
    steps = list(found.schema_steps)
    part = _Part(changes, body.limit, first, last, body)
    if caller.negotiated.form == "ndjson":
        metadata = StreamMetadataDocument(
            content="diff", from_=body.from_, to=body.to, schema_steps=steps, graph_commit_id=last.commit_id
        )
        return Chunks(line_chunks(metadata, part.documents(), part.end), CONTENT_TYPES["ndjson"], commit=last.commit_id)
    rows_max = caller.state.settings.limits.json_rows
    documents = list(islice(part.documents(), rows_max + 1))
    check_json("rows", len(documents), rows_max, LIST_HINT)
    truncated = UNSET if body.limit is None else part.next is not UNSET
    document = DiffDocument(
        from_=body.from_, to=body.to, schema_steps=steps, changes=documents, truncated=truncated, next=part.next
    )
    return Answer(document, commit=last.commit_id)


class _Part:
    """The changes of one answer; `next` is set when they have been read and others are left."""

    def __init__(
        self, changes: Iterator[RowChange], limit: int | None, first: Snapshot, last: Snapshot, body: DiffQuery
    ) -> None:
        self._changes = changes
        self._limit = limit
        self._first = first.commit_id
        self._last = last.commit_id
        self._binding = _binding(body)
        self.next: str | UnsetType = UNSET

    def documents(self) -> Iterator[RowChangeDocument]:
        """Yield the changes."""
        change: RowChange | None = None
        for change in islice(self._changes, self._limit):
            yield RowChangeDocument.of(row_value(change.to_json()))
        if change is not None and self._limit is not None and next(self._changes, None) is not None:
            position = {"from": self._first, "to": self._last, "table": change.table_key, "id": short_id(change.id)}
            self.next = write_token("diff-page", {**self._binding, **position})

    def end(self, count: int) -> EndDocument:
        """Return the last line."""
        return EndDocument(rows=count, graph_commit_id=self._last, next=self.next)


def _binding(body: DiffQuery) -> dict[str, str]:
    """Return what a cursor belongs to: the points as the request names them, and the filter."""
    named = [body.from_, body.to, *(sorted(chosen or ()) for chosen in (body.kind, body.type, body.op))]
    return {"request": hashlib.sha256(encoder.encode(named)).hexdigest()[:32]}


def _read_cursor(body: DiffQuery) -> dict[str, Any]:
    shape = {"from": str, "to": str, "table": str}
    return read_token(body.after, "diff-page", _binding(body), shape, rejected=PageCursorRejected)


def _types_from(first: Snapshot, last: Snapshot, body: DiffQuery, cursor: dict[str, Any] | None) -> list[str] | None:
    """Return the types to read: those requested, without tables that precede the cursor."""
    if cursor is None:
        return body.type
    keys = {key for key in (*first.tables, *last.tables) if key >= cursor["table"]}
    names = {TableKey.parse(key).type_name for key in keys}
    return sorted(names if body.type is None else names.intersection(body.type))


def _after(changes: Iterator[RowChange], cursor: dict[str, Any] | None) -> Iterator[RowChange]:
    """Yield the changes after a cursor; their order is the same every time."""
    if cursor is not None:
        for change in changes:
            if change.table_key == cursor["table"] and is_id(change.id, cursor.get("id")):
                break
        else:
            raise PageCursorRejected("its position is not in the difference")
    yield from changes
