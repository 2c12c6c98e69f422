"""Algorithms on stored graphs: selection of types, written values, and rejected requests."""

from __future__ import annotations

import pytest

from omnigraph.errors import InputError, OmniGraphError, TypeNotFound
from support.writes import edge, new_graph, node

SCHEMA = """
node Person { name: String @key  rank: F64?  part: I32?  incoming: I64?  note: String?  photo: Blob? }
node Town { name: String @key  rank: F64?  part: I32? }
edge Knows: Person -> Person { weight: F64? }
edge LivesIn: Person -> Town
"""
PEOPLE = [node("Person", name=name, note=f"about {name}", photo="base64:AAEC") for name in "abcd"]
TOWNS = [node("Town", name=name) for name in ("x", "y")]
EDGES = [
    edge("Knows", "b", "a", weight=1.0),
    edge("Knows", "c", "a", weight=2.0),
    edge("Knows", "a", "b"),
    edge("LivesIn", "d", "x"),
]


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SCHEMA, *PEOPLE, *TOWNS, *EDGES)


def values(graph, type_name, property_):
    found = graph.to_arrow(type_name, columns=["id", property_])
    return dict(zip(found["id"].to_pylist(), found[property_].to_pylist(), strict=True))


def test_analysis_writes_nothing_by_default(graph):
    before = graph.snapshot().commit_id
    found = graph.analyze("components")
    assert found.commit_id == graph.snapshot().commit_id == before
    assert found.tables["Person"].to_pydict() == {"id": ["a", "b", "c", "d"], "component": [0, 0, 0, 1]}
    assert found.tables["Town"].to_pydict() == {"id": ["x", "y"], "component": [1, 2]}
    assert found.to_json()["stats"] == {"nodes": 6, "edges": 4, "components": 3}


def test_values_are_written_once_as_one_commit(graph):
    written = graph.analyze("components", write="part", message="parts", actor="act-ana")
    assert written.rows_written == 6
    assert (graph.commit(written.commit_id).message, graph.commit(written.commit_id).actor) == ("parts", "act-ana")
    assert values(graph, "Person", "part") == {"a": 0, "b": 0, "c": 0, "d": 1}
    assert values(graph, "Town", "part") == {"x": 1, "y": 2}
    assert set(values(graph, "Person", "note").values()) == {f"about {name}" for name in "abcd"}
    again = graph.analyze("components", write="part")
    assert (again.rows_written, again.commit_id) == (0, None)
    assert graph.verify() == []


def test_only_rows_whose_value_changed_are_written(graph):
    graph.analyze("degrees", nodes=["Person"], write={"in_degree": "incoming"})
    assert values(graph, "Person", "incoming") == {"a": 2, "b": 1, "c": 0, "d": 0}
    before = graph.snapshot().commit_id
    graph.load([edge("Knows", "d", "c")], mode="append")
    loaded = graph.snapshot().commit_id
    assert graph.analyze("degrees", nodes=["Person"], write={"in_degree": "incoming"}).rows_written == 1
    assert [change.id for change in graph.diff(loaded)] == ["c"]
    assert before != loaded


def test_rank_flows_along_chosen_edges_by_weight(graph):
    plain = graph.analyze("pagerank", edges=["Knows"]).tables
    assert set(plain) == {"Person"}
    ranks = dict(zip(plain["Person"]["id"].to_pylist(), plain["Person"]["pagerank"].to_pylist(), strict=True))
    assert ranks["a"] > ranks["b"] > ranks["c"] == ranks["d"]
    # The edge from a to b has no weight, so it transfers no rank.
    weighted = graph.analyze("pagerank", edges=["Knows"], weight="weight").tables["Person"].to_pydict()
    assert weighted["pagerank"][1] == weighted["pagerank"][2]


def test_analysis_of_past_states_and_other_branches(graph):
    past = graph.snapshot().commit_id
    graph.branch_create("more")
    graph.load([edge("LivesIn", "a", "x")], mode="append", branch="more")
    assert graph.analyze("components", branch="more").stats["components"] == 2
    assert graph.analyze("components", at=past).stats["components"] == 3
    with pytest.raises(InputError, match="a past state cannot be written to"):
        graph.analyze("components", at=past, write="part")


REJECTED = [
    ({"algorithm": "pagerang"}, InputError, "no algorithm 'pagerang'"),
    ({"algorithm": "pagerank", "nodes": ["Persn"]}, TypeNotFound, "no node type 'Persn'"),
    ({"algorithm": "pagerank", "edges": ["Know"]}, TypeNotFound, "no edge type 'Know'"),
    (
        {"algorithm": "pagerank", "nodes": ["Person"], "edges": ["LivesIn"]},
        InputError,
        "'Town', which is not among the node types",
    ),
    ({"algorithm": "pagerank", "weight": "weight"}, InputError, "'LivesIn' has no property 'weight'"),
    ({"algorithm": "components", "weight": "weight"}, InputError, "takes no weight"),
    ({"algorithm": "pagerank", "damping": 1.0}, InputError, "not between 0 and 1"),
    ({"algorithm": "pagerank", "write": "rang"}, InputError, "'Person' has no property 'rang'"),
    ({"algorithm": "pagerank", "write": "part"}, InputError, "'Person.part' is of type I32"),
    ({"algorithm": "pagerank", "write": "name"}, InputError, "'Person.name' is a key"),
    ({"algorithm": "degrees", "write": "part"}, InputError, "has 3 result columns"),
    ({"algorithm": "degrees", "write": {"in": "part"}}, InputError, "has no result column 'in'"),
]


@pytest.mark.parametrize(("asked", "error", "message"), REJECTED)
def test_invalid_requests_are_rejected_and_write_nothing(graph, asked, error, message):
    before = graph.snapshot().commit_id
    with pytest.raises(error, match=message):
        graph.analyze(**asked)
    assert graph.snapshot().commit_id == before


def test_negative_weights_are_rejected(graph):
    graph.load([edge("Knows", "d", "c", weight=-1.0)], mode="append")
    with pytest.raises(InputError, match="below zero"):
        graph.analyze("pagerank", edges=["Knows"], weight="weight")


def test_written_values_are_validated(tmp_path):
    graph = new_graph(
        tmp_path,
        "node Person { name: String @key  incoming: I64?  @range(incoming, 0..1) }\nedge Knows: Person -> Person",
        *[node("Person", name=name) for name in "abc"],
        *[edge("Knows", name, "a") for name in "abc"],
    )
    with pytest.raises(OmniGraphError, match="incoming"):
        graph.analyze("degrees", write={"in_degree": "incoming"})
    assert values(graph, "Person", "incoming") == {"a": None, "b": None, "c": None}
