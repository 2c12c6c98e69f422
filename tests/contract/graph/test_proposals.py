"""Proposals, their results and their errors are the same in every form of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from support.graph_variants import ACTOR, GUEST, Variants, failure, variants_of

POLICY = f"""version: 2
groups: {{team: [{ACTOR}, {GUEST}], strangers: [zoe]}}
proposals:
  main: {{ approvals: 1, required_checks: [ci] }}
rules:
  - id: team
    allow: {{actors: {{group: team}}, role: maintainer}}
"""
SCHEMA = "node Person { name: String @key  age: I64?  born: Date? }"
CHECK = "query minors() @check(empty) { match { $p: Person $p.age < 18 } return { $p.name as name, $p.born as born } }"


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Variants]:
    with variants_of(make_graph, tmp_path_factory.mktemp("proposals"), POLICY) as made:
        yield made


def make_graph(path: Path) -> None:
    graph = og.init(path, SCHEMA, actor="root", sync=False)
    graph.load([{"type": "Person", "data": {"name": "ana", "age": 31, "born": "2001-02-03"}}], mode="merge")
    graph.store_query(CHECK)
    for branch in ("feature", "clash", "idle"):
        graph.branch_create(branch, actor="root")
    graph.mutate('insert Person { name: "kid", age: 3, born: date("2020-01-01") }', branch="feature", actor="root")
    graph.mutate('update Person set { age: 1 } where name = "ana"', branch="clash", actor="root")
    graph.mutate('update Person set { age: 2 } where name = "ana"')


def shown(proposal: Any) -> Any:
    """What a handle of a proposal shows."""
    info = proposal.info
    return [
        [proposal.id, proposal.title, proposal.body, proposal.state, proposal.source, proposal.target],
        [proposal.author, proposal.labels, proposal.reviewers, proposal.approvals, proposal.landed],
        [(blocker.code, blocker.message) for blocker in proposal.blocked_by],
        [(review.actor, review.verdict, review.commit, review.counts, review.text) for review in proposal.reviews],
        [(check.name, check.state, check.required, check.details) for check in info.checks],
        [info.draft, info.comments, info.closed_by, info.closed_why, info.source_head, info.target_head],
        None if proposal.trial is None else [proposal.trial.outcome, proposal.trial.tables, proposal.trial.conflicts],
    ]


def opened(graph: Any) -> Any:
    proposal = graph.propose(
        "feature", title="Add a kid", body="text", labels=["a", "b"], reviewers=["guest"], idempotency_key="one"
    )
    again = graph.propose(
        "feature", title="Add a kid", body="text", labels=["a", "b"], reviewers=["guest"], idempotency_key="one"
    )
    changes = [(change.op, change.table_key, change.id, change.after) for change in proposal.diff()]
    page = proposal.diff(limit=1, ops=["insert"])
    return [
        shown(proposal),
        again.id == proposal.id,
        changes,
        [change.id for change in page],
        proposal.check_rows("minors"),
        [one.title for one in graph.proposals()],
        [event.kind for event in graph.proposal_events(proposal.id)],
        [(event.number, event.kind, event.actor) for event in proposal.events(after=1)],
    ]


def discussed(graph: Any) -> Any:
    (found,) = graph.proposals(label="a")
    proposal = graph.proposal(found.id)
    first = proposal.comment(
        "how old?", on={"table_key": "node:Person", "row_id": "kid", "property": "age"}, idempotency_key="c1"
    )
    again = proposal.comment(
        "how old?", on={"table_key": "node:Person", "row_id": "kid", "property": "age"}, idempotency_key="c1"
    )
    reply = proposal.comment("three", reply_to=first.id)
    edited = proposal.edit_comment(reply.id, "three years", resolved=True)
    comments = proposal.comments()
    return [
        again.id == first.id,
        (edited.text, edited.resolved, edited.reply_to == first.id),
        [(one.actor, one.text, one.on, one.resolved) for one in comments.comments],
        comments.hidden,
        shown(proposal.edit(title="Add one kid", labels=["a"])),
        failure(lambda: proposal.edit()),
        failure(lambda: proposal.comment("x", on={"table_key": "node:Person", "row_id": "nobody"})),
        failure(lambda: proposal.comment("x", reply_to="none")),
        failure(lambda: proposal.approve()),
        failure(lambda: proposal.land()),
        failure(lambda: graph.proposal("x")),
        failure(lambda: graph.proposals("done")),
        failure(lambda: graph.propose("none", title="x")),
        failure(lambda: graph.propose("feature", title="Other", idempotency_key="one")),
    ]


def reviewed(graph: Any) -> Any:
    (found,) = graph.proposals(label="a")
    proposal = graph.proposal(found.id)
    commit = proposal.trial.commit
    head = proposal.info.source_head
    return [
        shown(proposal.request_changes("no")),
        shown(proposal.retract()),
        shown(proposal.approve("yes", commit=head)),
        failure(lambda: proposal.approve(commit=commit)),
        shown(proposal.report_check("ci", "pass", commit=commit, details="green")),
        failure(lambda: proposal.report_check("ci", "pass", commit=head)),
        shown(proposal.check(again=True)),
        [(check.name, check.state) for check in proposal.checks()],
    ]


def landed(graph: Any) -> Any:
    (found,) = graph.proposals(label="a")
    proposal = graph.proposal(found.id)
    commit = proposal.land("with care")
    return [
        (commit.branch, commit.message, commit.kind, commit.metadata["proposal"] == proposal.id),
        commit.metadata["approvers"],
        shown(proposal),
        proposal.land().id == commit.id,
        [one.id == proposal.id for one in graph.proposals("landed")],
        graph.get("Person", "kid"),
        failure(proposal.close),
        [change.id for change in proposal.diff()],
    ]


def resolved(graph: Any) -> Any:
    proposal = graph.propose("clash", title="Clash", draft=True)
    ready = shown(proposal.edit(draft=False))
    conflicts = [(one.id, one.kind, one.ours, one.theirs) for one in proposal.conflicts().conflicts]
    return [
        ready,
        conflicts,
        shown(proposal.resolve({"node:Person:ana": "theirs"})),
        shown(proposal.close("enough")),
        shown(proposal.reopen()),
        shown(proposal.refresh()),
    ]


BODIES = [opened, discussed, reviewed, landed, resolved]


def test_life_of_a_proposal(variants: Variants) -> None:
    for body, actor in zip(BODIES, (ACTOR, ACTOR, GUEST, ACTOR, ACTOR), strict=True):
        variants.check(body, actor)
