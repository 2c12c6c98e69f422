"""Plans for classes of parameter values."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from omnigraph.errors import ParameterError
from omnigraph.operations.requests import QueryText
from omnigraph.query.plan import ir
from support.writes import edge, new_graph, node

SCHEMA = """
node Person { name: String @key  city: String  n: I64  on: Date? }
node Firm { name: String @key  kind: String }
edge WorksAt: Person -> Firm
"""
TEXT = """query q($city: String, $kind: String) {
    match { $p: Person { city: $city } $p worksAt $f $f.kind = $kind } return { $p.name as p, $f.name as f }
}"""


@pytest.fixture
def graph(tmp_path):
    """Nearly all persons live in one city, and nearly all firms are of one kind."""
    persons = [node("Person", name=f"p{at}", city="big" if at % 200 else f"c{at}", n=at) for at in range(2_000)]
    firms = [node("Firm", name=f"f{at}", kind="common" if at % 100 else f"k{at}") for at in range(1_000)]
    works = [edge("WorksAt", f"p{at}", f"f{at % 1_000}") for at in range(2_000)]
    return new_graph(tmp_path, SCHEMA, *persons, *firms, *works)


def start(graph, **params: object) -> str:
    prepared = graph._context.plans.get_read(graph.snapshot(), QueryText(TEXT, params=params))
    first = prepared.plan.pipeline[0]
    assert isinstance(first, ir.NodeScan)
    return first.var


def test_start_depends_on_the_value(graph):
    assert start(graph, city="c0", kind="common") == "p"
    assert start(graph, city="big", kind="k0") == "f"
    assert start(graph, city="c200", kind="common") == "p"
    assert graph._context.plans.misses == 1


def test_results_do_not_depend_on_the_plan(graph):
    for city in ("c0", "big", "nowhere"):
        for kind in ("k0", "common", "none"):
            found = graph.query(TEXT, params={"city": city, "kind": kind}).to_pylist()
            expected = [
                {"p": f"p{at}", "f": f"f{at % 1_000}"}
                for at in range(2_000)
                if ("big" if at % 200 else f"c{at}") == city
                and ("common" if at % 1_000 % 100 else f"k{at % 1_000}") == kind
            ]
            assert sorted(found, key=str) == sorted(expected, key=str)


def test_values_of_one_class_share_a_plan(graph):
    plans = graph._context.plans

    def plan(**params: object) -> object:
        return plans.get_read(graph.snapshot(), QueryText(TEXT, params=params))

    assert plan(city="c0", kind="common") is plan(city="c400", kind="common")
    assert plan(city="big", kind="k0") is plan(city="big", kind="k500")
    assert plan() is plan()


def test_explain_shows_the_plan_of_the_values(graph):
    few = graph.explain(TEXT, params={"city": "c0", "kind": "common"})
    assert "  chosen  $p → $f" in few
    assert "  chosen  $f → $p" in graph.explain(TEXT, params={"city": "big", "kind": "k0"})


# -- values in other forms ---------------------------------------------------------------------------

EVENTS = """
node Person { name: String @key  born: Date  seen: DateTime  note: String? }
node Firm { name: String @key  size: I64 }
edge WorksAt: Person -> Firm
"""
FIRST = date(1970, 1, 1)


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """Persons of 2,000 days, and firms of 500 sizes."""
    persons = [
        node(
            "Person",
            name=f"p{at}",
            born=str(FIRST + timedelta(days=at)),
            seen=f"{FIRST + timedelta(days=at)}T12:00:00Z",
            note="rare pearl" if at == 7 else "common stone",
        )
        for at in range(2_000)
    ]
    firms = [node("Firm", name=f"f{at}", size=at) for at in range(500)]
    works = [edge("WorksAt", f"p{at}", f"f{at % 500}") for at in range(2_000)]
    return new_graph(tmp_path_factory.mktemp("events"), EVENTS, *persons, *firms, *works)


def text_of(condition: str, type_name: str) -> str:
    match = f"$p: Person $p worksAt $f {condition} $f.size < 25"
    return f"query q($x: {type_name}) {{ match {{ {match} }} return {{ $f.name }} }}"


def first_of(graph, text: str, value: object) -> str:
    """Return the variable at which the plan of a value starts; the explained order starts at it too."""
    prepared = graph._context.plans.get_read(graph.snapshot(), QueryText(text, params={"x": value}))
    first = prepared.plan.pipeline[0]
    assert isinstance(first, ir.NodeScan)
    explained = graph.explain(text, params={"x": value})
    assert f"  chosen  ${first.var} →" in explained
    assert f"scan    ${first.var}: " in explained
    return first.var


@pytest.mark.parametrize(
    ("condition", "type_name", "few", "many"),
    [
        ("$p.born < $x", "Date", "1970-01-05", "1975-01-05"),
        ("$p.born < $x", "Date", date(1970, 1, 5), date(1975, 1, 5)),
        ("$p.born >= $x", "Date", date(1975, 6, 20), date(1970, 1, 5)),
        ("$p.seen < $x", "DateTime", "1970-01-05T00:00:00Z", "1975-01-05T00:00:00Z"),
        ("$p.seen < $x", "DateTime", datetime(1970, 1, 5, tzinfo=UTC), datetime(1975, 1, 5, tzinfo=UTC)),
        ("search($p.note, $x)", "String", "pearl", "stone"),
        ("match_text($p.note, $x)", "String", "pearl", "stone"),
        ('($p.born < $x or $p.note = "none")', "Date", "1970-01-05", "1975-01-05"),
    ],
)
def test_plan_depends_on_values_of_every_form(events, condition, type_name, few, many):
    text = text_of(condition, type_name)
    assert first_of(events, text, few) == "p"
    assert first_of(events, text, many) == "f"


@pytest.mark.parametrize(
    ("condition", "type_name", "few", "many"),
    [
        ("$p.born in $x", "[Date]", ["1970-01-05"], [FIRST + timedelta(days=at) for at in range(1_500)]),
        ("$p.name in $x", "[String]", ["p1"], [f"p{at}" for at in range(1_500)]),
    ],
)
def test_lists_have_classes(events, condition, type_name, few, many):
    text = text_of(condition, type_name)
    plans = [events._context.plans.get_read(events.snapshot(), QueryText(text, params={"x": x})) for x in (few, many)]
    rows = [prepared.expected.operators[-1].rows for prepared in plans]
    assert rows == [pytest.approx(0.05, rel=0.2), pytest.approx(75, rel=0.2)]
    assert first_of(events, text, few) == plans[0].plan.pipeline[0].var
    assert first_of(events, text, many) == plans[1].plan.pipeline[0].var


def test_texts_and_objects_of_one_day_share_a_plan(events):
    text = text_of("$p.born < $x", "Date")
    plans = events._context.plans
    found = [
        plans.get_read(events.snapshot(), QueryText(text, params={"x": day}))
        for day in ("1970-01-05", date(1970, 1, 5))
    ]
    assert found[0] is found[1]
    assert found[0].values == {"x": 4}


def test_explained_rows_are_those_of_the_value(events):
    text = text_of("$p.born < $x", "Date")
    scan = events.explain(text, params={"x": str(FIRST + timedelta(days=100))}).tree["children"][0]
    assert scan["expected"] == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize("value", [None, 7, "no date", object()])
def test_invalid_values_take_the_plan_for_unknown_values(graph, value):
    text = "query q($on: Date?) { match { $p: Person $p worksAt $f $p.on = $on } return { $f.name } }"
    plans = graph._context.plans
    unknown = plans.get_read(graph.snapshot(), QueryText(text))
    assert plans.get_read(graph.snapshot(), QueryText(text, params={"on": value})) is unknown
    if value is not None:
        with pytest.raises(ParameterError, match="parameter 'on'"):
            graph.query(text, params={"on": value})


def test_explain_names_the_order_of_a_plan_for_other_rows(graph):
    params = {"city": "c0", "kind": "common"}
    assert "  chosen  $p → $f, estimated" in graph.explain(TEXT, params=params)
    graph.mutate('query m() { update Person set { city: "c0" } where city = "big" }')
    graph.mutate('query m() { update Firm set { kind: "other" } where name != "f1" }')
    explained = graph.explain(TEXT, params=params)
    assert "  chosen  $p → $f, planned when the tables had other rows" in explained
    assert "  instead $f → $p, estimated" in explained
