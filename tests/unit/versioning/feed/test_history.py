"""The changes of a commit, and the history of one node or edge."""

from __future__ import annotations

from datetime import timedelta

import pytest

import omnigraph as og
from omnigraph.storage.lance import row_finder
from omnigraph.versioning.compare import diff
from omnigraph.versioning.upkeep import maintenance

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n    town: String?\n}\n\nedge Knows: Person -> Person\n"


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, actor="ana")
    graph.load([{"type": "Person", "data": {"name": name, "age": 30}} for name in ("Alice", "Bob")], mode="append")
    return graph


def put(graph, text, **options):
    return graph.mutate(f"query q() {{ {text} }}", **options).commit_id


def set_age(graph, name, age, **options):
    return put(graph, f'update Person set {{ age: {age} }} where name = "{name}"', **options)


def summary(changes):
    return [(c.commit.id, c.op, c.properties) for c in changes]


# -- one commit ----------------------------------------------------------------------------------------


def test_the_changes_of_a_commit_have_a_fixed_order(graph):
    put(graph, 'insert Knows { from: "Bob", to: "Alice" }')
    graph.branch_create("side")
    side = graph.on("side")
    text = 'insert Person { name: "Zoe" } update Person set { age: 1 } where name = "Bob" insert Person { name: "Al" }'
    put(side, text + ' insert Knows { from: "Zoe", to: "Al" }')
    put(side, 'delete Person where name = "Alice"')
    commit = graph.merge("side").commit_id
    block = graph.commit_changes(commit)
    found = [(c.kind, c.type_name, c.op, c.id if c.kind == "node" else None) for c in block]
    assert found == [
        ("node", "Person", "insert", "Al"),
        ("node", "Person", "delete", "Alice"),
        ("node", "Person", "update", "Bob"),
        ("node", "Person", "insert", "Zoe"),
        *[("edge", "Knows", op, None) for op in [c.op for c in block if c.kind == "edge"]],
    ]
    assert sorted(c.op for c in block if c.kind == "edge") == ["delete", "insert"]
    shown = block.to_json()
    assert shown["cause"]["graph_commit_id"] == commit
    assert shown["cause"]["authored_branch"] == "main"
    assert shown["cause"]["actor_id"] == "ana"
    update = shown["changes"][2]
    assert (update["before"]["age"], update["after"]["age"]) == (30, 1)
    assert "before" not in shown["changes"][0]
    assert "after" not in shown["changes"][1]
    assert [c.id for c in graph.commit_changes(commit, types=["Person"], ops=["update"])] == ["Bob"]
    assert {c.kind for c in graph.commit_changes(commit, kinds=["edge"])} == {"edge"}


def test_the_id_of_a_type_survives_a_rename(graph):
    before = graph.commit_changes(set_age(graph, "Bob", 1)).changes[0].type_id
    graph.apply_schema(
        SCHEMA.replace("node Person", 'node Human @rename_from("Person")')
        .replace(": Person ->", ": Human ->")
        .replace("-> Person", "-> Human")
    )
    (change,) = graph.commit_changes(put(graph, 'update Human set { age: 2 } where name = "Bob"'))
    assert (change.type_id, change.type_name) == (before, "Human")


def test_equal_values_and_maintenance_are_no_changes(graph):
    assert len(graph.commit_changes(set_age(graph, "Bob", 30))) == 0
    set_age(graph, "Bob", 31)
    graph.optimize()
    assert graph.commits()[0].kind == "optimize"
    assert len(graph.commit_changes(graph.commits()[0].id)) == 0


def test_the_first_commit_and_a_schema_change_are_refused(graph):
    with pytest.raises(og.errors.Conflict) as caught:
        graph.commit_changes(graph.commits()[-1].id)
    assert caught.value.code == "parentless_commit"
    applied = graph.apply_schema(SCHEMA + "node City { n: String @key }\n").commit_id
    with pytest.raises(og.errors.Conflict) as caught:
        graph.commit_changes(applied)
    assert caught.value.code == "schema_boundary"
    with pytest.raises(og.errors.CommitNotFound):
        graph.commit_changes("nothing")


