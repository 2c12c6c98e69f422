"""Every read of the conformance examples returns the expected rows on a real graph and from the oracle."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import InputError
from omnigraph.graph import Graph
from omnigraph.query.syntax.parser import parse_queries
from support.examples import RULED
from support.oracle.reading import answer
from support.random_reads.graphs import world_of
from support.random_reads.values import plain

EXAMPLES = Path(__file__).parent / "cases" / "examples"
GRAPHS = ("library", "ward", "deps")
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    f"{graph}-{name}": (graph, name, case)
    for graph in GRAPHS
    for name, case in json.loads((EXAMPLES / f"{graph}.expected.json").read_text()).items()
}
READS = {id_: case for id_, case in CASES.items() if "rows" in case[2]}
REFUSED = {id_: case for id_, case in CASES.items() if case[2].get("error", "").startswith("T")}
WRITES = {id_: case for id_, case in CASES.items() if "after" in case[2] and id_ not in RULED}


def build(root: Path, name: str) -> Graph:
    graph = og.init(root / name, EXAMPLES / f"{name}.pg", sync=False, environ={})
    graph.load(EXAMPLES / f"{name}.jsonl", mode="overwrite")
    return graph


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    root = tmp_path_factory.mktemp("examples")
    return {name: build(root, name) for name in GRAPHS}


def bag(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def same(given: list[dict[str, Any]], expected: list[dict[str, Any]], *, ordered: bool) -> bool:
    """True if rows are equal; means may differ in the last digit."""
    means = [[row.get("mean") for row in rows] for rows in (given, expected)]
    if ordered and means[0] != means[1]:
        close = [a == b or math.isclose(a, b, rel_tol=1e-12) for a, b in zip(*means, strict=True)]
        assert all(close)
        given = [{**row, "mean": mean} for row, mean in zip(given, means[1], strict=True)]
    return given == expected if ordered else bag(given) == bag(expected)


def test_there_are_54_reads_and_7_refused_queries():
    assert (len(READS), len(REFUSED)) == (54, 7)


@pytest.mark.parametrize(("name", "query", "case"), READS.values(), ids=READS)
def test_read(graphs, name, query, case):
    result = graphs[name].query(EXAMPLES / f"{name}.gq", query, case["params"])
    assert same(result.to_rows(), case["rows"], ordered=case["ordered"])
    assert json.loads(result.to_json()) == result.to_rows()
    assert result.commit_id == graphs[name].commits()[0].id


@pytest.mark.parametrize(("name", "query", "case"), REFUSED.values(), ids=REFUSED)
def test_refused(graphs, name, query, case):
    with pytest.raises(InputError) as caught:
        graphs[name].query(EXAMPLES / f"{name}.gq", query, case["params"])
    assert caught.value.code == case["error"]


@pytest.mark.parametrize(("name", "query", "case"), WRITES.values(), ids=WRITES)
def test_read_before_and_after_a_mutation(tmp_path, name, query, case):
    graph = build(tmp_path, name)
    before, after = graph.commits()[0].id, case["after"]
    source = EXAMPLES / f"{name}.gq"
    old = graph.query(source, after["query"], after["params"]).to_rows()
    graph.mutate(source, query, case["params"])
    assert same(graph.query(source, after["query"], after["params"]).to_rows(), after["rows"], ordered=True)
    assert graph.query(source, after["query"], after["params"], at=before).to_rows() == old


@pytest.mark.parametrize(("name", "query", "case"), READS.values(), ids=READS)
def test_oracle_returns_the_same_rows(graphs, name, query, case):
    tree = next(q for q in parse_queries((EXAMPLES / f"{name}.gq").read_text()).queries if q.name.text == query)
    result = graphs[name].query(EXAMPLES / f"{name}.gq", query, case["params"])
    expected = answer(tree, world_of(graphs[name]), case["params"], now_ms=0)
    given = list(zip(*(plain(column) for column in result.to_arrow().columns), strict=True))
    assert expected.columns == result.columns
    assert expected.ordered or not case["ordered"] or len(given) < 2
    key = (lambda rows: rows) if expected.ordered else (lambda rows: sorted(rows, key=repr))
    for one, other in zip(key(given), key(expected.rows), strict=True):
        assert all(a == b or math.isclose(a, b, rel_tol=1e-12) for a, b in zip(one, other, strict=True))
