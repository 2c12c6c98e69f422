"""`merge { properties: combine }`: edits of different properties of one row combine, in every kind of merge."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.operations.authorization.difference_rights import check_difference
from omnigraph.operations.merge.merge import MergeRequest, merge_branch
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from omnigraph.query.write_guard import WriteGuard
from omnigraph.types import PropertyType
from omnigraph.versioning.write.transaction import WriteOptions

TYPES = """node Person {
    name: String @key
    age: I32?
    town: String?
    code: String? @unique
    mail: String?
    @unique(town, mail)
    @range(age, 0..150)
}

edge Knows: Person -> Person {
    since: I32?
    kind: String?
}
"""
COMBINE = "merge {\n    properties: combine\n}\n\n"


@pytest.fixture
def graph(tmp_path):
    return made(tmp_path, COMBINE + TYPES)


def made(tmp_path, schema):
    graph = og.init(tmp_path / "g", schema, sync=False, actor="ana")
    people = [{"type": "Person", "data": {"name": name, "age": 1, "town": name}} for name in ("Ana", "Bo")]
    graph.load([*people, {"edge": "Knows", "from": "Ana", "to": "Bo", "data": {"id": "k", "since": 1}}], mode="append")
    graph.branch_create("side")
    return graph


def put(graph, changes, name="Ana", branch=None):
    return graph.mutate(f'update Person set {{ {changes} }} where name = "{name}"', branch=branch).commit_id


def row(graph, name="Ana"):
    return next(each["data"] for each in graph.export(types=["Person"]) if each["data"]["name"] == name)


def both(graph, theirs, ours):
    put(graph, theirs, branch="side")
    put(graph, ours)


def test_different_properties_combine(graph):
    both(graph, "age: 2", 'town: "Oslo"')
    graph.mutate("update Knows set { since: 2 } where since = 1", branch="side")
    graph.mutate('update Knows set { kind: "friend" } where since = 1')
    preview = graph.merge_preview("side")
    assert preview.conflicts == []
    assert [settled.id for settled in preview.settled] == ["node:Person:Ana", "edge:Knows:k"]
    graph.merge("side")
    assert (row(graph)["age"], row(graph)["town"]) == (2, "Oslo")
    (edge,) = graph.export(types=["Knows"])
    assert (edge["data"]["since"], edge["data"]["kind"]) == (2, "friend")
    assert graph.verify() == []


def test_the_default_is_a_conflict_whose_hint_names_the_setting(tmp_path):
    graph = made(tmp_path, TYPES)
    both(graph, "age: 2", 'town: "Oslo"')
    put(graph, "age: 3", "Bo", "side")
    put(graph, 'town: "Rome"', "Bo")
    with pytest.raises(og.errors.MergeConflict) as caught:
        graph.merge("side")
    assert len(caught.value.conflicts) == 2
    assert caught.value.hint.count("merge { properties: combine }") == 1
    graph.apply_schema(COMBINE + TYPES)
    graph.merge("side")
    assert (row(graph)["age"], row(graph)["town"]) == (2, "Oslo")


def test_the_schema_of_the_target_decides(tmp_path):
    graph = made(tmp_path, TYPES)
    both(graph, "age: 2", 'town: "Oslo"')
    applied = graph.apply_schema(COMBINE + TYPES, branch="side")
    assert [step.to_json() for step in applied.steps] == [{"kind": "update_merge", "properties": "combine"}]
    assert [conflict.id for conflict in graph.merge_preview("side").conflicts] == ["node:Person:Ana"]
    graph.merge("side", resolve="columns")
    assert graph.catalog().merge_properties == "combine"


CONFLICTS = {
    "the same property": ("age: 2", "age: 3", "divergent_update"),
    "a value of both": ('town: "x"', 'mail: "m"', "unique_violation"),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_the_combined_row_is_validated(graph, name):
    put(graph, 'town: "x", mail: "m"', "Bo")
    graph.branch_delete("side", force=True)
    graph.branch_create("side")
    theirs, ours, kind = CONFLICTS[name]
    both(graph, theirs, ours)
    with pytest.raises(og.errors.MergeConflict) as caught:
        graph.merge("side")
    assert [conflict.kind for conflict in caught.value.conflicts] == [kind]


def test_a_combined_period_that_ends_before_it_starts_is_a_conflict(tmp_path):
    period = TYPES.replace("edge Knows: Person -> Person {", "edge Knows: Person -> Person @valid(from: on, to: off) {")
    graph = made(tmp_path, COMBINE + period.replace("since: I32?", "since: I32?\n    on: Date?\n    off: Date?"))
    graph.mutate('update Knows set { on: date("2020-01-01") } where since = 1', branch="side")
    head = graph.mutate('update Knows set { off: date("2010-01-01") } where since = 1').commit_id
    with pytest.raises(og.errors.MergeConflict) as caught:
        graph.merge("side")
    assert [conflict.kind for conflict in caught.value.conflicts] == ["value_constraint_violation"]
    assert graph.head().commit_id == head


def is_allowed(name, value, type_):
    type_ = PropertyType(type_, nullable=True)
    return ir.Compare("=", ir.Prop(ROW, name, type_), ir.Const(value, type_.with_nullable(False)))


def test_a_combined_row_needs_the_right_of_the_merging_actor(graph):
    """Each edit alone is allowed, and the combined row is not."""
    either = ir.Logic("or", (is_allowed("age", 1, "I32"), is_allowed("town", "Ana", "String")))
    ana = Graph(graph._context.with_guard(WriteGuard(Visibility(), {("row_update", "node:Person"): either})))
    put(ana, "age: 2", branch="side")
    head = put(ana, 'town: "Oslo"')
    with pytest.raises(og.errors.Denied, match="'row_update' of Person 'Ana' as it would be"):
        ana.merge("side")
    assert graph.head().commit_id == head
    graph.merge("side")
    assert (row(graph)["age"], row(graph)["town"]) == (2, "Oslo")


def test_a_deleted_row_is_a_conflict(graph):
    put(graph, "age: 2", branch="side")
    graph.mutate('delete Knows where since = 1 delete Person where name = "Ana"')
    assert [conflict.kind for conflict in graph.merge_preview("side").conflicts] == ["delete_vs_update"]


@pytest.mark.parametrize("resolve", ["ours", {"Person": "ours"}, {"node:Person:Ana": "ours"}, {"*": "ours"}])
def test_a_given_resolution_takes_precedence(graph, resolve):
    both(graph, "age: 2", 'town: "Oslo"')
    graph.merge("side", resolve=resolve)
    assert (row(graph)["age"], row(graph)["town"]) == (1, "Oslo")


def test_a_revert_combines(graph):
    commit = put(graph, "age: 2")
    put(graph, 'town: "Oslo"')
    assert graph.revert_preview(commit).conflicts == []
    graph.revert(commit)
    assert (row(graph)["age"], row(graph)["town"]) == (1, "Oslo")


def test_a_landing_combines(graph):
    both(graph, "age: 2", 'town: "Oslo"')
    proposal = graph.propose("side", title="Age")
    assert og.open(graph.uri, actor="bo").proposal(proposal.id).land()
    assert (row(graph)["age"], row(graph)["town"]) == (2, "Oslo")


def test_a_merge_in_other_processes_combines(graph):
    both(graph, "age: 2", 'town: "Oslo"')

    def run(task, job, ranges):
        for within in ranges:
            task_, job_, within_ = pickle.loads(pickle.dumps((task, job, within)))
            yield pickle.loads(pickle.dumps(task_(job_, within_)))

    rights = partial(check_difference, graph._context)
    merge_branch(graph._repository, MergeRequest("side", WriteOptions(), rights, run_ranges=run))
    assert (row(graph)["age"], row(graph)["town"]) == (2, "Oslo")


def test_the_setting_is_part_of_the_schema(graph):
    assert graph.schema == COMBINE + TYPES
    assert graph.catalog().merge_properties == "combine"
    commit = graph.apply_schema(TYPES).commit_id
    assert graph.catalog().merge_properties == "conflict"
    assert graph.catalog(at=graph.commit(commit).parent_id).merge_properties == "combine"
    graph.revert(commit)
    assert graph.catalog().merge_properties == "combine"
    assert graph.apply_schema(f"{TYPES}\nmerge {{ properties: combine }}").steps == ()


def test_settings_of_both_sides_merge(graph):
    graph.apply_schema(TYPES, branch="side")
    graph.apply_schema(COMBINE + TYPES.replace("since: I32?", "since: I32?\n    note: String?"))
    graph.merge("side")
    assert graph.catalog().merge_properties == "conflict"
    assert "note" in graph.catalog().edges["Knows"].properties
