"""Proposals: trial, checks, review, landing and the log."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BranchNotFound,
    Conflict,
    InputError,
    KeyReused,
    NotFound,
    PageCursorRejected,
    PreconditionFailed,
    ProposalBlocked,
    ProposalNotFound,
)
from omnigraph.graph_proposals import Proposal
from omnigraph.operations.proposals.proposals import logs_of
from omnigraph.storage.failpoints import FailpointError, arm

SCHEMA = "node Person { name: String @key  age: I64?  town: String? }\nedge Knows: Person -> Person"
MINORS = """query minors() @check(empty, required) {
    match { $p: Person $p.age < 18 } return { $p.name as name } }"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    people = [("ana", 30), ("bo", 42), ("cleo", 50)]
    graph.load([{"type": "Person", "data": {"name": name, "age": age}} for name, age in people], mode="append")
    graph.branch_create("feature", actor="ana")
    graph.mutate('insert Person { name: "dan", age: 20 }', branch="feature", actor="ana")
    return tmp_path / "g.omni"


def as_(root: Path, actor: str) -> og.Graph:
    return og.open(root, actor=actor)


def propose(root: Path, **more: object) -> Proposal:
    return as_(root, "ana").propose("feature", title="Add Dan", **more)  # type: ignore[arg-type]


def names(graph: og.Graph, branch: str = "main") -> list[str]:
    found = graph.query("match { $p: Person } return { $p.name as name } order { $p.name }", branch=branch)
    return [row["name"] for row in found.to_pylist()]


def kinds(proposal: Proposal) -> list[str]:
    return [event.kind for event in proposal.events()]


