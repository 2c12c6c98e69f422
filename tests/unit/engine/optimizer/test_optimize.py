"""Physical plans: where a match starts, in which order and direction it takes hops, how it runs blocks."""

from __future__ import annotations

from textwrap import dedent

import pytest

from omnigraph.engine.optimizer.optimize import optimize
from omnigraph.engine.optimizer.pattern_optimizer import PatternOptimizer
from omnigraph.engine.statistics.graph_statistics import GraphStatistics
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir
from omnigraph.query.plan.explain import explain
from support.writes import edge, new_graph, node

SCHEMA = """
node Person { name: String @key  age: I64  city: String  vec: Vector(2)? }
node Firm { name: String @key  kind: String  size: I64? }
edge Knows: Person -> Person
edge WorksAt: Person -> Firm
"""
PERSONS, FIRMS = 400, 20


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    persons = [node("Person", name=f"p{at}", age=at % 50, city=f"c{at % 40}", vec=[at, 1]) for at in range(PERSONS)]
    firms = [node("Firm", name=f"f{at}", kind="ab"[at % 2]) for at in range(FIRMS)]
    knows = [
        edge("Knows", f"p{at}", f"p{(at * 7 + step * step) % PERSONS}") for at in range(PERSONS) for step in range(1, 9)
    ]
    works = [edge("WorksAt", f"p{at}", f"f{at % FIRMS}") for at in range(PERSONS)]
    return new_graph(tmp_path_factory.mktemp("optimizer"), SCHEMA, *persons, *firms, *knows, *works)


def planned(graph, match: str, rest: str = "return { count($p) as n }") -> ir.QueryIR:
    return planned_text(graph, f"query q($v: Vector(2)?) {{ match {{ {match} }} {rest} }}")


def planned_text(graph, text: str) -> ir.QueryIR:
    context, snapshot = graph._context, graph.snapshot()
    catalog = context.catalogs.of(snapshot)
    logical = compile_query(catalog, text)
    assert isinstance(logical, ir.QueryIR)
    return optimize(logical, GraphStatistics(catalog, snapshot, context.cache)).plan


def steps(plan: ir.QueryIR) -> str:
    words = ("scan", "expand", "check", "filter", "without", "optional", "path", "shortest")
    return "\n".join(line[2:] for line in explain(plan).splitlines()[1:] if line.split()[0] in words)


# id: (match, operators)
PLANS = {
    "the match starts at a key": (
        '$p: Person $p knows $q $q worksAt $f $f: Firm { name: "f1" }',
        """
        scan    $f: Firm where $f.name = "f1"
        expand  $f <-WorksAt- $q: Person
        expand  $q <-Knows- $p: Person
        """,
    ),
    "the match starts at a selective condition": (
        '$p: Person $p knows $q $q.city = "c3" $q.age = 3',
        """
        scan    $q: Person where $q.age = 3 and $q.city = "c3"
        expand  $q <-Knows- $p: Person
        """,
    ),
    "two keys are scanned, and the hop between them is checked": (
        '$p: Person { name: "p1" } $p knows $a $a knows $q $q: Person { name: "p9" }',
        """
        scan    $p: Person where $p.name = "p1"
        scan    $q: Person where $q.name = "p9"
        expand  $p -Knows-> $a: Person
        check   $q <-Knows- $a
        """,
    ),
    "a condition on two variables follows the last of them": (
        '$p: Person { name: "p1" } $p knows $q $q worksAt $f $q.age > $p.age',
        """
        scan    $p: Person where $p.name = "p1"
        expand  $p -Knows-> $q: Person
        filter  $p.age < $q.age
        expand  $q -WorksAt-> $f: Firm
        """,
    ),
    "a negation runs before hops that add rows": (
        '$p: Person { name: "p1" } $p knows $q $q knows $r not { $p worksAt $_ }',
        """
        scan    $p: Person where $p.name = "p1"
        without any match, for each $p:
          expand  $p -WorksAt-> $_: Firm
        expand  $p -Knows-> $q: Person
        expand  $q -Knows-> $r: Person
        """,
    ),
    "a selective negation runs once, from its own start": (
        '$p: Person not { $p knows $q $q worksAt $f $f.name = "f1" }',
        """
        scan    $p: Person
        without a match, found once for all $p:
          scan    $f: Firm where $f.name = "f1"
          expand  $f <-WorksAt- $q: Person
          expand  $q <-Knows- $p: Person
        """,
    ),
    "a negation of a few rows runs for each of them": (
        '$p: Person { name: "p1" } not { $p knows $q $q.city = "c1" }',
        """
        scan    $p: Person where $p.name = "p1"
        without any match, for each $p:
          expand  $p -Knows-> $q: Person where $q.city = "c1"
        """,
    ),
    "an optional block follows the match": (
        '$p: Person { name: "p1" } optional { $p knows $q $q.age > 3 }',
        """
        scan    $p: Person where $p.name = "p1"
        optional matches, for each $p:
          expand  $p -Knows-> $q: Person where $q.age > 3
        """,
    ),
    "a selective optional block runs once, from its own start": (
        '$p: Person optional { $p knows $q $q worksAt $f $f.name = "f1" }',
        """
        scan    $p: Person
        optional matches, found once for all $p:
          scan    $f: Firm where $f.name = "f1"
          expand  $f <-WorksAt- $q: Person
          expand  $q <-Knows- $p: Person
        """,
    ),
    "a condition on an optional variable follows its block": (
        '$p: Person { name: "p1" } optional { $p knows $q } $q.age is null',
        """
        scan    $p: Person where $p.name = "p1"
        optional matches, for each $p:
          expand  $p -Knows-> $q: Person
        filter  $q.age is null
        """,
    ),
}