def test_a_merge_is_compared_with_its_first_parent(graph):
    graph.branch_create("side")
    set_age(graph.on("side"), "Bob", 5)
    set_age(graph, "Alice", 6)
    block = graph.commit_changes(graph.merge("side").commit_id)
    assert [(c.id, c.after["age"]) for c in block] == [("Bob", 5)]
    assert block.commit.merged_parent_id == graph.snapshot("side").commit_id


@pytest.mark.parametrize("rows_max", [1, 2, 3, 1000])
def test_the_size_of_ranges_does_not_affect_the_result(graph, monkeypatch, rows_max):
    start = graph.snapshot().commit_id
    graph.load([{"type": "Person", "data": {"name": f"p{i}", "age": i}} for i in range(9)], mode="append")
    put(graph, 'update Person set { town: "Rome" } where age < 3')
    put(graph, "delete Person where age = 7")
    set_age(graph, "Alice", 1)
    expected = list(graph.diff(start))
    assert len(expected) == 8 + 1
    split = diff.split_ids
    monkeypatch.setattr(diff, "split_ids", lambda sides: split(sides, rows_max))
    assert list(graph.diff(start)) == expected


def test_a_diff_matches_renamed_columns(graph):
    start = graph.snapshot().commit_id
    graph.apply_schema(SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")'))
    assert list(graph.diff(start)) == []
    put(graph, 'update Person set { years: 31 } where name = "Bob"')
    (change,) = graph.diff(start)
    assert (change.before["years"], change.after["years"], change.properties) == (30, 31, ["years"])
    (back,) = graph.diff("main", start)
    assert (back.before["age"], back.after["age"]) == (31, 30)


def test_a_dropped_column_is_shown_in_both_directions(graph):
    start = graph.snapshot().commit_id
    graph.apply_schema(SCHEMA.replace("    age: I32?\n", ""), allow_data_loss=True)
    assert [(c.id, c.properties) for c in graph.diff(start)] == [("Alice", ["age"]), ("Bob", ["age"])]
    assert [(c.id, c.properties) for c in graph.diff("main", start)] == [("Alice", ["age"]), ("Bob", ["age"])]


@pytest.mark.parametrize("type_", ["[String]?", "[DateTime]?", "Vector(2)?", "Blob?", "String?"])
def test_a_dropped_column_of_any_type_is_shown(tmp_path, type_):
    """Data files list the field of the items of a list, not that of the list."""
    value = {"[": ["2026-01-01T00:00:00Z"], "V": [1.0, 2.0], "B": "base64:AAAA", "S": "Rome"}[type_[0]]
    schema = f"node Person {{\n    name: String @key\n    value: {type_}\n}}\n"
    graph = og.init(tmp_path / "g", schema, sync=False)
    people = [{"name": "Alice", "value": value}, {"name": "Bob", "value": None}]
    graph.load([{"type": "Person", "data": person} for person in people], mode="append")
    start = graph.snapshot().commit_id
    graph.apply_schema(schema.replace(f"    value: {type_}\n", ""), allow_data_loss=True)
    assert [(c.id, c.properties) for c in graph.diff(start)] == [("Alice", ["value"])]
    assert [(c.id, c.properties) for c in graph.diff("main", start)] == [("Alice", ["value"])]
    (block,) = graph.changes(start=f"after:{start}")
    assert [(c.id, c.op) for c in block] == [("Alice", "update")]
    assert "value" in block.changes[0].before
    assert "value" not in block.changes[0].after


# -- one entity ----------------------------------------------------------------------------------------


def test_history_lists_every_change_newest_first(graph):
    loaded = graph.snapshot().commit_id
    first = set_age(graph, "Bob", 31, actor="ben", message="a birthday")
    set_age(graph, "Alice", 99)
    graph.optimize()
    set_age(graph, "Bob", 31)
    gone = put(graph, 'delete Person where name = "Bob"')
    back = put(graph, 'insert Person { name: "Bob", age: 31 }')
    found = list(graph.history("Person", "Bob"))
    assert summary(found) == [
        (back, "insert", ["id", "age", "name"]),
        (gone, "delete", ["id", "age", "name"]),
        (first, "update", ["age"]),
        (loaded, "insert", ["id", "age", "name"]),
    ]
    assert (found[2].before["age"], found[2].after["age"]) == (30, 31)
    assert found[2].to_json()["actor_id"] == "ben"
    assert found[2].to_json()["message"] == "a birthday"
    assert summary(graph.history("Person", "Bob", at=first)) == summary(found)[2:]
    assert list(graph.history("Person", "nobody")) == []
    with pytest.raises(og.errors.TypeNotFound, match="Persn"):
        graph.history("Persn", "Bob")


def test_a_merged_change_is_reported_at_its_own_commit(graph):
    loaded = graph.snapshot().commit_id
    graph.branch_create("side")
    made = set_age(graph.on("side"), "Bob", 5, actor="ben")
    set_age(graph, "Alice", 6)
    graph.merge("side", delete_branch=True)
    assert [(c.commit.id, c.commit.actor) for c in graph.history("Person", "Bob")] == [(made, "ben"), (loaded, "ana")]


def test_a_merge_that_created_a_new_row_is_reported(graph):
    graph.branch_create("side")
    theirs = put(graph.on("side"), 'update Person set { town: "Rome" } where name = "Bob"')
    ours = set_age(graph, "Bob", 7)
    merged = graph.merge("side", resolve="columns").commit_id
    found = summary(graph.history("Person", "Bob"))
    assert [entry[0] for entry in found[:3]] == [merged, ours, theirs]
    assert {b.property: b.commit.id for b in graph.blame("Person", "Bob")} == {
        "id": graph.commits()[-2].id,
        "name": graph.commits()[-2].id,
        "age": ours,
        "town": theirs,
    }


def test_blame_returns_the_last_commit_of_each_property(graph):
    loaded = graph.snapshot().commit_id
    aged = set_age(graph, "Bob", 31, actor="ben")
    moved = put(graph, 'update Person set { town: "Rome" } where name = "Bob"', actor="cleo")
    set_age(graph, "Bob", 31)
    blame = {b.property: (b.value, b.commit.id, b.commit.actor) for b in graph.blame("Person", "Bob")}
    assert blame == {
        "id": ("Bob", loaded, "ana"),
        "name": ("Bob", loaded, "ana"),
        "age": (31, aged, "ben"),
        "town": ("Rome", moved, "cleo"),
    }
    put(graph, 'delete Person where name = "Bob"')
    assert graph.blame("Person", "Bob") == []
    assert len(graph.blame("Person", "Bob", at=moved)) == 4


def test_history_of_an_edge(graph):
    made = put(graph, 'insert Knows { from: "Bob", to: "Alice" }')
    (edge,) = graph.export(types=["Knows"])
    (change,) = graph.history("Knows", edge["data"]["id"])
    assert (change.commit.id, change.op, change.after["src"]) == (made, "insert", "Bob")


def test_history_follows_renames_of_types_and_columns(graph):
    loaded = graph.snapshot().commit_id
    old = set_age(graph, "Bob", 31)
    renamed = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')
    graph.apply_schema(
        renamed.replace("node Person", 'node Human @rename_from("Person")')
        .replace("Person", "Human")
        .replace('"Human"', '"Person"')
    )
    new = put(graph, 'update Human set { years: 32 } where name = "Bob"')
    found = list(graph.history("Human", "Bob"))
    assert [c.commit.id for c in found] == [new, old, loaded]
    assert [c.after["years"] for c in found] == [32, 31, 30]


def test_history_after_a_cleanup_ends_with_the_oldest_readable_state(graph):
    set_age(graph, "Bob", 31)
    for age in range(3):
        set_age(graph, "Alice", age)
    kept = set_age(graph, "Bob", 33)
    maintenance.cleanup(graph._repository, keep=2, confirm=True, grace=timedelta(0))
    found = list(graph.history("Person", "Bob"))
    assert [(c.op, c.after["age"]) for c in found] == [("update", 33), ("found", 31)]
    blame = {b.property: (b.commit.id, b.known) for b in graph.blame("Person", "Bob")}
    assert blame["age"] == (kept, True)
    assert blame["name"] == (graph.commits()[1].id, False)


def test_every_file_is_searched_once(graph, monkeypatch):
    for age in range(20):
        set_age(graph, "Alice", age)
    read = []
    find = row_finder.RowFinder._find

    def counting(self, table, file):
        read.append(file)
        return find(self, table, file)

    monkeypatch.setattr(row_finder.RowFinder, "_find", counting)
    assert len(list(graph.history("Person", "Alice"))) == 21
    assert len(read) == len(set(read)) == 21