def test_propose_review_and_land(root):
    proposal = propose(root, body="He moved here.", labels=["people", "people"], reviewers=["bo"])
    assert (proposal.state, proposal.blocked_by, proposal.author) == ("ready", (), "ana")
    assert (proposal.labels, proposal.reviewers, proposal.body) == (("people",), ("bo",), "He moved here.")
    assert proposal.trial is not None
    assert proposal.trial.tables == {"node:Person": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert [(change.op, change.id) for change in proposal.diff()] == [("insert", "dan")]
    graph = as_(root, "bo")
    assert graph.branches() == ["main", "feature"], "the trial is hidden"
    assert names(graph) == ["ana", "bo", "cleo"]
    reviewed = graph.proposal(proposal.id).approve("fine")
    assert [(one.actor, one.verdict, one.counts) for one in reviewed.reviews] == [("bo", "approve", True)]
    before, source = graph.head().commit_id, graph.head("feature").commit_id
    commit = reviewed.land()
    assert names(graph) == ["ana", "bo", "cleo", "dan"]
    assert (commit.parents, commit.actor, commit.message) == ((before, source), "bo", "Add Dan")
    assert commit.metadata == {"proposal": proposal.id, "approvers": ["bo"]}
    assert (reviewed.state, reviewed.landed) == ("landed", commit.id)
    assert reviewed.land().id == commit.id, "a repetition returns the commit"
    assert kinds(proposal) == ["opened", "trial", "review", "queued", "landed"]
    assert [(change.op, change.id) for change in proposal.diff()] == [("insert", "dan")]
    assert graph._repository.state().head_names() == ["main", "feature"], "the trial is gone"
    assert og.open(root).verify() == []


def test_what_was_checked_is_what_lands(root):
    proposal = propose(root)
    repository = as_(root, "bo")._repository
    tried = repository.state().get_head(f"__proposal/{proposal.id}")
    commit = as_(root, "bo").proposal(proposal.id).land()
    pinned = repository.find_commit(commit.id)
    assert pinned is not None
    assert pinned[1] == tried.pins
    assert (commit.schema_hash, commit.queries_hash) == (tried.schema_hash, tried.queries_hash)


def test_pages_of_a_diff_end_with_the_trial(root):
    """A cursor continues while the trial is the same, also if the target moves; then the first page is read again."""
    graph = as_(root, "ana")
    graph.load([{"type": "Person", "data": {"name": name}} for name in ("eve", "fay")], mode="append", branch="feature")
    proposal = propose(root)

    def pages_after(cursor: str | None) -> list[str]:
        return [change.id for change in proposal.diff(limit=9, after=cursor)]

    first = proposal.diff(limit=1)
    assert pages_after(first.next) == ["eve", "fay"]
    graph.mutate('insert Person { name: "gus" }')
    graph.mutate('insert Person { name: "hal" }', branch="feature")
    assert pages_after(first.next) == ["eve", "fay"]
    proposal.check()
    with pytest.raises(PageCursorRejected, match=f"the commits of proposal {proposal.id} have changed"):
        pages_after(first.next)
    second = proposal.diff(limit=1)
    assert pages_after(second.next) == ["eve", "fay", "hal"]
    proposal.land()
    with pytest.raises(PageCursorRejected):
        pages_after(second.next)
    assert pages_after(proposal.diff(limit=1).next) == ["eve", "fay", "hal"]


def test_lists(root):
    graph = as_(root, "ana")
    graph.branch_create("other")
    graph.mutate('insert Person { name: "eva" }', branch="other")
    first = propose(root, labels=["a"])
    second = graph.propose("other", title="Add Eva", reviewers=["bo"], draft=True)
    assert [(one.id, one.state) for one in graph.proposals()] == [(second.id, "draft"), (first.id, "ready")]
    assert [one.id for one in graph.proposals(label="a")] == [first.id]
    assert [one.id for one in graph.proposals(reviewer="bo")] == [second.id]
    assert [one.id for one in graph.proposals(author="bo")] == []
    assert [one.id for one in graph.proposals(target="other")] == []
    assert [one.id for one in graph.proposals("draft")] == [second.id]
    first.land()
    second.close("not now")
    assert graph.proposals() == []
    assert [(one.id, one.state) for one in graph.proposals("all")] == [(second.id, "closed"), (first.id, "landed")]
    assert [one.id for one in graph.proposals("all", limit=1)] == [second.id]
    assert [one.id for one in graph.proposals("all", after=second.id)] == [first.id]
    assert [one.closed_why for one in graph.proposals("closed")] == ["not now"]
    assert second.reopen().state == "draft"
    assert [one.id for one in og.open(root).proposals()] == [second.id]


@pytest.mark.parametrize(
    ("expect", "name", "state"),
    [
        ("empty", "old", "fail"),
        ("some", "old", "pass"),
        ("at_most 1", "old", "pass"),
        ("at_most 0", "old", "fail"),
        ("unchanged", "old", "pass"),
        ("unchanged", "young", "fail"),
        ("no_more_than_before", "old", "pass"),
        ("no_more_than_before", "young", "fail"),
    ],
)
def test_expectations(root, expect, name, state):
    graph = as_(root, "ana")
    condition = "$p.age > 42" if name == "old" else "$p.age < 25"
    graph.store_query(
        f"query {name}() @check({expect}) {{ match {{ $p: Person {condition} }} return {{ $p.name as name }} }}"
    )
    found = {check.name: check for check in propose(root).checks()}
    assert found[name].state == state
    assert found[name].required is False


def test_failing_check_blocks_until_the_source_is_repaired(root):
    graph = as_(root, "ana")
    graph.store_query(MINORS)
    graph.mutate('update Person set { age: 12 } where name = "dan"', branch="feature")
    proposal = propose(root)
    assert proposal.state == "blocked"
    assert [one.code for one in proposal.blocked_by] == ["check_failed"]
    rows = proposal.check_rows("minors")
    assert (rows.rows, rows.node_types) == (({"name": "dan"},), {})
    with pytest.raises(ProposalBlocked, match=r"'minors' failed: 1 row, expected none"):
        proposal.land()
    assert names(graph) == ["ana", "bo", "cleo"]
    graph.mutate('update Person set { age: 19 } where name = "dan"', branch="feature")
    assert proposal.refresh().state == "checking"
    assert proposal.check().state == "ready"
    assert proposal.land().branch == "main"
    assert [kind for kind in kinds(proposal) if kind in ("updated", "check")] == ["check", "updated", "check"]


def test_a_proposal_cannot_change_the_check_that_it_must_pass(root):
    graph = as_(root, "ana")
    graph.store_query(MINORS)
    graph.branch_delete("feature", force=True)
    graph.branch_create("feature")
    graph.mutate('insert Person { name: "kid", age: 3 }', branch="feature")
    graph.store_query(MINORS.replace("< 18", "< 1"), branch="feature")
    assert [one.code for one in propose(root).blocked_by] == ["check_failed"]
    graph.delete_query("minors", branch="feature")
    assert [one.code for one in propose(root).blocked_by] == ["check_failed"]


def test_new_check_of_a_proposal_runs(root):
    graph = as_(root, "ana")
    graph.store_query(MINORS.replace("< 18", "< 21"), branch="feature")
    proposal = propose(root)
    assert [(check.name, check.state) for check in proposal.checks()] == [("trial-merge", "pass"), ("minors", "fail")]


def test_check_that_does_not_fit_the_merged_schema(root):
    graph = as_(root, "ana")
    graph.store_query(MINORS)
    graph.branch_delete("feature", force=True)
    graph.branch_create("feature")
    renamed = SCHEMA.replace("age: I64?", 'years: I64? @rename_from("age")')
    graph.apply_schema(renamed, branch="feature", allow_query_breakage=True)
    graph.store_query(MINORS.replace("$p.age", "$p.years"), branch="feature")
    proposal = propose(root)
    assert [(check.name, check.state) for check in proposal.checks()] == [("trial-merge", "pass"), ("minors", "pass")]
    assert proposal.trial is not None
    assert proposal.trial.schema_steps
    commit = proposal.land()
    assert "years" in graph.schema
    assert commit.schema_hash == graph.head().schema_hash
    assert (root / "_schema.pg").read_text() == graph.schema


def test_moved_target_is_tried_and_checked_again(root):
    graph = as_(root, "ana")
    graph.store_query(MINORS)
    proposal = propose(root)
    first = proposal.trial
    graph.mutate('insert Person { name: "eva", age: 33 }')
    assert proposal.refresh().state == "checking"
    commit = proposal.land()
    assert proposal.trial is not None
    assert first is not None
    assert proposal.trial.commit != first.commit
    assert names(graph) == ["ana", "bo", "cleo", "dan", "eva"]
    assert commit.parent_id == proposal.trial.base
    assert kinds(proposal).count("trial") == 2
    assert kinds(proposal).count("check") == 2


def test_moved_target_that_breaks_a_check_blocks(root):
    graph = as_(root, "ana")
    graph.store_query(MINORS)
    proposal = propose(root)
    assert proposal.state == "ready"
    graph.mutate('insert Person { name: "kid", age: 3 }')
    with pytest.raises(ProposalBlocked, match="minors"):
        proposal.land()
    assert names(graph) == ["ana", "bo", "cleo", "kid"]


def test_conflicts_and_their_resolution(root):
    graph = as_(root, "ana")
    graph.mutate('update Person set { age: 31 } where name = "ana"', branch="feature")
    graph.mutate('update Person set { age: 32 } where name = "ana"')
    proposal = propose(root)
    assert proposal.state == "blocked"
    assert [one.message for one in proposal.blocked_by] == ["the branches have 1 conflict"]
    assert [conflict.id for conflict in proposal.conflicts().conflicts] == ["node:Person:ana"]
    assert [(change.op, change.id) for change in proposal.diff()] == [("update", "ana"), ("insert", "dan")]
    with pytest.raises(ProposalBlocked, match="1 conflict"):
        proposal.land()
    assert proposal.resolve({"node:Person:ana": "theirs"}).state == "ready"
    graph.mutate('insert Person { name: "eva" }')
    proposal.land()
    assert graph.get("Person", "ana") == {"id": "ana", "name": "ana", "age": 31, "town": None}


def test_resolution_of_a_conflict_that_no_longer_exists_has_no_effect(root):
    graph = as_(root, "ana")
    proposal = propose(root).resolve({"node:Person:ana": "theirs"})
    assert proposal.state == "ready"
    proposal.land()
    assert names(graph) == ["ana", "bo", "cleo", "dan"]


def test_self_review_and_missing_actor(root):
    proposal = propose(root)
    with pytest.raises(Conflict, match="author") as error:
        proposal.approve()
    assert error.value.code == "self_review"
    with pytest.raises(InputError, match="actor"):
        og.open(root).proposal(proposal.id).approve()


def test_approval_is_void_when_the_source_moves(root):
    proposal = propose(root)
    reviewed = as_(root, "bo").proposal(proposal.id).approve()
    assert reviewed.approvals == ("bo",)
    head = reviewed.info.source_head
    as_(root, "ana").mutate('insert Person { name: "smuggled" }', branch="feature")
    assert reviewed.refresh().approvals == ()
    with pytest.raises(PreconditionFailed):
        reviewed.approve(commit=head)
    assert reviewed.approve(commit=reviewed.info.source_head).approvals == ("bo",)


def test_requested_changes_block_until_the_same_reviewer_says_otherwise(root):
    proposal = propose(root)
    mine, other = (as_(root, name).proposal(proposal.id) for name in ("bo", "cleo"))
    assert mine.request_changes("no").state == "blocked"
    other.approve()
    with pytest.raises(ProposalBlocked, match="'bo' requested changes"):
        other.land()
    assert mine.retract().state == "ready"
    assert [review.verdict for review in mine.reviews] == ["retract", "approve"]


def test_withdrawal_stops_a_landing_that_was_decided_before(root):
    """The landing read the log; then changes are requested; the publish must not succeed."""
    proposal = propose(root)
    reviewer = as_(root, "bo").proposal(proposal.id)
    with arm("land.before_publish", lambda: reviewer.request_changes("wait")), pytest.raises(ProposalBlocked):
        proposal.land()
    assert names(as_(root, "ana")) == ["ana", "bo", "cleo"]
    assert proposal.refresh().state == "blocked"


def test_close_stops_a_landing_that_was_decided_before(root):
    proposal = propose(root)
    other = as_(root, "bo").proposal(proposal.id)
    with arm("land.before_publish", lambda: other.close("no")), pytest.raises(Conflict, match="closed"):
        proposal.land()
    assert names(as_(root, "ana")) == ["ana", "bo", "cleo"]
    assert og.open(root)._repository.state().head_names() == ["main", "feature"]


def test_commit_on_the_source_during_a_landing_is_not_smuggled_in(root):
    graph = as_(root, "ana")
    graph.branch_create("keeper")
    proposal = propose(root)
    as_(root, "bo").proposal(proposal.id).approve()
    moved = []

    def smuggle() -> None:
        if not moved:
            moved.append(graph.mutate('insert Person { name: "smuggled" }', branch="feature"))

    with arm("land.before_publish", smuggle):
        commit = proposal.land()
    assert commit.metadata["approvers"] == [], "the approval is not one of the new head"
    assert commit.merged_parent_id == graph.head("feature").commit_id


def test_crash_between_publish_and_event(root):
    """The landing is a fact of the manifest: the next reader sees it, and the log is completed."""
    proposal = propose(root)
    with arm("land.after_publish"), pytest.raises(FailpointError):
        proposal.land()
    assert kinds(proposal)[-1] == "queued"
    other = og.open(root)
    assert other.proposals() == []
    found = other.proposals("landed")
    assert [one.id for one in found] == [proposal.id]
    assert other.proposal(proposal.id).land().id == found[0].landed
    assert [event.kind for event in other.proposal(proposal.id).events()][-1] == "landed"
    assert len(other.commits()) == 4
    with pytest.raises(Conflict, match="landed"):
        proposal.close()


def test_crash_between_trial_and_event(root):
    with arm("proposal.trial"), pytest.raises(FailpointError):
        propose(root)
    (found,) = og.open(root, actor="ana").proposals()
    assert found.state == "checking"
    proposal = as_(root, "ana").proposal(found.id).check()
    assert proposal.state == "ready"
    assert proposal.trial is not None
    assert proposal.trial.tables == {"node:Person": {"inserted": 1, "updated": 0, "deleted": 0}}
    commits = og.open(root)._repository.all_commits()
    assert sum(commit.branch.startswith("__proposal/") for commit in commits.values()) == 1, "it was not made again"


def test_crash_between_event_and_marker(root):
    with arm("proposal.event"), pytest.raises(FailpointError):
        propose(root)
    (found,) = og.open(root).proposals()
    proposal = as_(root, "ana").proposal(found.id)
    with arm("proposal.event"), pytest.raises(FailpointError):
        proposal.close()
    assert og.open(root).proposals() == []
    og.open(root).cleanup(keep=100, confirm=True)
    assert og.open(root)._repository.state().head_names() == ["main", "feature"]


def test_comments(root):
    proposal = propose(root)
    graph = as_(root, "bo")
    other = graph.proposal(proposal.id)
    on = {"table_key": "node:Person", "row_id": "dan", "property": "age"}
    first = other.comment("How old?", on=on)
    reply = proposal.comment("Twenty.", reply_to=first.id)
    general = other.comment("Thanks.", idempotency_key="k")
    assert other.comment("Thanks.", idempotency_key="k").id == general.id
    found = proposal.comments()
    assert [(one.actor, one.text, one.reply_to) for one in found.comments] == [
        ("bo", "How old?", None),
        ("ana", "Twenty.", first.id),
        ("bo", "Thanks.", None),
    ]
    assert found.comments[0].on is not None
    assert found.comments[0].on.to_json() == on
    assert other.edit_comment(first.id, "How old is he?", resolved=True).resolved
    assert proposal.comments().comments[0].text == "How old is he?"
    with pytest.raises(Exception, match="author of a comment"):
        proposal.edit_comment(first.id, "changed")
    with pytest.raises(NotFound, match="no row"):
        proposal.comment("?", on={"table_key": "node:Person", "row_id": "nobody"})
    with pytest.raises(NotFound, match="no row"):
        proposal.comment("?", on={"table_key": "node:Person", "row_id": "dan", "property": "salary"})
    with pytest.raises(NotFound, match="no comment"):
        proposal.comment("?", reply_to="x")
    with pytest.raises(InputError, match="a comment is on a row"):
        proposal.comment("?", on={"type": "Person"})
    with pytest.raises(InputError, match="has a text"):
        proposal.comment(" ")
    assert reply.reply_to == first.id


def test_external_check(root):
    proposal = propose(root)
    assert proposal.trial is not None
    commit = proposal.trial.commit
    assert commit is not None
    with pytest.raises(PreconditionFailed):
        proposal.report_check("ci/lint", "pass", commit="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(InputError, match="check state"):
        proposal.report_check("ci/lint", "green", commit=commit)
    with pytest.raises(InputError, match="graph itself"):
        proposal.report_check("trial-merge", "pass", commit=commit)
    proposal.report_check("ci/lint", "fail", commit=commit, details="3 warnings")
    found = proposal.checks()[-1]
    assert (found.name, found.state, found.required, found.details) == ("ci/lint", "fail", False, "3 warnings")


def test_edit_and_draft(root):
    proposal = propose(root, draft=True)
    assert (proposal.state, proposal.trial) == ("draft", None)
    with pytest.raises(ProposalBlocked, match="draft"):
        proposal.land()
    edited = proposal.edit(title="Add Dan to the graph", labels=["x"], draft=False)
    assert (edited.title, edited.labels, edited.state) == ("Add Dan to the graph", ("x",), "ready")
    with pytest.raises(InputError, match="nothing is changed"):
        proposal.edit()
    assert edited.edit(title="Add Dan to the graph").info.events == edited.info.events


def test_nothing_to_land_and_missing_branches(root):
    graph = as_(root, "ana")
    graph.merge("feature")
    proposal = propose(root)
    assert [one.code for one in proposal.blocked_by] == ["nothing_to_land"]
    with pytest.raises(InputError, match="one branch into another"):
        graph.propose("main", title="x")
    with pytest.raises(BranchNotFound):
        graph.propose("nowhere", title="x")
    with pytest.raises(InputError, match="internal"):
        graph.propose(f"__proposal/{proposal.id}", title="x")
    graph.branch_delete("feature")
    assert "no_branch" in [one.code for one in proposal.refresh().blocked_by]


def test_bad_arguments(root):
    graph = as_(root, "ana")
    for title in ("", " ", "two\nlines", "x" * 301, None):
        with pytest.raises(InputError):
            graph.propose("feature", title=title)  # type: ignore[arg-type]
    for wrong in ({"labels": "text"}, {"labels": [""]}, {"labels": ["x"] * 3 + [1]}, {"body": 3}):
        with pytest.raises(InputError):
            graph.propose("feature", title="x", **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="states are"):
        graph.proposals("done")
    with pytest.raises(InputError, match="limit"):
        graph.proposals(limit=0)
    for wrong_id in ("x", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "../../etc", 3):
        with pytest.raises(ProposalNotFound):
            graph.proposal(wrong_id)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="KiB"):
        propose(root).comment("x" * 70_000)


def test_repetition_with_a_key_opens_one_proposal(root):
    first = propose(root, idempotency_key="k")
    assert propose(root, idempotency_key="k").id == first.id
    with pytest.raises(KeyReused):
        as_(root, "ana").propose("feature", title="Another", idempotency_key="k")
    assert len(og.open(root).proposals()) == 1


def test_closed_and_reopened(root):
    proposal = propose(root)
    proposal.close("later")
    assert (proposal.state, proposal.info.closed_why) == ("closed", "later")
    assert proposal.close().info.events == proposal.info.events
    for change in (proposal.land, lambda: proposal.edit(title="x"), proposal.check):
        with pytest.raises(Conflict, match="closed"):
            change()
    assert proposal.reopen().state == "checking"
    assert proposal.check().state == "ready"
    proposal.land()
    with pytest.raises(Conflict, match="landed"):
        proposal.reopen()


def test_cleanup_keeps_the_trial_of_an_open_proposal(root):
    proposal = propose(root)
    graph = as_(root, "ana")
    for age in range(5):
        graph.mutate('update Person set { age: $age } where name = "bo"', {"age": age})
    og.open(root).cleanup(keep=1, confirm=True)
    assert [(change.op, change.id) for change in proposal.diff()] == [("insert", "dan")]
    assert og.open(root).verify(deep=True) == []
    proposal.land()
    assert og.open(root).verify(deep=True) == []


def test_verification_reports_a_damaged_log(root):
    proposal = propose(root)
    (root / f"__proposals/{proposal.id}/000002.json").write_text("{")
    (problem,) = og.open(root).verify()
    assert f"proposal {proposal.id}" in str(problem)
    with pytest.raises(Exception, match="not an event"):
        og.open(root).proposal(proposal.id)


def test_copied_graph_has_its_proposals(root, tmp_path):
    proposal = propose(root)
    shutil.copytree(root, tmp_path / "copy.omni")
    copy = og.open(tmp_path / "copy.omni", actor="bo").proposal(proposal.id)
    copy.approve().land()
    assert as_(root, "ana").proposal(proposal.id).state == "ready"


def test_concurrent_writers_of_one_log_each_get_a_number(root):
    proposal = propose(root)

    def say(number: int) -> str:
        return as_(root, f"actor{number % 4}").proposal(proposal.id).comment(f"text {number}").id

    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(say, range(12)))
    found = og.open(root).proposal(proposal.id)
    assert {one.id for one in found.comments().comments} == set(ids)
    numbers = [event.number for event in found.events()]
    assert numbers == list(range(1, 15))


