"""The differences between two points."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import UNSET

from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer, Chunks
from omnigraph.server.messages.content_negotiation import LIST_HINT, check_json, line_chunks
from omnigraph.versioning.compare.changeset import ChangeSet
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.changes import DiffDocument, DiffGraphDocument, DiffSummaryDocument, RowChangeDocument
from omnigraph.wire.json_lines import EndDocument, StreamMetadataDocument
from omnigraph.wire.requests.changes import DiffGraphQuery, DiffPointsQuery, DiffQuery


def diff(caller: Caller, body: DiffQuery) -> Answer | Chunks:
    """Return the changed nodes and edges between two points, with their values before and after."""
    rows_max = caller.state.settings.limits.json_rows
    found = _read(caller, body, rows_max)
    first, last = found.commits
    if caller.negotiated.form == "ndjson":
        return _lines(caller, body, found)
    documents = list(islice(_documents(caller, found), rows_max + 1)) if body.changes else []
    check_json("rows", len(documents), rows_max, LIST_HINT)
    document = DiffDocument(
        from_=body.from_,
        to=body.to,
        schema_steps=list(found.schema_steps),
        aliases=list(found.aliases) or UNSET,
        changes=documents,
        truncated=UNSET if body.limit is None else found.next is not None,
        next=UNSET if found.next is None else found.next,
        from_commit_id=first,
        to_commit_id=last,
    )
    return Answer(document, commit=last)


def diff_summary(caller: Caller, body: DiffPointsQuery) -> Answer:
    """Count the changes between two points by table and operation."""
    found = caller.graph.on(body.branch or MAIN).diff_summary(
        point_of(body.first),
        point_of(body.last),
        kinds=body.kind,
        types=body.type,
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )
    return Answer(DiffSummaryDocument.of(found.to_json()), commit=found.commits[1])


def diff_graph(caller: Caller, body: DiffGraphQuery) -> Answer:
    """Return the first changes between two points as a graph."""
    found = caller.graph.on(body.branch or MAIN).diff_graph(
        point_of(body.first),
        point_of(body.last),
        kinds=body.kind,
        types=body.type,
        ops=body.op,
        limit=body.limit,
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )
    return Answer(DiffGraphDocument.of(found.to_json(caller.row_value)), commit=found.summary.commits[1])


def _read(caller: Caller, body: DiffQuery, rows_max: int) -> ChangeSet:
    """Return the requested changes. After a cursor without a limit there are as many as a JSON document has."""
    return caller.graph.on(body.branch or MAIN).diff(
        point_of(body.first),
        point_of(body.last),
        kinds=body.kind,
        types=body.type,
        ops=body.op,
        limit=rows_max if body.limit is None and body.after is not None else body.limit,
        after=body.after,
        cancel=caller.cancel,
        timeout=caller.timeout_s,
    )


def _lines(caller: Caller, body: DiffQuery, found: ChangeSet) -> Chunks:
    first, last = found.commits
    metadata = StreamMetadataDocument(
        content="diff",
        from_=body.from_,
        to=body.to,
        schema_steps=list(found.schema_steps),
        graph_commit_id=last,
        from_commit_id=first,
        to_commit_id=last,
    )

    def end(count: int) -> EndDocument:
        return EndDocument(rows=count, graph_commit_id=last, next=UNSET if found.next is None else found.next)

    chunks = line_chunks(metadata, _documents(caller, found), end)
    return Chunks(chunks, caller.negotiated.content_type, commit=last)


def _documents(caller: Caller, found: ChangeSet) -> Iterator[RowChangeDocument]:
    for change in found:
        yield RowChangeDocument.of(change.to_json(caller.row_value))
