"""Routes that read without a query: tables, nodes, edges, exports and blobs."""

from __future__ import annotations

from omnigraph.server.route import READ, Route
from omnigraph.server.routes import snapshot
from omnigraph.wire.graph_state import SnapshotDocument
from omnigraph.wire.requests.tables import SnapshotQuery

ROUTES: tuple[Route, ...] = (
    Route(
        name="getSnapshot",
        method="GET",
        path="/snapshot",
        handler=snapshot.snapshot,
        tag="snapshots",
        summary="Return the tables of a branch with their versions and row counts.",
        input=SnapshotQuery,
        answer=SnapshotDocument,
        gates=(READ,),
        etag=True,
        strict=False,
    ),
)
