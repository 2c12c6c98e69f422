"""Scans by lists of keys give the rows of a scan of the column, by lookups as soon as these pay."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from omnigraph.engine.cache import id_index, id_segments
from omnigraph.engine.cache.id_segments import IdSegments
from omnigraph.graph import Graph
from omnigraph.graph_handle import context_of
from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from support.writes import edge, new_graph, node

SCHEMA = "node P { number: I64 @key  n: I64? }\nnode T { name: String @key  n: I64? }\nedge Near: P -> P\n"
LISTED = "query q($keys: [I64]) { match { $p: P  $p.number in $keys } return { $p.number as k } order { k } }"
OTHER = "query q($keys: [I64]) { match { $p: P  $p.n < 5  $p.number in $keys } return { $p.number as k } order { k } }"
NAMES = "query q($keys: [String]) { match { $t: T  $t.name in $keys } return { $t.n as k } order { k } }"
NOTE = "found by their keys"


@pytest.fixture(params=["segments", "index", "scan"])
def graph(request, tmp_path, tune) -> Graph:
    tune(
        id_lookup_rows=0,
        id_segments_rows_min=1 if request.param == "segments" else 10**9,
        id_lookups_before_index=0 if request.param == "index" else 10**9,
    )
    numbers = range(-20, 40, 2)
    records = [node("P", number=number, n=number % 10) for number in numbers]
    return new_graph(tmp_path, SCHEMA, *records, *(node("T", name=f"t{number}", n=number) for number in numbers))


def answer(graph: Graph, text: str, keys: list[Any] | None) -> list[int]:
    return [row["k"] for row in graph.query(text, {"keys": keys}).to_pylist()]


def test_rows_of_a_list_equal_those_of_a_scan(graph):
    random = Random(3)
    for _ in range(20):
        keys = random.choices(range(-25, 45), k=random.randrange(12))
        found = sorted({key for key in keys if key % 2 == 0 and -20 <= key < 40})
        assert answer(graph, LISTED, keys) == found
        assert answer(graph, OTHER, keys) == [key for key in found if key % 10 < 5]
        assert answer(graph, NAMES, [f"t{key}" for key in keys]) == found


def test_lists_of_other_values(graph):
    constant = LISTED.replace("($keys: [I64])", "()").replace("$keys", "[2, 4, 2, 5]")
    assert graph.query(constant).to_pylist() == [{"k": 2}, {"k": 4}]
    assert answer(graph, LISTED, []) == []
    assert answer(graph, LISTED, [9_223_372_036_854_775_807, 2]) == [2]


def test_hidden_rows_are_not_found(graph):
    few = Visibility({"node:P": ir.Compare("<", ir.Prop(ROW, "n", ir.I64), ir.Const(4, ir.I64))})
    actor = Graph(context_of(graph).with_visibility(few))
    assert answer(graph, LISTED, [2, 4, 12, 18, 3]) == [2, 4, 12, 18]
    assert answer(actor, LISTED, [2, 4, 12, 18, 3]) == [2, 12]


def test_lookups_are_noted(request, graph):
    looked_up = request.node.callspec.params["graph"] != "scan"
    assert (NOTE in str(graph.profile(LISTED, {"keys": [2, 3]}))) is looked_up


def test_keys_of_segments_are_looked_up_together(request, graph, monkeypatch):
    if request.node.callspec.params["graph"] == "segments":
        monkeypatch.setattr(IdSegments, "find", None)
    assert answer(graph, LISTED, [2, 4, 2, 99]) == [2, 4]


def test_few_rows_are_scanned_for_many_keys(graph, tune):
    tune(id_lookup_rows=20)
    assert NOTE not in str(graph.profile(LISTED, {"keys": [2, 3]}))


def test_few_far_nodes_are_compared_with_many_keys(request, graph, tune):
    graph.load([edge("Near", "-20", str(number)) for number in range(-20, 40, 2)], mode="append")
    graph.load([edge("Near", "-18", str(number)) for number in (2, 4)], mode="append")
    looked_up = request.node.callspec.params["graph"] != "scan"
    tune(id_lookup_rows=1)
    for start, noted in ((-20, looked_up), (-18, False)):
        hop = f"match {{ $a: P {{ number: {start} }}  $a near $b  $b.number in $keys }} return {{ $b.number as k }}"
        text = f"query q($keys: [I64]) {{ {hop} order {{ k }} }}"
        assert answer(graph, text, [2, 4, 7]) == [2, 4]
        assert (NOTE in str(graph.profile(text, {"keys": [2, 4, 7]}))) is noted


def test_long_keys_are_scanned(graph):
    """Only the ends of a long id are hashed; here all ids have one hash."""
    names = ["ö" * 40 + str(number) + "ä" * 40 for number in range(30)]
    graph.load([node("T", name=name, n=100 + number) for number, name in enumerate(names)], mode="append")
    assert answer(graph, NAMES, [names[3], "t2", names[7], "ö" * 80]) == [2, 103, 107]
    assert NOTE not in str(graph.profile(NAMES, {"keys": names[:2]}))


def test_lookups_of_a_list_have_checkpoints(graph, monkeypatch):
    counted: list[int] = []
    for module in (id_index, id_segments):
        monkeypatch.setattr(module, "paced", lambda items: (counted.append(1) or item for item in items))
    assert answer(graph, LISTED, [*range(1_000, 1_200), 2]) == [2]
    looked_up = NOTE in str(graph.profile(LISTED, {"keys": [2]}))
    assert len(counted) >= (3 if looked_up else 2) * 201, "values are read, measured and looked up"
