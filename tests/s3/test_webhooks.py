"""The progress of webhooks in a bucket."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.server.webhooks.dispatcher import progress_of
from omnigraph.server.webhooks.events import GraphSource
from omnigraph.versioning.upkeep.owned_document import OwnershipLost
from support.s3 import S3
from support.writes import SHELVES, shelf


def test_one_process_owns_the_progress_and_events_are_read(s3: S3) -> None:
    graph = og.init(s3.new_place(), SHELVES, environ=s3.environ)
    source = GraphSource("g", graph, hides_changes=False)
    one, other = progress_of(graph, "erp"), progress_of(graph, "erp")
    start = source.start()
    assert one.take(lambda: {"position": start}) == {"position": start}
    assert other.take(dict) is None
    commit = graph.load([shelf("a")], mode="append").commit_id
    graph.tag_create("v1")
    events = source.read(start).events
    assert [(event.kind, event.id == commit) for event in events] == [("commit", True), ("tag.created", False)]
    one.write({"position": events[0].after})
    other._number = 1
    with pytest.raises(OwnershipLost):
        other.write({"position": start})
    one.release({"position": events[1].after})
    assert other.take(dict) == {"position": events[1].after}
    assert list(source.read(events[1].after).events) == []
