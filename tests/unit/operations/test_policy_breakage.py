"""A change of the schema that would break rules of the policy is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import InputError, PolicyInvalid

SCHEMA = "node Customer { number: I64 @key  tenant: String? }\n"
RENAMED = 'node Customer { number: I64 @key  owner: String? @rename_from("tenant") }\n'
ADDED = "node Customer { number: I64 @key  tenant: String?  level: I64? }\n"
POLICY = """
version: 2
groups: { owners: [olga], staff: [ana] }
attributes: { declare: { tenant: String } }
rows: { default: allow }
rules:
  - id: owners
    allow: { actors: { group: owners }, role: owner }
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read], types: [Customer],
             when: 'resource.tenant == principal.tenant' }
"""
WANTED = "the schema would break 1 rule of the policy: rule 'own-tenant': 'Customer' has no property 'tenant'"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    graph.load([{"type": "Customer", "data": {"number": 1, "tenant": "acme"}}], mode="append")
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def opened(place: Path) -> og.Graph:
    return og.open(place / "g.omni", policy=place / "policy.yaml", actor="olga")


def test_apply_schema(place):
    graph = opened(place)
    before = graph.snapshot().commit_id
    with pytest.raises(InputError, match=WANTED) as raised:
        graph.apply_schema(RENAMED)
    assert raised.value.code == "policy_breakage"
    assert graph.snapshot().commit_id == before
    assert graph.apply_schema(ADDED).applied
    assert graph.apply_schema(RENAMED.replace("}", " level: I64? }"), allow_policy_breakage=True).applied
    with pytest.raises(PolicyInvalid):
        opened(place).get("Customer", 1)


def test_merge(place):
    og.open(place / "g.omni").branch_create("draft")
    og.open(place / "g.omni").apply_schema(RENAMED, branch="draft")
    (place / "policy.yaml").write_text(POLICY)
    graph = og.open(place / "g.omni")
    before = graph.snapshot().commit_id
    with pytest.raises(InputError, match=WANTED) as raised:
        opened(place).merge("draft")
    assert raised.value.code == "policy_breakage"
    assert graph.snapshot().commit_id == before
    assert graph.merge("draft").commit_id is not None


def test_a_merge_of_a_harmless_schema(place):
    og.open(place / "g.omni").branch_create("draft")
    og.open(place / "g.omni").apply_schema(ADDED, branch="draft")
    assert opened(place).merge("draft").schema_steps


def test_revert(place):
    whole = og.open(place / "g.omni", actor="x")
    applied = whole.apply_schema(RENAMED)
    whole.mutate('query a() { update Customer set { owner: "beta" } where number = 1 }')
    (place / "policy.yaml").write_text(POLICY.replace("resource.tenant", "resource.owner"))
    with pytest.raises(InputError, match="has no property 'owner'") as raised:
        opened(place).revert(applied.commit_id)
    assert raised.value.code == "policy_breakage"
