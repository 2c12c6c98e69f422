"""Differences and history under rules that depend on the branch, and across renamed properties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ChangeCursorRejected, Denied
from omnigraph.query.visibility import Visibility
from unit.test_graph_visibility import equals, seen

SCHEMA = """
node Customer { number: I64 @key  tenant: String?  level: I64? }
edge Knows: Customer -> Customer
"""
POLICY = """
version: 2
groups: { staff: [ana, bo], owners: [olga] }
attributes: { declare: { tenant: String }, ana: { tenant: acme }, bo: { tenant: beta } }
rows: { default: allow }
rules:
  - id: work
    allow: { actors: { group: staff }, role: editor }
  - id: owners
    allow: { actors: { group: owners }, role: owner }
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read], types: [Customer],
             when: 'resource.tenant == principal.tenant' }
  - id: drafts
    allow: { actors: { any: true }, actions: [row_read], types: [Customer], branches: ["draft/*"] }
  - id: trials
    allow: { actors: { any: true }, actions: [row_read], types: [Customer], branches: ["trial/*"],
             when: 'resource.number <= 2' }
"""
DRAFT = "draft/a"


@pytest.fixture
def whole(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA, sync=False, environ={})
    customers = [{"number": 1, "tenant": "acme"}, {"number": 2, "tenant": "beta"}, {"number": 3}]
    edges = [{"edge": "Knows", "from": 1, "to": end, "data": {"id": f"e{end}"}} for end in (1, 2)]
    graph.load([*({"type": "Customer", "data": data} for data in customers), *edges], mode="append")
    graph.branch_create(DRAFT)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return graph


@pytest.fixture
def ana(whole: og.Graph, tmp_path: Path) -> og.Graph:
    return og.open(whole.uri, policy=tmp_path / "policy.yaml", actor="ana")


def ops(changes: Any) -> list[tuple[str, str]]:
    return [(change.id, change.op) for change in changes]


def raise_level(graph: og.Graph, number: int, branch: str) -> str:
    text = f"query q() {{ update Customer set {{ level: 9 }} where number = {number} }}"
    done = graph.mutate(text, branch=branch)
    assert done.commit_id is not None
    return done.commit_id


def test_points_are_judged_on_their_branches(whole, ana, tmp_path):
    more = [("e2", "insert"), ("2", "insert"), ("3", "insert")]
    assert ops(ana.diff("main", DRAFT)) == more
    assert ops(ana.diff(DRAFT, "main")) == [(id, "delete") for id, _ in more]
    assert ops(whole.diff("main", DRAFT)) == []
    assert ops(ana.diff(DRAFT, DRAFT)) == []
    assert ops(ana.diff("main", DRAFT, kinds=["node"])) == more[1:]
    first = ana.diff("main", DRAFT, limit=2)
    assert first.next is not None
    assert ops(first) + ops(ana.diff("main", DRAFT, limit=2, after=first.next)) == more
    assert ana.export_diff("main", DRAFT, tmp_path / "out").changes == 3


def test_edges_appear_with_their_ends_if_both_branches_have_rules(whole, ana):
    whole.branch_create("trial/a")
    assert ops(ana.diff("main", "trial/a")) == [("e2", "insert"), ("2", "insert")]
    assert ops(ana.diff("trial/a", "main")) == [("e2", "delete"), ("2", "delete")]


def test_commit_is_judged_on_its_branch(whole, ana):
    commit = raise_level(whole, 2, DRAFT)
    assert ops(ana.commit_changes(commit)) == [("2", "update")]
    assert ops(ana.commit_changes(raise_level(whole, 2, "main"))) == []


def test_feed_and_baseline_are_judged_on_the_branch_of_the_feed(whole, ana):
    raise_level(whole, 2, DRAFT)
    main = [ops(block) for block in ana.changes(start="beginning")]
    assert main == [[], [("1", "insert"), ("e1", "insert")]]
    every = [("1", "insert"), ("2", "insert"), ("3", "insert"), ("e1", "insert"), ("e2", "insert")]
    draft = [ops(block) for block in ana.changes(start="beginning", branch=DRAFT)]
    assert draft == [[], every, [("2", "update")]]
    baseline = [record["data"]["id"] for record in ana.changes_baseline(branch=DRAFT) if "data" in record]
    assert sorted(baseline) == ["1", "2", "3", "e1", "e2"]


def test_history_judges_commits_on_their_branches(whole, ana):
    commit = raise_level(whole, 2, DRAFT)
    (change,) = ana.history("Customer", 2, branch=DRAFT)
    assert (change.op, change.commit.id) == ("insert", commit)
    assert [one.op for one in whole.history("Customer", 2, branch=DRAFT)] == ["update", "insert"]
    assert list(ana.history("Customer", 2)) == []
    raise_level(whole, 1, DRAFT)
    assert [one.op for one in ana.history("Customer", 1, branch=DRAFT)] == ["update", "insert"]


def test_branch_without_commits_is_judged_by_its_own_rules(ana):
    assert [one.op for one in ana.history("Customer", 2, branch=DRAFT)] == ["insert"]
    assert len(ana.blame("Customer", 2, branch=DRAFT)) == 4
    assert ana.blame("Customer", 2) == []


def test_feed_ends_when_the_rules_change(whole, ana, tmp_path):
    cursor = ana.changes(start="now").cursor
    assert ana.changes(cursor).caught_up
    (tmp_path / "other.yaml").write_text(POLICY.replace("ana: { tenant: acme }", "ana: { tenant: beta }"))
    other = og.open(whole.uri, policy=tmp_path / "other.yaml", actor="ana")
    with pytest.raises(ChangeCursorRejected, match="what you may see has changed"):
        other.changes(cursor)
    olga = og.open(whole.uri, policy=tmp_path / "policy.yaml", actor="olga")
    with pytest.raises(ChangeCursorRejected, match="what you may see has changed"):
        olga.changes(cursor)


def test_preview_of_a_branch_with_other_rules_is_denied(whole, ana):
    raise_level(whole, 2, DRAFT)
    assert ana.merge_preview("main", DRAFT).outcome == "already_up_to_date"
    whole.branch_create("other")
    raise_level(whole, 2, "other")
    assert ana.merge_preview("other").tables == {}
    with pytest.raises(Denied, match="show other rows and values"):
        ana.merge_preview("other", DRAFT)


def test_rule_on_a_property_that_is_renamed_hides_the_rows(whole):
    """A condition on a property that a version does not have is unknown: rows disappear without a change."""
    first = whole.commits()[0].id
    whole.apply_schema(SCHEMA.replace("tenant: String?", 'team: String? @rename_from("tenant")'))
    handle = seen(whole, Visibility({"node:Customer": equals("tenant", "acme")}))
    assert ops(handle.diff(first)) == [("e1", "delete"), ("1", "delete")]
    assert ops(handle.diff("main", first)) == [("e1", "insert"), ("1", "insert")]
    (block,) = handle.changes(start=f"after:{first}")
    assert ops(block) == [("1", "delete"), ("e1", "delete")]
    back = seen(whole, Visibility({"node:Customer": equals("team", "acme")}))
    assert ops(back.diff(first)) == [("e1", "insert"), ("1", "insert")]


def test_renamed_property_that_is_hidden_after_keeps_its_old_name(whole):
    first = whole.commits()[0].id
    whole.apply_schema(SCHEMA.replace("tenant: String?", 'team: String? @rename_from("tenant")'))
    handle = seen(whole, Visibility({}, {("node:Customer", "team"): None}))
    changes = {change.id: change for change in handle.diff(first)}
    assert changes["1"].before == {"id": "1", "number": 1, "level": None, "tenant": "acme"}
    assert changes["1"].after == {"id": "1", "number": 1, "level": None}
    assert "3" not in changes
    assert whole.diff(first).counts() == {}
