"""Reverts: the changes of the commit are undone, later changes stay, and dependent changes are conflicts."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.versioning.write.repository import Repository
from support.writes import everything

SCHEMA = (
    "node Person {\n    name: String @key\n    age: I32?\n    town: String?\n    code: String? @unique\n}\n\n"
    "edge Knows: Person -> Person\n"
)
NAMES = ("Alice", "Bob", "Carol")


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, actor="ana")
    graph.load([{"type": "Person", "data": {"name": name, "age": 30}} for name in NAMES], mode="append")
    graph.mutate('query q() { insert Knows { from: "Bob", to: "Carol" } }')
    return graph


def put(graph, text, **options):
    return graph.mutate(f"query q() {{ {text} }}", **options).commit_id


def records(graph):
    return list(graph.export())


STATEMENTS = {
    "an insert": 'insert Person { name: "Dan" } insert Knows { from: "Dan", to: "Bob" }',
    "an update": 'update Person set { age: 1 } where name = "Bob"',
    "a delete": 'delete Person where name = "Bob"',
    "an update of all": "update Person set { age: 1 } where age = 30",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_revert_of_the_last_commit_restores_the_rows(graph, name):
    before = records(graph)
    commit = put(graph, STATEMENTS[name], message="a try")
    after = records(graph)
    assert after != before
    result = graph.revert(commit)
    assert records(graph) == before
    made = graph.commit(result.commit_id)
    assert (made.kind, made.message, made.metadata["reverts"]) == ("revert", "revert a try", commit)
    assert made.merged_parent_id is None
    assert graph.verify() == []
    graph.revert(result.commit_id)
    assert records(graph) == after, "and back again"


def test_later_commits_stay(graph):
    first = put(graph, 'update Person set { age: 1 } where name = "Alice"')
    put(graph, 'update Person set { age: 2 } where name = "Bob"')
    put(graph, 'insert Person { name: "Dan" }')
    assert graph.revert_preview(first).to_json()["tables"] == {
        "node:Person": {"inserted": 0, "updated": 1, "deleted": 0, "adopted": False}
    }
    graph.revert(first, message="no", actor="ben")
    ages = {r["data"]["name"]: r["data"]["age"] for r in graph.export(types=["Person"])}
    assert ages == {"Alice": 30, "Bob": 2, "Carol": 30, "Dan": None}
    assert (graph.commits()[0].message, graph.commits()[0].actor) == ("no", "ben")


def test_rows_changed_again_are_a_conflict(graph):
    first = put(graph, 'update Person set { age: 1 } where name = "Alice"')
    put(graph, 'update Person set { town: "Rome" } where name = "Alice"')
    before = everything(graph)
    with pytest.raises(og.errors.MergeConflict, match=f"commit {first} cannot be reverted") as caught:
        graph.revert(first)
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.id) == ("divergent_update", "node:Person:Alice")
    assert everything(graph) == before
    assert graph.revert_preview(first).conflicts == list(caught.value.conflicts)
    graph.revert(first, resolve="columns")
    row = graph.entity_at("Person", "Alice", None)
    assert (row["age"], row["town"]) == (30, "Rome")


def test_rows_still_referenced_are_a_conflict(graph):
    added = put(graph, 'insert Person { name: "Dan" }')
    put(graph, 'insert Knows { from: "Alice", to: "Dan" }')
    with pytest.raises(og.errors.MergeConflict) as caught:
        graph.revert(added)
    assert [conflict.kind for conflict in caught.value.conflicts] == ["orphan_edge"]


def test_value_that_another_row_has_now_is_a_conflict(graph):
    put(graph, 'update Person set { code: "1" } where name = "Alice"')
    freed = put(graph, 'update Person set { code: "2" } where name = "Alice"')
    put(graph, 'update Person set { code: "1" } where name = "Bob"')
    with pytest.raises(og.errors.MergeConflict) as caught:
        graph.revert(freed)
    assert [conflict.kind for conflict in caught.value.conflicts] == ["unique_violation"]


def test_revert_of_a_merge_restores_all_its_changes(graph):
    graph.branch_create("side")
    put(graph.on("side"), 'insert Person { name: "Dan" }')
    put(graph.on("side"), 'update Person set { age: 9 } where name = "Bob"')
    put(graph, 'update Person set { age: 8 } where name = "Alice"')
    before = records(graph)
    merged = graph.merge("side").commit_id
    graph.revert(merged)
    assert records(graph) == before
    assert graph.merge("side").outcome == "already_up_to_date", "as with Git: the branch is in the history"


def test_second_revert_makes_no_commit(graph):
    first = put(graph, 'update Person set { age: 1 } where name = "Alice"')
    graph.revert(first)
    head = graph.snapshot().commit_id
    assert graph.revert(first).commit_id is None
    assert graph.snapshot().commit_id == head


def test_revert_on_another_branch(graph):
    first = put(graph, 'update Person set { age: 1 } where name = "Alice"')
    graph.branch_create("side")
    graph.revert(first, branch="side")
    assert graph.on("side").entity_at("Person", "Alice", None)["age"] == 30
    assert graph.entity_at("Person", "Alice", None)["age"] == 1
    only_there = put(graph.on("side"), 'insert Person { name: "Dan" }')
    with pytest.raises(og.errors.InputError, match="not in the history of branch 'main'"):
        graph.revert(only_there)


def test_first_commit_cannot_be_reverted(graph):
    with pytest.raises(og.errors.Conflict) as caught:
        graph.revert(graph.commits()[-1].id)
    assert caught.value.code == "parentless_commit"
    with pytest.raises(og.errors.CommitNotFound):
        graph.revert("nothing")


# -- schemas -------------------------------------------------------------------------------------------


def test_schema_change_is_reverted(graph, tmp_path):
    before, schema = records(graph), graph.schema
    wider = SCHEMA.replace("town: String?", "town: String?\n    land: String?") + "node City { n: String @key }\n"
    applied = graph.apply_schema(wider).commit_id
    graph.revert(applied)
    assert (records(graph), graph.schema) == (before, schema)
    assert (tmp_path / "g/_schema.pg").read_text() == schema
    assert graph.verify() == []


def test_dropped_column_is_restored_with_its_values(graph):
    put(graph, 'update Person set { town: "Rome" } where name = "Bob"')
    dropped = graph.apply_schema(SCHEMA.replace("    town: String?\n", ""), allow_data_loss=True).commit_id
    put(graph, 'update Person set { age: 5 } where name = "Alice"')
    put(graph, 'insert Person { name: "Dan" }')
    graph.revert(dropped)
    rows = {r["data"]["name"]: (r["data"]["age"], r["data"]["town"]) for r in graph.export(types=["Person"])}
    assert rows == {"Alice": (5, None), "Bob": (30, "Rome"), "Carol": (30, None), "Dan": (None, None)}
    assert graph.verify() == []


def test_dropped_list_is_restored_with_its_values(tmp_path):
    schema = "node Person {\n    name: String @key\n    age: I32?\n    tags: [String]?\n}\n"
    graph = og.init(tmp_path / "lists", schema, sync=False)
    tags = {"Alice": ["a", "b"], "Bob": [], "Carol": None}
    graph.load([{"type": "Person", "data": {"name": name, "tags": tags[name]}} for name in NAMES], mode="append")
    dropped = graph.apply_schema(schema.replace("    tags: [String]?\n", ""), allow_data_loss=True).commit_id
    put(graph, 'update Person set { age: 5 } where name = "Carol"')
    put(graph, 'insert Person { name: "Dan" }')
    graph.revert(dropped)
    assert {r["data"]["name"]: r["data"]["tags"] for r in graph.export(types=["Person"])} == {**tags, "Dan": None}
    assert graph.verify() == []


def test_dropped_type_is_restored_with_its_rows(graph):
    before = records(graph)
    dropped = graph.apply_schema(SCHEMA.replace("edge Knows: Person -> Person\n", ""), allow_data_loss=True).commit_id
    assert graph.revert_preview(dropped).to_json()["tables"] == {
        "edge:Knows": {"inserted": 1, "updated": 0, "deleted": 0, "adopted": True}
    }
    graph.revert(dropped)
    assert records(graph) == before
    assert graph.verify() == []


def test_type_with_rows_is_not_removed(graph):
    applied = graph.apply_schema(SCHEMA + "node City { n: String @key }\n").commit_id
    put(graph, 'insert City { n: "Rome" }')
    with pytest.raises(og.errors.MergeConflict) as caught:
        graph.revert(applied)
    (conflict,) = caught.value.conflicts
    assert (conflict.table_key, conflict.kind) == ("node:City", "schema_conflict")


def test_a_commit_of_another_writer_during_the_lookup_does_not_fail_a_revert(graph, monkeypatch):
    undone = put(graph, STATEMENTS["an update"])
    other = og.open(graph.uri, sync=False)
    listed = Repository.all_commits

    def list_then_write(repository):
        commits = listed(repository)
        if repository is graph._repository and not other.get("Person", "Eve"):
            put(other, 'insert Person { name: "Eve" }')
        return commits

    monkeypatch.setattr(Repository, "all_commits", list_then_write)
    assert graph.revert(undone).commit_id is not None
    assert graph.get("Person", "Bob")["age"] == 30
    assert graph.get("Person", "Eve") is not None


# -- drops ---------------------------------------------------------------------------------------

RULED = """interface Named { name: String }
node Person implements Named {
    name: String @key
    age: I32
    town: String?
    code: enum(a, b) @unique
    @range(age, 0..)
}
node Room { floor: I32? }
edge In: Person -> Room @card(0..2) { since: I32 }
"""
DROPS = {
    "required properties": RULED.replace("age: I32\n", "")
    .replace("@range(age, 0..)", "")
    .replace("{ since: I32 }", ""),
    "a unique property": RULED.replace("code: enum(a, b) @unique", ""),
    "an edge type": RULED.replace("edge In: Person -> Room @card(0..2) { since: I32 }", ""),
    "all but one type": "interface Named { name: String }\nnode Room { floor: I32? }",
}


@pytest.fixture
def ruled(tmp_path):
    graph = og.init(tmp_path / "g", RULED, sync=False)
    graph.load(
        [
            {"type": "Person", "data": {"name": "Alice", "age": 30, "town": "Rome", "code": "a"}},
            {"type": "Person", "data": {"name": "Bob", "age": 40, "code": "b"}},
            {"type": "Room", "data": {"id": "r", "floor": 1}},
            {"edge": "In", "from": "Alice", "to": "r", "data": {"since": 5}},
        ],
        mode="append",
    )
    return graph


@pytest.mark.parametrize("name", DROPS)
def test_dropped_types_and_properties_are_restored_with_their_rules(ruled, name):
    before, pins = records(ruled), {key: table.pin.row_count for key, table in ruled.snapshot().tables.items()}
    commit = ruled.apply_schema(DROPS[name], allow_data_loss=True).commit_id
    ruled.revert(commit)
    assert records(ruled) == before
    assert {key: table.pin.row_count for key, table in ruled.snapshot().tables.items()} == pins
    assert ruled.schema == RULED
    assert ruled.verify() == []
    if name != "an edge type":
        for bad in ({"age": -1, "code": "c"}, {"name": "Zoe"}):
            with pytest.raises(og.errors.OmniGraphError):
                ruled.load([{"type": "Person", "data": {"name": "Alice", "age": 1, "code": "b", **bad}}], mode="merge")


def test_later_changes_that_do_not_depend_on_a_drop_stay(ruled):
    dropped = RULED.replace("age: I32\n", "").replace("@range(age, 0..)", "")
    commit = ruled.apply_schema(dropped, allow_data_loss=True).commit_id
    put(ruled, 'update Person set { town: "Oslo" } where name = "Alice"')
    put(ruled, 'delete Person where name = "Bob"')
    ruled.apply_schema(dropped.replace("town: String?", "town: String?\n    note: String?"))
    ruled.revert(commit)
    alice = {"id": "Alice", "name": "Alice", "age": 30, "town": "Oslo", "code": "a", "note": None}
    assert [record["data"] for record in ruled.export(types=["Person"])] == [alice]
    assert ruled.verify() == []


def test_later_rows_without_a_required_value_are_a_conflict(ruled):
    commit = ruled.apply_schema(DROPS["required properties"], allow_data_loss=True).commit_id
    ruled.load([{"type": "Room", "data": {"id": "s"}}, {"edge": "In", "from": "Bob", "to": "s"}], mode="append")
    before = everything(ruled)
    with pytest.raises(og.errors.MergeConflict) as caught:
        ruled.revert(commit)
    (conflict,) = caught.value.conflicts
    assert (conflict.table_key, conflict.kind) == ("edge:In", "schema_conflict")
    assert conflict.message == "'since' is required, and 1 rows have no value for it"
    assert everything(ruled) == before


def test_a_property_that_was_added_again_is_a_conflict(ruled):
    text = RULED.replace("town: String?", "")
    commit = ruled.apply_schema(text, allow_data_loss=True).commit_id
    ruled.apply_schema(RULED)
    with pytest.raises(og.errors.MergeConflict, match="schema_conflict"):
        ruled.revert(commit)


def test_a_restored_property_reaches_other_branches(ruled):
    commit = ruled.apply_schema(DROPS["required properties"], allow_data_loss=True).commit_id
    ruled.branch_create("side")
    put(ruled, 'update Person set { town: "Oslo" } where name = "Alice"')
    side = ruled.on("side")
    side.revert(commit)
    ruled.merge("side", resolve="columns")
    rows = {record["data"]["name"]: record["data"] for record in ruled.export(types=["Person"])}
    assert {name: (row["age"], row["town"]) for name, row in rows.items()} == {"Alice": (30, "Oslo"), "Bob": (40, None)}
    assert ruled.verify() == []