@pytest.mark.parametrize(("match", "expected"), PLANS.values(), ids=PLANS)
def test_plan(graph, match, expected):
    assert steps(planned(graph, match)) == dedent(expected).strip()


# block: the variables to return
BLOCKS = {
    'optional { $p knows $q $q worksAt $f $f.name = "f1" }': "qf",
    'optional { $p knows $q $q worksAt $f $f.name = "f1" $p.age > 3 }': "qf",
    '$p knows $r optional { $p knows $q $q knows $r $q: Person { name: "p7" } }': "rq",
    'optional { $p knows $r $r.age = 3 } optional { $r knows $q $q.name = "p7" }': "rq",
    'not { $p knows $r $r knows $q $q worksAt $f $f.name = "f1" $p.age > 3 }': "p",
    '$p knows $r not { $p knows $q $q knows $r $q: Person { name: "p7" } }': "r",
    'optional { $p knows $r $r.age = 3 } not { $r knows $q $q.name = "p7" }': "r",
}


@pytest.mark.parametrize(("block", "variables"), BLOCKS.items(), ids=BLOCKS)
def test_block_that_runs_once_has_the_rows_of_one_that_runs_for_each_row(graph, monkeypatch, block, variables):
    columns = ", ".join(f"${var}.name as {var}" for var in variables)
    text = f"query q() {{ match {{ $p: Person {block} }} return {{ $p.age, {columns} }} }}"
    assert any(getattr(op, "independent", False) for op in planned_text(graph, text).pipeline)
    once = graph.query(text).to_arrow().to_pylist()
    monkeypatch.setattr(PatternOptimizer, "_independent", lambda *_: None)
    assert not any(getattr(op, "independent", False) for op in planned_text(graph, text).pipeline)
    each = graph.query(text + " ").to_arrow().to_pylist()
    assert sorted(once, key=str) == sorted(each, key=str)
    assert len(once) > 1


RANKED = "order { nearest($p.vec, $v) } limit 3"


def test_ranked_variable_comes_first(graph):
    plan = planned(graph, "$q: Person $p knows $q $q worksAt $f", f"return {{ $p.name, $f.name as f }} {RANKED}")
    assert steps(plan).startswith("scan    $p: Person\n")


def test_selective_match_comes_before_the_rank(graph):
    plan = planned(graph, '$q: Person { name: "p1" } $p knows $q', f"return {{ $p.name }} {RANKED}")
    assert steps(plan).startswith('scan    $q: Person where $q.name = "p1"\n')


# id: (match, operators)
PATHS = {
    "paths start at a key": (
        '$p: Person $w: shortest { $p knows{1,3} $q } $q: Person { name: "p1" }',
        """
        scan    $q: Person where $q.name = "p1"
        shortest measured $w: $q <-Knows{1,3}- $p: Person
        """,
    ),
    "a selective hop comes before the paths": (
        '$w: path { $p knows{1,2} $q } $p worksAt $f $f: Firm { name: "f1" } $q.age > 3',
        """
        scan    $f: Firm where $f.name = "f1"
        expand  $f <-WorksAt- $p: Person
        path    $w: $p -Knows{1,2}-> $q: Person where $q.age > 3
        """,
    ),
    "a hop from the end of a path follows it": (
        '$w: shortest { $p knows{1,2} $q } $q worksAt $f $p: Person { name: "p3" }',
        """
        scan    $p: Person where $p.name = "p3"
        shortest measured $w: $p -Knows{1,2}-> $q: Person
        expand  $q -WorksAt-> $f: Firm
        """,
    ),
    "paths between two keys are searched once": (
        '$w: shortest { $p knows{1,4} $q } $p: Person { name: "p3" } $q: Person { name: "p9" }',
        """
        scan    $p: Person where $p.name = "p3"
        scan    $q: Person where $q.name = "p9"
        shortest measured $w: $p -Knows{1,4}-> $q
        """,
    ),
    "few nodes of both ends are found before the search": (
        '$w: shortest { $p knows{1,4} $q } $p worksAt $f $f: Firm { name: "f1" } $q worksAt $g $g: Firm { name: "f2" }',
        """
        scan    $f: Firm where $f.name = "f1"
        scan    $g: Firm where $g.name = "f2"
        expand  $f <-WorksAt- $p: Person
        expand  $g <-WorksAt- $q: Person
        shortest measured $w: $p -Knows{1,4}-> $q
        """,
    ),
    "a path of several hops starts inside": (
        '$w: path { $p knows $q $q knows{1,2} $r } $q: Person { name: "p3" }',
        """
        scan    $q: Person where $q.name = "p3"
        path    $w: $q -Knows{1,2}-> $r: Person, $q <-Knows- $p: Person
        """,
    ),
    "a condition on a path follows its search": (
        '$w: shortest { $p knows{1,3} $q } $p: Person { name: "p3" } $q worksAt $f length($w) > $f.size',
        """
        scan    $p: Person where $p.name = "p3"
        shortest measured $w: $p -Knows{1,3}-> $q: Person
        expand  $q -WorksAt-> $f: Firm
        filter  $f.size < length($w)
        """,
    ),
    "a path in a negation": (
        '$p: Person { name: "p3" } not { $w: path { $q knows{1,2} $p } $q worksAt $f $f.kind = "a" }',
        """
        scan    $p: Person where $p.name = "p3"
        without any match, for each $p:
          path    $w: $p <-Knows{1,2}- $q: Person
          expand  $q -WorksAt-> $f: Firm where $f.kind = "a"
        """,
    ),
}


