"""Union tables: row numbers, combined segments, and updates after commits."""

from __future__ import annotations

import numpy as np
import pytest

import omnigraph as og
from omnigraph.engine.cache.segments import SegmentView
from omnigraph.engine.cache.union_table import joined_segments
from omnigraph.notebook import result_view

SCHEMA = """
interface Named { name: String }
node A implements Named { name: String @key  text: String?  vec: Vector(2)?  n: I64? }
node B implements Named { name: String @key  text: String?  vec: Vector(2)?  n: I64? }
edge Aa: A -> A
edge Ab: A -> B
edge Bb: B -> B
"""


class StubTable:
    """A stand-in for a table with a number of rows."""

    def __init__(self, row_count):
        self.row_count = row_count


def positions(*numbers):
    return np.array(numbers, np.int32)


def test_joined_segments_are_concatenated():
    whole = SegmentView(("a", "b"), (0, 2))  # 3 rows, unchanged
    moved = SegmentView(("c",), (0,), positions(2, 0), positions(1, -1, 0))  # 2 live rows of 3 stored ones
    found = joined_segments([whole, moved, whole], [StubTable(3), StubTable(2), StubTable(3)])
    assert found.bodies == ("a", "b", "c", "a", "b")
    assert found.starts == (0, 2, 3, 6, 8)
    assert found.stored_of is not None
    assert found.row_of is not None
    assert found.stored_of.tolist() == [0, 1, 2, 5, 3, 6, 7, 8]
    assert found.row_of.tolist() == [0, 1, 2, 4, -1, 3, 5, 6, 7]
    assert joined_segments([whole, whole], [StubTable(3), StubTable(3)]) == SegmentView(
        ("a", "b", "a", "b"), (0, 2, 3, 5)
    )


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    for type_ in ("A", "B"):
        rows = [{"name": f"n{at}", "text": "river " * at, "vec": [at, 1], "n": at} for at in range(4)]
        graph.load([{"type": type_, "data": row} for row in rows], mode="merge")
    edges = [("Aa", "n0", "n1"), ("Ab", "n1", "n1"), ("Bb", "n1", "n2"), ("Bb", "n2", "n2")]
    graph.load([{"edge": edge, "from": a, "to": b} for edge, a, b in edges], mode="merge")
    return graph


def shown(graph, match, show, tail=""):
    return [
        tuple(row.values()) for row in graph.query(f"query q() {{ match {{ {match} }} return {{ {show} }} {tail} }}")
    ]


def test_every_commit_is_visible(graph):
    ask = ('$x: Named search($x.text, "river")', "type($x) as t, id($x) as i", "order { t, i }")
    ranks = ("$x: Named", "type($x) as t, id($x) as i", "order { nearest($x.vec, [1, 0]) } limit 2")
    away = ('$a: A { name: "n0" } $a ->{1,9} $x', "type($x) as t, id($x) as i", "order { t, i }")
    assert shown(graph, *ask) == [(t, f"n{at}") for t in "AB" for at in (1, 2, 3)]
    assert shown(graph, *ranks) == [("A", "n3"), ("B", "n3")]
    assert shown(graph, *away) == [("A", "n1"), ("B", "n1"), ("B", "n2")]
    graph.mutate('query m() { delete A where name = "n3" }')
    graph.mutate('query m() { update B set { text: "stone", vec: [-1, 0] } where name = "n3" }')
    graph.mutate('query m() { insert Aa { from: "n1", to: "n2" } }')
    assert shown(graph, *ask) == [("A", "n1"), ("A", "n2"), ("B", "n1"), ("B", "n2")]
    assert shown(graph, *ranks) == [("A", "n2"), ("B", "n2")]
    assert shown(graph, *away) == [("A", "n1"), ("A", "n2"), ("B", "n1"), ("B", "n2")]


def test_a_loop_has_both_ends_in_one_type(graph):
    """`n1` of A leads to `n1` of B: equal row numbers, different nodes."""
    assert shown(graph, "$x -> $x", "type($x), id($x)") == [("B", "n2")]
    assert shown(graph, '$a: A { name: "n1" } $a <->{2,2} $x', "type($x), id($x)") == [("B", "n2")]


