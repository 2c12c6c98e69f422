"""A graph that is opened with a policy enforces its rules for rows and properties."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import Denied, InputError
from omnigraph.policy.rows import row_policies

SCHEMA = """
node Customer { number: I64 @key  tenant: String?  level: I64? }
node Person { name: String @key  salary: I64? }
"""
POLICY = """
version: 2
groups: { staff: [ana, bo], hr: [cleo], owners: [olga] }
attributes: { declare: { tenant: String }, ana: { tenant: acme }, bo: { tenant: beta } }
rows: { default: allow }
rules:
  - id: work
    allow: { actors: { any: true }, role: editor }
  - id: owners
    allow: { actors: { group: owners }, role: owner }
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read, row_insert, row_update], types: [Customer],
             when: 'resource.tenant == principal.tenant' }
  - id: drafts
    allow: { actors: { any: true }, actions: [row_read], types: [Customer], branches: ["draft/*"] }
  - id: salary
    allow: { actors: { group: hr }, actions: [property_read, property_write], types: [Person], properties: [salary],
             otherwise: mask }
"""
NUMBERS = "query q() { match { $c: Customer } return { $c.number as number } order { $c.number } }"
SALARIES = "query q() { match { $p: Person } return { $p.name as name, $p.salary as salary } }"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    customers = [{"number": 1, "tenant": "acme"}, {"number": 2, "tenant": "beta"}, {"number": 3}]
    nodes = [{"type": "Customer", "data": data} for data in customers]
    graph.load([*nodes, {"type": "Person", "data": {"name": "Pia", "salary": 90}}], mode="append")
    graph.branch_create("draft/a")
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def opened(place: Path, actor: str) -> og.Graph:
    return og.open(place / "g.omni", policy=place / "policy.yaml", actor=actor)


@pytest.mark.parametrize(("actor", "numbers"), [("ana", [1]), ("bo", [2]), ("cleo", []), ("stranger", [])])
def test_each_actor_reads_its_own_rows(place, actor, numbers):
    graph = opened(place, actor)
    if not numbers:
        with pytest.raises(InputError, match="Customer"):
            graph.query(NUMBERS)
        return
    assert graph.query(NUMBERS).to_arrow()["number"].to_pylist() == numbers
    assert [graph.get("Customer", number) is not None for number in (1, 2, 3)] == [n in numbers for n in (1, 2, 3)]


def test_rules_of_a_branch_hold_on_the_branch(place):
    graph = opened(place, "ana")
    assert graph.query(NUMBERS, branch="draft/a").to_arrow()["number"].to_pylist() == [1, 2, 3]
    assert graph.query(NUMBERS).to_arrow()["number"].to_pylist() == [1]


def test_a_masked_property_is_null(place):
    assert opened(place, "ana").query(SALARIES).to_pylist() == [{"name": "Pia", "salary": None}]
    assert opened(place, "cleo").query(SALARIES).to_pylist() == [{"name": "Pia", "salary": 90}]


def test_mutations_are_guarded(place):
    graph = opened(place, "ana")
    graph.mutate('insert Customer { number: 4, tenant: "acme" }')
    with pytest.raises(Denied, match="row_insert"):
        graph.mutate('insert Customer { number: 5, tenant: "beta" }')
    graph.mutate("update Customer set { level: 1 } where number > 0")
    levels = "query q() { match { $c: Customer $c.level = 1 } return { $c.number as number } order { $c.number } }"
    assert og.open(place / "g.omni").query(levels).to_arrow()["number"].to_pylist() == [1, 4]


def test_a_schema_for_which_rules_are_invalid_opens_nothing(place, caplog):
    (place / "policy.yaml").write_text(POLICY.replace("resource.tenant", "resource.owner"))
    with pytest.raises(Denied, match="do not fit the schema") as caught:
        opened(place, "ana").query(SALARIES)
    assert "owner" not in str(caught.value)
    assert "owner" in caplog.text


def test_what_is_not_kept_still_limits(place, monkeypatch):
    """Another thread can clear what is kept before it is looked up."""
    monkeypatch.setattr(row_policies, "_keep", lambda *_: None)
    assert opened(place, "ana").query(NUMBERS).to_arrow()["number"].to_pylist() == [1]


def test_counts_and_paths_of_tables(place):
    tables = opened(place, "ana").snapshot().to_json()["tables"]
    assert [(one["table_key"], one["row_count"]) for one in tables] == [("node:Customer", 1), ("node:Person", 1)]
    assert {one["table_path"] for one in tables} == {""}
    assert [one["row_count"] for one in opened(place, "cleo").snapshot().to_json()["tables"]] == [1]
    everything = opened(place, "olga").snapshot().to_json()["tables"]
    assert everything == og.open(place / "g.omni").snapshot().to_json()["tables"]


def test_maintenance_needs_its_action(place):
    for name in ("optimize", "ensure_indices", "recover", "verify"):
        with pytest.raises(Denied, match="maintain"):
            getattr(opened(place, "ana"), name)()
        getattr(opened(place, "olga"), name)()


def test_a_caller_without_limits_changes_the_schema(place):
    wider = SCHEMA + "node Extra { name: String @key }"
    for call in ("plan_schema", "apply_schema"):
        with pytest.raises(Denied):
            getattr(opened(place, "ana"), call)(wider)
        getattr(opened(place, "olga"), call)(wider)
    assert "Extra" in opened(place, "ana").schema
    assert "salary" in opened(place, "ana").schema


def test_a_branch_on_which_the_actor_sees_other_rows_is_not_created(place):
    ana = opened(place, "ana")
    for at in (None, "main", 1):
        with pytest.raises(Denied, match="show other rows and values"):
            ana.branch_create("draft/b", at=at)
    ana.branch_create("work")
    ana.branch_create("draft/c", "draft/a")


DROP_BOX = """
version: 2
groups: { bots: [importer] }
rows: { default: deny }
rules:
  - id: bots-add
    allow: { actors: { group: bots }, role: editor }
  - id: drop-box
    allow: { actors: { group: bots }, actions: [row_insert], types: [Customer], when: 'resource.tenant == "acme"' }
  - id: level
    allow: { actors: { any: true }, actions: [property_read], types: [Customer], properties: [level],
             when: 'principal.id == "cleo"' }
