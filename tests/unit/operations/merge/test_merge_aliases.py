"""Merges of branches of which one unified nodes, and the other still writes to the dropped node."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflict

SCHEMA = """
node Person {
    name: String @key
    email: String?
    age: I64?
    tags: [String]?
}
edge Knows: Person -> Person { since: I64? }
edge Likes: Person -> Person { weight: I64?
    @unique(src, dst) }
"""
UNIFY = 'unify Person "a" into "b" { tags: union, email: theirs }'


def person(name, **values):
    return {"type": "Person", "data": {"name": name, **values}}


def edge(kind, source, target, **values):
    return {"edge": kind, "from": source, "to": target, "data": values}


ROWS = [
    person("b", age=3, tags=["x"]), person("a", email="a@x", age=30, tags=["y", "x"]),
    person("c"), person("d"), person("e"),
    edge("Knows", "a", "c", id="k1", since=1), edge("Knows", "c", "a", id="k2", since=2),
    edge("Knows", "b", "c", id="k3", since=1),
    edge("Likes", "d", "a", id="l1", weight=1), edge("Likes", "d", "b", id="l2", weight=2),
    edge("Likes", "e", "a", id="l3", weight=5),
]  # fmt: skip


@pytest.fixture(params=["target", "source"])
def sides(tmp_path, request):
    """The graph, the branch that unifies, and the other branch; each of them is the target once."""
    graph = og.init(tmp_path / "g", SCHEMA, sync=False)
    graph.load(ROWS, mode="merge")
    graph.branch_create("side")
    side = graph.on("side")
    return (graph, graph, side) if request.param == "target" else (graph, side, graph)


def merged(sides, *statements, unify=(UNIFY,), resolve=None):
    graph, one, other = sides
    for statement in unify:
        one.mutate(statement)
    for statement in statements:
        other.mutate(statement)
    graph.merge("side", resolve=resolve)
    known = graph.snapshot().aliases
    aliases = {old: kept for table in known.tables() for old, kept in known.entries(table).items()}
    edges = {
        kind: sorted(tuple(row.values())[1:] for row in graph.to_arrow(kind).to_pylist()) for kind in ("Knows", "Likes")
    }
    return {row["id"]: row for row in graph.to_arrow("Person").to_pylist()}, edges, aliases


def test_new_edges_are_repointed(sides):
    statements = 'insert Knows { from: "d", to: "a", since: 9 }', 'insert Likes { from: "a", to: "e" }'
    nodes, edges, aliases = merged(sides, *statements)
    assert nodes.keys() == {"b", "c", "d", "e"}
    assert edges["Knows"] == [("b", "c", 1), ("c", "b", 2), ("d", "b", 9)]
    assert edges["Likes"] == [("b", "e", None), ("d", "b", 2), ("e", "b", 5)]
    assert aliases == {"a": "b"}


def test_changed_values_are_set_in_the_kept_node(sides):
    statement = 'update Person set { email: "new", age: 31, tags: ["x", "z"] } where name = "a"'
    nodes, _, aliases = merged(sides, statement)
    assert nodes["b"] == {"id": "b", "name": "b", "email": "new", "age": 31, "tags": ["x", "z"]}
    assert aliases == {"a": "b"}


def test_changed_edges_of_the_dropped_node(sides):
    statements = 'update Knows set { since: 77 } where from = "a"', 'update Likes set { weight: 6 } where from = "e"'
    _, edges, _ = merged(sides, *statements)
    assert edges["Knows"] == [("b", "c", 1), ("b", "c", 77), ("c", "b", 2)]
    assert edges["Likes"] == [("d", "b", 2), ("e", "b", 6)]


def test_repointed_edges_are_folded(sides):
    statements = 'insert Likes { from: "c", to: "a" }', 'insert Likes { from: "c", to: "b" }'
    _, edges, _ = merged(sides, *statements)
    assert edges["Likes"] == [("c", "b", None), ("d", "b", 2), ("e", "b", 5)]


def test_chains(sides):
    nodes, edges, aliases = merged(sides, 'unify Person "b" into "c"')
    assert nodes.keys() == {"c", "d", "e"}
    assert nodes["c"]["email"] == "a@x"
    assert edges["Likes"] == [("d", "c", 2), ("e", "c", 5)]
    assert aliases == {"a": "c", "b": "c"}


def test_the_dropped_node_is_deleted_elsewhere(sides):
    nodes, edges, aliases = merged(sides, 'delete Person where name = "a"')
    assert nodes.keys() == {"b", "c", "d", "e"}
    assert edges["Knows"] == [("b", "c", 1)]
    assert aliases == {"a": "b"}


def test_the_kept_node_is_deleted_elsewhere(sides):
    graph = sides[0]
    plain = 'unify Person "e" into "d" edges { Likes: ours }'
    nodes, _, aliases = merged(sides, 'delete Likes where from = "e"', 'delete Person where name = "d"', unify=(plain,))
    assert nodes.keys() == {"a", "b", "c"}
    assert aliases == {}
    graph.mutate('insert Person { name: "e" }')


def test_a_value_that_both_sides_set(sides):
    unify = (UNIFY, 'update Person set { email: "mine" } where name = "b"')
    statement = 'update Person set { email: "yours" } where name = "a"'
    with pytest.raises(MergeConflict) as caught:
        merged(sides, statement, unify=unify)
    assert [(one.id, one.properties) for one in caught.value.conflicts] == [("node:Person:b", ("email",))]
    graph, one, _ = sides
    graph.merge("side", resolve="ours" if one is graph else "theirs")
    assert graph.get("Person", "a")["email"] == "mine"


def test_different_targets_are_a_conflict(sides):
    with pytest.raises(MergeConflict) as caught:
        merged(sides, 'unify Person "d" into "c"', unify=('unify Person "d" into "e"',))
    assert "alias:Person:d" in [conflict.id for conflict in caught.value.conflicts]


def test_both_directions_are_a_conflict(sides):
    with pytest.raises(MergeConflict, match="alias:Person:a"):
        merged(sides, 'unify Person "b" into "a"')


def test_an_equal_unify_of_both_sides(sides):
    nodes, edges, aliases = merged(sides, UNIFY)
    assert nodes.keys() == {"b", "c", "d", "e"}
    assert edges["Likes"] == [("d", "b", 2), ("e", "b", 5)]
    assert aliases == {"a": "b"}


def test_later_unifies_are_reverted_in_order(sides):
    graph = sides[0]
    first = graph.mutate(UNIFY).commit_id
    second = graph.mutate('unify Person "b" into "c"').commit_id
    with pytest.raises(MergeConflict, match="alias:Person:a"):
        graph.revert(first)
    graph.revert(second)
    graph.revert(first)
    assert graph.get("Person", "a")["id"] == "a"
