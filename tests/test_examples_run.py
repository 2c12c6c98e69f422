"""Every mutation of the conformance examples, and the worked cases of the loader, on real graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import ConstraintViolation, KeyConflict, OmniGraphError
from omnigraph.graph import Graph
from omnigraph.query.syntax.ast import Write
from omnigraph.query.syntax.parser import parse_queries
from support.examples import RULED
from support.writes import SHELVES, beside, ends_of, everything, new_graph, rows_of, shelf

EXAMPLES = Path(__file__).parent / "cases" / "examples"
GRAPHS = ("library", "ward", "deps")
WRITES = {
    f"{graph}-{query.name}": (graph, query.name.text, json.loads((EXAMPLES / f"{graph}.expected.json").read_text()))
    for graph in GRAPHS
    for query in parse_queries((EXAMPLES / f"{graph}.gq").read_text()).queries
    if isinstance(query.body, Write)
}


@pytest.fixture
def example(tmp_path):
    def build(name: str) -> Graph:
        graph = new_graph(tmp_path, (EXAMPLES / f"{name}.pg").read_text())
        graph.load(EXAMPLES / f"{name}.jsonl", mode="overwrite")
        return graph

    return build


def test_there_are_14_mutations():
    assert len(WRITES) == 14


@pytest.mark.parametrize(("name", "query", "cases"), WRITES.values(), ids=WRITES)
def test_mutation(example, name, query, cases):
    case: dict[str, Any] = cases[query]
    graph = example(name)
    source = EXAMPLES / f"{name}.gq"
    before = everything(graph)
    error = RULED.get(f"{name}-{query}") or case.get("error")
    if error is not None:
        with pytest.raises(OmniGraphError) as caught:
            graph.mutate(source, query, case["params"])
        assert caught.value.code == error or error in caught.value.message
        assert everything(graph) == before
        return
    result = graph.mutate(source, query, case["params"])
    assert {"affectedNodes": result.affected_nodes, "affectedEdges": result.affected_edges} == case["result"]
    assert graph.commits()[0].id == result.commit_id
    if "after" in case:
        after = case["after"]
        assert graph.query(source, after["query"], after["params"]).to_rows() == after["rows"]
    assert graph.verify() == []


@pytest.mark.parametrize("name", GRAPHS)
def test_example_data_loads_completely(example, name):
    graph = example(name)
    lines = [json.loads(line) for line in (EXAMPLES / f"{name}.jsonl").read_text().splitlines() if line.startswith("{")]
    assert sum(1 for _ in graph.export()) == len(lines)
    assert graph.verify() == []


# -- the worked cases of the loader ------------------------------------------------------------------

FILLED = (shelf("a", note="x", cap=3),)
PAIR = (shelf("a"), shelf("b"), beside("a", "b"))


def test_merge_keeps_absent_properties_unless_missing_is_null(tmp_path):
    graph = new_graph(tmp_path, SHELVES, *FILLED)
    graph.load([shelf("a", cap=4)], mode="merge")
    assert rows_of(graph, "Shelf") == {"a": {"cap": 4, "code": "a", "note": "x"}}
    graph.load([shelf("a", cap=4)], mode="merge", missing="null")
    assert rows_of(graph, "Shelf") == {"a": {"cap": 4, "code": "a", "note": None}}


def test_append_of_an_existing_key_is_a_conflict(tmp_path):
    graph = new_graph(tmp_path, SHELVES, *FILLED)
    with pytest.raises(KeyConflict) as caught:
        graph.load([shelf("a", cap=4)], mode="append")
    assert (caught.value.table_key, caught.value.row_id) == ("node:Shelf", "a")
    assert rows_of(graph, "Shelf") == {"a": {"cap": 3, "code": "a", "note": "x"}}


def test_overwrite_that_removes_a_referenced_node_is_refused(tmp_path):
    graph = new_graph(tmp_path, SHELVES, *PAIR)
    before = everything(graph)
    with pytest.raises(ConstraintViolation, match=r"dst 'b' not found in Shelf"):
        graph.load([shelf("a")], mode="overwrite")
    assert everything(graph) == before


def test_overwrite_of_nodes_and_edges(tmp_path):
    graph = new_graph(tmp_path, SHELVES, *PAIR)
    graph.load([shelf("a"), beside("a", "a")], mode="overwrite")
    assert list(rows_of(graph, "Shelf")) == ["a"]
    assert ends_of(graph, "Beside") == [("a", "a")]


def test_overwrite_of_edges_alone_keeps_the_nodes(tmp_path):
    graph = new_graph(tmp_path, SHELVES, *PAIR)
    graph.load([beside("b", "a")], mode="overwrite")
    assert list(rows_of(graph, "Shelf")) == ["a", "b"]
    assert ends_of(graph, "Beside") == [("b", "a")]


def test_edges_without_ids_become_parallel(tmp_path):
    graph = new_graph(tmp_path, SHELVES, *PAIR[:2])
    for _ in range(2):
        graph.load([beside("a", "b")], mode="merge")
    assert ends_of(graph, "Beside") == [("a", "b"), ("a", "b")]


def test_merge_of_an_edge_by_id_changes_its_ends(tmp_path):
    graph = new_graph(tmp_path, SHELVES, *PAIR[:2])
    graph.load([beside("a", "b", id_="e1")], mode="merge")
    graph.load([beside("b", "a", id_="e1")], mode="merge")
    assert rows_of(graph, "Beside") == {"e1": {"from": "b", "to": "a"}}
