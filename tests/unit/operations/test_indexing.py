"""The indexes that a schema requires do not change results."""

from __future__ import annotations

import pytest

from omnigraph.operations.indexing import wanted_indexes
from omnigraph.schema.check import compile_schema
from support.writes import edge, ids_of, new_graph, node


def wanted(body: str, name: str = "node:T") -> set[str]:
    schema = f"node T {{ {body} }} edge E: T -> T {{ d: Date? @index  u: I32? @unique }}"
    specs = wanted_indexes(compile_schema(schema))[name]
    assert len(specs) == len(set(specs))
    return {spec.column for spec in specs}


ID = "id"


@pytest.mark.parametrize(
    ("body", "indexes"),
    [
        ("v: I32?", set()),
        ("v: String @key", {"v"}),
        ("v: I64 @key", {"v"}),
        ("v: enum(a, b) @key", {"v"}),
        ("v: String? @index", set()),
        ("v: String? @unique", {"v"}),
        ("v: String? @unique @index", {"v"}),
        ("v: enum(a, b)? @index", {"v"}),
        *(
            (f"v: {scalar}? @index", {"v"})
            for scalar in ("Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime")
        ),
        ("v: Date? @unique", {"v"}),
        ("v: Vector(3)? @index", set()),
        ("v: [String]? @index(v)", set()),
        ("a: I32? b: I32? @index(a, b)", set()),
        ("a: I32? b: I32? @unique(a, b)", set()),
        ("a: I32 b: String @key(a, b)", {"a"}),
        ("a: I32? @index @unique @index(a)", {"a"}),
    ],
)
def test_indexes_of_a_node(body, indexes):
    assert wanted(body) == {ID, *indexes}


def test_edge_has_indexes_of_its_ids_only():
    assert wanted("v: I32?", "edge:E") == {ID, "src", "dst"}


def test_indexes_are_built_once_and_change_no_result(tmp_path):
    schema = "node T { k: String @key  n: I32? @index  t: String? @index  v: Vector(2)? @index } edge E: T -> T"
    graph = new_graph(tmp_path, schema)
    empty = graph.ensure_indices()
    assert {stats.table_key: [p.reason for p in stats.pending] for stats in empty}["edge:E"] == [
        "the table is empty"
    ] * 3
    assert not any(stats.committed for stats in empty)
    rows = [node("T", k=f"k{number}", n=number % 7, t=f"word{number}", v=[number, 1]) for number in range(50)]
    graph.load([*rows, *(edge("E", f"k{n}", "k0", id_=f"e{n}") for n in range(50))], mode="append")
    before = list(graph.export())
    built = graph.ensure_indices()
    assert all(stats.committed for stats in built)
    assert graph.commits()[0].kind == "ensure_indices"
    assert not any(stats.pending for stats in built)
    again = graph.ensure_indices()
    assert not any(stats.committed for stats in again)
    assert list(graph.export()) == before
    # Rows that are not yet in an index are found as well.
    graph.load([node("T", k="late", n=3)], mode="append")
    assert graph.mutate("query q() { update T set { n: 100 } where n = 3 }").affected_nodes == 8
    assert graph.mutate('query q() { delete T where k = "k7" }').affected_edges == 1
    graph.optimize()
    assert graph.mutate("query q() { delete T where n = 100 }").affected_nodes == 8
    assert len(ids_of(graph, "T")) == 42
    assert graph.verify() == []