def test_a_stale_marker_is_only_a_hint(root):
    proposal = propose(root)
    marker = root / "__proposals/open" / proposal.id
    old = marker.read_bytes()
    proposal.edit(title="Another title")
    marker.write_bytes(old)
    assert [one.title for one in og.open(root).proposals()] == ["Another title"]
    marker.write_bytes(b"{}")
    assert [one.title for one in og.open(root).proposals()] == ["Another title"]
    marker.with_name("01ARZ3NDEKTSV4RRFFQ69G5FAV").write_bytes(b"")
    assert len(og.open(root).proposals()) == 1, "a marker without a log is skipped"


def test_fold_reads_unknown_kinds(root):
    proposal = propose(root)
    repository = og.open(root)._repository
    record = logs_of(repository).record(proposal.id)
    assert record is not None
    name = root / f"__proposals/{proposal.id}/{record.events + 1:06}.json"
    name.write_text(
        f'{{"number": {record.events + 1}, "kind": "later", "actor_id": null, "created_at": 1, "data": {{}}}}'
    )
    assert og.open(root).proposal(proposal.id).state == "ready"


def test_check_without_parameters_that_reads(root):
    graph = as_(root, "ana")
    with pytest.raises(InputError, match="takes no parameters") as error:
        graph.store_query("query q($age: I64) @check(empty) { match { $p: Person $p.age = $age } return { $p.name } }")
    assert error.value.code == "bad_check"
    with pytest.raises(InputError, match="is a read"):
        graph.store_query('query q() @check(empty) { delete Person where name = "bo" }')


def test_rows_of_a_check_name_the_types_of_their_nodes(root):
    graph = as_(root, "ana")
    graph.store_query("query all() @check(empty) { match { $p: Person } return { $p, $p.name as name } }")
    assert propose(root).check_rows("all").node_types == {"p": "Person"}
