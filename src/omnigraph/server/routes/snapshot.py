"""The tables of a branch."""

from __future__ import annotations

from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer
from omnigraph.server.messages.details import commit_document
from omnigraph.wire.document import plain
from omnigraph.wire.graph_state import SchemaRecordDocument, SnapshotDocument
from omnigraph.wire.pins import PinDocument
from omnigraph.wire.requests.tables import SnapshotQuery


def snapshot(caller: Caller, body: SnapshotQuery) -> Answer:
    """Return the tables of a point with their versions and row counts."""
    found = caller.graph.snapshot(body.branch, point_of(body.at))
    document = SnapshotDocument.of(found.to_json())
    if caller.negotiated.typed:
        document.commit = commit_document(caller, found.commit)
        if caller.access is None or caller.access.decide("read").allowed:
            document.newest_version = caller.graph.newest_version
        document.schema = SchemaRecordDocument.of(plain(found.schema))
        for table in document.tables:
            table.pin = PinDocument.of(plain(found.tables[table.table_key].pin))
    return Answer(document, commit=found.commit_id)
