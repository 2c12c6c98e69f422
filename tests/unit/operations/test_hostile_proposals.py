"""Proposals with hostile and unlucky input: control characters, wrong types, damaged logs, hidden counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import Damaged, InputError, NotFound, ProposalBlocked, QueryTimeout
from omnigraph.graph_proposals import Proposal
from omnigraph.operations.proposals.landing_queue import queue_folder

SCHEMA = "node Person { name: String @key  tenant: String? }"
POLICY = """version: 2
groups: { staff: [ana, bo], owners: [olga] }
attributes: { declare: { tenant: String }, ana: { tenant: acme }, bo: { tenant: acme } }
rows: { default: allow }
rules:
  - id: work
    allow: { actors: { any: true }, role: maintainer }
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read, row_insert, row_update], types: [Person],
             when: 'resource.tenant == principal.tenant' }
  - id: all-tenants
    allow: { actors: { group: owners }, actions: [row_read, row_insert, row_update, row_delete], types: [Person] }
"""
NO_BETA = """query no_beta() @check(empty, required) {
    match { $p: Person $p.tenant = "beta" } return { $p.name as name } }"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    graph.load([{"type": "Person", "data": {"name": f"p{number}"}} for number in range(30)], mode="append")
    graph.branch_create("feature")
    graph.mutate('insert Person { name: "dan", tenant: "acme" }', branch="feature", actor="ana")
    return tmp_path / "g.omni"


def propose(root: Path, **more: Any) -> Proposal:
    return og.open(root, actor="ana").propose("feature", title="Add Dan", **more)


@pytest.mark.parametrize(
    "title", ["red\x1b[31m", "a\0b", "a\rb", "a\N{LINE SEPARATOR}b", "a\N{RIGHT-TO-LEFT OVERRIDE}b"]
)
def test_titles_and_labels_are_printable(root, title):
    graph = og.open(root, actor="ana")
    with pytest.raises(InputError, match="printable"):
        graph.propose("feature", title=title)
    with pytest.raises(InputError, match="printable"):
        graph.propose("feature", title="x", labels=[title])
    assert graph.proposals() == []


def test_arguments_of_wrong_types_are_refused(root):
    proposal: Any = propose(root, labels=["a", "a "])
    assert proposal.labels == ("a",)
    with pytest.raises(InputError, match="labels"):
        proposal.edit(labels=[["nested"]])
    with pytest.raises(NotFound):
        proposal.comment("x", reply_to=["x"])
    with pytest.raises(NotFound):
        proposal.edit_comment(["x"], "y")
    comment = proposal.comment("x")
    with pytest.raises(InputError, match="has a text"):
        proposal.edit_comment(comment.id, " ")
    for after in (-1, "x", True):
        with pytest.raises(InputError, match="after"):
            list(proposal.events(after))
    for choices in ({("a", "b"): "ours"}, {"a": "\ud800"}, 5):
        with pytest.raises(InputError, match="choices"):
            proposal.resolve(choices)


def test_text_that_does_not_fit_an_event_leaves_nothing(root):
    with pytest.raises(InputError, match="64 KiB"):
        propose(root, body="\x01" * 40_000)
    assert not list((root / "__proposals").rglob("open/*"))


@pytest.mark.parametrize(
    "stored",
    [
        {"number": 2, "kind": "trial", "actor_id": None, "created_at": 1, "data": {}},
        {"number": 2, "kind": "comment", "actor_id": None, "created_at": 1, "data": {"id": [1], "text": "x"}},
        {"number": 2, "kind": "comment", "actor_id": None, "created_at": 1, "data": {"id": "1", "text": "x", "on": 3}},
        {
            "number": 2,
            "kind": "review",
            "actor_id": ["x"],
            "created_at": 1,
            "data": {"verdict": "approve", "commit": "x"},
        },
        "[" * 100_000,
    ],
)
def test_event_without_its_members_is_damage(root, stored):
    proposal = propose(root)
    text = stored if isinstance(stored, str) else json.dumps(stored)
    (root / f"__proposals/{proposal.id}/000002.json").write_text(text)
    graph = og.open(root)
    with pytest.raises(Damaged):
        graph.proposal(proposal.id)
    (problem,) = graph.verify()
    assert proposal.id in str(problem)


def test_verification_reports_a_removed_event(root):
    proposal = propose(root)
    og.open(root, actor="bo").proposal(proposal.id).request_changes("no")
    proposal.comment("but why")
    (root / f"__proposals/{proposal.id}/000003.json").unlink()
    (problem,) = og.open(root).verify()
    assert "000003.json' is missing" in str(problem)


def test_time_limit_also_applies_to_checks(root):
    graph = og.open(root)
    pairs = " ".join(f"${name}: Person" for name in "abcd")
    graph.store_query(f"query many() @check(some, required) {{ match {{ {pairs} }} return {{ $a.name as name }} }}")
    graph.merge("main", into="feature")
    with pytest.raises(QueryTimeout, match="the proposal took longer"):
        propose(root, timeout=0.2)
    (info,) = graph.proposals()
    assert [(check.name, check.state) for check in info.checks] == [("trial-merge", "pass"), ("many", "pending")]
    with pytest.raises(QueryTimeout, match="the landing took longer"):
        graph.proposal(info.id).land(timeout=0.05)
    assert graph.proposal(info.id).state == "checking", "the end of an operation is no result of a check"


def test_refused_landing_tells_nothing_of_hidden_rows(root, tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    whole = og.open(root, actor="olga")
    whole.store_query(NO_BETA)
    hidden = [{"type": "Person", "data": {"name": f"b{number}", "tenant": "beta"}} for number in range(7)]
    whole.load(hidden, mode="append", branch="feature")
    opened = {name: og.open(root, policy=tmp_path / "policy.yaml", actor=name) for name in ("olga", "bo")}
    proposal = opened["olga"].propose("feature", title="x")
    with pytest.raises(ProposalBlocked, match="7 rows"):
        proposal.land()
    limited = opened["bo"].proposal(proposal.id)
    with pytest.raises(ProposalBlocked) as refused:
        limited.land()
    assert "a required check failed" in str(refused.value)
    assert "7 rows" not in str(refused.value)
    assert not any("7 rows" in reason for reason in refused.value.reasons)


@pytest.mark.parametrize("ticket", ["", "{", "[]"])
def test_damaged_ticket_delays_no_landing(root, ticket):
    proposal = propose(root)
    path = root / queue_folder("main") / "00000000000000000000000000.json"
    path.parent.mkdir(parents=True)
    path.write_text(ticket)
    proposal.land(timeout=60)
    assert not path.exists()
