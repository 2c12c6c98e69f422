"""Routes of differences and of the change feed."""

from __future__ import annotations

from omnigraph.server.route import Gate, Route
from omnigraph.server.routes import changes, diff
from omnigraph.wire.change_feed import ChangesDocument
from omnigraph.wire.changes import DiffDocument, DiffGraphDocument, DiffSummaryDocument
from omnigraph.wire.requests.changes import (
    BaselineRequest,
    ChangesQuery,
    ChangesStreamQuery,
    DiffGraphQuery,
    DiffPointsQuery,
    DiffQuery,
)

_DIFF = (
    Gate("read", branch="branch", unless=("from_", "to", "after")),
    Gate("read", branch="branch", given="branch"),
)

ROUTES: tuple[Route, ...] = (
    Route(
        name="diff",
        method="GET",
        path="/diff",
        handler=diff.diff,
        tag="changes",
        summary="Return the changed nodes and edges between two points.",
        input=DiffQuery,
        answer=DiffDocument,
        gates=_DIFF,
        forms=("json", "ndjson"),
        statuses=(410,),
    ),
    Route(
        name="diffSummary",
        method="GET",
        path="/diff/summary",
        handler=diff.diff_summary,
        tag="changes",
        summary="Count the changed nodes and edges between two points, by table and operation.",
        input=DiffPointsQuery,
        answer=DiffSummaryDocument,
        gates=_DIFF,
    ),
    Route(
        name="diffGraph",
        method="GET",
        path="/diff/graph",
        handler=diff.diff_graph,
        tag="changes",
        summary="Return the first changes between two points as a graph with unchanged neighbours.",
        input=DiffGraphQuery,
        answer=DiffGraphDocument,
        gates=_DIFF,
    ),
    Route(
        name="pollChanges",
        method="GET",
        path="/changes",
        handler=changes.poll_changes,
        tag="changes",
        summary="Return the commits of a branch since a cursor, with their changes.",
        input=ChangesQuery,
        answer=ChangesDocument,
        gates=(Gate("read", branch="branch"),),
        forms=("json", "ndjson"),
        statuses=(410,),
    ),
    Route(
        name="streamChanges",
        method="GET",
        path="/changes/stream",
        handler=changes.stream_changes,
        tag="changes",
        summary="Send the commits of a branch as events; the header `Last-Event-ID` continues a stream.",
        input=ChangesStreamQuery,
        gates=(Gate("read", branch="branch"),),
        lane="streams",
        forms=("events",),
        statuses=(410,),
    ),
    Route(
        name="exportBaseline",
        method="POST",
        path="/changes/baseline",
        handler=changes.export_baseline,
        tag="changes",
        summary="Return the records at the head of a branch, then the cursor that continues from there.",
        input=BaselineRequest,
        gates=(Gate("export", branch="branch"),),
        lane="exports",
        body="json",
        forms=("ndjson",),
    ),
)
