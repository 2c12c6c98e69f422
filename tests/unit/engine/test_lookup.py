"""A lookup by key answers as the executor does, in every form a result has."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.engine import lookup
from omnigraph.engine.lookup import find_lookup
from omnigraph.engine.work import Limits
from omnigraph.graph import Graph
from omnigraph.query.compile import compile_query
from omnigraph.query.ir import QueryIR
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  n: I64?  big: U64?  x: F64?  yes: Bool?  small: F32?  on: Date? }
edge Knows: P -> P
edge Has: P -> N
node N { number: I64 @key  text: String? }
"""
COLUMNS = "$p.name, $p.n, $p.big, $p.x, $p.yes as yes, $p.yes as yes"


@pytest.fixture
def graph(tmp_path):
    return new_graph(
        tmp_path,
        SCHEMA,
        node("P", name="full", n=-5, big=2**64 - 1, x=0.5, yes=True, small=0.25, on="2024-02-29"),
        node("P", name="bare"),
        node("N", number=7, text="seven"),
        node("N", number=8),
        *(edge("Knows", *ends) for ends in (("full", "bare"), ("full", "bare"), ("full", "full"), ("bare", "full"))),
        *(edge("Has", "full", number) for number in ("7", "8")),
    )


def query(columns: str, then: str = "") -> str:
    return f"query q($k: String?) {{ match {{ $p: P {{ name: $k }} }} return {{ {columns} }} {then} }}"


def is_lookup(graph: Graph, text: str) -> bool:
    catalog = graph.catalog()
    plan = compile_query(catalog, text)
    assert isinstance(plan, QueryIR)
    return find_lookup(plan, catalog) is not None


@pytest.mark.parametrize("key", ["full", "bare", "nobody", "", None])
def test_it_answers_as_the_executor_does(graph, key):
    fast = graph.query(query(COLUMNS), params={"k": key})
    slow = graph.query(query(COLUMNS), params={"k": key}, limits=Limits())
    assert is_lookup(graph, query(COLUMNS))
    assert fast.columns == slow.columns == ["p.name", "p.n", "p.big", "p.x", "yes", "yes"]
    assert fast.to_pylist() == slow.to_pylist()
    assert fast.to_arrow().equals(slow.to_arrow())
    for form in ("to_rows", "to_json", "_repr_html_"):
        again = graph.query(query(COLUMNS), params={"k": key})
        assert getattr(again, form)() == getattr(slow, form)()
    again = graph.query(query(COLUMNS), params={"k": key})
    assert (len(again), list(again), pa.table(again)) == (len(slow), list(slow), pa.table(slow))


HOPS = [
    "$p knows $q",
    "$q knows $p",
    "$p <knows> $q",
    "$p has $q",
]


@pytest.mark.parametrize("key", ["full", "bare", "nobody", None])
@pytest.mark.parametrize("hop", HOPS)
def test_a_hop_answers_as_the_executor_does(graph, hop, key):
    shown = "$q.text, $q.number, $p.n" if "has" in hop else "$q.name, $q.n, $q.x, $p.name, $q.yes"
    text = f"query q($k: String?) {{ match {{ $p: P {{ name: $k }} {hop} }} return {{ {shown} }} }}"
    assert is_lookup(graph, text)
    fast, slow = graph.query(text, params={"k": key}), graph.query(text, params={"k": key}, limits=Limits())
    assert fast.columns == slow.columns
    assert sorted(fast.to_pylist(), key=repr) == sorted(slow.to_pylist(), key=repr)
    assert fast.to_arrow().schema == slow.to_arrow().schema
    assert len(graph.query(text.replace("} }", "} limit 1 }"), params={"k": key})) == min(1, len(slow))


def test_many_neighbours_are_left_to_the_executor(graph, monkeypatch):
    text = 'query q() { match { $p: P { name: "full" } $p knows $q } return { $q.name } }'
    expected = sorted(graph.query(text).to_pylist(), key=repr)
    monkeypatch.setattr(lookup, "_ROWS_MAX", 1)
    assert sorted(graph.query(text).to_pylist(), key=repr) == expected


@pytest.mark.parametrize("match", ["$p knows{1,2} $q", "$p $e:knows $q", "$p knows $q $q.n > 1", "$p knows $p"])
def test_other_hops_are_left_to_the_executor(graph, match):
    assert not is_lookup(graph, f'query q() {{ match {{ $p: P {{ name: "full" }} {match} }} return {{ $p.name }} }}')


@pytest.mark.parametrize(
    ("columns", "then"),
    [("$p.on", ""), ("$p.small", ""), ("$p", ""), ("$k", ""), ("count($p)", ""), ("$p.n", "order { $p.n }")],
)
def test_what_it_does_not_know_is_left_to_the_executor(graph, columns, then):
    assert not is_lookup(graph, query(columns, then))
    assert len(graph.query(query(columns, then), params={"k": "full"})) == 1


def test_a_limit_of_nothing_gives_nothing(graph):
    assert graph.query(query("$p.n", "limit 0"), params={"k": "full"}).to_pylist() == []
    assert graph.query(query("$p.n", "limit 1"), params={"k": "full"}).to_pylist() == [{"p.n": -5}]


@pytest.mark.parametrize(("number", "found"), [("7", 1), ("9", 0)])
def test_a_key_that_is_a_number(graph, number, found):
    text = f"query q() {{ match {{ $p: N {{ number: {number} }} }} return {{ $p.text }} }}"
    assert len(graph.query(text)) == found
