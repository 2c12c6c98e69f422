"""A graph that is opened with a policy enforces its rules for rows and properties."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import Denied, InputError

SCHEMA = """
node Customer { number: I64 @key  tenant: String?  level: I64? }
node Person { name: String @key  salary: I64? }
"""
POLICY = """
version: 2
groups: { staff: [ana, bo], hr: [cleo] }
attributes: { declare: { tenant: String }, ana: { tenant: acme }, bo: { tenant: beta } }
rows: { default: allow }
rules:
  - id: work
    allow: { actors: { any: true }, role: editor }
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


def test_a_schema_for_which_rules_are_invalid_opens_nothing(place):
    (place / "policy.yaml").write_text(POLICY.replace("resource.tenant", "resource.owner"))
    with pytest.raises(InputError, match="owner"):
        opened(place, "ana").query(SALARIES)
