"""Rules can depend on the owner of a branch: the actor that created it."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import Denied, PolicyInvalid
from omnigraph.operations.authorization.access import Access
from omnigraph.policy import load_policy

POLICY = """
version: 2
groups: { staff: [ana, bo], owners: [olga] }
protected_branches: [main]
rules:
  - id: staff-reads
    allow: { actors: { group: staff }, actions: [read, branch_create] }
  - id: own-branches
    allow: { actors: { group: staff }, actions: [change, branch_delete], when: 'resource.owner == principal.id' }
  - id: owners
    allow: { actors: { group: owners }, role: owner }
"""
ADD = 'query a() { insert Person { name: "Ada" } }'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    og.init(tmp_path / "g.omni", "node Person { name: String @key }")
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def opened(place: Path, actor: str) -> og.Graph:
    return og.open(place / "g.omni", policy=place / "policy.yaml", actor=actor)


def test_an_actor_changes_its_own_branches(place):
    ana, bo = opened(place, "ana"), opened(place, "bo")
    ana.branch_create("a")
    assert ana.mutate(ADD, branch="a").affected_nodes == 1
    assert ana.mutate(ADD.replace("Ada", "Bea"), branch=" a ").affected_nodes == 1
    for denied in (lambda: bo.mutate(ADD, branch="a"), lambda: ana.mutate(ADD), lambda: bo.branch_delete("a")):
        with pytest.raises(Denied, match="no rule allows"):
            denied()
    with pytest.raises(Denied, match="no rule allows"):
        ana.mutate(ADD, branch="missing")
    ana.branch_delete("a", force=True)
    bo.branch_create("a")
    assert bo.mutate(ADD, branch="a").affected_nodes == 1
    with pytest.raises(Denied):
        ana.mutate(ADD, branch="a")


def test_a_rule_that_denies_applies_to_branches_without_an_owner(place):
    rule = """  - id: foreign
    deny: { actors: { group: owners }, actions: [change], when: 'resource.owner != "olga"' }
"""
    (place / "policy.yaml").write_text(POLICY + rule)
    olga = opened(place, "olga")
    olga.branch_create("o")
    assert olga.mutate(ADD, branch="o").affected_nodes == 1
    with pytest.raises(Denied, match="rule 'foreign' denies"):
        olga.mutate(ADD)


def test_cedar_files_read_owners(place):
    (place / "own.cedar").write_text(
        """permit (principal, action == Omnigraph::Action::"tag_create", resource is Omnigraph::Branch)
        when { resource has owner && resource.owner == principal.id };"""
    )
    ana = opened(place, "ana")
    ana.branch_create("a")
    ana.mutate(ADD, branch="a")
    ana.on("a").tag_create("t")
    with pytest.raises(Denied):
        ana.tag_create("u")


def test_an_access_of_two_graphs_reads_the_owners_of_each(place):
    other = og.init(place / "h.omni", "node Person { name: String @key }")
    og.open(place / "g.omni", actor="ana").branch_create("x")
    other.branch_create("x", actor="bo")
    access = Access(load_policy(place / "policy.yaml"), "ana")
    mine, theirs = og.open(place / "g.omni").with_access(access), og.open(place / "h.omni").with_access(access)
    assert mine.mutate(ADD, branch="x").affected_nodes == 1
    with pytest.raises(Denied):
        theirs.mutate(ADD, branch="x")
    assert len(access.decisions) >= 2


def test_other_attributes_of_a_branch_are_refused(place):
    (place / "policy.yaml").write_text(POLICY.replace("resource.owner ==", "resource.tenant =="))
    with pytest.raises(PolicyInvalid, match="can read 'owner', 'name' and 'protected' of 'resource' alone"):
        opened(place, "ana")
