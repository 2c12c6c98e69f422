"""Algorithms on stored graphs: selection of types, written values, and rejected requests."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from omnigraph.cli.commands.data.analyze import ALGORITHMS as COMMAND_ALGORITHMS
from omnigraph.engine.algorithms.registry import ALGORITHMS
from omnigraph.errors import InputError, OmniGraphError, TypeNotFound
from omnigraph.wire.requests.queries import AnalyzeRequest
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
    ({"algorithm": "pagerank", "damping": 1.0}, InputError, "'damping' is 1; it must be at least 0 and below 1"),
    ({"algorithm": "components", "damping": 0.5}, InputError, "takes no parameter 'damping'"),
    ({"algorithm": "betweenness", "parameters": {"sample": 3}}, InputError, "takes no parameter 'sample'"),
    ({"algorithm": "betweenness", "parameters": {"samples": 0}}, InputError, "must be at least 1"),
    ({"algorithm": "betweenness", "parameters": {"samples": 2.5}}, InputError, "must be a whole number"),
    ({"algorithm": "closeness", "parameters": {"directed": 1}}, InputError, "must be true or false"),
    ({"algorithm": "similarity", "parameters": {"measure": "dice"}}, InputError, "'measure' cannot be 'dice'"),
    ({"algorithm": "embeddings", "parameters": {"steps": []}}, InputError, "a list of 1 to 16 numbers"),
    ({"algorithm": "embeddings", "parameters": {"steps": [1, "x"]}}, InputError, "must be a number, not 'x'"),
    ({"algorithm": "communities", "parameters": {"resolution": float("nan")}}, InputError, "must be a number"),
    ({"algorithm": "cores", "write": "rank"}, InputError, "'Person.rank' is of type F64"),
    ({"algorithm": "embeddings", "write": "rank"}, InputError, r"the values are Vector\(128\)"),
    ({"algorithm": "similarity", "write": "rank"}, InputError, "pairs of nodes"),
    ({"algorithm": "spanning_tree", "write": "weight"}, InputError, "'Knows.weight' is of type F64"),
    (
        {"algorithm": "topological_order"},
        InputError,
        "a cycle, so there is no order: Person 'b' → Person 'a' → Person 'b'",
    ),
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


MORE = """
node Person { name: String @key  group: I64?  core: I32?  level: I64?  place: I64?  vector: Vector(4)? }
edge Knows: Person -> Person { weight: F64?  in_tree: Bool? }
edge Like: Person -> Person { similarity: F64? }
"""


@pytest.fixture
def wide(tmp_path):
    pairs = [("a", "b", 1.0), ("b", "c", 3.0), ("a", "c", 2.0), ("d", "e", 1.0)]
    rows = [node("Person", name=name) for name in "abcde"]
    return new_graph(tmp_path, MORE, *rows, *(edge("Knows", one, other, weight=size) for one, other, size in pairs))


def test_every_algorithm_writes_its_values(wide):
    written = wide.analyze("communities", edges=["Knows"], write="group")
    assert (written.rows_written, written.stats["communities"]) == (5, 2)
    assert values(wide, "Person", "group") == {"a": 0, "b": 0, "c": 0, "d": 1, "e": 1}
    wide.analyze("cores", edges=["Knows"], write="core")
    assert values(wide, "Person", "core") == {"a": 2, "b": 2, "c": 2, "d": 1, "e": 1}
    wide.analyze("topological_order", edges=["Knows"], write={"level": "level", "position": "place"})
    assert values(wide, "Person", "level") == {"a": 0, "b": 1, "c": 2, "d": 0, "e": 1}
    assert values(wide, "Person", "place") == {"a": 0, "d": 1, "b": 2, "e": 3, "c": 4}
    vectors = {"edges": ["Knows"], "parameters": {"dimensions": 4}, "write": "vector"}
    assert (wide.analyze("embeddings", **vectors).rows_written, wide.analyze("embeddings", **vectors).rows_written) == (
        5,
        0,
    )
    assert sum(value * value for value in values(wide, "Person", "vector")["a"]) == pytest.approx(1)
    assert wide.verify() == []


def test_a_spanning_tree_marks_edges(wide):
    found = wide.analyze("spanning_tree", edges=["Knows"], weight="weight", write="in_tree")
    assert (found.rows_written, found.stats["tree_edges"], found.stats["weight"]) == (4, 3, 4.0)
    tree = wide.query("query q() { match { $a $k:knows $b } return { $a.name as a, $b.name as b, $k.in_tree as t } }")
    assert {(row["a"], row["b"]) for row in tree if row["t"]} == {("a", "b"), ("a", "c"), ("d", "e")}
    assert wide.analyze("spanning_tree", edges=["Knows"], weight="weight", write="in_tree").rows_written == 0


def test_similar_nodes_are_loaded_as_edges(wide):
    found = wide.analyze("similarity", edges=["Knows"], parameters={"direction": "both", "least": 0.3})
    pairs = found.tables["Person"]
    assert pairs.column_names == ["from", "to", "similarity"]
    assert pairs.num_rows == found.stats["pairs"] == 6
    wide.load({"Like": pairs}, mode="append")
    assert wide.to_arrow("Like").num_rows == 6


def test_every_algorithm_has_a_form_for_spark():
    from omnigraph.spark.algorithms.solver import FORMS  # noqa: PLC0415 (PySpark is optional)

    assert FORMS.keys() == ALGORITHMS.keys()


def test_interfaces_list_every_algorithm():
    assert tuple(ALGORITHMS) == COMMAND_ALGORITHMS == get_args(get_type_hints(AnalyzeRequest)["algorithm"])
