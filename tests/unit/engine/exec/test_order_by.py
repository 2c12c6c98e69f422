"""Ranking before or after the rest of the match gives the same first rows."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from omnigraph.engine.exec import order_by
from omnigraph.engine.exec.hop_expansion import HopExpansion
from omnigraph.engine.exec.pipeline import MatchPipeline
from omnigraph.graph import Graph
from omnigraph.query.plan import ir
from support.writes import edge, new_graph, node

SCHEMA = """
node Doc { name: String @key  text: String?  vec: Vector(2)?  n: I64? }
node Tag { name: String @key }
edge About: Doc -> Tag { weight: I64? }
edge Cites: Doc -> Doc
"""
WORDS = ["red", "blue", "green", "stone", "river"]
MATCHES = [
    "$d: Doc $d about $t",
    "$d: Doc $d $e:about $t",
    '$d: Doc $d about $t $t.name > "t3"',
    "$d: Doc not { $d about $_ }",
    "$d: Doc $d cites{1,2} $c",
    "$d: Doc $c cites $d $d about $t",
    "$d: Doc $d cites $d",
    "$d: Doc $t: Tag $d.name > $t.name",
    "$t: Tag $d about $t",
    "$d: Doc { n: 1 } $d about $t",
    "$d: Doc optional { $d about $t }",
    "$d: Doc optional { $d about $t } $t.name is null",
    "$d: Doc $d cites $c optional { $c about $t } not { $d about $_ }",
]
SORTS = ["$d.n", "$d.n desc, $d.name", "$d.name desc", "$d.n, $d.text desc", ""]
RANKS = [
    "nearest($d.vec, [1, 0])",
    'bm25($d.text, "red stone")',
    'rrf(nearest($d.vec, [1, 0]), bm25($d.text, "red stone"))',
    'rrf(bm25($d.text, "red"), bm25($d.text, "stone"))',
    "rrf(nearest($d.vec, [1, 0]), nearest($d.vec, [0, 1]))",
]


def build(root: Any, seed: int) -> Graph:
    random = Random(seed)
    docs = [
        node(
            "Doc",
            name=f"d{at}",
            n=random.randrange(2),
            text=" ".join(random.choices(WORDS, k=random.randrange(4))),
            vec=None if random.random() < 0.1 else [random.randrange(-2, 3), random.randrange(-2, 3)],
        )
        for at in range(60)
    ]
    tags = [node("Tag", name=f"t{at}") for at in range(6)]
    about = [edge("About", f"d{random.randrange(60)}", f"t{random.randrange(6)}", id_=f"a{at}") for at in range(40)]
    cites = [edge("Cites", f"d{random.randrange(60)}", f"d{random.randrange(60)}", id_=f"c{at}") for at in range(50)]
    return new_graph(root, SCHEMA, *docs, *tags, *about, *cites)


@pytest.mark.parametrize("limit", [1, 3, 10, 200])
def test_early_and_late_ranking_give_the_same_rows(tmp_path, monkeypatch, tune, limit):
    graph = build(tmp_path, limit)
    texts = [
        f"query q() {{ match {{ {match} }} return {{ $d.name, $d }} order {{ {rank} }} limit {limit} }}"
        for match in MATCHES
        for rank in RANKS
    ]
    tune(ranked_candidates_min=1, ranked_overfetch=2)
    early = [graph.query(text).to_rows() for text in texts]
    monkeypatch.setattr(
        order_by.OrderedRows, "_ranked", lambda self, rank: self._rank(rank, self._match.rows(self._plan.pipeline))
    )
    for text, rows in zip(texts, early, strict=True):
        assert graph.query(text).to_rows() == rows, text


def test_rest_of_the_match_runs_for_few_entities(tmp_path, monkeypatch):
    docs = [node("Doc", name=f"d{at:03}", text="red", vec=[1, at]) for at in range(300)]
    about = [edge("About", f"d{at:03}", "t", id_=f"a{at}") for at in range(300)]
    graph = new_graph(tmp_path, SCHEMA, *docs, node("Tag", name="t"), *about)
    seen: list[int] = []
    expand = HopExpansion.rows

    def counting(self: HopExpansion, op: ir.Expand, frame: Any, room: Any) -> Any:
        seen.append(frame.count)
        return expand(self, op, frame, room)

    monkeypatch.setattr(HopExpansion, "rows", counting)
    for rank in (RANKS[0], RANKS[2]):
        text = f"query q() {{ match {{ $d: Doc $d about $t }} return {{ $d.name }} order {{ {rank} }} limit 3 }}"
        assert len(graph.query(text)) == 3
    assert max(seen) <= 64


@pytest.mark.parametrize("limit", [1, 3, 10, 200])
def test_first_rows_are_those_of_the_whole_match(tmp_path, tune, limit):
    graph = build(tmp_path, limit)
    tune(ranked_candidates_min=1, ranked_overfetch=2)
    for match in MATCHES:
        for sort in SORTS:
            order = f"order {{ {sort} }}" if sort else ""
            text = f"query q() {{ match {{ {match} }} return {{ $d.name, $d }} {order} }}"
            rows = graph.query(text).to_rows()
            few = graph.query(text[:-1] + f"limit {limit} }}").to_rows()
            if sort:
                assert few == rows[:limit], text
            else:
                assert len(few) == min(limit, len(rows))
                assert all(row in rows for row in few)


def test_match_of_the_first_rows_runs_for_few_entities(tmp_path, monkeypatch):
    docs = [node("Doc", name=f"d{at:03}", n=at % 100) for at in range(600)]
    about = [edge("About", f"d{at:03}", "t", id_=f"a{at}") for at in range(600)]
    graph = new_graph(tmp_path, SCHEMA, *docs, node("Tag", name="t"), *about)
    seen: list[int] = []
    expand = HopExpansion.rows

    def counting(self: HopExpansion, op: ir.Expand, frame: Any, room: Any) -> Any:
        seen.append(frame.count)
        return expand(self, op, frame, room)

    monkeypatch.setattr(HopExpansion, "rows", counting)
    text = "query q() { match { $d: Doc $d about $t } return { $d.name } order { $d.n desc } limit 3 }"
    assert [row["d.name"] for row in graph.query(text).to_pylist()] == ["d099", "d199", "d299"]
    assert max(seen) <= 70


def test_fusion_finds_the_nodes_with_a_match_without_their_rows(tmp_path, monkeypatch):
    graph = build(tmp_path, 3)
    match = "$d: Doc $d cites $c $c about $t"
    text = f"query q() {{ match {{ {match} }} return {{ $d.name }} order {{ {RANKS[2]} }} limit 3 }}"
    expected = graph.query(text).to_rows()
    monkeypatch.setattr(MatchPipeline, "passing", lambda *_: None)
    assert graph.query(text).to_rows() == expected


def test_rows_with_equal_keys_are_ordered_by_ids_at_every_limit(tmp_path, tune):
    graph = build(tmp_path, 5)
    for match in MATCHES:
        for sort in (sort for sort in SORTS if sort):
            text = f"query q() {{ match {{ {match} }} return {{ $d.name, $d }} order {{ {sort} }} }}"
            few = graph.query(text).to_rows()
            tune(python_sort_rows_max=0)  # all rows are sorted by keys and ids together
            rows = graph.query(text).to_rows()
            tune(python_sort_rows_max=256)
            assert few == rows, text
            for limit in (2, 7, 31):
                assert graph.query(text[:-1] + f"limit {limit} }}").to_rows() == rows[:limit], text


def test_equal_numbers_and_nulls_are_ordered_by_ids(tmp_path):
    values = zip("gfedcba", (1, None, 0.0, -0.0, None, 1, 2), strict=True)
    graph = new_graph(tmp_path, "node N { name: String @key  x: F64? }", *(node("N", name=n, x=x) for n, x in values))
    text = "query q() { match { $n: N } return { $n.name } order { $n.x desc } limit 7 }"
    assert [row["n.name"] for row in graph.query(text).to_pylist()] == ["a", "b", "g", "d", "e", "c", "f"]


def test_a_rank_that_is_not_a_number_equals_another():
    ranks = np.array([-1.0, -1.0, 2.0, np.nan, np.nan])
    assert order_by._differ(ranks).tolist() == [False, True, True, False]


def test_ids_of_rows_with_different_keys_are_not_compared(tmp_path, monkeypatch):
    docs = [node("Doc", name=f"d{at:03}", n=at) for at in range(300)]
    about = [edge("About", f"d{at:03}", "t", id_=f"a{at}") for at in range(300)]
    graph = new_graph(tmp_path, SCHEMA, *docs, node("Tag", name="t"), *about)
    compared: list[int] = []
    ranks = order_by.id_ranks_of

    def counting(bound: Any) -> Any:
        compared.append(bound.count)
        return ranks(bound)

    monkeypatch.setattr(order_by, "id_ranks_of", counting)
    text = "query q() { match { $d: Doc $d $e:about $t } return { $d.name } order { %s } limit 3 }"
    assert [row["d.name"] for row in graph.query(text % "$d.n desc").to_pylist()] == ["d299", "d298", "d297"]
    assert not compared
    assert len(graph.query(text % "$t.name")) == 3
    assert compared
