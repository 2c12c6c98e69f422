"""Every query of the page on Cypher and SQL equivalents runs and returns or changes rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.query.syntax.parser import parse_queries

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "tests" / "cases" / "examples"
QUERIES = re.findall(r"(?ms)^```gq[^\n]*\n(.*?)^```", PAGE)
PARAMS = {"isbn": "B1", "genres": ["novel", "poetry"], "from": 1, "n": 2, "title": "New"}
"""Parameter values for the queries of the page."""


def build(root: Path) -> Graph:
    graph = og.init(root / "library", EXAMPLES / "library.pg", sync=False, environ={})
    graph.load(EXAMPLES / "library.jsonl", mode="overwrite")
    return graph


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("coming"))


def params_of(text: str) -> dict[str, object]:
    return {param.name.text: PARAMS[param.name.text] for param in parse_queries(text).queries[0].params}


def is_change(text: str) -> bool:
    return parse_queries(text).queries[0].is_mutation


def test_page_has_thirty_examples_or_more():
    assert len(QUERIES) >= 30
    assert PAGE.count("```sql") == PAGE.count("```cypher") == len(QUERIES)


@pytest.mark.parametrize("text", [q for q in QUERIES if not is_change(q)], ids=lambda q: q.split("(")[0][6:])
def test_read_returns_rows(library, text):
    assert len(library.query(text, params=params_of(text))) > 0


@pytest.mark.parametrize("text", [q for q in QUERIES if is_change(q)], ids=lambda q: q.split("(")[0][6:])
def test_mutation_changes_rows(tmp_path, text):
    graph = build(tmp_path)
    params = params_of(text)
    if "insert Book" in text:
        params["isbn"] = "B9"
    done = graph.mutate(text, params=params)
    assert done.affected_nodes + done.affected_edges > 0
    assert graph.verify() == []
