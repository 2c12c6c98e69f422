"""Explained plans."""

from __future__ import annotations

import re

import pytest

import omnigraph as og
from omnigraph.engine.plan.expected_rows import format_estimate
from omnigraph.operations.read import read
from omnigraph.operations.requests import QueryText, ReadRequest
from support.writes import edge, new_graph, node

SCHEMA = """
node Doc { name: String @key  kind: enum(a, b)?  on: Bool?  n: I64?  text: String?  vec: Vector(2)? }
node Tag { name: String @key }
edge About: Doc -> Tag { weight: I64? }
"""


@pytest.fixture
def graph(tmp_path):
    texts = ("blue", "red stone")
    docs = [
        node("Doc", name=f"d{at:02}", kind="ab"[at % 2], n=at % 5, text=texts[at % 2], vec=[at, 1]) for at in range(40)
    ]
    about_ = [edge("About", f"d{at:02}", f"t{at % 4}", weight=at) for at in range(40)]
    return new_graph(tmp_path, SCHEMA, *docs, *(node("Tag", name=f"t{at}") for at in range(4)), *about_)


def notes(text: str) -> dict[str, str]:
    """Return first word of a line → note of the line."""
    lines = [re.split(r" {2,}", line.strip(), maxsplit=2) for line in text.splitlines()[1:]]
    return {parts[0].split()[0]: parts[-1] if len(parts) > 1 else "" for parts in lines}


MATCHES = {
    "$d: Doc": "~40 rows · of 40",
    '$d: Doc { name: "d01" }': "~1 row · found by its key",
    '$d: Doc { kind: "a" }': "~20 rows · of 40",
    "$d: Doc { on: true }": "~0 rows · of 40",
    "$d: Doc { n: 1 }": "~8 rows · of 40",
    "$d: Doc { n: 7 }": "~0 rows · of 40",
    "$d: Doc $d.n > 1": "~24 rows · of 40",
    '$d: Doc $d.name starts_with "d1"': "~10 rows · of 40",
    '$d: Doc search($d.text, "red")': "~20 rows · of 40 · words of 'text' to be built",
}


@pytest.mark.parametrize(("match", "expected"), MATCHES.items(), ids=MATCHES)
def test_scan_shows_estimated_rows(graph, match, expected):
    found = notes(graph.explain(f"query q() {{ match {{ {match} }} return {{ $d.name as name }} }}"))
    assert found["scan"] == expected


def test_hops_and_negations_show_estimated_rows(graph):
    text = "query q() { match { $t: Tag $d about $t not { $d.n = 1 } } return { $d.name as n } limit 3 }"
    found = notes(graph.explain(text))
    assert found["scan"] == "~4 rows · of 4"
    assert found["expand"] == "~40 rows · adjacency to be built"
    assert found["without"] == "~32 rows"
    assert found["limit"] == "~3 rows"


def test_state_of_cached_structures(graph, tune):
    tune(vector_disk_bytes_min=0, postings_disk_rows_min=0, adjacency_disk_edges_min=0)
    text = """query q() { match { $d: Doc $d about $t } return { $d.name as n }
        order { rrf(nearest($d.vec, [1, 0]), bm25($d.text, "red")) } limit 3 }"""

    def where(graph: og.Graph) -> set[str]:
        return set(re.findall(r"to be built|on disk|in memory", graph.explain(text)))

    assert where(graph) == {"to be built"}
    graph.query(text)
    assert where(graph) == {"in memory"}
    assert where(og.open(graph.uri, sync=False, environ={})) == {"on disk"}
    assert "before the rest of the match" in graph.explain(text)


def test_mutation_and_wrong_parameter(graph):
    text = "query q($n: I64) { delete Doc where n = $n }"
    assert graph.explain(text) == "change q($n: I64)\n  delete  Doc where n = $n, and every edge at them\n"
    with pytest.raises(og.errors.ParameterError):
        graph.explain(text, params={"n": "x"})


def test_profile_shows_rows_estimates_and_notes(graph):
    text = """query q($v: Vector(2)) { match { $d: Doc $d.n > 1 $d about $t } return { $d.name as n }
        order { nearest($d.vec, $v) } limit 3 }"""
    first = graph.profile(text, params={"v": [1, 0]})
    assert first.splitlines()[0].split()[-3:] == ["rows", "expected", "ms"]
    found = notes(first)
    assert found["scan"].split()[:2] == ["24", "~24"]
    assert "vectors of 'vec' built from 40 rows" in found["rank"]
    assert found["return"].split()[0] == "3"
    assert first.splitlines()[-1].split()[:3] == ["total", "3", "rows"]
    assert graph.commits()[0].id in first
    again = notes(graph.profile(text, params={"v": [1, 0]}))
    assert "built" not in again["rank"]
    assert "read" not in again["scan"]


def test_query_without_profile_records_nothing(graph):
    query = QueryText("query q() { match { $d: Doc } return { $d.name } }")
    _, _, execution = read(graph._context, graph.snapshot(), ReadRequest(query, graph.branch))
    assert execution.profile.steps == []


GUESSES = {
    0: "~0",
    0.2: "~1",
    1: "~1",
    9.6: "~10",
    10: "~10",
    123: "~120",
    67_000: "~67,000",
    1_999_999: "~2,000,000",
    3e18: "~10^18",
}
GUESSES[float("inf")] = ">10^308"


@pytest.mark.parametrize(("rows", "said"), GUESSES.items())
def test_estimates_have_two_digits(rows, said):
    assert format_estimate(rows) == said


def test_profile_compares_with_the_rows_that_were_tried(graph, tune):
    tune(ranked_candidates_min=1, ranked_overfetch=1)
    match = "$d: Doc $d about $t not { $t.name = $d.text }"
    text = f"query q() {{ match {{ {match} }} return {{ $d.name as n }} order {{ $d.n }} limit 1 }}"
    found = notes(graph.profile(text))
    assert found["scan"].split()[:2] == ["40", "~40"]
    assert found["expand"].split()[:2] == ["8", "~8"]  # the docs with the lowest value, n = 0
    assert found["order"].endswith("for the first 8 of 40")
    assert "estimate too" not in graph.profile(text)


def test_explain_compares_the_forms_of_blocks(graph):
    text = """query q() { match { $t: Tag { name: "t1" } optional { $d: Doc { name: "d01" } $d about $t }
        not { $e: Doc { name: "d02" } $e about $t } } return { $t.name, $d.name as d } }"""
    lines = [line.split(", estimated ")[0] for line in graph.explain(text).splitlines()]
    assert lines[-4:] == [
        "  chosen  without found once for all $t",
        "  instead without for each $t",
        "  chosen  optional for each $t",
        "  instead optional found once for all $t",
    ]
    # A block without a hop to the outer variable cannot run on its own.
    text = "query q() { match { $t: Tag not { $d: Doc $d.name = $t.name } } return { $t.name } }"
    assert "without for each $t" in graph.explain(text)
    assert "instead" not in graph.explain(text)


def test_explain_names_the_reason_of_an_order(graph):
    text = "query q() { match { $d: Doc $d about $t } return { $t.name as n } order { $d.n } limit 1 }"
    assert "starts at ~40 rows of 40 Doc, the first by the order of the query" in graph.explain(text)
    stage = "match { $d: Doc $d about $t } with { $t, count($d) as $n }"
    lines = graph.explain(f"query q() {{ {stage} match {{ $e about $t }} return {{ $e.name as e, $n }} }}").splitlines()
    assert lines[-2].startswith("  chosen  $t → $d, estimated ")
    assert lines[-2].endswith("starts at ~4 rows of 4 Tag")
