"""rustworkx, SciPy and networkx: exports and records, with the real libraries."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import rustworkx
import scipy.sparse

import omnigraph as og
from omnigraph.errors import InputError, MissingPackage
from support.writes import edge, new_graph, node

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date? }
node Town { name: String @key }
edge Knows: Person -> Person { closeness: F64?  since: Date? }
edge LivesIn: Person -> Town
"""
AWKWARD = (
    *[node("Person", name="x", age=3, born="2001-02-03"), node("Person", name="y"), node("Town", name="x")],
    *[edge("Knows", "x", "y", id_="k1", closeness=0.5), edge("Knows", "x", "y", id_="k2", since="2020-01-01")],
    *[edge("Knows", "y", "y", id_="loop", closeness=2), edge("LivesIn", "x", "x", id_="l")],
)
"""Parallel edges, a loop, nulls, and two types with one id."""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_graph(tmp_path, SCHEMA, *AWKWARD)


def random_records(seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    names = [f"p{at}" for at in range(30)]
    people = [node("Person", name=name, age=draw.choice([None, draw.randrange(90)])) for name in names]
    knows = [
        edge(
            "Knows", draw.choice(names), draw.choice(names), id_=f"k{at}", closeness=draw.choice([None, draw.random()])
        )
        for at in range(90)
    ]
    return [*people, node("Town", name="p1"), *knows, edge("LivesIn", "p2", "p1", id_="l")]


def test_rustworkx_has_every_node_and_edge(graph: og.Graph) -> None:
    found, index = graph.to_rustworkx()
    assert isinstance(found, rustworkx.PyDiGraph)
    assert {key: found[at]["id"] for key, at in index.items()} == {
        ("Person", "x"): "x",
        ("Person", "y"): "y",
        ("Town", "x"): "x",
    }
    assert found[index["Person", "y"]] == {"type": "Person", "id": "y", "name": "y", "age": None, "born": None}
    ends = {payload["id"]: (source, target) for source, target, payload in found.weighted_edge_list()}
    x, y, town = index["Person", "x"], index["Person", "y"], index["Town", "x"]
    assert ends == {"k1": (x, y), "k2": (x, y), "loop": (y, y), "l": (x, town)}
    only, _ = graph.to_rustworkx(["Person", "Town", "LivesIn"])
    assert [payload["type"] for payload in only.edges()] == ["LivesIn"]


def test_sparse_counts_parallel_edges_and_sums_weights(graph: og.Graph) -> None:
    matrix, rows, columns = graph.to_sparse("Knows")
    assert isinstance(matrix, scipy.sparse.csr_array)
    assert (rows.to_pylist(), columns.to_pylist()) == (["x", "y"], ["x", "y"])
    assert matrix.toarray().tolist() == [[0, 2], [0, 1]]
    weighted, _, _ = graph.to_sparse("Knows", weight="closeness")
    assert weighted.toarray().tolist() == [[0, 0.5], [0, 2]]
    across, rows, columns = graph.to_sparse("LivesIn")
    assert (across.shape, across.toarray().tolist(), columns.to_pylist()) == ((2, 1), [[1], [0]], ["x"])
    for wrong, message in (({"edge": "Know"}, "no edge type"), ({"edge": "Knows", "weight": "sinc"}, "no property")):
        with pytest.raises(InputError, match=message):
            graph.to_sparse(**wrong)
    with pytest.raises(InputError, match="must be a number, not Date"):
        graph.to_sparse("Knows", weight="since")


@pytest.mark.parametrize("seed", range(3))
def test_networkx_and_back_is_the_identity(tmp_path: Path, seed: int) -> None:
    first = new_graph(tmp_path / "a", SCHEMA, *(random_records(seed) if seed else AWKWARD))
    second = new_graph(tmp_path / "b", SCHEMA)
    second.load(og.from_networkx(first.to_networkx()), mode="append")
    assert sorted(map(str, second.export())) == sorted(map(str, first.export()))


def test_algorithms_agree(tmp_path: Path) -> None:
    graph = new_graph(tmp_path, SCHEMA, *random_records(7))
    found = graph.analyze("pagerank", nodes=["Person"], edges=["Knows"], parameters={"tolerance": 1e-14})
    ours = {row["id"]: row["pagerank"] for row in found.tables["Person"].to_pylist()}
    people, index = graph.to_rustworkx(["Person", "Knows"])
    ranks = rustworkx.pagerank(people, alpha=0.85, tol=1e-14, max_iter=1000, weight_fn=lambda _: 1.0)
    assert {id_: ranks[index["Person", id_]] for id_ in ours} == pytest.approx(ours, abs=1e-9)
    matrix, ids, _ = graph.to_sparse("Knows")
    count, labels = scipy.sparse.csgraph.connected_components(matrix, directed=True, connection="weak")
    components = graph.analyze("components", nodes=["Person"], edges=["Knows"])
    assert components.stats["components"] == count == len(rustworkx.weakly_connected_components(people))
    by_label = {row["id"]: row["component"] for row in components.tables["Person"].to_pylist()}
    pairs = {(int(label), by_label[id_]) for label, id_ in zip(labels, ids.to_pylist(), strict=True)}
    assert len(pairs) == count
    assert np.array_equal(matrix.sum(axis=1), [people.out_degree(index["Person", id_]) for id_ in ids.to_pylist()])


def test_plain_networks_take_their_types_from_arguments(tmp_path: Path) -> None:
    graph = new_graph(tmp_path, SCHEMA)
    network = networkx.karate_club_graph()
    for _, attributes in network.nodes(data=True):
        attributes.clear()
    for *_, attributes in network.edges(data=True):
        attributes["closeness"] = attributes.pop("weight")
    graph.load(og.from_networkx(network, "Person", "Knows", key="name"), mode="append")
    assert graph.to_arrow("Person").num_rows == 34
    assert graph.to_arrow("Knows").num_rows == 78
    mixed = networkx.DiGraph([("ana", "Rome")])
    records = og.from_networkx(mixed, {"ana": "Person", "Rome": "Town"}, "LivesIn", key="name")
    assert records == [
        {"type": "Person", "data": {"name": "ana"}},
        {"type": "Town", "data": {"name": "Rome"}},
        {"edge": "LivesIn", "from": "ana", "to": "Rome", "data": {}},
    ]
    with pytest.raises(InputError, match="the node 'ana' has no type"):
        og.from_networkx(mixed)
    with pytest.raises(InputError, match="the edge 'ana' -> 'Rome' has no type"):
        og.from_networkx(mixed, "Person")


@pytest.mark.parametrize(("package", "call"), [("rustworkx", "to_rustworkx"), ("scipy.sparse", "to_sparse")])
def test_missing_packages_are_named(graph: og.Graph, monkeypatch: pytest.MonkeyPatch, package: str, call: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    name = package.partition(".")[0]
    with pytest.raises(MissingPackage, match=f"'{name}' is not installed") as caught:
        getattr(graph, call)(*(["Knows"] if call == "to_sparse" else []))
    assert caught.value.hint == f"install it: pip install {name}"
