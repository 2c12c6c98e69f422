"""Formulations of the queries of `bench.forms` on a small graph: equal results, one plan."""

from __future__ import annotations

import pytest
from bench import form_queries, forms
from bench.formulations import formulations, read_text
from bench.read.systems import SUBJECT, normal

from omnigraph.operations.requests import QueryText


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return form_queries.open_graph("XS", tmp_path_factory.mktemp("forms"))


def test_there_are_forty_queries_in_five_forms():
    assert len(form_queries.QUERIES) == 40
    for query in form_queries.QUERIES:
        assert len(formulations(query.clauses, SUBJECT, 1)) >= 5, query.name


@pytest.mark.parametrize("query", [*form_queries.QUERIES, *form_queries.PATHS], ids=lambda query: query.name)
def test_formulations_have_equal_results_and_one_plan(graph, query):
    texts = [
        read_text(clauses, query.rest, query.params)
        for seed in range(3)
        for clauses in formulations(query.clauses, SUBJECT, seed).values()
    ]
    rows = [normal(graph.query(text, params=query.params).to_pylist(), ordered=query.ordered) for text in texts]
    assert all(one == rows[0] for one in rows)
    plans = {repr(graph._context.plans.get_read(graph.snapshot(), QueryText(text)).plan.pipeline) for text in texts}
    assert len(plans) == 1


def test_measured_ratio(graph):
    query = next(query for query in form_queries.QUERIES if query.name == "one hop")
    measured = forms.measure(graph, query, 1, 0.0)
    assert len(measured.ms) >= forms.FORMS_MIN
    assert measured.ratio >= 1
