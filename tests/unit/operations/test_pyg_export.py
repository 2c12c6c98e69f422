"""PyTorch Geometric: `HeteroData` with the real library, where it is installed (`make pyg`)."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import InputError, MissingPackage
from support.writes import edge, new_graph, node

pytestmark = pytest.mark.filterwarnings("default")  # the libraries warn about each other
SCHEMA = """
node Note { name: String @key  meaning: Vector(2)?  length: I32?  pinned: Bool?  score: F64?  topic: enum(b, a)? }
node Person { name: String @key  team: String?  born: Date?  tags: [I64]? }
edge Wrote: Person -> Note { hours: F64?  draft: Bool? }
edge Cites: Note -> Note
"""
RECORDS = (
    *[
        node("Note", name="n1", meaning=[1.0, 2.0], length=7, pinned=True, score=0.5, topic="b"),
        node("Note", name="n2"),
    ],
    *[node("Person", name="n1", team="red"), node("Person", name="ana", team="blue"), node("Person", name="bo")],
    *[edge("Wrote", "ana", "n2", id_="w1", hours=2.5, draft=True), edge("Wrote", "ana", "n2", id_="w2")],
    *[edge("Wrote", "n1", "n1", id_="w3"), edge("Cites", "n2", "n2", id_="c")],
)
"""Nulls, parallel edges, a loop, and two types with one id."""
FEATURES = {"Note": ["meaning", "length", "pinned"], "Wrote": ["hours", "draft"]}
HAS_PYG = importlib.util.find_spec("torch_geometric") is not None
needs_pyg = pytest.mark.skipif(
    not HAS_PYG and os.environ.get("OMNIGRAPH_PYG_TESTS") != "required",
    reason="torch_geometric is not installed: 'make pyg' runs this test",
)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_graph(tmp_path, SCHEMA, *RECORDS)


@needs_pyg
def test_features_are_tensors_in_the_order_of_the_properties(graph: og.Graph) -> None:
    data = graph.to_pyg(features=FEATURES)
    data.validate()
    assert data.node_types == ["Note", "Person"]
    assert data["Note"].ids == ["n1", "n2"]
    assert data["Note"].x.tolist() == [[1.0, 2.0, 7.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
    assert str(data["Note"].x.dtype) == "torch.float32"
    assert data["Person"].num_nodes == 3
    assert "x" not in data["Person"]


@needs_pyg
def test_edges_are_pairs_of_numbers(graph: og.Graph) -> None:
    data = graph.to_pyg(features=FEATURES)
    wrote = data["Person", "Wrote", "Note"]
    ends = {id_: tuple(pair) for id_, pair in zip(wrote.ids, wrote.edge_index.t().tolist(), strict=True)}
    people, notes = data["Person"].ids, data["Note"].ids
    found = {id_: (people[source], notes[target]) for id_, (source, target) in ends.items()}
    assert found == {"w1": ("ana", "n2"), "w2": ("ana", "n2"), "w3": ("n1", "n1")}
    attributes = dict(zip(wrote.ids, wrote.edge_attr.tolist(), strict=True))
    assert attributes == {"w1": [2.5, 1.0], "w2": [0.0, 0.0], "w3": [0.0, 0.0]}
    assert data["Note", "Cites", "Note"].edge_index.tolist() == [[1], [1]]
    assert graph.to_pyg(["Note"]).edge_types == [("Note", "Cites", "Note")]


@needs_pyg
@pytest.mark.parametrize(
    ("label", "values", "classes"),
    [
        ("topic", [1, -1], ["a", "b"]),
        ("length", [7, -1], None),
        ("pinned", [1, -1], None),
        ("score", [0.5, None], None),
    ],
)
def test_labels(graph: og.Graph, label: str, values: list[Any], classes: list[str] | None) -> None:
    data = graph.to_pyg(labels={"Note": label, "Person": "team"})
    found = [None if value != value else value for value in data["Note"].y.tolist()]
    assert found == values
    assert data["Note"].get("classes") == classes
    assert (data["Person"].classes, data["Person"].y.tolist()) == (["blue", "red"], [1, 0, -1])


@needs_pyg
def test_older_commits_and_an_empty_graph(graph: og.Graph, tmp_path: Path) -> None:
    before = graph.head().commit_id
    graph.load([node("Note", name="n3")], mode="append")
    assert graph.to_pyg(at=before)["Note"].num_nodes == 2
    assert graph.to_pyg()["Note"].num_nodes == 3
    (tmp_path / "empty").mkdir()
    empty = new_graph(tmp_path / "empty", SCHEMA).to_pyg(features=FEATURES, labels={"Note": "topic"})
    assert tuple(empty["Note"].x.shape) == (0, 4)
    assert tuple(empty["Person", "Wrote", "Note"].edge_index.shape) == (2, 0)


@needs_pyg
def test_predictions_are_written_back(tmp_path: Path) -> None:
    """A network learns the team of half of the people and predicts that of the others."""
    import torch  # noqa: PLC0415
    from torch_geometric.nn import HeteroConv, SAGEConv  # noqa: PLC0415

    schema = "node Person { name: String @key  meaning: Vector(2)  team: String?  predicted: String? }\n"
    graph = new_graph(tmp_path, schema + "edge Knows: Person -> Person")
    names, teams = [f"p{n}" for n in range(24)], ["red", "blue"]
    people = [
        node("Person", name=name, meaning=[n % 2, 1 - n % 2], **({"team": teams[n % 2]} if n < 12 else {}))
        for n, name in enumerate(names)
    ]
    knows = [edge("Knows", name, names[(n + 2) % 24], id_=f"k{n}") for n, name in enumerate(names)]
    graph.load([*people, *knows], mode="append")

    data = graph.to_pyg(features={"Person": ["meaning"]}, labels={"Person": "team"})
    torch.manual_seed(0)
    network = HeteroConv({("Person", "Knows", "Person"): SAGEConv(2, 2)})
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    known = data["Person"].y >= 0
    for _ in range(50):
        optimizer.zero_grad()
        found = network(data.x_dict, data.edge_index_dict)["Person"]
        torch.nn.functional.cross_entropy(found[known], data["Person"].y[known]).backward()
        optimizer.step()
    predicted = network(data.x_dict, data.edge_index_dict)["Person"].argmax(dim=1).tolist()
    classes = data["Person"].classes
    rows = zip(data["Person"].ids, predicted, strict=True)
    records = [node("Person", name=id_, predicted=classes[label]) for id_, label in rows]
    graph.load(records, mode="merge", message="predicted teams")
    assert {name: graph.get("Person", name)["predicted"] for name in names} == {
        name: teams[n % 2] for n, name in enumerate(names)
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"types": ["Nte"]}, "there is no type 'Nte'"),
        ({"types": ["Note"], "features": {"Person": ["team"]}}, "'Person' is not among the types"),
        ({"features": {"Note": "meaning"}}, "the features of 'Note' must be a list"),
        ({"features": {"Note": ["lengt"]}}, "'Note' has no property 'lengt'"),
        (
            {"features": {"Person": ["team"]}},
            r"'Person\.team' is String\?; a feature must be a number, a Bool or a Vector",
        ),
        ({"features": {"Person": ["tags"]}}, r"'Person\.tags' is \[I64\]\?; a feature must be"),
        ({"labels": {"Person": "born"}}, r"'Person\.born' is Date\?; a label must be"),
    ],
)
def test_wrong_properties_are_named(graph: og.Graph, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        graph.to_pyg(**given)


@pytest.mark.parametrize("package", ["torch", "torch_geometric"])
def test_missing_packages_are_named(graph: og.Graph, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    if package == "torch_geometric" and not HAS_PYG:
        monkeypatch.setitem(sys.modules, "torch", sys)  # present, and not used
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=f"'{package}' is not installed") as caught:
        graph.to_pyg()
    assert caught.value.hint == f"install it: pip install {package}"
