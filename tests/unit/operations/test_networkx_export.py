"""Export of snapshots as networkx graphs."""

from __future__ import annotations

import sys

import pytest

from omnigraph.errors import MissingPackage, TypeNotFound
from support.writes import edge, new_graph, node

SCHEMA = """
node Person { name: String @key  age: I32? }
node Town { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> Town
"""


@pytest.fixture
def graph(tmp_path):
    return new_graph(
        tmp_path,
        SCHEMA,
        *[node("Person", name="x", age=3), node("Person", name="y"), node("Town", name="x")],
        *[edge("Knows", "x", "y", id_="k1"), edge("Knows", "x", "y", id_="k2"), edge("LivesIn", "x", "x", id_="l")],
    )


def test_equal_ids_of_two_types_and_parallel_edges_are_kept(graph):
    found = graph.to_networkx()
    assert dict(found.nodes) == {
        ("Person", "x"): {"type": "Person", "id": "x", "name": "x", "age": 3},
        ("Person", "y"): {"type": "Person", "id": "y", "name": "y", "age": None},
        ("Town", "x"): {"type": "Town", "id": "x", "name": "x"},
    }
    assert set(found.edges(keys=True)) == {
        (("Person", "x"), ("Person", "y"), ("Knows", "k1")),
        (("Person", "x"), ("Person", "y"), ("Knows", "k2")),
        (("Person", "x"), ("Town", "x"), ("LivesIn", "l")),
    }


def test_types_select_nodes_and_the_edges_between_them(graph):
    assert {data["type"] for *_, data in graph.to_networkx(["Person"]).edges(data=True)} == {"Knows"}
    chosen = graph.to_networkx(["Person", "Town", "LivesIn"])
    assert (len(chosen.nodes), [data["type"] for *_, data in chosen.edges(data=True)]) == (3, ["LivesIn"])
    with pytest.raises(TypeNotFound):
        graph.to_networkx(["Persn"])


def test_old_commit_is_exported(graph):
    past = graph.snapshot().commit_id
    graph.mutate('query q() { delete Person where name = "y" }')
    assert len(graph.to_networkx().edges) == 1
    assert len(graph.to_networkx(at=past).edges) == 3


def test_missing_package_is_reported_with_a_hint(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingPackage, match="'networkx' is not installed") as caught:
        graph.to_networkx()
    assert caught.value.hint == "install it: pip install networkx"
