"""Names of points: branches, tags, commit ids and their prefixes, in all interfaces."""

from __future__ import annotations

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import CommitNotFound, InputError
from omnigraph.versioning.model.points import commit_with_prefix

SCHEMA = "node Film {\n    id_no: I64 @key\n    title: String?\n}\n"


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False)
    graph.load([{"type": "Film", "data": {"id_no": 1, "title": "Alien"}}], mode="merge")
    graph.tag_create("v1")
    graph.branch_create("rev")
    graph.on("rev").load([{"type": "Film", "data": {"id_no": 2}}], mode="merge")
    return graph


def shortest_prefix(graph, commit_id):
    """Return the shortest prefix of an id that no other commit of the test has; ids of one moment share a prefix."""
    others = [commit.id for branch in graph.branches() for commit in graph.commits(branch) if commit.id != commit_id]
    return next(commit_id[:n] for n in range(8, 27) if not any(other.startswith(commit_id[:n]) for other in others))


def films(graph, **where):
    return graph.query("match { $f: Film } return { count($f) as n }", **where).to_rows()[0]["n"]


def test_a_point_is_a_branch_a_tag_or_a_prefix(graph):
    commit_id = graph.on("rev").commits()[0].id
    prefix = shortest_prefix(graph, commit_id)
    assert films(graph) == 1
    assert [films(graph, at=at) for at in ("rev", "v1", prefix, prefix.lower(), commit_id)] == [2, 1, 2, 2, 2]
    assert graph.commit(prefix).id == graph.commit("rev").id == commit_id
    assert len(graph.commit_changes(prefix).changes) == 1
    assert len(list(graph.diff("v1", prefix))) == 1
    assert graph.tag_create("v2", "rev").commit_id == commit_id
    assert graph.branch_create("again", at="v2").commit_id == commit_id
    assert len(list(graph.changes(start="after:v1", branch="rev"))) == 1


def test_a_revert_accepts_any_point(graph):
    commit_id = graph.commits()[0].id
    assert not graph.revert_preview("v1").conflicts
    assert graph.revert("v1").reverted == commit_id
    assert films(graph) == 0


def test_an_unknown_point_lists_the_forms(graph):
    with pytest.raises(CommitNotFound, match="there is no branch, tag or commit 'rve'") as caught:
        films(graph, at="rve")
    assert caught.value.hint.startswith("did you mean 'rev'? a point is a branch, a tag, a commit id or its first 8")


def test_a_prefix_of_several_commits_is_refused():
    ids = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"]
    assert commit_with_prefix("01ARZ3N", ids) is None
    assert commit_with_prefix(ids[0], ids) == ids[0]
    with pytest.raises(InputError, match="'01ARZ3ND' is the prefix of 2 commit ids"):
        commit_with_prefix("01ARZ3ND", ids)


def test_a_diff_with_an_unknown_point_fails_at_the_call(graph):
    with pytest.raises(CommitNotFound, match="'nope'"):
        graph.diff("main", "nope")


@pytest.mark.parametrize("id_", [1, "1", np.int64(1)], ids=lambda id_: type(id_).__name__)
def test_an_integer_key_is_an_id_everywhere(graph, id_):
    assert graph.get("Film", id_)["title"] == graph.entity_at("Film", id_, "v1")["title"] == "Alien"
    assert [change.op for change in graph.history("Film", id_)] == ["insert"]
    assert {blame.property for blame in graph.blame("Film", id_)} >= {"id_no", "title"}


@pytest.mark.parametrize("method", ["get", "history", "blame"])
def test_an_id_of_another_type_is_refused(graph, method):
    with pytest.raises(InputError, match="an id is a str or an int, not float"):
        getattr(graph, method)("Film", 1.5)


def test_a_diff_lists_schema_changes(graph):
    graph.on("rev").apply_schema("node Film {\n    id_no: I64 @key\n    year: I32?\n}\n", allow_data_loss=True)
    found = graph.diff("main", "rev")
    assert [step.partition(" (")[0] for step in found.schema_steps] == [
        "add property Film.year: I32?",
        "drop property Film.title",
    ]
    assert graph.diff("main", "v1").schema_steps == ()
    assert graph.merge("rev").schema_steps == found.schema_steps
