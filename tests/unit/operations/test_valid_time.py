"""Valid time: periods of nodes and edges in mutations, loads, merges, reads and tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    ConstraintViolation,
    Denied,
    InputError,
    KeyConflict,
    MergeConflict,
    ParameterError,
    ParseError,
    SchemaError,
    TypeCheckError,
)
from omnigraph.graph import Graph
from omnigraph.schema.check import compile_schema
from omnigraph.storage.lance.value_lookup import LookupCache
from support.bulk import GraphPair

SCHEMA = """
node Person @valid(from: started, to: ended) {
    name: String @key
    city: String?
    nick: String? @unique
    started: Date?
    ended: Date?
}
node Note @valid(from: seen, to: gone) { text: String  seen: DateTime?  gone: DateTime? }
node Firm { name: String @key }
edge WorksAt: Person -> Firm @valid(from: since, to: until) {
    role: String?
    since: Date?
    until: Date?
    @unique(src, dst)
}
edge Knows: Person -> Person
"""


def person(name: str, start: str | None = None, end: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "started": start, "ended": end, **more}}


def job(name: str, firm: str, since: str | None = None, until: str | None = None, **more: Any) -> dict[str, Any]:
    return {"edge": "WorksAt", "from": name, "to": firm, "data": {"since": since, "until": until, **more}}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = og.init(tmp_path / "graph", SCHEMA, sync=False)
    graph.load(
        [
            person("ana", "2010-01-01", "2015-01-01", city="Rome"),
            person("ana", "2015-01-01", city="Oslo"),
            person("bo", city="Bern"),
            {"type": "Firm", "data": {"name": "acme"}},
            job("ana", "acme", "2012-01-01", role="dev"),
            {"edge": "Knows", "from": "ana", "to": "bo", "data": {}},
        ],
        mode="append",
    )
    return graph


def people(graph: Graph, head: str = "", **params: Any) -> list[tuple[Any, ...]]:
    text = f"{head} match {{ $p: Person }} return {{ $p.name, $p.city, $p.started, $p.ended }} order {{ id($p) }}"
    return [tuple(row.values()) for row in graph.query(text, params).to_rows()]


# -- writes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'insert Person { name: "ana", started: date("2014-01-01"), ended: date("2014-02-01") }',
            "@key violation on Person.name: value 'ana' holds twice: "
            '[2014-01-01, 2014-02-01) overlaps [2010-01-01, 2015-01-01) of \'["ana","14610"]\'',
        ),
        (
            'insert Person { name: "cy", started: date("2014-01-01"), ended: date("2014-01-01") }',
            "@valid violation on Person: [2014-01-01, 2014-01-01) is empty: 'started' is not before 'ended'",
        ),
        (
            'insert WorksAt { from: "ana", to: "acme", until: date("2013-01-01") }',
            "@unique violation on WorksAt.(dst, src): value '(acme, ana)' holds twice: "
            "[…, 2013-01-01) overlaps [2012-01-01, …) of",
        ),
        (
            'update Person set { ended: date("2016-01-01") } where city = "Rome"',
            "value 'ana' holds twice: [2010-01-01, 2016-01-01) overlaps [2015-01-01, …)",
        ),
        ('insert Knows { from: "zed", to: "bo" }', "edge Knows: src 'zed' not found in Person"),
    ],
)
def test_refused_writes(graph: Graph, text: str, message: str) -> None:
    before = people(graph)
    with pytest.raises(ConstraintViolation) as caught:
        graph.mutate(text)
    assert message in caught.value.message
    assert people(graph) == before


def test_unique_values_are_unique_at_every_instant(graph: Graph) -> None:
    graph.load([person("cy", None, "2000-01-01", nick="x"), person("di", "2000-01-01", nick="x")], mode="append")
    with pytest.raises(ConstraintViolation, match="value 'x' holds twice"):
        graph.load([person("ed", "1990-01-01", nick="x")], mode="append")


def test_a_period_that_exists_is_a_key_conflict(graph: Graph) -> None:
    with pytest.raises(KeyConflict, match=r"upsert Person \{ name: …, started: …, … \}"):
        graph.mutate('insert Person { name: "ana", started: date("2015-01-01") }')


def test_end_closes_the_rows_that_hold(graph: Graph) -> None:
    done = graph.mutate('end Person where name = "ana" at date("2020-01-01")')
    assert done.affected_nodes == 1
    assert people(graph)[:2] == [
        ("ana", "Rome", "2010-01-01", "2015-01-01"),
        ("ana", "Oslo", "2015-01-01", "2020-01-01"),
    ]
    assert graph.mutate('end Person where name = "ana" at date("2020-01-01")').affected_nodes == 0
    with pytest.raises(ConstraintViolation, match="is empty"):
        graph.mutate('end Person where name = "ana" at date("2010-01-01")')


def test_update_valid_from_begins_a_new_period(graph: Graph) -> None:
    text = 'update Person set { city: "Pisa" } where name = "ana" valid from $t as $p return { $p.city, $p.started }'
    done = graph.mutate(text, {"t": "2012-06-01"})
    assert done.rows.to_rows() == [{"p.city": "Pisa", "p.started": "2012-06-01"}]
    assert people(graph)[:3] == [
        ("ana", "Rome", "2010-01-01", "2012-06-01"),
        ("ana", "Pisa", "2012-06-01", "2015-01-01"),
        ("ana", "Oslo", "2015-01-01", None),
    ]
    # A row that begins at the instant has no other period.
    assert graph.mutate(text, {"t": "2015-01-01"}).affected_nodes == 1
    assert people(graph)[2] == ("ana", "Pisa", "2015-01-01", None)
    graph.mutate('update WorksAt set { role: "boss" } where from = "ana" valid from date("2016-01-01")')
    rows = graph.query("match { $p: Person $p $w:worksAt $f } return distinct { $w.role, $w.since } order { $w.since }")
    assert rows.to_rows() == [
        {"w.role": "dev", "w.since": "2012-01-01"},
        {"w.role": "boss", "w.since": "2016-01-01"},
    ]


def test_edges_go_with_the_last_period_of_a_node(graph: Graph) -> None:
    assert graph.mutate('delete Person where city = "Rome"').affected_edges == 0
    assert graph.mutate('delete Person where city = "Oslo"').affected_edges == 2
    assert graph.verify() == []


@pytest.mark.parametrize("small_rows_max", [0, 4_096])
def test_a_delete_of_no_rows(graph: Graph, small_rows_max: int) -> None:
    """Large fragments have no index at first; they are scanned."""
    graph._repository.tables.lookups = LookupCache(small_rows_max=small_rows_max)
    for condition in ('city = "Rimini"', 'name in ["cy", "dan"]', 'name = "cy"'):
        done = graph.mutate(f"delete Person where {condition}")
        assert (done.affected_nodes, done.affected_edges) == (0, 0)


def test_an_edge_to_a_row_of_the_same_mutation(graph: Graph) -> None:
    graph.mutate('insert Person { name: "cy", started: date("2020-01-01") } as $c insert Knows { from: $c, to: "ana" }')
    text = 'valid at $t match { $p: Person { name: "cy" } $p knows $q } return { $q.city }'
    assert graph.query(text, {"t": "2021-01-01"}).to_rows() == [{"q.city": "Oslo"}]


def test_upsert_names_the_period(graph: Graph) -> None:
    graph.mutate('upsert Person { name: "ana", started: date("2015-01-01"), city: "Genoa" }')
    assert people(graph)[1] == ("ana", "Genoa", "2015-01-01", None)
    with pytest.raises(TypeCheckError, match="the key and period of 'Person' is 'name', 'started'"):
        graph.mutate('upsert Person { name: "ana", city: "Genoa" }')


def test_nodes_without_a_key_have_one_period_each(graph: Graph) -> None:
    graph.mutate('insert Note { text: "a", seen: datetime("2020-01-01T10:00:00Z") }')
    text = "valid at $t match { $n: Note } return { $n.text }"
    assert graph.query(text, {"t": "2020-01-01T09:59:59Z"}).to_rows() == []
    assert graph.query(text, {"t": "2020-01-01T10:00:00Z"}).to_rows() == [{"n.text": "a"}]
    with pytest.raises(TypeCheckError, match="'Note' has no @key"):
        graph.mutate('update Note set { text: "b" } where text = "a" valid from now()')


# -- loads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("set_aside", [False, True])
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_both_executors_of_a_load_agree(tmp_path: Path, mode: str, set_aside: bool) -> None:
    pair = GraphPair.below(tmp_path, SCHEMA)
    first = [
        person("ana", "2010-01-01", "2015-01-01", city="Rome"),
        person("ana", "2015-01-01", "2018-01-01", city="Oslo", nick="x"),
        {"type": "Firm", "data": {"name": "acme"}},
        job("ana", "acme", "2012-01-01", "2013-01-01"),
        {"edge": "Knows", "from": "ana", "to": "ana", "data": {}},
    ]
    second = [
        person("bo", None, "2000-01-01"),
        person("bo", "1999-01-01"),
        person("ana", "2014-01-01", "2014-05-01"),
        person("ana", "2018-01-01", city="Bern"),
        person("ana", "2010-01-01", "2015-01-01", nick="x"),
        person("cy", "2020-01-01", "2019-01-01"),
        job("ana", "acme", "2012-05-01"),
        job("ana", "acme", "2013-01-01", "2014-01-01"),
        job("zed", "acme"),
        {"edge": "Knows", "from": "bo", "to": "ana", "data": {}},
        {"type": "Firm", "data": {"name": "initech"}},
    ]
    for number, records in enumerate((first, second, second[:1], second[4:5], second[6:8])):
        file = tmp_path / f"{number}.jsonl"
        file.write_text("\n".join(map(json.dumps, records)))
        pair.load([file], mode if number else "append", set_aside=set_aside)
    assert pair.bulk.verify() == []


def test_an_export_loads_back(graph: Graph, tmp_path: Path) -> None:
    other = og.init(tmp_path / "other", SCHEMA, sync=False)
    records = list(graph.export())
    other.load(records, mode="merge")
    other.load(records, mode="merge")
    assert sorted(map(str, other.export())) == sorted(map(str, records))


# -- branches ----------------------------------------------------------------------------------------


def test_a_merge_refuses_periods_that_overlap(graph: Graph) -> None:
    graph.branch_create("side")
    graph.mutate('insert Person { name: "cy", city: "a", started: date("2020-01-01") }')
    graph.mutate('insert Person { name: "cy", city: "b", ended: date("2021-01-01") }', branch="side")
    with pytest.raises(MergeConflict) as caught:
        graph.merge("side")
    (conflict,) = caught.value.conflicts
    assert conflict.kind == "unique_violation"
    assert "[…, 2021-01-01) overlaps [2020-01-01, …)" in conflict.message


def test_a_merge_joins_periods_of_both_branches(graph: Graph) -> None:
    graph.branch_create("side")
    graph.mutate('update Person set { city: "Pisa" } where name = "ana" valid from date("2020-01-01")')
    graph.mutate(
        'insert Person { name: "ana", city: "Bonn", ended: date("2010-01-01") } insert Knows { from: "bo", to: "ana" }',
        branch="side",
    )
    graph.merge("side")
    assert [row[1] for row in people(graph) if row[0] == "ana"] == ["Bonn", "Rome", "Oslo", "Pisa"]
    assert graph.verify() == []


def test_reads_are_bitemporal(graph: Graph) -> None:
    before = graph.snapshot().commit_id
    graph.mutate('update Person set { city: "Turin" } where city = "Rome"')
    text = 'valid at $t match { $p: Person { name: "ana" } } return { $p.city }'
    for at, city in ((None, "Turin"), (before, "Rome")):
        assert graph.query(text, {"t": "2011-01-01"}, at=at).to_rows() == [{"p.city": city}]
        assert graph.query(text, {"t": "2016-01-01"}, at=at).to_rows() == [{"p.city": "Oslo"}]


# -- reads -------------------------------------------------------------------------------------------


def test_stored_queries_pages_and_plans(graph: Graph) -> None:
    text = "query q($t: Date) { valid at $t match { $p: Person } return { $p.name, $p.city } order { $p.name } }"
    pages = [row for page in graph.pages(text, params={"t": "2011-01-01"}, page=1) for row in page.to_rows()]
    assert pages == [{"p.name": "ana", "p.city": "Rome"}, {"p.name": "bo", "p.city": "Bern"}]
    assert "valid   at $t" in str(graph.explain(text))
    assert "valid   at $t" in str(graph.profile(text, params={"t": "2011-01-01"}))


def test_an_instant_can_be_now_a_date_or_a_datetime(graph: Graph) -> None:
    for instant in ("now()", 'date("2024-01-01")', 'datetime("2024-01-01T12:00:00Z")'):
        assert [row[1] for row in people(graph, f"valid at {instant}")] == ["Oslo", "Bern"]
    during = 'valid during datetime("2014-12-31T23:00:00Z"), datetime("2015-01-01T00:00:00Z")'
    assert [row[1] for row in people(graph, during)] == ["Rome", "Bern"]


def test_an_empty_interval_is_refused(graph: Graph) -> None:
    with pytest.raises(ParameterError, match="the interval of 'valid during' is empty"):
        people(graph, "valid during $a, $b", a="2015-01-01", b="2015-01-01")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("valid at $t match { $f: Firm } return { $f }", TypeCheckError, "T43: no type of the query has '@valid'"),
        ('valid at "x" match { $p: Person } return { $p }', TypeCheckError, "T43: an instant is a Date or a DateTime"),
        ("valid at $t + 1 match { $p: Person } return { $p }", TypeCheckError, "T"),
        ("valid at $t valid at $t match { $p: Person } return { $p }", ParseError, "T43: a query has one valid clause"),
        ("match { $p: Person } valid at $t return { $p }", ParseError, "T43: the valid clause stands before 'match'"),
        ("valid on $t match { $p: Person } return { $p }", ParseError, "'at' or 'during'"),
        ('end Firm where name = "acme" at now()', TypeCheckError, "T43: 'Firm' has no '@valid'"),
        ('end Person where name = "ana"', ParseError, "'at' and the end of the period"),
        ('update Firm set { name: "b" } where name = "a" valid from now()', TypeCheckError, "T"),
        (
            'update Person set { started: $t } where name = "a"',
            TypeCheckError,
            "T43: 'Person.started' begins the period",
        ),
        (
            'update Person set { ended: $t } where name = "a" valid from $t',
            TypeCheckError,
            "T43: 'valid from' sets the period, so 'ended' cannot be assigned",
        ),
        ('end Person where name = "a" at now()', TypeCheckError, "T7: cannot assign now()"),
        ('unify Person "a" into "b"', TypeCheckError, "T50: 'Person' has '@valid'"),
    ],
)
def test_errors_of_the_language(graph: Graph, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        (graph.query if "match" in text else graph.mutate)(text, {"t": "2020-01-01"} if "$t" in text else None)
    assert message in str(caught.value)


def test_tools_with_one_vertex_for_each_node_refuse_periods(graph: Graph) -> None:
    with pytest.raises(InputError, match="joins nodes with periods"):
        graph.to_networkx()
    with pytest.raises(InputError, match="joins nodes with periods"):
        graph.analyze("pagerank")


POLICY = """version: 2
groups: { staff: [ana], owners: [bo] }
rows: { default: allow }
rules:
  - { id: staff, allow: { actors: { group: staff }, role: editor } }
  - { id: owners, allow: { actors: { group: owners }, role: owner } }
  - id: seen
    allow: { actors: { group: owners }, actions: [row_read], types: [Person] }
  - id: some
    allow: { actors: { group: staff }, actions: [row_read], types: [Person], when: 'resource.city == "Oslo"' }
