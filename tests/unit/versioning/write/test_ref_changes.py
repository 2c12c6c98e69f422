"""History rows of changes of branches and tags."""

from __future__ import annotations

import pytest

from omnigraph.errors import InputError
from omnigraph.graph import Graph
from omnigraph.storage.manifest.manifest_schema import HistoryFilter
from omnigraph.versioning.model.manifest_rows import read_metadata
from support.store import repository_of
from support.writes import new_graph, shelf


@pytest.fixture
def graph(tmp_path) -> Graph:
    return new_graph(tmp_path).on("main")


def changes(graph: Graph) -> list[tuple[str, str, str, str | None, str | None]]:
    """Action, name, commit, actor and message of every recorded change, oldest first."""
    repository = repository_of(graph)
    rows = repository.manifest.scan(repository.state().manifest, HistoryFilter("ref_change"))
    rows.sort(key=lambda row: read_metadata(row)["created_at"])
    names = ("action", "name", "commit_id", "actor_id", "message")
    return [tuple(read_metadata(row)[name] for name in names) for row in rows]


def test_every_change_of_a_branch_or_tag_is_recorded(graph):
    start = graph.snapshot().commit_id
    graph.branch_create("side", actor="ana", message="a try")
    commit = graph.load([shelf("a")], mode="append", branch="side").commit_id
    graph.tag_create("v1", actor="ana", message="first")
    graph.tag_delete("v1", actor="bo", message="wrong")
    graph.branch_delete("side", force=True, actor="bo", message="stale")
    assert changes(graph) == [
        ("branch_create", "side", start, "ana", "a try"),
        ("tag_create", "v1", start, "ana", "first"),
        ("tag_delete", "v1", start, "bo", "wrong"),
        ("branch_delete", "side", commit, "bo", "stale"),
    ]


def test_a_merge_and_an_ingest_record_their_author(graph):
    graph.ingest([shelf("a")], branch="side", actor="ana", message="feed")
    head = graph.snapshot("side").commit_id
    graph.merge("side", delete_branch=True, actor="bo")
    assert [(action, name, actor) for action, name, _, actor, _ in changes(graph)] == [
        ("branch_create", "side", "ana"),
        ("branch_delete", "side", "bo"),
    ]
    assert changes(graph)[1][2] == head


def test_a_refused_change_is_not_recorded(graph):
    with pytest.raises(InputError, match="message is not valid"):
        graph.branch_create("side", message="half \ud800")
    with pytest.raises(InputError):
        graph.branch_delete("main")
    assert changes(graph) == []
