"""The search for the cheapest order: leaves that differ in name only are not tried in every order."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest

import omnigraph as og
from omnigraph.engine.optimizer.pattern import pattern_of
from omnigraph.engine.optimizer.search import OrderSearch, _State
from omnigraph.engine.optimizer.selectivity import Selectivity
from omnigraph.engine.plan.variable_types import node_types
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir

SCHEMA = "node P { key: String @key  n: I64 }\nedge Knows: P -> P\nedge Likes: P -> P\n"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("search") / "g", SCHEMA)
    nodes = [{"type": "P", "data": {"key": f"p{at}", "n": at}} for at in range(40)]
    edges = [
        {"edge": edge, "from": f"p{at}", "to": f"p{(at * step + 1) % 40}"}
        for edge, steps in (("Knows", (3, 7, 11)), ("Likes", (5,)))
        for at in range(40)
        for step in steps
    ]
    graph.load([*nodes, *edges], mode="append")
    return graph


def _search(graph, match: str, result: str) -> OrderSearch:
    snapshot, context = graph.snapshot(), graph._context
    catalog = context.catalogs.of(snapshot)
    plan = compile_query(catalog, f"query q() {{ match {{ {match} }} return {{ {result} }} }}")
    assert isinstance(plan, ir.QueryIR)
    types = node_types(plan.pipeline)
    pattern = pattern_of(plan.pipeline, types)
    assert pattern is not None
    statistics = GraphStatistics(catalog, snapshot, context.cache)
    live = frozenset({"c"}) if plan.is_aggregate else None
    return OrderSearch(pattern, statistics, Selectivity(statistics, types), live)


STAR = "$c: P $c knows $s0 $c knows $s1 $c knows $s2 $c knows $s3"
MIXED = "$c: P $c knows $s0 $c likes $s1 $c knows $s2 $s3 knows $c $s0.n > 5"


@pytest.mark.parametrize("match", [STAR, MIXED])
@pytest.mark.parametrize("result", ["$c.key as k", "count($c) as n"])
def test_the_order_is_as_cheap_as_the_best_of_all(graph, match, result):
    search = _search(graph, match, result)
    costs = []
    for order in permutations(range(5)):
        state, mask = search._scanned(_State(0.0, 1.0, None, None), order[0], 0), 1 << order[0]
        for vertex in order[1:]:
            state, mask = search._extended(state, vertex, mask), mask | 1 << vertex
        costs.append(state.cost)
    assert search.best().cost == pytest.approx(min(costs))


CHAIN = " ".join(f"$c{at} {'likes' if at % 3 else 'knows'} $c{at + 1}" for at in range(7))


@pytest.mark.parametrize("conditions", ["$c3.n < 2 $c6.n < 9", "$c0.n < 20 $c4.n = 7", '$c5.key = "p3" $c2.n > 30'])
def test_the_search_is_exhaustive_for_a_chain_of_eight_variables(graph, conditions):
    search = _search(graph, f"{CHAIN} {conditions}", "$c0.key as k")
    costs = []

    def extend(state: _State, mask: int) -> None:
        if mask == 0b11111111:
            costs.append(state.cost)
        for vertex in search._candidates(mask):
            if mask != 0b11111111:
                extend(search._extended(state, vertex, mask), mask | 1 << vertex)

    for start in range(8):
        extend(search._scanned(_State(0.0, 1.0, None, None), start, 0), 1 << start)
    assert len(costs) >= 2**7
    assert search.best().cost == pytest.approx(min(costs))


def test_many_variables_are_bound_along_their_conditions(graph):
    names = [f"c{at:02}" for at in range(30)]
    match = " ".join(f"${name}: P" for name in names)
    match += "".join(f" ${one}.n = ${other}.n + 1" for one, other in pairwise(names))
    search = _search(graph, match, "$c00.key as k")
    bound: list[int] = []
    for step in search.best().steps:
        assert not bound or step.vertex in (min(bound) - 1, max(bound) + 1)
        bound.append(step.vertex)
    assert sorted(bound) == list(range(30))
    assert len(search.by_start()) == 3, "not one for each of the 30"


@pytest.mark.parametrize("op", ["!=", "<"])
def test_a_second_component_starts_at_its_fewest_nodes(graph, op):
    clauses = [f"${part}{at} knows ${part}{at + 1}" for part in "ab" for at in range(3)]
    match = f'$a0: P {{ key: "p3" }} $b0: P {{ n: 5 }} {" ".join(clauses)} $a3.n {op} $b3.n'
    search = _search(graph, match, "$a0.key as a, $b3.key as b")
    scans = [step.vertex for step in search.best().steps if step.hop is None]
    assert {search._pattern.vertices[vertex].var for vertex in scans} == {"a0", "b0"}


def test_nodes_of_a_path_are_not_those_of_its_start(graph):
    paths = "$t: path { $a knows{1,2} $b } $u: path { $b knows{1,2} $c }"
    search = _search(graph, f'$a: P {{ key: "p1" }} {paths}', "$a.key as k")
    a, b, _ = (search._pattern.number(name) for name in "abc")
    state = search._searched(search._scanned(_State(0.0, 1.0, None, None), a, 0), 0, 1 << a)
    assert search._bound_nodes(b, state) > 1
    assert search._bound_nodes(a, search._scanned(_State(0.0, 1.0, None, None), a, 0)) == 1


def test_rows_repeat_the_nodes_of_both_ends_of_a_path(graph):
    match = '$w: shortest { $c0 knows{1,9} $c1 } $a: P { key: "p1" } $b: P { key: "p2" } $a likes $c0 $b knows $c1'
    search = _search(graph, match, "$c0.key as k")
    state, mask = _State(0.0, 1.0, None, None), 0
    for vertex in [search._pattern.number(name) for name in ("a", "b", "c0", "c1")]:
        state, mask = (
            search._scanned(state, vertex, 0) if not mask else search._extended(state, vertex, mask),
            mask | 1 << vertex,
        )
    nodes = [search._bound_nodes(search._pattern.number(name), state) for name in ("a", "b", "c0", "c1")]
    assert nodes == pytest.approx([1, 1, 1, 3])


def test_equal_leaves_are_bound_in_their_order(graph, monkeypatch):
    search = _search(graph, STAR, "$c.key as k")
    calls = []
    extended = OrderSearch._extended
    monkeypatch.setattr(OrderSearch, "_extended", lambda *given: (calls.append(1), extended(*given))[1])
    assert [step.vertex for step in search.best().steps] == [0, 1, 2, 3, 4]
    assert len(calls) < 16, "every set of leaves would be 16"
    assert search._equal_before == [0, 0, 0b00010, 0b00110, 0b01110]


def test_different_leaves_are_not_exchanged(graph):
    # $s0 has a condition, $s1 another edge type, $s3 another direction.
    assert _search(graph, MIXED, "$c.key as k")._equal_before == [0, 0, 0, 0, 0]
    compared = f"{STAR} $s1.n < $s2.n"
    assert _search(graph, compared, "$c.key as k")._equal_before == [0, 0, 0, 0, 0b00010]