"""


def test_rules_for_rows_apply_to_periods(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    seen = og.open(tmp_path / "graph", actor="ana", policy=tmp_path / "policy.yaml")
    assert [row[1] for row in people(seen)] == ["Oslo"]
    assert people(seen, "valid at $t", t="2011-01-01") == []
    text = "match { $p: Person $p worksAt $f } return { $p.city, $f.name }"
    assert seen.query("valid at $t " + text, {"t": "2013-01-01"}).to_rows() == []
    assert seen.query("valid at $t " + text, {"t": "2020-01-01"}).to_rows() == [{"p.city": "Oslo", "f.name": "acme"}]
    assert seen.query(text).to_rows() == [{"p.city": "Oslo", "f.name": "acme"}]
    assert seen.query('match { $p: Person { name: "ana" } } return { $p.city }').to_rows() == [{"p.city": "Oslo"}]
    hop = 'match { $f: Firm { name: "acme" } $f worksAt $p } return { $p.city }'
    assert seen.query(hop).to_rows() == [{"p.city": "Oslo"}]
    (knows,) = (record["data"]["id"] for record in graph.export() if record.get("edge") == "Knows")
    assert seen.get("Knows", knows) is None
    assert {record["edge"] for record in seen.export() if "edge" in record} == {"WorksAt"}
    seen.mutate('insert WorksAt { from: "ana", to: "acme", until: date("2000-01-01") }')
    with pytest.raises(ConstraintViolation, match="src 'bo' not found in Person"):
        seen.mutate('insert WorksAt { from: "bo", to: "acme" }')


@pytest.mark.parametrize("edges", ["visible", "hidden"])
def test_hidden_periods_do_not_decide_about_edges(tmp_path: Path, edges: str) -> None:
    """The last visible period of a key takes the visible edges with it; hidden edges refuse the deletion."""
    policy = POLICY[: POLICY.index("  - id: seen")] + "".join(
        f"  - {{ id: no-{type_}, deny: {{ actors: {{ group: staff }}, actions: [row_read], "
        f"types: [{type_}], when: 'resource has {name} && resource.{name} == \"hidden\"' }} }}\n"
        for type_, name in (("Person", "city"), ("WorksAt", "role"))
    )
    (tmp_path / "policy.yaml").write_text(policy)
    found = []
    for name, more in (("one", []), ("two", [person("cy", "2012-01-01", city="hidden")])):
        graph = og.init(tmp_path / name, SCHEMA, sync=False)
        role = "hidden" if edges == "hidden" else "boss"
        records = [person("cy", "2010-01-01", "2012-01-01", city="Oslo"), {"type": "Firm", "data": {"name": "f"}}]
        graph.load([*records, job("cy", "f", role=role), *more], mode="append")
        graph.branch_create("work")
        seen = og.open(tmp_path / name, actor="ana", policy=tmp_path / "policy.yaml").on("work")
        try:
            done: Any = seen.mutate('delete Person where name = "cy"')
            seen.mutate('insert Person { name: "cy", started: date("2000-01-01"), ended: date("2001-01-01") }')
            found.append((done.affected_nodes, done.affected_edges, graph.on("work").to_arrow("WorksAt").num_rows))
        except Denied as error:
            found.append(error.message)
            assert graph.on("work").to_arrow("WorksAt").num_rows == 1
    assert found[0] == found[1]
    assert found[0] == (1, 1, 0) if edges == "visible" else "rows that you cannot read" in found[0]


def test_a_cardinality_of_a_hidden_period_is_not_named(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA.replace("-> Firm @valid", "-> Firm @card(1..) @valid"), sync=False)
    periods = [person("cy", "2010-01-01", "2012-01-01", city="Oslo"), person("cy", "2012-01-01", city="Rome")]
    graph.load([*periods, {"type": "Firm", "data": {"name": "f"}}, job("cy", "f")], mode="append")
    policy = POLICY.replace("role: editor", "actions: [read, change]").replace("[row_read]", "[row_read, row_delete]")
    (tmp_path / "policy.yaml").write_text(policy)
    seen = og.open(tmp_path / "graph", actor="ana", policy=tmp_path / "policy.yaml")
    with pytest.raises(ConstraintViolation) as caught:
        seen.mutate('delete Person where name = "cy"')
    assert caught.value.message == "@card violation on edge WorksAt (min 1)"


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_load_of_periods_under_rules_for_rows_breaks_a_cardinality(tmp_path: Path, mode: Any) -> None:
    schema = SCHEMA.replace("-> Firm @valid", "-> Firm @card(1..1) @valid")
    graph = og.init(tmp_path / "graph", schema.replace("@unique(src, dst)", ""), sync=False)
    firms = [{"type": "Firm", "data": {"name": name}} for name in "fg"]
    graph.load([person("cy", "2010-01-01", city="Oslo"), *firms, job("cy", "f")], mode="append")
    policy = POLICY.replace("role: editor", "actions: [read, change]").replace("[row_read]", "[row_read, row_insert]")
    (tmp_path / "policy.yaml").write_text(policy)
    seen = og.open(tmp_path / "graph", actor="ana", policy=tmp_path / "policy.yaml")
    with pytest.raises(ConstraintViolation, match="source 'cy' has 2 edges"):
        seen.load([person("cy", "2000-01-01", "2001-01-01", city="Oslo"), job("cy", "g")], mode=mode)


def test_a_cardinality_of_a_period_that_becomes_hidden_is_not_named(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA.replace("-> Firm @valid", "-> Firm @card(1..) @valid"), sync=False)
    firm = {"type": "Firm", "data": {"name": "f"}}
    graph.load([person("cy", "2012-01-01", city="Oslo"), firm, job("cy", "f", role="x")], mode="append")
    rule = "  - { id: writes, allow: { actors: { group: staff }, actions: [row_update], types: [Person] } }\n"
    (tmp_path / "policy.yaml").write_text(POLICY.replace("role: editor", "actions: [read, change]") + rule)
    seen = og.open(tmp_path / "graph", actor="ana", policy=tmp_path / "policy.yaml")
    with pytest.raises(ConstraintViolation) as caught:
        seen.mutate('atomic { delete WorksAt where role = "x" update Person set { city: "Rome" } where name = "cy" }')
    assert caught.value.message == "@card violation on edge WorksAt (min 1)"


def test_differences_of_periods_under_rules_for_rows(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    seen = og.open(tmp_path / "graph", actor="ana", policy=tmp_path / "policy.yaml")

    def edges(start: int) -> list[tuple[str, str]]:
        return [(change.op, change.table_key) for change in seen.diff(start) if change.table_key.startswith("edge:")]

    assert edges(1) == [("insert", "edge:WorksAt")]
    assert len(seen.changes(start="beginning").blocks) == 2
    end = seen.snapshot().version
    graph.mutate('update Person set { city: "Bern" } where city = "Oslo"')
    assert edges(end) == [("delete", "edge:WorksAt")]
    # Another period of the person is visible, and the edge as before.
    graph.mutate('update Person set { city: "Oslo" } where city = "Rome"')
    assert edges(end) == []


@dataclass
class Stay:
    """A class with a period."""

    __omnigraph__ = (og.Valid("came", "left"),)

    came: date
    left: date | None = None


def test_classes_have_periods() -> None:
    assert "node Stay @valid(from: came, to: left)" in str(og.schema_of([Stay]))


# -- schemas -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node A @valid(from: a, to: b) { a: Date  b: DateTime? }", "S25: 'a' is Date, but 'b' is DateTime"),
        (
            "node A @valid(from: a, to: c) { a: Date  b: Date? }",
            "S25: '@valid' names 'c', which is not a property here",
        ),
        ("node A @valid(from: a, to: b) { a: Date  b: I64? }", "S25: '@valid' needs a Date or a DateTime"),
        ("node A @valid(from: a, to: b) { a: Date  b: Date }", "S25: the end 'b' of '@valid' is not nullable"),
        ("node A @valid(from: a, to: a) { a: Date? }", "S25: '@valid' names 'a' twice"),
        (
            "node A @valid(from: a, to: b) { k: I64 @key  a: Date  b: Date? }",
            "S25: the key of 'A' is (k), but with '@valid' it must be one String",
        ),
        ("node A @valid(a, b) { a: Date  b: Date? }", "S25: expected 'from'"),
        (
            "node A @valid(from: a, to: b) @valid(from: a, to: b) { a: Date  b: Date? }",
            "S25: '@valid' is written twice",
        ),
        ("node A { a: Date  b: Date?  @valid(from: a, to: b) }", "S25: '@valid' stands on the declaration"),
        ("node A { a: Date @valid  b: Date? }", "S25: '@valid' stands on a declaration, not on a property"),
    ],
)
def test_errors_of_a_schema(text: str, message: str) -> None:
    with pytest.raises((SchemaError, ParseError)) as caught:
        compile_schema(text)
    assert message in str(caught.value)


def test_valid_time_is_added_with_new_properties(graph: Graph) -> None:
    text = graph.schema.source if hasattr(graph.schema, "source") else str(graph.schema)
    wider = text.replace(
        "edge Knows: Person -> Person",
        "edge Knows: Person -> Person @valid(from: met, to: left) { met: Date? left: Date? }",
    )
    plan = graph.plan_schema(wider)
    assert plan.supported, plan
    graph.apply_schema(wider)
    graph.mutate('end Knows where from = "ana" at date("2011-01-01")')
    for instant, count in (("2010-06-01", 1), ("2012-06-01", 0)):
        rows = graph.query("valid at $t match { $p: Person $p knows $q } return { $q.name }", {"t": instant})
        assert len(rows.to_rows()) == count
    # A key would change the ids, and a constraint cannot be removed.
    narrower = text.replace(" @valid(from: since, to: until)", "")
    assert not graph.plan_schema(narrower).supported
    keyed = text.replace("node Firm {", "node Firm @valid(from: a, to: b) {\n    a: Date?\n    b: Date?")
    assert not graph.plan_schema(keyed).supported
