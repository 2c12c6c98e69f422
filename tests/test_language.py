"""Worked examples of the query language, each with its exact rows or its error.

The files in `cases/language` contain them; `support.cases` defines the format. Reads are also compared with the oracle.
To accept new results, run with `OMNIGRAPH_UPDATE_GOLDEN=1` and read the difference.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.query.syntax.format import format_queries
from omnigraph.query.syntax.parser import parse_queries
from support.cases import FOLDER, Case, read_cases, write_cases
from support.oracle.reading import answer
from support.random_reads.graphs import world_of
from support.random_reads.values import plain

FILES = sorted(FOLDER.glob("*.cases"))
CASES = [case for path in FILES for case in read_cases(path)[1]]
UPDATE = bool(os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"))
EXAMPLES = FOLDER.parent / "examples"
RULED = {"insert", "update"}
"""Existing statements whose rules changed."""


def build(root: Any, name: str) -> Graph:
    folder = FOLDER if (FOLDER / f"{name}.pg").exists() else EXAMPLES
    graph = og.init(root / name, folder / f"{name}.pg", sync=False, environ={})
    graph.load(folder / f"{name}.jsonl", mode="overwrite")
    return graph


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    root = tmp_path_factory.mktemp("language")
    return {name: build(root, name) for name in sorted({case.graph for case in CASES})}


def outcome(case: Case, graph: Graph) -> Case:
    """The case with its actual result."""
    found = Case(case.file, case.name, case.graph, case.query, case.params, ordered=case.ordered, after=case.after)
    try:
        if parse_queries(case.query).queries[0].is_mutation:
            done = graph.mutate(case.query, params=case.params)
            found.result = [done.affected_nodes, done.affected_edges]
            found.returned = done.rows.to_rows() if done.rows.columns else None
            if case.after is not None:
                found.rows = graph.query(case.after).to_rows()
        else:
            found.rows = graph.query(case.query, params=case.params).to_rows()
    except OmniGraphError as error:
        found.error = error.code
    return found


def in_order(case: Case) -> list[str]:
    rows = [json.dumps(row, sort_keys=True) for row in case.rows or ()]
    return rows if case.ordered else sorted(rows)


def writes(case: Case) -> bool:
    return case.result is not None or any(word in case.query for word in ("insert ", "update ", "delete ", "upsert "))


if UPDATE:

    @pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
    def test_update_golden(path, graphs, tmp_path):
        head, cases = read_cases(path)
        found = []
        for number, case in enumerate(cases):
            fresh = writes(case)
            found.append(outcome(case, build(tmp_path / str(number), case.graph) if fresh else graphs[case.graph]))
        write_cases(path, head, found)


@pytest.mark.parametrize("case", [case for case in CASES if not writes(case)], ids=str)
def test_read(graphs, case):
    found = outcome(case, graphs[case.graph])
    assert (found.error, in_order(found)) == (case.error, in_order(case))


@pytest.mark.parametrize("case", [case for case in CASES if writes(case)], ids=str)
def test_mutation(tmp_path, case):
    graph = build(tmp_path, case.graph)
    commits = len(graph.commits())
    found = outcome(case, graph)
    assert (found.error, found.result, in_order(found)) == (case.error, case.result, in_order(case))
    assert found.returned == case.returned
    if case.error is not None:
        assert len(graph.commits()) == commits
    assert graph.verify() == []


@pytest.mark.parametrize("case", [case for case in CASES if case.rows is not None and not writes(case)], ids=str)
def test_oracle_returns_the_same_rows(graphs, case):
    tree = parse_queries(case.query).queries[0]
    result = graphs[case.graph].query(case.query, params=case.params)
    expected = answer(tree, world_of(graphs[case.graph]), case.params, now_ms=0)
    given = list(zip(*(plain(column) for column in result.to_arrow().columns), strict=True))
    assert expected.columns == result.columns
    key = (lambda rows: rows) if expected.ordered else (lambda rows: sorted(rows, key=repr))
    for one, other in zip(key(given), key(expected.rows), strict=True):
        assert all(a == b or math.isclose(a, b, rel_tol=1e-9) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("case", [case for case in CASES if case.error != "parse_error"], ids=str)
def test_every_case_is_in_canonical_layout(case):
    assert format_queries(case.query) == case.query


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_addition_has_examples_and_errors(path):
    """The feature is the word before the colon in the name of a case."""
    _, cases = read_cases(path)
    topics = {case.name.partition(":")[0] for case in cases} - RULED
    for topic in topics:
        own = [case for case in cases if case.name.partition(":")[0] == topic]
        assert sum(case.error is None for case in own) >= 5, topic
        assert sum(case.error is not None for case in own) >= 3, topic