def test_counts_equal_the_number_of_returned_rows(graph):
    for arrow in ("->", "<->", "->{1,3}", "<->{2,3}"):
        for ends in ("$x: Named", "$x: A", "$x: Named $y: B"):
            match = f"{ends} $x {arrow} $y"
            rows = shown(graph, match, "type($x) as t, id($x) as i, type($y) as u, id($y) as j")
            assert shown(graph, match, "count($y) as n") == [(len(rows),)], match
            per = shown(graph, match, "$x, count($y) as n")
            assert sum(n for _, n in per) == len(rows)


def test_a_drawing_distinguishes_types(graph):
    result = graph.query("query q() { match { $x: Named $x -> $y } return { $x, $y } }")
    dots = result_view.dots_of(result._shape(), [column.to_pylist() for column in result.to_arrow().columns])
    nodes = {(dot.key, dot.kind) for dot, _ in dots}
    assert ("A:n1", "A") in nodes
    assert ("B:n1", "B") in nodes


@pytest.mark.parametrize("first", ["node", "id"])
def test_nodes_and_ids_have_separate_orders(tmp_path, first):
    """The cached order of one must not be used for the other."""
    graph = og.init(tmp_path / "graph", SCHEMA, environ={}, sync=False)
    graph.load([{"type": type_, "data": {"name": name}} for type_ in "BA" for name in ("x", "y")], mode="merge")
    queries = {
        "node": "query q() { match { $d: A|B } return { $d, count($d) as n } order { n } }",
        "id": "query q() { match { $d: A|B } return { id($d) as id, count($d) as n } order { id } }",
    }
    expected = {"node": [("x", "A"), ("x", "B"), ("y", "A"), ("y", "B")], "id": [("x", 2), ("y", 2)]}
    for name in (first, "id" if first == "node" else "node"):
        rows = graph.query(queries[name])
        found = [(r["d"]["id"], r["d"]["type"]) if name == "node" else (r["id"], r["n"]) for r in rows]
        assert found == expected[name]


def test_lookup_by_id(graph):
    text = "query q($id: String?) { match { $a: A id($a) = $id } return { $a.n } }"
    assert [row["a.n"] for row in graph.query(text, params={"id": "n2"})] == [2]
    assert [*graph.query(text, params={"id": "n9"}), *graph.query(text)] == []
    assert "found by its key" in graph.explain(text)
    several = text.replace("$a: A", "$a: Named")
    assert [row["a.n"] for row in graph.query(several, params={"id": "n2"})] == [2, 2]


def test_the_profile_shows_combined_edge_types(graph):
    text = "query q() { match { $x: A $x -> $y } return { id($y) } }"
    assert "2 edge types combined" in graph.profile(text)
    assert "combined" not in graph.profile(text)


@pytest.mark.parametrize(
    "match",
    ["$x: B  $_ ->{1,2} $x", "$x: A|B  $_ ->{1,2} $x", "$x: A|B  $a: A  $a ->{1,2} $x", "$x: B  $a: A  $a ->{1,3} $x"],
)
def test_no_edge_follows_the_only_edge_between_two_types(tmp_path, match):
    graph = og.init(
        tmp_path / "graph", "node A { name: String @key }\nnode B { name: String @key }\nedge Ab: A -> B", environ={}
    )
    nodes = [{"type": type_, "data": {"name": f"n{at}"}} for type_ in ("A", "B") for at in range(4)]
    graph.load([*nodes, *({"edge": "Ab", "from": f"n{at}", "to": f"n{(at + 1) % 4}"} for at in range(4))], mode="merge")
    found = graph.query(f"query q() {{ match {{ {match} }} return {{ $x.name, count(1) as n }} order {{ $x.name }} }}")
    assert found.to_arrow().to_pylist() == [{"x.name": f"n{at}", "n": 1} for at in range(4)]
    rows = graph.query(f"query q() {{ match {{ {match.replace('$_', '$y')} }} return {{ $x }} }}")
    assert len(rows) == 4