"""


def test_an_actor_inserts_rows_that_it_cannot_read(place):
    (place / "policy.yaml").write_text(DROP_BOX)
    graph = opened(place, "importer")
    assert list(graph.catalog().nodes) == ["Customer"]
    assert list(graph.catalog().nodes["Customer"].properties) == ["number", "tenant"]
    insert = 'query a() { insert Customer { number: 9, tenant: "acme" } as $c return { $c.number as number } }'
    added = graph.mutate(insert)
    assert (added.affected_nodes, added.rows.to_pylist()) == (1, [])
    graph.load([{"type": "Customer", "data": {"number": 10, "tenant": "acme"}}], mode="append")
    whole = og.open(place / "g.omni")
    assert [whole.get("Customer", number)["tenant"] for number in (9, 10)] == ["acme", "acme"]
    assert graph.query(NUMBERS).to_pylist() == []
    assert graph.get("Customer", 9) is None
    with pytest.raises(Denied, match="'row_insert' of Customer '11' is denied by 'drop-box'"):
        graph.mutate('query a() { insert Customer { number: 11, tenant: "beta" } }')
    assert graph.mutate('query a() { update Customer set { tenant: "x" } where number = 9 }').affected_nodes == 0
    assert graph.mutate("query a() { delete Customer where number = 9 }").affected_nodes == 0
    assert whole.get("Customer", 9) is not None


SCOPED = """
version: 2
groups: { staff: [ana], hr: [cleo] }
rows: { default: allow }
rules:
  - id: everyone
    allow: { actors: { any: true }, role: editor }
  - id: number-of-secret-clearances
    allow: { actors: { group: hr }, actions: [property_read, property_write], types: [Customer], properties: [tenant] }
  - id: pay
    allow: { actors: { group: hr }, actions: [property_read, property_write], types: [Customer], properties: [level],
             otherwise: mask }
"""


def test_a_denied_property_names_its_own_rules(tmp_path):
    """The id of a rule for another property, which can be hidden, is not shown."""
    schema = "node Customer { number: I64 @key  tenant: String?  level: I64? }"
    og.init(tmp_path / "g.omni", schema, sync=False).branch_create("work")
    (tmp_path / "policy.yaml").write_text(SCOPED)
    graph = opened(tmp_path, "ana").on("work")
    graph.mutate("query a() { insert Customer { number: 1 } }")
    with pytest.raises(Denied) as caught:
        graph.mutate("query a() { update Customer set { level: 2 } where number = 1 }")
    assert caught.value.rules == ("pay",)
    assert "clearances" not in caught.value.message
