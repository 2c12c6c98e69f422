"""The tables of a branch."""

from __future__ import annotations

from omnigraph.server.answers import Answer
from omnigraph.server.caller import Caller, point_of
from omnigraph.wire.graph_state import SnapshotDocument
from omnigraph.wire.requests.tables import SnapshotQuery


def snapshot(caller: Caller, body: SnapshotQuery) -> Answer:
    """Return the tables of a point with their versions and row counts."""
    found = caller.graph.snapshot(body.branch, point_of(body.at))
    return Answer(SnapshotDocument.of(found.to_json()), commit=found.commit_id)
