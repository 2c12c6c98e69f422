"""The change feed of a branch: polls, an event stream, and the baseline."""

from __future__ import annotations

import time

from omnigraph.errors import Cancelled
from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Answer, Chunks, Events
from omnigraph.server.messages.content_negotiation import joined_lines, line_chunks
from omnigraph.server.messages.details import commit_detail
from omnigraph.server.stream_validity import stream_is_valid
from omnigraph.text_table import compact
from omnigraph.versioning.feed.feed import MIB, ChangePage
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.change_feed import ChangesDocument, changes_document
from omnigraph.wire.changes import FeedPageDocument
from omnigraph.wire.document import encoder
from omnigraph.wire.json_lines import EndDocument, StreamMetadataDocument
from omnigraph.wire.requests.changes import BaselineRequest, ChangesQuery, ChangesStreamQuery
from omnigraph.wire.typed_values import typed_value

COMMITS_MAX = 128
START = "now"
"""The start of a feed without a cursor."""


def poll_changes(caller: Caller, body: ChangesQuery) -> Answer | Chunks:
    """Return the commits of a branch since a cursor, with their changes."""
    body.check()
    limits = {"bytes_max": body.bytes_max or 4 * MIB, "commits_max": body.commits_max or COMMITS_MAX}
    page = _poll(caller, body, cursor=body.cursor, start=body.start or START, page=body.page_token, **limits)
    document = _document(caller, page)
    if caller.negotiated.form != "ndjson":
        return Answer(document, commit=page.cut)
    metadata = StreamMetadataDocument(content="changes", branch=body.branch or MAIN, graph_commit_id=page.cut)

    def end(count: int) -> EndDocument:
        return EndDocument(
            rows=count,
            graph_commit_id=page.cut,
            next_page_token=document.next_page_token,
            cursor=document.cursor,
            caught_up=document.caught_up,
        )

    return Chunks(line_chunks(metadata, document.blocks, end), caller.negotiated.content_type, commit=page.cut)


def stream_changes(caller: Caller, body: ChangesStreamQuery) -> Events:
    """Send the commits of a branch as they are made. The id of an event is the cursor that continues after it."""
    body.check()
    return Events(_ChangeEvents(caller, body).poll)


class _ChangeEvents:
    """The events of one stream."""

    def __init__(self, caller: Caller, body: ChangesStreamQuery) -> None:
        self._caller = caller
        self._body = body
        self._cursor = caller.headers.get("last-event-id") or body.cursor
        self._page: str | None = None
        self._started = False

    def poll(self) -> bytes | None:
        """Return the next event, nothing if no commit was made, or None at the end of the stream."""
        if self._started and not stream_is_valid(self._caller):
            return None
        try:
            page = _poll(
                self._caller, self._body, cursor=self._cursor, start=self._body.start or START, page=self._page
            )
        except Cancelled:
            return None
        is_first, self._started = not self._started, True
        self._page = page.page
        if page.cursor is not None:
            self._cursor = page.cursor
        if page.blocks:
            self._measure(page)
            return _event(page.cursor, _document(self._caller, page))
        return f"id: {page.cursor}\n\n".encode() if is_first else b""

    def _measure(self, page: ChangePage) -> None:
        """Count the time since the newest commit of a page, which is sent now."""
        caller = self._caller
        metrics = caller.server.reporter.metrics
        if metrics is not None and caller.served is not None:
            metrics.delivered(caller.served.graph_id, time.time() - page.blocks[-1].commit.created_us / 1_000_000)


def _event(cursor: str | None, document: ChangesDocument) -> bytes:
    """Return one event. A part of a commit has no id: a client that reconnects receives the commit from its start."""
    id_ = b"" if cursor is None else f"id: {cursor}\n".encode()
    return id_ + b"event: changes\ndata: " + encoder.encode(document) + b"\n\n"


def _poll(
    caller: Caller, body: ChangesStreamQuery, *, cursor: str | None, start: str, page: str | None, **limits: int
) -> ChangePage:
    return caller.graph.changes(
        cursor,
        start=start,
        page=page,
        branch=body.branch,
        kinds=body.kind,
        types=body.type,
        ops=body.op,
        changes_max=body.changes_max,
        **limits,
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )


def _document(caller: Caller, page: ChangePage) -> ChangesDocument:
    document = FeedPageDocument.of(page.to_json(caller.row_value))
    for block, read in zip(document.blocks, page.blocks, strict=True):
        block.cause.commit = commit_detail(caller, read.commit)
    answer = changes_document(document)
    if caller.negotiated.typed:
        answer.cut_commit_id = page.cut
    return answer


def export_baseline(caller: Caller, body: BaselineRequest) -> Chunks:
    """Return the records at the head of a branch, then the cursor that continues from there."""
    records = caller.graph.changes_baseline(
        branch=body.branch,
        kinds=body.kind,
        types=body.type,
        ops=body.op,
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )
    if caller.negotiated.typed:
        lines = (encoder.encode(typed_value(record)) for record in records)
    else:
        lines = (compact(record).encode() for record in records)
    return Chunks(joined_lines(lines), caller.negotiated.content_type)
