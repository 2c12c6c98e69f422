"""Routes of loads."""

from __future__ import annotations

from omnigraph.server.messages.content_negotiation import MEDIA_TYPES
from omnigraph.server.route import Gate, Route
from omnigraph.server.routes import load
from omnigraph.wire.loads import LoadAnswerDocument
from omnigraph.wire.requests.loads import IngestRequest, LoadFilesQuery, LoadQuery, LoadRequest, LoadTablesQuery

_CHANGE = (Gate("change", branch="branch"),)

ROUTES: tuple[Route, ...] = (
    Route(
        name="ingest",
        method="POST",
        path="/ingest",
        handler=load.ingest,
        tag="mutations",
        summary="Load JSON lines as one commit; a missing branch is created.",
        input=IngestRequest,
        answer=LoadAnswerDocument,
        gates=_CHANGE,
        lane="writes",
        body="json",
        limit="envelope",
        writes=True,
        strict=False,
        statuses=(409,),
    ),
    Route(
        name="load",
        method="POST",
        path="/load",
        handler=load.load,
        tag="mutations",
        summary="Load JSON lines as one commit; a missing branch is created only if `from` is given.",
        input=LoadRequest,
        answer=LoadAnswerDocument,
        gates=_CHANGE,
        lane="writes",
        body="json",
        limit="envelope",
        writes=True,
        strict=False,
        statuses=(409,),
    ),
    Route(
        name="loadNdjson",
        method="POST",
        path="/load/ndjson",
        handler=load.load_ndjson,
        tag="mutations",
        summary="Load a body of JSON lines as one commit.",
        input=LoadQuery,
        answer=LoadAnswerDocument,
        gates=_CHANGE,
        lane="writes",
        body="stream",
        limit="load",
        media_types=(MEDIA_TYPES["ndjson"],),
        writes=True,
        statuses=(202, 409),
    ),
    Route(
        name="loadArrow",
        method="POST",
        path="/load/arrow",
        handler=load.load_arrow,
        tag="mutations",
        summary="Load a body of Arrow IPC streams, one for each type, as one commit.",
        input=LoadTablesQuery,
        answer=LoadAnswerDocument,
        gates=_CHANGE,
        lane="writes",
        body="stream",
        limit="load",
        media_types=(MEDIA_TYPES["arrow"],),
        writes=True,
        statuses=(202, 409),
    ),
    Route(
        name="loadFiles",
        method="POST",
        path="/load/files",
        handler=load.load_files,
        tag="mutations",
        summary="Load a tar archive of JSONL, CSV, Parquet, Arrow, GraphML or Neo4j admin CSV files as one commit.",
        input=LoadFilesQuery,
        answer=LoadAnswerDocument,
        gates=_CHANGE,
        lane="writes",
        body="stream",
        limit="load",
        media_types=("application/x-tar",),
        writes=True,
        statuses=(202, 409),
    ),
)
