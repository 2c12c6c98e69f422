"""Execution of stages: plans, pages, limits, rankings and profiles."""

from __future__ import annotations

import re

import pytest

from omnigraph.engine.exec.context import Limits
from omnigraph.engine.result.result_graph import result_graph_of
from omnigraph.errors import LimitReached
from omnigraph.graph import Graph
from omnigraph.query.compile import compile_query
from omnigraph.schema.check import compile_schema
from support.writes import edge, new_graph, node

SCHEMA = """
node P { name: String @key  n: I64?  text: String?  vec: Vector(2)? }
node Q { name: String @key }
edge Knows: P -> P
edge Has: P -> Q
"""
FRIENDS = "match { $p knows $f } with { $p, count($f) as $n }"


@pytest.fixture
def graph(tmp_path):
    """Twelve persons; the number of friends grows; every third has x."""
    names = [f"p{number:02}" for number in range(12)]
    return new_graph(
        tmp_path,
        SCHEMA,
        *(node("P", name=name, n=at, text=f"word{at % 4}", vec=[1.0, at / 10]) for at, name in enumerate(names)),
        *(node("Q", name=name) for name in "xy"),
        *(
            edge("Knows", name, other, id_=f"e{99 - at}{other}")
            for at, name in enumerate(names)
            for other in names[:at]
        ),
        *(edge("Has", name, "x" if at % 3 else "y") for at, name in enumerate(names)),
    )


def rows(graph: Graph, text: str, **params: object) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in graph.query(text, params).to_rows()]


def test_a_match_from_the_first_groups(graph: Graph) -> None:
    text = f"{FRIENDS} order {{ $n desc }} skip 1 limit 2 match {{ $p has $q }} return {{ $p.name, $n, $q.name }}"
    assert sorted(rows(graph, text)) == [("p09", 9, "y"), ("p10", 10, "x")]


def test_a_ranking_orders_a_stage(graph: Graph) -> None:
    text = """match { $p: P } with { $p, nearest($p.vec, $near) as $d } order { nearest($p.vec, $near) } limit 2
              match { $p has $q } return { $p.name, $q.name, $d < 0.1 as close } order { $p.name }"""
    assert rows(graph, text, near=[1.0, 0.0]) == [("p00", "y", True), ("p01", "x", True)]


def test_a_fused_ranking_orders_a_stage(graph: Graph) -> None:
    text = """match { $p: P } with { $p, rrf(nearest($p.vec, $near), bm25($p.text, "word1")) as $score }
              order { rrf(nearest($p.vec, $near), bm25($p.text, "word1")) } limit 3
              return { $p.name, $score > 0 as ranked } order { $score desc, $p.name }"""
    found = rows(graph, text, near=[1.0, 0.0])
    assert len(found) == 3
    assert found[0] == ("p01", True)


def test_a_ranking_after_a_stage(graph: Graph) -> None:
    text = f"""{FRIENDS} having {{ $n >= 6 }} match {{ $p has $q }} return {{ $p.name, $n }}
               order {{ bm25($p.text, "word3"), $n desc }} limit 5"""
    assert rows(graph, text) == [("p11", 11), ("p07", 7)]


def test_rows_of_a_ranked_node_are_ordered_by_the_edges_of_the_stage(graph: Graph) -> None:
    text = """match { $b: P { name: "p01" } $a $z:knows $b } with { $a, $b, $z }
              match { $b has $q } return { $a.name } order { bm25($b.text, "word1") }"""
    ids = 'match { $b: P { name: "p01" } $a $z:knows $b } return { $a.name } order { id($z) }'
    found = rows(graph, text)
    assert len(found) == 10
    assert found == rows(graph, ids)


def test_pages(graph: Graph) -> None:
    text = f"query q() {{ {FRIENDS} match {{ $p has $q }} return {{ $q.name, $n }} order {{ $q.name, $n desc }} }}"
    whole = graph.query(text).to_rows()
    paged = [row for page in graph.pages(text, page=4) for row in page.to_rows()]
    assert len(whole) == 11
    assert paged == whole


def test_rows_of_a_stage_count_against_the_limits(graph: Graph) -> None:
    text = "match { $p: P $q: P } with { $p, $q, $p.n + $q.n as $s } return { count($s) as n }"
    assert rows(graph, text) == [(144,)]
    with pytest.raises(LimitReached):
        graph.query(text, limits=Limits(rows_max=100))


def test_the_sizes_of_values_count_against_the_limits(graph: Graph) -> None:
    text = "match { $p: P } with { $p, collect(repeat_text) as $t } return { $p.name }"
    text = text.replace("repeat_text", "$p.text + $p.text + $p.text + $p.text + $p.text + $p.text + $p.text + $p.text")
    assert len(rows(graph, text)) == 12
    with pytest.raises(LimitReached):
        graph.query(text, limits=Limits(bytes_max=500))
    plain = "match { $p: P } with { $p, count($p) as $t } return { $p.name }"
    assert len(graph.query(plain, limits=Limits(bytes_max=500))) == 12


def test_the_rest_is_planned_again_for_the_actual_rows(graph: Graph, tune) -> None:
    text = f"{FRIENDS} match {{ $p knows $g $g has $q }} return {{ $q.name, sum($n) as s }} order {{ $q.name }}"
    expected = rows(graph, text)
    tune(replan_rows_min=0, replan_factor=0.0, chain_rows_max=0)
    assert rows(graph, text) == expected


def test_explain_and_profile(graph: Graph) -> None:
    text = f"{FRIENDS} order {{ $n desc }} limit 2 match {{ $p has $q }} return {{ $p.name, $n, $q.name }}"
    explained = graph.explain(text)
    assert re.search(r"stage   \$p, \$n, from: +~2 rows", explained)
    assert "    with    $p: P, count($f) as n: I64" in explained
    profiled = graph.profile(text)
    assert re.search(r"stage   \$p, \$n, from: +2 +~2 ", str(profiled))
    assert re.search(r"    group   by \$p +2 ", str(profiled))
    assert re.search(r"\n  expand  \$p -Has-> \$q: Q +2 +", str(profiled))


def test_the_next_part_starts_at_the_variables_of_the_stage(graph: Graph) -> None:
    text = f"{FRIENDS} limit 1 match {{ $q: Q $p has $q }} return {{ $q.name }}"
    assert "expand  $p -Has-> $q: Q" in graph.explain(text)


def test_nodes_that_a_stage_keeps_are_connected_in_the_result() -> None:
    text = "query q() { match { $p knows $f } with { $p, $f } match { $f has $q } return { $p, $f, $q } }"
    found = result_graph_of(compile_query(compile_schema(SCHEMA), text))
    assert sorted((hop.source, hop.target, hop.label) for hop in found.hops) == [(0, 1, "Knows"), (1, 2, "Has")]
