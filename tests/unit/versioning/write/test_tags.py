"""Tags: permanent names for commits that protect their data and denote the same commit in all interfaces."""

from __future__ import annotations

from datetime import timedelta

import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.versioning.upkeep import maintenance
from support.writes import interfere, reopened

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\n\nedge Knows: Person -> Person\n"


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, actor="ana")
    graph.load([{"type": "Person", "data": {"name": "Bob", "age": 1}}], mode="append")
    return graph


def set_age(graph, age):
    return graph.mutate(f'query q() {{ update Person set {{ age: {age} }} where name = "Bob" }}').commit_id


def age_at(graph, at):
    return graph.entity_at("Person", "Bob", at)["age"]


def test_a_tag_does_not_move(graph):
    head = graph.snapshot().commit_id
    tag = graph.tag_create("v1", message="the first")
    assert (tag.name, tag.commit_id, tag.actor, tag.message) == ("v1", head, "ana", "the first")
    set_age(graph, 2)
    assert [t.name for t in graph.tags()] == ["v1"]
    assert graph.tags() == [tag] == reopened(graph).tags()
    assert age_at(graph, "v1") == 1
    assert graph.snapshot(at="v1").commit_id == head
    assert graph.verify() == []


def test_a_tag_is_a_point_everywhere(graph):
    first = graph.snapshot().commit_id
    set_age(graph, 2)
    graph.tag_create("old/first", at=first)
    query = "query q() { match { $p: Person } return { $p.age } }"
    assert graph.query(query, at="old/first").to_pylist() == [{"p.age": 1}]
    assert [(c.before["age"], c.after["age"]) for c in graph.diff("old/first", "main")] == [(1, 2)]
    assert [(c.before["age"], c.after["age"]) for c in graph.diff("main", "old/first")] == [(2, 1)]
    assert [r["data"]["age"] for r in graph.export(types=["Person"], at="old/first")] == [1]
    assert len(list(graph.history("Person", "Bob", at="old/first"))) == 1
    graph.branch_create("again", at="old/first")
    assert age_at(graph.on("again"), None) == 1
    assert graph.tag_create("same", at="old/first").commit_id == first
    assert graph.tag_create("side-head", at="again").commit_id == first


def test_valid_and_invalid_tag_names(graph):
    graph.branch_create("side")
    graph.tag_create("v1")
    for name, error in {"v1": "tag_exists", "side": "tag_exists", "main": "bad_input", "": "bad_input"}.items():
        with pytest.raises(OmniGraphError) as caught:
            graph.tag_create(name)
        assert caught.value.code == error, name
    for name in ("a b", "../x", "x.lock", "__x", graph.snapshot().commit_id):
        with pytest.raises(og.errors.InputError, match=r"tag name|belong to the engine"):
            graph.tag_create(name)
    with pytest.raises(og.errors.BranchExists, match="tag 'v1' already exists"):
        graph.branch_create("v1")
    with pytest.raises(og.errors.CommitNotFound):
        graph.tag_create("v2", at="nothing")


def test_deleting_a_tag(graph):
    head = graph.tag_create("v1").commit_id
    with pytest.raises(og.errors.TagNotFound, match="no tag 'v2'"):
        graph.tag_delete("v2")
    graph.tag_delete("v1")
    assert graph.tags() == []
    with pytest.raises(og.errors.CommitNotFound):
        graph.snapshot(at="v1")
    with pytest.raises(og.errors.TagNotFound):
        graph.tag_delete("v1")
    assert graph.snapshot(at=head).commit_id == head
    set_age(graph, 2)
    assert graph.tag_create("v1").commit_id != head, "a name can be used again"


def test_a_cleanup_keeps_tagged_data(graph):
    graph.tag_create("v1")
    lost = set_age(graph, 2)
    for age in range(3, 8):
        set_age(graph, age)
    maintenance.cleanup(graph._repository, keep=1, confirm=True, grace=timedelta(0))
    fresh = reopened(graph)
    assert age_at(fresh, "v1") == 1
    with pytest.raises(og.errors.Damaged) as caught:
        age_at(fresh, lost)
    assert caught.value.code == "version_reclaimed"
    with pytest.raises(og.errors.Damaged) as caught:
        fresh.tag_create("late", at=lost)
    assert caught.value.code == "version_reclaimed"
    assert fresh.verify() == []
    fresh.tag_delete("v1")
    maintenance.cleanup(fresh._repository, keep=1, confirm=True, grace=timedelta(0))
    with pytest.raises(og.errors.Damaged):
        age_at(reopened(graph), fresh.commits()[-2].id)


def test_a_drop_keeps_tagged_data(graph):
    graph.tag_create("v1")
    graph.apply_schema(SCHEMA.replace("    age: I32?\n", ""), allow_data_loss=True)
    assert age_at(reopened(graph), "v1") == 1
    assert reopened(graph).verify() == []


def test_verify_reads_tagged_data(graph, tmp_path):
    graph.tag_create("v1")
    set_age(graph, 2)
    folder = tmp_path / "g" / graph.snapshot(at="v1").tables["node:Person"].folder
    version = graph.snapshot(at="v1").tables["node:Person"].pin.lance_version
    (folder / "_versions" / f"{2**64 - 1 - version:020}.manifest").unlink()
    assert len(reopened(graph).verify()) == 1


def test_exactly_one_of_two_creators_of_a_tag_wins(graph, monkeypatch):
    other = reopened(graph)
    interfere(monkeypatch, lambda: other.tag_create("v1", message="theirs"))
    with pytest.raises(og.errors.TagExists):
        graph.tag_create("v1", message="ours")
    assert [tag.message for tag in graph.tags()] == ["theirs"]


def test_tags_survive_many_commits(graph):
    graph.tag_create("v1")
    for age in range(2, 90):
        set_age(graph, age)
    assert age_at(reopened(graph), "v1") == 1
    assert len(reopened(graph).tags()) == 1


def test_the_json_form(graph):
    shown = graph.tag_create("v1", message="m").to_json()
    assert set(shown) == {"name", "graph_commit_id", "created_at", "actor_id", "message"}
