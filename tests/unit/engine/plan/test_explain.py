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


GUESSES = {0: "~0", 0.2: "~1", 1: "~1", 9.6: "~10", 10: "~10", 123: "~120", 67_000: "~67,000", 1_999_999: "~2,000,000"}


@pytest.mark.parametrize(("rows", "said"), GUESSES.items())
def test_estimates_have_two_digits(rows, said):
    assert format_estimate(rows) == said
