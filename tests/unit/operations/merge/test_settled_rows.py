"""Resolutions that name the other row of a violation, settled rows of previews, and pinned sources."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import InputError, MergeConflict, PreconditionFailed

SCHEMA = """
node P { name: String @key
  age: I32?
  mail: String? @unique }
edge K: P -> P
"""


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, environ={})
    graph.load([{"type": "P", "data": {"name": name}} for name in "abcd"], mode="merge")
    graph.branch_create("x")
    return graph


EDGE = [{"edge": "K", "from": "a", "to": "b", "data": {"id": "e"}}]


@pytest.mark.parametrize("deleting", ["main", "x"])
def test_the_node_of_an_orphan_edge_can_be_kept(graph, deleting):
    adding = "x" if deleting == "main" else "main"
    graph.on(adding).load(EDGE, mode="append")
    graph.on(deleting).mutate('delete P where name = "b"')
    with pytest.raises(MergeConflict) as caught:
        graph.merge("x")
    assert [conflict.id for conflict in caught.value.conflicts] == ["edge:K:e"]
    keep = {"node:P:b": "ours" if deleting == "x" else "theirs"}
    preview = graph.merge_preview("x", resolve=keep)
    assert preview.conflicts == []
    assert [(row.id, row.row["name"]) for row in preview.settled] == [("node:P:b", "b")]
    gone = graph.merge_preview("x", resolve={"edge:K:e": None})
    assert [(row.id, row.row) for row in gone.settled] == [("edge:K:e", None)]
    graph.merge("x", resolve=keep)
    assert graph.get("P", "b") is not None
    assert graph.get("K", "e")["dst"] == "b"
    assert graph.verify() == []


def test_either_row_of_a_unique_violation_can_be_named(graph):
    graph.mutate('update P set { mail: "m" } where name = "a"')
    graph.on("x").mutate('update P set { mail: "m" } where name = "b"')
    (conflict,) = graph.merge_preview("x").conflicts
    assert conflict.id == "node:P:b"
    for name in "ab":
        preview = graph.merge_preview("x", resolve={f"node:P:{name}": {"mail": "n"}})
        assert preview.conflicts == []
        assert [(row.row_id, row.row["mail"]) for row in preview.settled] == [(name, "n")]
    with pytest.raises(InputError, match="there is no conflict 'node:P:c'"):
        graph.merge_preview("x", resolve={"node:P:c": None})
    graph.merge("x", resolve={"node:P:a": {"mail": "n"}})
    assert [graph.get("P", name)["mail"] for name in "ab"] == ["n", "m"]


def test_general_resolutions_settle_rows(graph):
    graph.mutate('update P set { age: 1 } where name = "a"')
    graph.on("x").mutate('update P set { age: 2 } where name = "a"')
    assert graph.merge_preview("x").settled == ()
    for resolve, age in (("ours", 1), ("theirs", 2), ({"P.age": "theirs"}, 2), ({"node:P:a": {"age": 7}}, 7)):
        (row,) = graph.merge_preview("x", resolve=resolve).settled
        assert (row.id, row.row["age"]) == ("node:P:a", age)
    assert graph.merge_preview("x", resolve={"node:P:a": None}).settled[0].row is None


def test_a_pinned_source_must_not_move(graph):
    graph.on("x").mutate('update P set { age: 1 } where name = "a"')
    seen = graph.head("x").commit_id
    graph.on("x").mutate('update P set { age: 2 } where name = "a"')
    for call in (graph.merge, graph.merge_preview):
        with pytest.raises(PreconditionFailed, match="branch 'x' is at commit"):
            call("x", source_commit=seen)
    assert graph.get("P", "a")["age"] is None
    graph.merge("x", source_commit=graph.head("x").commit_id)
    assert graph.get("P", "a")["age"] == 2


def test_a_violation_has_its_rows(graph):
    graph.on("x").load(EDGE, mode="append")
    graph.mutate('delete P where name = "b"')
    graph.mutate('update P set { mail: "m" } where name = "a"')
    graph.on("x").mutate('update P set { mail: "m", age: 3 } where name = "c"')
    unique, orphan = sorted(graph.merge_preview("x").conflicts, key=lambda each: each.kind, reverse=True)
    assert [(row.id, row.row["mail"], row.row["age"]) for row in unique.rows] == [
        ("node:P:c", "m", 3),
        ("node:P:a", "m", None),
    ]
    assert unique.properties == ("mail",)
    edge, node = orphan.rows
    assert (edge.id, edge.row["src"], edge.row["dst"], edge.ours) == ("edge:K:e", "a", "b", None)
    assert (node.id, node.row, node.ours, node.theirs["name"]) == ("node:P:b", None, None, "b")
    assert [row["id"] for row in orphan.to_json()["rows"]] == ["edge:K:e", "node:P:b"]


def test_values_and_cardinalities_are_resolved_by_their_rows(tmp_path):
    schema = "node P { name: String @key\n age: I32?\n @range(age, 0..150) }\nedge Boss: P -> P @card(0..1)"
    graph = og.init(tmp_path / "g", schema, sync=False, environ={})
    graph.load([{"type": "P", "data": {"name": name, "age": 1}} for name in "abc"], mode="merge")
    graph.branch_create("x")
    graph.mutate('update P set { age: 4 } where name = "a"')
    graph.on("x").mutate('update P set { age: 2 } where name = "a"')
    graph.load([{"edge": "Boss", "from": "b", "to": "a", "data": {"id": "e"}}], mode="append")
    graph.on("x").load([{"edge": "Boss", "from": "b", "to": "c", "data": {"id": "f"}}], mode="append")
    value, cardinality = graph.merge_preview("x", resolve={"node:P:a": {"age": 151}}).conflicts
    assert [(value.kind, value.row_id)] == [("value_constraint_violation", None)]
    assert [(row.id, row.row["age"], row.ours["age"], row.theirs["age"]) for row in value.rows] == [
        ("node:P:a", 151, 4, 2)
    ]
    assert value.properties == ("age",)
    assert [(row.id, row.row["dst"]) for row in cardinality.rows] == [("edge:Boss:e", "a"), ("edge:Boss:f", "c")]
    for dropped in "fe":
        chosen = {"node:P:a": {"age": 150}, f"edge:Boss:{dropped}": None}
        preview = graph.merge_preview("x", resolve=chosen)
        assert preview.conflicts == []
        assert {row.id: row.row is None for row in preview.settled} == {"node:P:a": False, f"edge:Boss:{dropped}": True}
    graph.merge("x", resolve=chosen)
    assert [graph.get("Boss", id_) is None for id_ in "ef"] == [True, False]
    assert graph.verify() == []


def test_too_few_edges_are_resolved_by_a_deleted_one(tmp_path):
    schema = "node P { name: String @key }\nedge Boss: P -> P @card(1..3)"
    graph = og.init(tmp_path / "g", schema, sync=False, environ={})
    nodes = [{"type": "P", "data": {"name": name}} for name in "abc"]
    edges = [{"edge": "Boss", "from": a, "to": b, "data": {"id": id_}} for a, b, id_ in ("aae", "bcf", "bbg", "cah")]
    graph.load([*nodes, *edges], mode="append")
    graph.branch_create("x")
    graph.mutate('delete Boss where to = "c"')
    graph.on("x").mutate('delete Boss where to = "b"')
    (conflict,) = graph.merge_preview("x").conflicts
    assert conflict.kind == "cardinality_violation"
    assert [(row.id, row.row, row.ours is None) for row in conflict.rows] == [("edge:Boss:g", None, False)]
    graph.merge("x", resolve={"edge:Boss:g": "ours"})
    assert graph.get("Boss", "g") is not None
    assert graph.verify() == []
