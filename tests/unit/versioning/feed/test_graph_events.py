"""Events of a graph in the order of its manifest."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.feed import graph_events
from omnigraph.versioning.feed.graph_events import (
    EventPosition,
    RefChange,
    is_lost,
    newest_position,
    read_events,
)
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.ref_changes import RefRequest
from support.store import repository_of
from support.writes import new_graph, shelf

TAGS = 50


@pytest.fixture
def graph(tmp_path) -> Graph:
    return new_graph(tmp_path)


def texts(graph: Graph, after: EventPosition) -> list[str]:
    """The events after a position in words, read one by one."""
    found = []
    while True:
        events, end = read_events(repository_of(graph), after)
        if not events:
            if end == after:
                return found
            after = end
            continue
        what = events[0].what
        found.append(f"{what.action} {what.name}" if isinstance(what, RefChange) else f"commit on {what.branch}")
        after = events[0].after


def test_commits_branches_and_tags_come_in_their_order(graph):
    start = newest_position(repository_of(graph))
    graph.load([shelf("a")], mode="append")
    graph.branch_create("side")
    graph.load([shelf("b")], mode="append", branch="side")
    graph.tag_create("v1")
    graph.merge("side", delete_branch=True)
    graph.tag_delete("v1")
    expected = [
        "commit on main",
        "branch_create side",
        "commit on side",
        "tag_create v1",
        "commit on main",
        "branch_delete side",
        "tag_delete v1",
    ]
    assert texts(graph, start) == expected
    assert newest_position(repository_of(graph)).version > start.version


def test_the_order_outlives_a_checkpoint(graph, monkeypatch):
    monkeypatch.setattr(graph_events, "VERSIONS", 7)
    repository = repository_of(graph)
    start = newest_position(repository)
    for number in range(TAGS):
        graph.tag_create(f"t{number}")
        graph.tag_delete(f"t{number}")
    assert repository.state().manifest.checkpoint.version > start.version, "a checkpoint was written"
    expected = [f"{action} t{number}" for number in range(TAGS) for action in ("tag_create", "tag_delete")]
    assert texts(graph, start) == expected
    assert texts(og.open(graph.uri, environ={}), start) == expected


def test_internal_branches_have_no_events(graph):
    repository = repository_of(graph)
    start = newest_position(repository)
    commit_id = graph.snapshot().commit_id

    def create(state: State) -> Change:
        return Change(add=RefRequest().rows("branch_create", "__internal", commit_id, 0, state.version + 1))

    repository.publish(create)
    assert texts(graph, start) == []
    assert newest_position(repository).version == start.version + 1


def test_a_position_of_another_graph_or_a_later_state_is_lost(graph):
    repository = repository_of(graph)
    here = newest_position(repository)
    assert not is_lost(repository, here)
    assert is_lost(repository, EventPosition("another", here.version, 0))
    assert is_lost(repository, EventPosition(here.graph, here.version + 1, 0))
