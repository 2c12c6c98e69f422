"""Equal blocks of a query run once."""

from __future__ import annotations

import pytest

from omnigraph.engine.optimizer import optimize
from omnigraph.engine.optimizer.share_blocks import share_blocks
from omnigraph.query.plan import ir
from support.writes import edge, new_graph, node

SCHEMA = """
node Person { name: String @key  age: I64 }
node Firm { name: String @key }
edge Knows: Person -> Person
edge WorksAt: Person -> Firm
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    persons = [node("Person", name=f"p{at}", age=at % 50) for at in range(300)]
    firms = [node("Firm", name=f"f{at}") for at in range(20)]
    knows = [edge("Knows", f"p{at}", f"p{(at * 7 + step * step) % 300}") for at in range(300) for step in range(1, 5)]
    works = [edge("WorksAt", f"p{at}", f"f{at % 20}") for at in range(300)]
    return new_graph(tmp_path_factory.mktemp("shared"), SCHEMA, *persons, *firms, *knows, *works)


def hop(source: str, target: str, edge_type: str = "Knows") -> ir.Expand:
    return ir.Expand(source, target, edge_type, "out", "Person")


def scan(var: str) -> ir.NodeScan:
    return ir.NodeScan(var, "Person", (ir.Compare("=", ir.Prop(var, "age", ir.I64), ir.Const(3, ir.I64)),))


def optional(outer: str, inner: str) -> ir.LeftJoin:
    return ir.LeftJoin((outer,), (hop(outer, inner),), (inner,))


def once(outer: str, inner: str) -> ir.AntiJoin:
    return ir.AntiJoin((outer,), (scan(inner), hop(inner, outer)), independent=True)


# id: (blocks, their numbers)
BLOCKS = {
    "optional blocks of one variable": ([optional("p", "a"), optional("p", "b")], [0, 0]),
    "optional blocks of two variables": ([optional("p", "a"), optional("q", "b")], [None, None]),
    "blocks that run on their own": ([once("p", "a"), once("q", "b")], [0, 0]),
    "one of two kinds": ([optional("p", "a"), once("p", "b"), once("q", "c")], [None, 1, 1]),
    "other hops": (
        [optional("p", "a"), ir.LeftJoin(("p",), (hop("p", "b", "WorksAt"),), ("b",))],
        [None, None],
    ),
    "negations for each row": (
        [ir.AntiJoin(("p",), (hop("p", "a"),)), ir.AntiJoin(("p",), (hop("p", "a"),))],
        [None] * 2,
    ),
}


@pytest.mark.parametrize(("blocks", "numbers"), BLOCKS.values(), ids=BLOCKS)
def test_equal_blocks_have_one_number(blocks, numbers):
    found = share_blocks((ir.NodeScan("p", "Person"), *blocks))
    assert [op.shared for op in found[1:]] == numbers
    assert found[1:] == tuple(blocks), "numbers do not make a difference"


RARE = '$x worksAt $f $f.name = "f3" $x.age > 5'
# id: (match, columns)
QUERIES = {
    "two optional blocks": (
        "$p: Person optional { $p knows $a $a.age in [9, 12, 3] } optional { $p knows $b $b.age in [9, 12, 3] }",
        "$p.name, $a.name as a, $b.name as b",
    ),
    "three optional blocks, one of another variable": (
        "$p: Person $p.age < 9 $p knows $q optional { $p knows $a } optional { $q knows $b } optional { $p knows $c }",
        "$p.name, $a.name as a, $b.name as b, $c.name as c",
    ),
    "negations of two variables, found once": (
        f"$p: Person $p knows $q not {{ $p knows $x {RARE} }} "
        f"not {{ $q knows $y {RARE.replace('$x', '$y').replace('$f', '$g')} }}",
        "$p.name, $q.name as q",
    ),
    "optional blocks of two variables, found once": (
        f"$p: Person $p knows $q optional {{ $p knows $x {RARE} }} "
        f"optional {{ $q knows $y {RARE.replace('$x', '$y').replace('$f', '$g')} }}",
        "$p.name, $q.name as q, $x.name as x, $y.name as y, $g.name as g",
    ),
    "rows are counted": (
        "$p: Person optional { $p knows $a $a.age > 9 } optional { $p knows $b $b.age > 9 }",
        "count(distinct $p) as p, count($a) as a, count($b) as b",
    ),
}


@pytest.mark.parametrize(("match", "columns"), QUERIES.values(), ids=QUERIES)
def test_shared_blocks_have_the_rows_of_separate_ones(graph, monkeypatch, match, columns):
    text = f"query q() {{ match {{ {match} }} return {{ {columns} }} }}"
    assert "rows of an equal block" in graph.profile(text)
    shared = graph.query(text).to_pylist()
    monkeypatch.setattr(optimize, "share_blocks", lambda pipeline: pipeline)
    assert "rows of an equal block" not in graph.profile(text + " ")
    assert graph.query(text + " ").to_pylist() == shared
    assert shared


@pytest.mark.parametrize("columns", ["distinct { $p.name }", "{ count(distinct $p) as n }", "{ max($p.age) as n }"])
def test_implied_hops_are_dropped_from_sets_of_rows(graph, columns):
    match = "$p: Person $p knows $a $a.age in [3, 9, 30] $p knows $b $b.age in [3, 9, 30] $p knows $c"
    text = f"query q() {{ match {{ {match} }} return {columns} }}"
    assert graph.explain(text).count("expand") == 1
    once_only = f"query q() {{ match {{ $p: Person $p knows $a $a.age in [3, 9, 30] }} return {columns} }}"
    assert graph.query(text).to_pylist() == graph.query(once_only).to_pylist()
    every = graph.explain(f"query q() {{ match {{ {match} }} return {{ count($p) as n }} }}")
    assert every.count("expand") == 3
