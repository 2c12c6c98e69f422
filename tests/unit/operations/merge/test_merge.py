"""Merge and diff: operation matrix, truth table, resolutions, schemas, and refused merges that change nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

import omnigraph as og
from omnigraph.errors import Damaged
from omnigraph.storage.lance.garbage import remove_versions
from omnigraph.versioning.upkeep.maintenance import cleanup
from support.store import repository_of

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\n\nedge Knows: Person -> Person\n"
AGES = {"Alice": 30, "Bob": 25, "Carol": 40, "Dan": 50}
BASE = [
    *({"type": "Person", "data": {"name": name, "age": age}} for name, age in AGES.items()),
    {"edge": "Knows", "from": "Bob", "to": "Carol"},
]
STATEMENTS = {
    "Noop": [],
    "AddNode": ['insert Person { name: "Eve", age: AGE }'],
    "RemoveNode": ['delete Person where name = "Alice"'],
    "AddEdge": ['insert Knows { from: "Alice", to: "Carol" }'],
    "RemoveEdge": ['delete Knows where from = "Bob"'],
    "SetProperty": ['update Person set { age: AGE } where name = "Alice"'],
    "NetZero": ['insert Knows { from: "Alice", to: "Dan" }', 'delete Knows where from = "Alice"'],
}
OPS = list(STATEMENTS)
UTD, FF, M = "already_up_to_date", "fast_forward", "merged"
MATRIX = {  # source → outcome or conflict for each operation on the target
    "Noop": [UTD] * 7,
    "AddNode": [FF, "divergent_insert", M, M, M, M, M],
    "RemoveNode": [FF, M, M, "orphan_edge", M, "delete_vs_update", M],
    "AddEdge": [FF, M, "orphan_edge", M, M, M, M],
    "RemoveEdge": [FF, M, M, M, M, M, M],
    "SetProperty": [FF, M, "delete_vs_update", M, M, "divergent_update", M],
    "NetZero": [FF, M, M, M, M, M, M],
}


def make(tmp_path, schema=SCHEMA, records=BASE):
    graph = og.init(tmp_path / "g", schema, sync=False)
    graph.load(records, mode="append")
    return graph


def do(graph, op, age):
    for statement in STATEMENTS[op]:
        graph.mutate(f"query q() {{ {statement.replace('AGE', str(age))} }}")


def rows(graph):
    """All rows of the graph without the ids of edges, which are generated."""
    people = {r["data"]["name"]: r["data"]["age"] for r in graph.export(types=["Person"])}
    edges = sorted((r["from"], r["to"]) for r in graph.export(types=["Knows"]))
    return people, edges


def apply(people, edges, op, age):
    if op == "AddNode":
        people["Eve"] = age
    elif op == "RemoveNode":
        people.pop("Alice", None)
        edges[:] = [edge for edge in edges if "Alice" not in edge]
    elif op == "AddEdge":
        edges.append(("Alice", "Carol"))
    elif op == "RemoveEdge":
        edges[:] = [edge for edge in edges if edge[0] != "Bob"]
    elif op == "SetProperty" and "Alice" in people:
        people["Alice"] = age


@pytest.mark.parametrize(("source", "target"), list(product(OPS, OPS)))
def test_operation_matrix(tmp_path, source, target):
    graph = make(tmp_path)
    graph.branch_create("side")
    do(graph.on("side"), source, 21)
    do(graph, target, 22)
    before, head = rows(graph), graph.snapshot().commit_id
    expected = MATRIX[source][OPS.index(target)]
    if expected not in (UTD, FF, M):
        with pytest.raises(og.errors.MergeConflict) as caught:
            graph.merge("side")
        assert [conflict.kind for conflict in caught.value.conflicts] == [expected]
        assert graph.snapshot().commit_id == head
        assert rows(graph) == before
    else:
        result = graph.merge("side", message="bring it together")
        assert result.outcome == expected
        people, edges = dict(AGES), [("Bob", "Carol")]
        apply(people, edges, target, 22)
        apply(people, edges, source, 21)
        assert rows(graph) == (people, sorted(edges))
        if expected != UTD:
            commit = graph.commit(result.commit_id)
            assert (commit.parent_id, commit.merged_parent_id) == (head, graph.snapshot("side").commit_id)
        assert graph.merge("side").outcome == UTD
    assert graph.verify() == []


TRUTH = [  # base, ours, theirs → the row after the merge, or the conflict
    (None, None, None, None),
    (None, None, 3, 3),
    (None, 2, None, 2),
    (None, 3, 3, 3),
    (None, 2, 3, "divergent_insert"),
    (1, 1, 1, 1),
    (1, 1, 3, 3),
    (1, 1, None, None),
    (1, 2, 1, 2),
    (1, 3, 3, 3),
    (1, 2, 3, "divergent_update"),
    (1, 2, None, "delete_vs_update"),
    (1, None, 1, None),
    (1, None, None, None),
    (1, None, 3, "delete_vs_update"),
]
WEIGHED = SCHEMA.replace("edge Knows: Person -> Person", "edge Knows: Person -> Person {\n    w: I32?\n}")


@pytest.mark.parametrize("into", ["main", "work"])
@pytest.mark.parametrize("kind", ["node", "edge"])
@pytest.mark.parametrize(("base", "ours", "theirs", "expected"), TRUTH)
def test_truth_table(tmp_path, base, ours, theirs, expected, kind, into):
    graph = make(tmp_path, WEIGHED, [{"type": "Person", "data": {"name": name}} for name in ("p", "q")])
    write(graph, kind, None, base)
    graph.branch_create("side")
    if into != "main":
        graph.branch_create(into)
    write(graph.on("side"), kind, base, theirs)
    write(graph.on(into), kind, base, ours)
    # Both sides change both tables, so that neither a fast-forward nor an adopted table occurs.
    for branch in ("side", into):
        graph.on(branch).mutate(
            f'query q() {{ insert Person {{ name: "{branch}" }} insert Knows {{ from: "{branch}", to: "p" }} }}'
        )
    head = graph.snapshot(into).commit_id
    type_name, column = ("Person", "age") if kind == "node" else ("Knows", "w")
    if isinstance(expected, str):
        with pytest.raises(og.errors.MergeConflict) as caught:
            graph.merge("side", into=into)
        (conflict,) = caught.value.conflicts
        assert (conflict.kind, conflict.row_id, conflict.table_key) == (expected, "x", f"{kind}:{type_name}")
        images = [row and row[column] for row in (conflict.base, conflict.ours, conflict.theirs)]
        assert images == [base, ours, theirs]
        assert graph.snapshot(into).commit_id == head
        return
    assert graph.merge("side", into=into).outcome == M
    row = graph.on(into).entity_at(type_name, "x", None)
    assert (row and row[column]) == expected


def write(graph, kind, before, after):
    if after is None and before is not None:
        what = 'delete Person where name = "x"' if kind == "node" else 'delete Knows where from = "p"'
        graph.mutate(f"query q() {{ {what} }}")
    elif after is not None and after != before:
        record = (
            {"type": "Person", "data": {"name": "x", "age": after}}
            if kind == "node"
            else {"edge": "Knows", "from": "p", "to": "q", "data": {"id": "x", "w": after}}
        )
        graph.load([record], mode="merge", branch=graph.branch)


@pytest.mark.parametrize(
    ("resolve", "age"), [("ours", 22), ("theirs", 21), ({"Person": "theirs"}, 21), ({"*": "ours"}, 22)]
)
def test_resolution_takes_a_side(tmp_path, resolve, age):
    graph = make(tmp_path)
    graph.branch_create("side")
    do(graph.on("side"), "SetProperty", 21)
    do(graph, "SetProperty", 22)
    assert graph.merge("side", resolve=resolve).outcome == M
    assert graph.entity_at("Person", "Alice", None)["age"] == age


def test_resolution_by_columns_combines_rows_and_reports_the_rest(tmp_path):
    schema = SCHEMA.replace("age: I32?", "age: I32?\n    town: String?")
    graph = make(tmp_path, schema)
    graph.branch_create("side")
    graph.on("side").mutate('query q() { update Person set { town: "Rome" } where name = "Bob" }')
    graph.mutate('query q() { update Person set { age: 26 } where name = "Bob" }')
    assert graph.merge_preview("side").conflicts[0].kind == "divergent_update"
    assert graph.merge_preview("side").conflicts[0].resolutions == ("ours", "theirs", "columns")
    assert graph.merge("side", resolve="columns").outcome == M
    assert graph.entity_at("Person", "Bob", None) == {"id": "Bob", "age": 26, "name": "Bob", "town": "Rome"}
    graph.on("side").mutate('query q() { update Person set { age: 99 } where name = "Bob" }')
    graph.mutate('query q() { update Person set { age: 27 } where name = "Bob" }')
    with pytest.raises(og.errors.MergeConflict, match="divergent_update") as caught:
        graph.merge("side", resolve="columns")
    assert "age (27 here, 99 there)" in caught.value.conflicts[0].message
    assert caught.value.conflicts[0].resolutions == ("ours", "theirs")
    assert "columns" not in str(caught.value.hint)


def test_two_valid_sides_can_make_an_invalid_graph(tmp_path):
    schema = "node P {\n    k: String @key\n    code: String? @unique\n}\n\nedge Owns: P -> P @card(0..1)\n"
    graph = make(tmp_path, schema, [{"type": "P", "data": {"k": k}} for k in "abc"])
    graph.branch_create("side")
    graph.on("side").mutate('query q() { insert Owns { from: "a", to: "b" } insert P { k: "x", code: "1" } }')
    graph.mutate('query q() { insert Owns { from: "a", to: "c" } insert P { k: "y", code: "1" } }')
    with pytest.raises(og.errors.MergeConflict) as caught:
        graph.merge("side")
    assert {c.kind for c in caught.value.conflicts} == {"unique_violation", "cardinality_violation"}


def test_all_conflicts_are_reported_and_preview_writes_nothing(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    for name in ("Alice", "Bob", "Carol", "Dan"):
        for branch, age in (("side", 1), ("main", 2)):
            graph.on(branch).mutate(f'query q() {{ update Person set {{ age: {age} }} where name = "{name}" }}')
    head = graph.snapshot().commit_id
    plan = graph.merge_preview("side")
    assert [conflict.row_id for conflict in plan.conflicts] == ["Alice", "Bob", "Carol", "Dan"]
    with pytest.raises(og.errors.MergeConflict, match="and 1 more; the target is unchanged"):
        graph.merge("side")
    assert graph.snapshot().commit_id == head


def test_criss_cross(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("a")
    graph.branch_create("b")
    do(graph.on("a"), "SetProperty", 31)
    do(graph.on("b"), "AddEdge", 0)
    graph.branch_create("a2", from_branch="a")
    assert graph.merge("b", into="a").outcome == M
    assert graph.merge("a2", into="b").outcome == M
    do(graph.on("a"), "AddNode", 7)
    do(graph.on("b"), "RemoveEdge", 0)
    assert graph.merge("b", into="a").outcome == M
    people, edges = rows(graph.on("a"))
    assert (people["Alice"], people["Eve"], edges) == (31, 7, [("Alice", "Carol")])


def test_ancestry_survives_the_deletion_of_the_middle_branch(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("middle")
    graph.branch_create("end")
    do(graph.on("middle"), "SetProperty", 31)
    result = graph.merge("middle", into="end", delete_branch=True)
    assert (result.outcome, result.branch_deleted, graph.branches()) == (FF, True, ["main", "end"])
    assert graph.merge("end").outcome == FF
    assert graph.entity_at("Person", "Alice", None)["age"] == 31


def test_merge_and_merge_back(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    do(graph.on("side"), "SetProperty", 31)
    do(graph, "AddEdge", 0)
    assert graph.merge("side").outcome == M
    assert graph.merge("side").outcome == UTD
    assert graph.merge("main", into="side").outcome == FF
    assert list(graph.diff("main", "side")) == []
    assert graph.merge("main", into="side").outcome == UTD


@pytest.mark.parametrize("delete_middle", [False, True])
def test_three_branches_in_a_diamond(tmp_path, delete_middle):
    graph = make(tmp_path)
    for branch in ("s", "t", "u"):
        graph.branch_create(branch)
    do(graph.on("s"), "SetProperty", 31)
    do(graph.on("t"), "AddEdge", 0)
    do(graph.on("u"), "RemoveEdge", 0)
    assert graph.merge("s", into="t").outcome == M
    assert graph.merge("t", into="u", delete_branch=delete_middle).outcome == M
    assert graph.merge("s", into="u").outcome == UTD, "it is in there already"
    do(graph.on("u"), "SetProperty", 40)
    do(graph.on("s"), "AddNode", 5)
    assert graph.merge("s", into="u").outcome == M, "what was merged before is no conflict now"
    people, edges = rows(graph.on("u"))
    assert (people["Alice"], people["Eve"], edges) == (40, 5, [("Alice", "Carol")])


def test_history_is_readable_after_merge_and_compaction(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    do(graph.on("side"), "SetProperty", 31)
    do(graph, "RemoveEdge", 0)
    before, state = graph.snapshot().commit_id, rows(graph)
    merged = graph.merge("side", delete_branch=True).commit_id
    after = rows(graph)
    graph.optimize()
    do(graph, "RemoveNode", 0)
    for at, expected in ((before, state), (merged, after)):
        people = {r["data"]["name"]: r["data"]["age"] for r in graph.export(types=["Person"], at=at)}
        edges = sorted((r["from"], r["to"]) for r in graph.export(types=["Knows"], at=at))
        assert (people, edges) == expected
    assert graph.commit(merged).merged_parent_id in {commit.id for commit in graph.commits()}


def test_type_that_was_dropped_and_added_again_is_another_table(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    side = graph.on("side")
    side.apply_schema(SCHEMA.replace("edge Knows: Person -> Person\n", ""), allow_data_loss=True)
    side.apply_schema(SCHEMA)
    side.mutate('query q() { insert Knows { from: "Alice", to: "Dan" } }')
    do(graph, "SetProperty", 32)
    assert graph.merge("side").outcome == M
    assert rows(graph)[1] == [("Alice", "Dan")]
    assert graph.verify() == []


def test_similar_values_are_different(tmp_path):
    schema = "node N {\n    k: String @key\n    s: String?\n    f: F64?\n    l: [String]?\n    b: Blob?\n}\n"
    start = {"k": "x", "s": None, "f": 0.0, "l": ["a", "b"], "b": "base64:AAEC"}
    changes = {"s": "", "f": -0.0, "l": ["b", "a"], "b": "base64:AAED"}
    graph = make(tmp_path, schema, [{"type": "N", "data": start}])
    commit = graph.snapshot().commit_id
    graph.load([{"type": "N", "data": start}], mode="merge")
    assert list(graph.diff(commit)) == [], "the same values, written again"
    for name, value in changes.items():
        graph.branch_create(f"here-{name}", at=commit, from_branch="main")
        graph.branch_create(f"there-{name}", at=commit, from_branch="main")
        graph.load([{"type": "N", "data": {**start, name: value}}], mode="merge", branch=f"there-{name}")
        (change,) = graph.diff(f"here-{name}", f"there-{name}")
        assert change.properties == [name]
        # Equal changes agree, an absent change is no change, and different values are a conflict.
        graph.load([{"type": "N", "data": {**start, name: value}}], mode="merge", branch=f"here-{name}")
        assert graph.merge_preview(f"there-{name}", into=f"here-{name}").conflicts == []
        graph.load([{"type": "N", "data": {**start, name: None, "s": "?"}}], mode="merge", branch=f"here-{name}")
        (conflict,) = graph.merge_preview(f"there-{name}", into=f"here-{name}").conflicts
        assert conflict.kind == "divergent_update"


def test_values_given_for_a_conflict_must_match_the_schema(tmp_path):
    schema = SCHEMA.replace("age: I32?", "age: I32?\n    mood: enum(glad, sad)?\n    @range(age, 0..150)")
    graph = make(tmp_path, schema)
    graph.branch_create("side")
    do(graph.on("side"), "SetProperty", 31)
    do(graph, "SetProperty", 32)
    for values in ({"age": 999}, {"age": 1, "mood": "calm"}):
        with pytest.raises(og.errors.MergeConflict) as caught:
            graph.merge("side", resolve={"node:Person:Alice": values})
        (conflict,) = caught.value.conflicts
        assert (conflict.kind, conflict.row_id) == ("value_constraint_violation", None)
    assert graph.merge("side", resolve={"node:Person:Alice": {"age": 1, "mood": "glad"}}).outcome == M


def test_schema_changed_on_one_side_is_adopted(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    side = graph.on("side")
    renamed = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")  town: String?')
    side.apply_schema(renamed + "node City { n: String @key }")
    side.mutate('query q() { insert City { n: "X" } update Person set { town: "X" } where name = "Bob" }')
    do(graph, "AddEdge", 0)
    assert graph.merge("side").outcome == M
    assert graph.entity_at("Person", "Bob", None) == {"id": "Bob", "name": "Bob", "town": "X", "years": 25}
    assert graph.to_arrow("City").num_rows == 1
    assert len(list(graph.export(types=["Knows"]))) == 2
    assert graph.verify() == []


# -- both schemas changed --------------------------------------------------------------------------------


def test_schemas_changed_on_both_sides_are_merged(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    side = graph.on("side")
    side.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n    town: String?") + "node City { n: String @key }\n")
    side.mutate('query q() { insert City { n: "X" } update Person set { town: "X" } where name = "Bob" }')
    graph.apply_schema(SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")\n    land: String?'))
    graph.mutate('query q() { update Person set { land: "Y" } where name = "Alice" }')
    preview = graph.merge_preview("side")
    assert preview.conflicts == []
    assert preview.to_json()["schema_steps"] == ["add node type City", "add property Person.town: String?"]
    assert graph.merge("side").outcome == M
    assert graph.entity_at("Person", "Bob", None) == {
        "id": "Bob",
        "name": "Bob",
        "town": "X",
        "land": None,
        "years": 25,
    }
    assert graph.entity_at("Person", "Alice", None)["land"] == "Y"
    assert graph.to_arrow("City").num_rows == 1
    assert graph.verify() == []
    assert (tmp_path / "g/_schema.pg").read_text() == graph.schema
    assert graph.merge("side").outcome == UTD
    # The branch can merge the result, and both can continue.
    assert graph.merge("main", into="side").outcome == FF
    assert list(graph.diff("main", "side")) == []
    side.mutate('query q() { update Person set { land: "Z" } where name = "Bob" }')
    graph.mutate('query q() { update Person set { town: "Z" } where name = "Carol" }')
    assert graph.merge("side").outcome == M
    assert graph.entity_at("Person", "Bob", None)["land"] == "Z"
    assert graph.verify() == []


def test_rows_changed_on_one_side_get_the_columns_of_both(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    side = graph.on("side")
    side.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n    town: String?"))
    side.mutate('query q() { insert Person { name: "Eve", town: "X" } }')
    graph.mutate('query q() { insert Person { name: "Fay", age: 1 } }')
    assert graph.merge("side").outcome == M
    assert graph.entity_at("Person", "Eve", None)["town"] == "X"
    assert graph.entity_at("Person", "Fay", None) == {"id": "Fay", "name": "Fay", "age": 1, "town": None}
    assert graph.verify() == []


def test_incompatible_schemas_are_a_conflict(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    graph.on("side").apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n    town: String?"))
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: I32?\n    town: I32?"))
    with pytest.raises(og.errors.MergeConflict, match="schema_conflict") as caught:
        graph.merge("side")
    (conflict,) = caught.value.conflicts
    assert "node:Person.town: both sides have a property of this name" in conflict.message


def test_a_merge_does_not_drop_every_type(tmp_path):
    graph = make(tmp_path, "node A { n: I32? }\nnode B { n: I32? }\n", [])
    graph.branch_create("side")
    graph.on("side").apply_schema("node A { n: I32? }\n")
    graph.apply_schema("node B { n: I32? }\n")
    (conflict,) = graph.merge_preview("side").conflicts
    assert (conflict.kind, "declares no node type" in conflict.message) == ("schema_conflict", True)


@pytest.mark.parametrize("dropper", ["main", "side"])
def test_changed_rows_of_a_dropped_type_are_a_conflict(tmp_path, dropper):
    graph = make(tmp_path)
    graph.branch_create("side")
    other = "side" if dropper == "main" else "main"
    graph.on(dropper).apply_schema(SCHEMA.replace("edge Knows: Person -> Person\n", ""), allow_data_loss=True)
    graph.on(other).mutate('query q() { insert Person { name: "Eve" } }')
    assert graph.merge_preview("side").conflicts == []
    graph.on(other).mutate('query q() { insert Knows { from: "Alice", to: "Dan" } }')
    (conflict,) = graph.merge_preview("side").conflicts
    assert (conflict.table_key, conflict.kind) == ("edge:Knows", "schema_conflict")
    assert "changed 1 of its rows" in conflict.message
    graph.on(other).mutate('query q() { delete Knows where from = "Alice" }')
    assert graph.merge("side").outcome == M
    assert list(graph.snapshot().tables) == ["node:Person"]
    assert graph.verify() == []


@pytest.mark.parametrize("dropper", ["main", "side"])
def test_changed_values_of_a_dropped_column_are_a_conflict(tmp_path, dropper):
    graph = make(tmp_path)
    graph.branch_create("side")
    other = "side" if dropper == "main" else "main"
    graph.on(dropper).apply_schema(SCHEMA.replace("    age: I32?\n", ""), allow_data_loss=True)
    graph.on(other).mutate('query q() { insert Person { name: "Eve" } }')
    assert graph.merge_preview("side").conflicts == []
    graph.on(other).mutate('query q() { update Person set { age: 3 } where name = "Bob" }')
    (conflict,) = graph.merge_preview("side").conflicts
    assert (conflict.table_key, conflict.kind, conflict.properties) == ("node:Person", "schema_conflict", ("age",))
    graph.on(other).mutate('query q() { update Person set { age: 25 } where name = "Bob" }')
    graph.on(other).mutate('query q() { insert Person { name: "Gil", age: 3 } }')
    (conflict,) = graph.merge_preview("side").conflicts
    assert conflict.message.endswith("changed it in 1 rows"), "a new row has a value, too"
    graph.on(other).mutate('query q() { delete Person where name = "Gil" }')
    assert graph.merge("side").outcome == M
    assert graph.entity_at("Person", "Eve", None) == {"id": "Eve", "name": "Eve"}
    assert graph.verify() == []


# -- resolution ------------------------------------------------------------------------------------------

TOWNS = SCHEMA.replace("age: I32?", "age: I32?\n    town: String?\n    born: Date?\n    seen: DateTime?")


def clashing(tmp_path):
    """Alice: age and town changed on both sides; Bob: age; Carol: deleted by ours, changed by theirs; Eve: inserted
    twice.
    """
    graph = make(tmp_path, TOWNS)
    graph.branch_create("side")
    side = graph.on("side")
    side.mutate('query q() { update Person set { age: 1, town: "S" } where name = "Alice" }')
    side.mutate('query q() { update Person set { age: 1 } where name = "Bob" }')
    side.mutate('query q() { update Person set { age: 1 } where name = "Carol" }')
    side.mutate('query q() { insert Person { name: "Eve", age: 1 } }')
    graph.mutate('query q() { update Person set { age: 2, town: "T" } where name = "Alice" }')
    graph.mutate('query q() { update Person set { age: 2, town: "T" } where name = "Bob" }')
    graph.mutate('query q() { delete Knows where from = "Bob" }')
    graph.mutate('query q() { delete Person where name = "Carol" }')
    graph.mutate('query q() { insert Person { name: "Eve", age: 2 } }')
    return graph


def towns(graph):
    return {r["data"]["name"]: (r["data"]["age"], r["data"]["town"]) for r in graph.export(types=["Person"])}


OURS = {"Alice": (2, "T"), "Bob": (2, "T"), "Dan": (50, None), "Eve": (2, None)}
THEIRS = {"Alice": (1, "S"), "Bob": (1, None), "Carol": (1, None), "Dan": (50, None), "Eve": (1, None)}
RESOLVED = {
    "ours": ("ours", OURS),
    "theirs": ("theirs", THEIRS),
    "a type": ({"Person": "theirs"}, THEIRS),
    "a property goes before its type": (
        {"Person": "theirs", "Person.age": "ours"},
        {**THEIRS, "Alice": (2, "S"), "Bob": (2, "T"), "Eve": (2, None)},
    ),
    "a row goes before all": (
        {"*": "theirs", "Person.age": "ours", "node:Person:Eve": "theirs", "node:Person:Carol": "ours"},
        {**THEIRS, "Alice": (2, "S"), "Bob": (2, "T")} | {"Carol": None},
    ),
    "values": (
        {
            "*": "ours",
            "node:Person:Alice": {"age": 9, "town": "V"},
            "node:Person:Carol": {"town": "V"},
            "node:Person:Eve": {"age": None},
        },
        {**OURS, "Alice": (9, "V"), "Carol": (1, "V"), "Eve": (None, None)},
    ),
    "deletion": (
        {"*": "theirs", "node:Person:Eve": None, "node:Person:Alice": None},
        {**THEIRS, "Eve": None, "Alice": None},
    ),
    "values keep what only one side changed": ({"*": "ours", "node:Person:Bob": {"age": 7}}, {**OURS, "Bob": (7, "T")}),
}


@pytest.mark.parametrize("name", RESOLVED)
def test_resolution(tmp_path, name):
    graph = clashing(tmp_path)
    resolve, expected = RESOLVED[name]
    assert graph.merge_preview("side", resolve=resolve).conflicts == []
    assert graph.merge("side", resolve=resolve).outcome == M
    assert towns(graph) == {key: value for key, value in expected.items() if value is not None}
    assert graph.verify() == []


@pytest.mark.parametrize(
    ("resolve", "left"),
    [
        (None, ["Alice", "Bob", "Carol", "Eve"]),
        ("columns", ["Alice", "Bob", "Carol", "Eve"]),
        ({"Person.age": "ours"}, ["Alice", "Carol"]),
        ({"Person.age": "ours", "Person.town": "theirs"}, ["Carol"]),
        ({"node:Person:Alice": {"age": 3}}, ["Alice", "Bob", "Carol", "Eve"]),
        ({"node:Person:Alice": "theirs", "node:Person:Carol": "theirs"}, ["Bob", "Eve"]),
        ({"Knows": "theirs"}, ["Alice", "Bob", "Carol", "Eve"]),
    ],
)
def test_unresolved_conflict_is_reported(tmp_path, resolve, left):
    graph = clashing(tmp_path)
    conflicts = graph.merge_preview("side", resolve=resolve).conflicts
    assert [conflict.row_id for conflict in conflicts] == left
    assert [conflict.id for conflict in conflicts] == [f"node:Person:{row}" for row in left]


def test_values_of_a_resolution_are_read_like_data(tmp_path):
    graph = clashing(tmp_path)
    values = {"age": 3, "town": "V", "born": "2001-02-03", "seen": "2024-01-01T10:20:30.456Z"}
    graph.merge("side", resolve={"*": "ours", "node:Person:Alice": values})
    row = graph.entity_at("Person", "Alice", None)
    assert (row["born"].isoformat(), row["seen"].isoformat()) == ("2001-02-03", "2024-01-01T10:20:30.456000+00:00")


@pytest.mark.parametrize(
    ("resolve", "message"),
    [
        ("mine", "no resolution 'mine'"),
        ({"Person": "mine"}, "no resolution 'mine'"),
        ({"Persn": "ours"}, "no type 'Persn'"),
        ({"Person.agee": "ours"}, "no property 'agee'"),
        ({"Person.age": "columns"}, "'ours' or 'theirs'"),
        ({"node:Person:Dan": "ours"}, "no conflict 'node:Person:Dan'"),
        ({"node:Persn:Dan": "ours"}, "not the id of a conflict"),
        ({"node:Person:Alice": {"agee": 1}}, "no property 'agee'"),
        ({"node:Person:Alice": {"name": "Al"}}, "is a key"),
        ({"node:Person:Alice": {"age": "old"}}, "old"),
    ],
)
def test_resolution_of_unknown_names_is_refused(tmp_path, resolve, message):
    graph = clashing(tmp_path)
    with pytest.raises(og.errors.InputError, match=message):
        graph.merge("side", resolve=resolve)


def test_invalid_requests_are_refused(tmp_path):
    graph = make(tmp_path)
    with pytest.raises(og.errors.InputError, match="two different branches"):
        graph.merge("main")
    with pytest.raises(og.errors.BranchNotFound):
        graph.merge("nowhere")
    with pytest.raises(og.errors.InputError, match="no engine 'abacus'"):
        graph.merge("main", into="side", engine="abacus")


def test_diff_is_by_value_and_has_an_inverse(tmp_path):
    schema = (
        "node N {\n    k: String @key\n    at: DateTime?\n    tags: [String]?\n    v: Vector(2)?\n}\n\nedge E: N -> N\n"
    )
    graph = make(tmp_path, schema, [{"type": "N", "data": {"k": k, "at": "2024-01-01T10:20:30.456Z"}} for k in "abc"])
    start = graph.snapshot().commit_id
    graph.mutate('query q() { insert E { from: "a", to: "b" } insert N { k: "d", tags: ["x"], v: [1, 2] } }')
    graph.mutate(
        'query q($t: DateTime) { update N set { at: $t } where k = "a" }', params={"t": "2024-01-01T10:20:30.457Z"}
    )
    graph.mutate(
        'query q($t: DateTime) { update N set { at: $t } where k = "b" }', params={"t": "2024-01-01T10:20:30.456Z"}
    )
    graph.mutate('query q() { delete N where k = "c" }')
    forward = [(c.table_key, c.id, c.op, c.properties) for c in graph.diff(start) if c.table_key != "edge:E"]
    assert forward == [
        ("node:N", "a", "update", ["at"]),
        ("node:N", "c", "delete", ["id", "at", "k"]),
        ("node:N", "d", "insert", ["id", "k", "tags", "v"]),
    ]
    (update,) = graph.diff(start, ops=["update"])
    assert update.before["at"] == datetime(2024, 1, 1, 10, 20, 30, 456_000, tzinfo=UTC)
    back = [(c.id, c.before, c.after) for c in graph.diff(graph.snapshot().commit_id, start)]
    assert [(id_, after, before) for id_, before, after in back] == [
        (c.id, c.before, c.after) for c in graph.diff(start)
    ]
    (edge,) = graph.diff(start, kinds=["edge"])
    assert edge.to_json()["endpoints"] == {"src": "a", "dst": "b"}
    graph.optimize()
    assert list(graph.diff(graph.commits()[1].id)) == []


def test_diff_between_branches(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    do(graph.on("side"), "SetProperty", 31)
    do(graph, "AddNode", 5)
    assert {(c.id, c.op) for c in graph.diff("main", "side")} == {("Alice", "update"), ("Eve", "delete")}


# -- after a cleanup -----------------------------------------------------------------------------------


def test_branches_merge_after_a_cleanup(tmp_path):
    """No retention policy removes the base, here a commit in the middle of the branch."""
    graph = make(tmp_path)
    graph.branch_create("side")
    set_age(graph, "Alice", 1, branch="side")
    graph.merge("side")
    for age in (2, 3):
        set_age(graph, "Bob", age)
        set_age(graph, "Alice", age, branch="side")
    cleanup(repository_of(graph), keep=1, confirm=True, grace=timedelta(0))
    assert graph.merge("side").outcome == "merged"
    assert rows(graph)[0] == {**AGES, "Alice": 3, "Bob": 3}
    assert graph.verify() == []


def test_removed_base_is_reported_with_a_hint(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    set_age(graph, "Bob", 1)
    set_age(graph, "Alice", 1, branch="side")
    repository = repository_of(graph)
    table = repository.snapshot(at=repository.state().get_head("side").fork_commit_id).tables["node:Person"]
    remove_versions(repository.tables, table.folder, [table.pin.lance_version])
    repository.tables.forget(table.folder)
    before = rows(graph)
    with pytest.raises(Damaged) as caught:
        graph.merge("side")
    assert caught.value.code == "version_reclaimed"
    assert caught.value.hint == "a cleanup removes old versions; read a newer commit"
    with pytest.raises(
        Damaged, match=r"^version \d+ \(commit \w+\) cannot be read: the data of 'node:Person' was"
    ) as named:
        list(graph.diff(repository.state().get_head("side").fork_commit_id, "main"))
    assert (named.value.code, "nodes/" in str(named.value)) == ("version_reclaimed", False)
    assert rows(graph) == before


def set_age(graph, name, age, branch="main"):
    graph.mutate(f'query q() {{ update Person set {{ age: {age} }} where name = "{name}" }}', branch=branch)


# -- violations, resolved by the id of a preview -----------------------------------------------------


@pytest.mark.parametrize("added_by", ["source", "target"])
def test_orphan_edge_is_resolved_by_the_id_of_the_preview(tmp_path, added_by):
    graph = make(tmp_path)
    graph.branch_create("side")
    ops = ("AddEdge", "RemoveNode") if added_by == "source" else ("RemoveNode", "AddEdge")
    do(graph.on("side"), ops[0], 1)
    do(graph, ops[1], 1)
    (conflict,) = graph.merge_preview("side").conflicts
    assert conflict.kind == "orphan_edge"
    keeps = "theirs" if added_by == "source" else "ours"
    for choice in (keeps, "columns"):
        left = graph.merge_preview("side", resolve={conflict.id: choice}).conflicts
        assert [one.id for one in left] == [conflict.id]
    for choice in ("ours" if keeps == "theirs" else "theirs", None):
        assert graph.merge_preview("side", resolve={conflict.id: choice}).conflicts == []
    assert graph.merge("side", resolve={conflict.id: None}).outcome == "merged"
    assert rows(graph) == ({"Bob": 25, "Carol": 40, "Dan": 50}, [("Bob", "Carol")])
    assert graph.verify() == []


def test_unique_violation_is_resolved_by_the_id_of_the_preview(tmp_path):
    graph = make(tmp_path, "node P { k: String @key  mail: String? @unique }", [])
    graph.branch_create("side")
    graph.on("side").mutate('query q() { insert P { k: "a", mail: "x" } insert P { k: "c", mail: "z" } }')
    graph.mutate('query q() { insert P { k: "b", mail: "x" } }')
    (conflict,) = graph.merge_preview("side").conflicts
    assert (conflict.kind, conflict.id) == ("unique_violation", "node:P:a")
    assert graph.merge_preview("side", resolve={conflict.id: "ours"}).conflicts == []
    graph.merge("side", resolve={conflict.id: {"mail": "y"}})
    mails = {row["data"]["k"]: row["data"]["mail"] for row in graph.export()}
    assert mails == {"a": "y", "b": "x", "c": "z"}
    assert graph.verify() == []


def test_id_without_a_conflict_is_refused(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    do(graph.on("side"), "AddEdge", 1)
    do(graph, "RemoveNode", 1)
    (conflict,) = graph.merge_preview("side").conflicts
    with pytest.raises(og.errors.InputError) as caught:
        graph.merge_preview("side", resolve={conflict.id: None, "node:Person:Bob": "ours"})
    assert caught.value.code == "unknown_conflict"


def test_merge_targets_the_branch_of_the_handle(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("work")
    graph.branch_create("side")
    do(graph.on("side"), "AddNode", 1)
    work, head = graph.on("work"), graph.snapshot().commit_id
    assert set(work.merge_preview("side").tables) == {"node:Person"}
    result = work.merge("side")
    assert (result.target, result.outcome) == ("work", "fast_forward")
    assert "Eve" in rows(work)[0]
    assert graph.snapshot().commit_id == head
    assert work.merge("side", into="main").target == "main"
    with pytest.raises(og.errors.InputError, match="two different branches"):
        work.merge("work")


# -- ranges, and branches with commits of their own ---------------------------------------------------


def test_diff_from_the_merge_base(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    do(graph.on("side"), "SetProperty", 1)
    do(graph, "AddNode", 2)

    def told(changes):
        return [(change.op, change.id) for change in changes]

    assert (
        told(graph.diff("main..side")) == told(graph.diff("main", "side")) == [("update", "Alice"), ("delete", "Eve")]
    )
    assert told(graph.diff("main...side")) == [("update", "Alice")]
    assert told(graph.diff("side...main")) == told(graph.diff("side...")) == [("insert", "Eve")]
    assert told(graph.on("side").diff("main...")) == [("update", "Alice")]
    graph.on("side").merge("main")
    do(graph.on("side"), "RemoveEdge", 3)
    assert [change.table_key for change in graph.diff("main...side")] == ["edge:Knows", "node:Person"]
    with pytest.raises(og.errors.InputError, match="names both points"):
        list(graph.diff("main...side", "main"))


def test_branch_with_unmerged_commits_is_not_deleted(tmp_path):
    graph = make(tmp_path)
    graph.branch_create("side")
    graph.branch_delete("side")
    graph.branch_create("side")
    for age in (1, 2):
        do(graph.on("side"), "SetProperty", age)
    with pytest.raises(og.errors.Conflict, match="branch 'side' has 2 commits that are on no other branch") as caught:
        graph.branch_delete("side")
    assert caught.value.code == "unmerged_branch"
    assert graph.branches() == ["main", "side"]
    graph.tag_create("kept", "side")
    graph.branch_delete("side")
    assert graph.branches() == ["main"]
    graph.branch_create("side", at="kept")
    do(graph.on("side"), "AddNode", 3)
    graph.merge("side")
    graph.branch_delete("side")
    graph.branch_create("side")
    do(graph.on("side"), "SetProperty", 9)
    graph.branch_delete("side", force=True)
    assert graph.branches() == ["main"]
