"""Costs of conditions by their access path: values in memory, postings, columns that are read from disk, indexes."""

from __future__ import annotations

from itertools import pairwise

import pytest

import omnigraph as og
from omnigraph.engine.optimizer import cost
from omnigraph.engine.optimizer.pattern import Pattern, pattern_of
from omnigraph.engine.optimizer.pattern_estimates import PatternEstimates, estimate_pattern
from omnigraph.engine.optimizer.search import OrderSearch
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.plan.variable_types import node_types
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir
from support.writes import edge, new_graph, node

SCHEMA = """
node Doc { key: String @key  n: I64  code: I64 @index  text: String @index }
node Hub { key: String @key }
edge In: Doc -> Hub
"""
DOCS = 5_000
NOT_CACHED = {"complete_column_rows": 0, "complete_column_bytes": 0, "hot_column_share": 0.0, "column_share_max": 0.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    docs = [
        node("Doc", key=f"d{at}", n=at, code=at, text=f"common {'rare' if at % 500 == 0 else 'words'}")
        for at in range(DOCS)
    ]
    hubs = [node("Hub", key=f"h{at}") for at in range(50)]
    edges = [edge("In", f"d{at}", f"h{at % 50}") for at in range(DOCS)]
    graph = new_graph(tmp_path_factory.mktemp("g"), SCHEMA, *docs, *hubs, *edges)
    graph.optimize()
    return graph.uri


def planned(folder: str, match: str) -> tuple[Pattern, GraphStatistics, Selectivity]:
    graph = og.open(folder, environ={})
    context, snapshot = graph._context, graph.snapshot()
    catalog = context.catalogs.of(snapshot)
    plan = compile_query(catalog, f"query q() {{ match {{ {match} }} return {{ $d.key }} }}")
    assert isinstance(plan, ir.QueryIR)
    types = node_types(plan.pipeline)
    pattern = pattern_of(plan.pipeline, types)
    assert pattern is not None
    statistics = GraphStatistics(catalog, snapshot, context.cache)
    return pattern, statistics, Selectivity(statistics, types)


def estimates(folder: str, match: str) -> PatternEstimates:
    return estimate_pattern(*planned(folder, match), None)


def scan(folder: str, condition: str) -> float:
    return estimates(folder, f"$d: Doc {condition}").scan[0]


def test_a_search_costs_its_postings(folder):
    few, many = (scan(folder, f'search($d.text, "{word}")') for word in ("rare", "common"))
    assert many - few == pytest.approx(DOCS * cost.POSTING, rel=0.05)
    assert many < scan(folder, '$d.text contains "common"')


def test_columns_in_memory_are_not_read(folder):
    assert estimates(folder, "$d: Doc $d.n < 10").read == [0.0]


def test_columns_that_do_not_fit_the_cache_are_read(folder, tune):
    in_memory = scan(folder, "$d.n < 10")
    tune(**NOT_CACHED)
    assert scan(folder, "$d.n < 10") == pytest.approx(in_memory + cost.READ_CALL + 8 * DOCS * cost.READ)
    assert scan(folder, "$d.n < 10 $d.n > 5") > scan(folder, "$d.n < 10") + cost.READ_CALL


def test_an_index_finds_its_rows(folder, tune):
    tune(**NOT_CACHED)
    shares = [estimates(folder, f"$d: Doc $d.code < {bound}") for bound in (5, 500, 4_000)]
    for one, next_ in pairwise(shares):
        assert next_.read[0] - one.read[0] == pytest.approx((next_.rows[0] - one.rows[0]) * cost.INDEXED)
    assert shares[0].read[0] == pytest.approx(cost.INDEX_CALL + shares[0].rows[0] * cost.INDEXED)
    # An index does not serve an expression.
    assert estimates(folder, "$d: Doc $d.code + 1 < 5").read[0] > cost.READ_CALL


def test_few_rows_are_read_by_their_numbers(folder, tune):
    match = '$d: Doc $d in $h $h.key = "h1" $d.n < 10'
    pattern, statistics, selectivity = planned(folder, match)
    in_memory = OrderSearch(pattern, statistics, selectivity, None).best().cost
    tune(**NOT_CACHED)
    pattern, statistics, selectivity = planned(folder, match)
    of_hub = DOCS / 50
    assert OrderSearch(pattern, statistics, selectivity, None).best().cost == pytest.approx(
        in_memory + of_hub * cost.TAKE
    )
