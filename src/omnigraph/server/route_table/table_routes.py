"""Routes that read without a query: tables, nodes, edges, exports and blobs."""

from __future__ import annotations

from omnigraph.server.route import READ, Gate, Route
from omnigraph.server.routes import blobs, entities, export, snapshot, tables
from omnigraph.wire.changes import BlameDocument, HistoryDocument
from omnigraph.wire.entities import EntityDocument
from omnigraph.wire.exploration import NeighborListDocument
from omnigraph.wire.graph_state import SnapshotDocument
from omnigraph.wire.requests.exploration import NeighborQuery
from omnigraph.wire.requests.tables import (
    BlobQuery,
    EntityQuery,
    ExportRequest,
    GetQuery,
    HistoryQuery,
    SnapshotQuery,
    TableQuery,
)

_EXPORT = Gate("export", branch="branch", unless=("at",))

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
    Route(
        name="getEntity",
        method="GET",
        path="/entities/{type}/{id}",
        handler=entities.get_entity,
        tag="entities",
        summary="Return one node or edge.",
        input=GetQuery,
        answer=EntityDocument,
        gates=(READ,),
        etag=True,
    ),
    Route(
        name="getEntityHistory",
        method="GET",
        path="/entities/{type}/{id}/history",
        handler=entities.get_history,
        tag="entities",
        summary="Return the changes of one node or edge, newest first.",
        input=HistoryQuery,
        answer=HistoryDocument,
        gates=(Gate("read", branch="branch", unless=("at",)),),
    ),
    Route(
        name="getEntityBlame",
        method="GET",
        path="/entities/{type}/{id}/blame",
        handler=entities.get_blame,
        tag="entities",
        summary="Return the commit that last set each property of one node or edge.",
        input=EntityQuery,
        answer=BlameDocument,
        gates=(READ,),
    ),
    Route(
        name="getEntityNeighbors",
        method="GET",
        path="/entities/{type}/{id}/neighbors",
        handler=entities.get_neighbors,
        tag="entities",
        summary="Return the edges of a node and the nodes at their other ends, in pages.",
        input=NeighborQuery,
        answer=NeighborListDocument,
        gates=(READ,),
    ),
    Route(
        name="readTable",
        method="GET",
        path="/tables/{type}",
        handler=tables.read_table,
        tag="snapshots",
        summary="Return all rows of a type.",
        input=TableQuery,
        gates=(_EXPORT,),
        lane="exports",
        forms=("arrow", "ndjson", "csv"),
    ),
    Route(
        name="export",
        method="POST",
        path="/export",
        handler=export.export,
        tag="queries",
        summary="Return the records of a snapshot as JSON lines that a load reads.",
        input=ExportRequest,
        gates=(_EXPORT,),
        lane="exports",
        body="json",
        forms=("ndjson", "arrow"),
        strict=False,
    ),
    Route(
        name="getBlob",
        method="GET",
        path="/blob",
        handler=blobs.get_blob,
        tag="snapshots",
        summary="Return the value of a Blob property, or a range of its bytes.",
        input=BlobQuery,
        gates=(READ,),
        forms=("octets",),
        statuses=(206, 304, 412, 416),
    ),
)