@pytest.mark.parametrize(("match", "expected"), PATHS.values(), ids=PATHS)
def test_plan_with_paths(graph, match, expected):
    assert steps(planned(graph, match)) == dedent(expected).strip()


def test_estimated_groups_of_a_stage_are_its_nodes_that_pass(graph):
    stage = 'match { $f: Firm { name: "f1" } $p worksAt $f } with { $f, count($p) as $n }'
    text = f"query q() {{ {stage} match {{ $q worksAt $f }} return {{ $q.name }} }}"
    (line,) = [line for line in graph.explain(text).splitlines() if "stage" in line]
    assert line.endswith("~1 row")


@pytest.mark.parametrize("start", ["p", "q", "r"])
def test_hops_between_nodes_of_a_path_are_checked(graph, start):
    paths = "$w: path { $p knows $q $q knows $r }"
    hops = "$p knows $q $q knows $r $p.name != $q.name $q.name != $r.name $p.name != $r.name"
    counted = []
    for way in (paths, hops):
        match = f"${start}: Person $p knows $r {way} $r.age < 30 ${start}.age > 20"
        (row,) = graph.query(f"query q() {{ match {{ {match} }} return {{ count($p) as n }} }}").to_pylist()
        counted.append(row["n"])
    assert counted[0] == counted[1] > 0


def test_choice_names_the_best_orders(graph):
    context, snapshot = graph._context, graph.snapshot()
    catalog = context.catalogs.of(snapshot)
    logical = compile_query(
        catalog, 'query q() { match { $p: Person $p knows $q $q: Person { name: "p1" } } return { $p.name } }'
    )
    assert isinstance(logical, ir.QueryIR)
    statistics = GraphStatistics(catalog, snapshot, context.cache)
    assert optimize(logical, statistics).choice is None
    choice = optimize(logical, statistics, compare=True).choice
    assert choice is not None
    assert choice.orders == (("q", "p"), ("p", "q"))
    assert choice.costs[0] < choice.costs[1]


def test_explain_names_the_chosen_order_and_alternatives(graph):
    text = graph.explain('query q() { match { $p: Person $p knows $q $q: Person { name: "p1" } } return { $p.name } }')
    lines = text.splitlines()
    assert lines[-2].startswith("  chosen  $q → $p, estimated ")
    assert lines[-2].endswith(" µs: $q is given by its key")
    assert lines[-1].startswith("  instead $p → $q, estimated ")
    assert "chosen" not in graph.explain("query q() { match { $p: Person } return { $p.name } }")


def test_profile_marks_wrong_estimates(graph):
    # The conditions are not independent: both or neither is true.
    match = "$p: Person $p.age = 7 $p.age < 8 $p.age > 6 $p.age >= 7 $p.age <= 7"
    lines = graph.profile(
        f"query q() {{ match {{ {match} $p knows $q $q knows $r $r knows $s }} return {{ $s.name }} }}"
    )
    assert "estimate too low by" in lines
    assert "estimate too" not in graph.profile("query q() { match { $p: Person $p knows $q } return { $q.name } }")


def test_plan_is_made_again_after_growth(tmp_path):
    people = [node("Person", name=f"p{at}", age=at, city="x") for at in range(100)]
    graph = new_graph(tmp_path, SCHEMA, *people, *(edge("Knows", f"p{at}", "p0") for at in range(100)))
    plans = graph._context.plans
    text = "query q() { match { $p: Person $p worksAt $f } return { $p.name } }"
    for at in range(3):
        graph.query(text)
        assert (plans.hits, plans.misses) == (at, 1)
    graph.load([node("Firm", name=f"f{at}", kind="a") for at in range(50)], mode="append")
    graph.query(text)
    assert plans.misses == 1, "tables below the minimum size count as equal"
    graph.load([node("Firm", name=f"g{at}", kind="a") for at in range(200)], mode="append")
    graph.query(text)
    assert plans.misses == 2
