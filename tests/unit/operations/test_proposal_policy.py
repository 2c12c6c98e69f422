"""Proposals under a policy: rights, required approvals and checks, and rules for rows."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    Conflict,
    Denied,
    InputError,
    NotFound,
    PageCursorRejected,
    PolicyInvalid,
    ProposalBlocked,
    ProposalNotFound,
)
from omnigraph.graph_handle import context_of
from omnigraph.graph_proposals import Proposal
from omnigraph.operations.authorization.access import Access
from omnigraph.operations.exploration.graph_figures import proposal_states
from omnigraph.policy.decide import Policy, load_policy
from omnigraph.policy.load import parse_policy_text

SCHEMA = """
node Person { name: String @key  town: String?  salary: I64? }
node Contract { code: String @key  town: String? }
"""
POLICY = """
version: 2
groups: { staff: [ana, bo, cleo, dora, eve], curators: [bo, cleo], legal: [dora], leads: [cleo], outside: [zoe] }
protected_branches: [main]
proposals:
  main:
    approvals: 2
    from: { group: curators }
    for_types: { Contract: { group: legal } }
    required_checks: [no_minors, ci/review]
    changes_max: 3
  "**": { approvals: 1 }
rules:
  - id: staff-work
    allow: { actors: { group: staff }, role: editor }
  - id: leads-land
    allow: { actors: { group: leads }, role: maintainer }
"""


OTHERS = """  - id: no-private
    deny: { actors: { group: staff }, actions: [read], branches: [private] }
"""
OWNERS = """  - id: owners
    allow: { actors: { group: owners }, role: owner }
"""
CI = """  - id: ci
    allow: { actors: { group: ci }, actions: [read, proposal_check] }
"""


def policy_of(text: str) -> Policy:
    return Policy(parse_policy_text(text))


@pytest.fixture
def raw(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    graph.mutate('insert Person { name: "pia", town: "oslo" }')
    graph.store_query('query no_minors() @check(empty) { match { $p: Person $p.name = "minor" } return { $p.name } }')
    graph.branch_create("feature", actor="ana")
    graph.mutate('insert Person { name: "quinn", town: "oslo" }', branch="feature", actor="ana")
    return graph


def as_(raw: og.Graph, actor: str, policy: Policy | str = POLICY, **more: object) -> og.Graph:
    rules = policy_of(policy) if isinstance(policy, str) else policy
    return raw.with_access(Access(rules, actor, **more))  # type: ignore[arg-type]


def codes(proposal: Proposal) -> list[str]:
    return [one.code for one in proposal.blocked_by]


def test_two_curators_and_required_checks(raw):
    policy = policy_of(POLICY)
    proposal = as_(raw, "ana", policy).propose("feature", title="Add Quinn")
    assert codes(proposal) == ["check_pending", "approvals_missing"]
    assert proposal.state == "checking"
    assert proposal.trial is not None
    commit = proposal.trial.commit
    assert commit is not None
    as_(raw, "bo", policy).proposal(proposal.id).report_check("ci/review", "pass", commit=commit)
    assert codes(proposal.refresh()) == ["approvals_missing"]
    as_(raw, "eve", policy).proposal(proposal.id).approve()
    assert [one.message for one in proposal.refresh().blocked_by] == [
        "2 approvals of group 'curators' needed, 0 given"
    ], "an approval from outside the group does not count"
    as_(raw, "bo", policy).proposal(proposal.id).approve()
    lead = as_(raw, "cleo", policy).proposal(proposal.id)
    with pytest.raises(ProposalBlocked, match="2 approvals of group 'curators' needed, 1 given"):
        lead.land()
    assert lead.approve().state == "ready"
    with pytest.raises(Denied, match="proposal_land"):
        as_(raw, "bo", policy).proposal(proposal.id).land()
    commit_of = lead.land()
    assert commit_of.metadata["approvers"] == ["bo", "cleo"]


def test_a_merge_does_not_bypass_the_rules(raw):
    policy = policy_of(POLICY.replace("outside: [zoe]", "outside: [zoe], owners: [olga]") + OWNERS)
    lead = as_(raw, "cleo", policy)
    proposal = as_(raw, "ana", policy).propose("feature", title="Add Quinn")
    with pytest.raises(ProposalBlocked):
        lead.proposal(proposal.id).land()
    before = raw.head().commit_id
    with pytest.raises(Conflict, match="takes proposals only") as raised:
        lead.merge("feature")
    assert raised.value.code == "proposal_required"
    with pytest.raises(Denied, match="proposal_bypass"):
        lead.merge("feature", force=True)
    with pytest.raises(Conflict, match="takes proposals only"):
        as_(raw, "olga", policy).merge("feature")
    assert raw.head().commit_id == before
    assert as_(raw, "olga", policy).merge("feature", force=True).outcome == "fast_forward"


def test_open_proposals_are_counted_by_state(raw):
    policy = policy_of(POLICY)
    ana = as_(raw, "ana", policy)
    assert set(proposal_states(context_of(raw)).values()) == {0}
    ana.propose("feature", title="Add Quinn")
    ana.propose("feature", title="Later", draft=True)
    ana.propose("feature", title="No", draft=True).close()
    counts = {"draft": 1, "checking": 0, "blocked": 0, "ready": 0, "landing": 0}
    unseen = context_of(raw).with_access(Access(policy, None))
    assert proposal_states(unseen) == {**counts, "checking": 1}, "a check of the policy is pending"
    assert proposal_states(context_of(raw)) == {**counts, "ready": 1}


def test_rules_that_need_nothing_let_merges_in(raw):
    policy = POLICY[: POLICY.index("proposals:")] + 'proposals: { "**": { land_tries: 3 } }\n'
    policy += POLICY[POLICY.index("rules:") :]
    assert as_(raw, "cleo", policy).merge("feature").outcome == "fast_forward"


def test_a_right_to_report_checks_alone(raw):
    text = POLICY.replace("outside: [zoe]", "outside: [zoe], ci: [robot]") + CI
    proposal = as_(raw, "ana", text).propose("feature", title="Add Quinn")
    assert proposal.trial is not None
    commit = proposal.trial.commit
    assert commit is not None
    robot = as_(raw, "robot", text).proposal(proposal.id)
    robot.report_check("ci/review", "pass", commit=commit)
    assert {check.name: check.state for check in robot.checks()}["ci/review"] == "pass"
    with pytest.raises(Denied, match="proposal_approve"):
        robot.approve()
    with pytest.raises(Denied, match="proposal_check"):
        as_(raw, "robot", text.replace("read, proposal_check", "read")).proposal(proposal.id).report_check(
            "ci/review", "fail", commit=commit
        )


def test_changed_type_needs_its_group(raw):
    policy = policy_of(POLICY)
    raw.mutate('insert Contract { code: "c1" }', branch="feature", actor="ana")
    proposal = as_(raw, "ana", policy).propose("feature", title="Add a contract")
    assert "a change of 'Contract' needs an approval of group 'legal'" in [one.message for one in proposal.blocked_by]
    as_(raw, "dora", policy).proposal(proposal.id).approve()
    assert "a change of 'Contract' needs an approval of group 'legal'" in [
        one.message for one in proposal.refresh().blocked_by
    ], "it must also be one of the curators"


def test_too_many_changes(raw):
    for number in range(4):
        raw.mutate(f'insert Person {{ name: "p{number}" }}', branch="feature", actor="ana")
    proposal = as_(raw, "ana").propose("feature", title="Many")
    found = {check.name: check for check in proposal.checks()}
    assert (found["changes-max"].state, found["changes-max"].required) == ("fail", True)
    assert found["changes-max"].details == "5 changed rows, at most 3 are permitted"


def test_committers_and_authors_do_not_approve(raw):
    policy = policy_of(POLICY)
    raw.branch_create("side")
    raw.mutate('insert Person { name: "rae" }', branch="feature", actor="bo")
    proposal = as_(raw, "ana", policy).propose("feature", into="side", title="x")
    as_(raw, "bo", policy).proposal(proposal.id).approve()
    assert codes(proposal.refresh()) == ["approvals_missing"], "bo has a commit in the proposal"
    kept = policy_of(POLICY.replace('"**": { approvals: 1 }', '"**": { approvals: 1, not_author: false }'))
    assert as_(raw, "bo", kept).proposal(proposal.id).state == "ready"
    with pytest.raises(Exception, match="author"):
        as_(raw, "ana", kept).proposal(proposal.id).approve()


def test_approvals_of_an_older_head(raw):
    policy = policy_of(POLICY)
    raw.branch_create("side")
    proposal = as_(raw, "ana", policy).propose("feature", into="side", title="x")
    as_(raw, "eve", policy).proposal(proposal.id).approve()
    assert proposal.refresh().state == "ready"
    raw.mutate('insert Person { name: "smuggled" }', branch="feature", actor="ana")
    proposal.check()
    assert codes(proposal) == ["approvals_missing"]
    with pytest.raises(ProposalBlocked):
        as_(raw, "cleo", policy).proposal(proposal.id).land()
    kept = policy_of(POLICY.replace('"**": { approvals: 1 }', '"**": { approvals: 1, dismiss: false }'))
    assert as_(raw, "ana", kept).proposal(proposal.id).state == "ready"


def test_rights(raw):
    policy = policy_of(POLICY)
    with pytest.raises(Denied):
        as_(raw, "zoe", policy).propose("feature", title="x")
    proposal = as_(raw, "ana", policy).propose("feature", title="x")
    with pytest.raises(Denied):
        as_(raw, "zoe", policy).proposals()
    with pytest.raises(Denied):
        as_(raw, "zoe", policy).proposal(proposal.id)
    viewer = POLICY.replace("rules:", "rules:\n  - id: view\n    allow: { actors: { group: outside }, role: viewer }")
    seen = as_(raw, "zoe", viewer).proposal(proposal.id)
    changes = [
        lambda: seen.comment("x"),
        seen.approve,
        lambda: seen.edit(title="y"),
        seen.close,
        seen.land,
        seen.check,
        lambda: seen.resolve("ours"),
        lambda: seen.report_check("x", "pass", commit="x"),
    ]
    for change in changes:
        with pytest.raises(Denied):
            change()
    elsewhere = POLICY.replace(
        "rules:", "rules:\n  - id: v\n    allow: { actors: { group: outside }, actions: [read], branches: [feature] }"
    )
    with pytest.raises(ProposalNotFound):
        as_(raw, "zoe", elsewhere).proposal(proposal.id)


def test_trial_branches_cannot_be_read_directly(raw):
    owner = (
        "version: 2\ngroups: { owners: [ana] }\nrules: [{ id: o, allow: { actors: { group: owners }, role: owner } }]"
    )
    graph = as_(raw, "ana", owner)
    proposal = graph.propose("feature", title="x")
    assert proposal.trial is not None
    for point in (f"__proposal/{proposal.id}", proposal.trial.commit):
        with pytest.raises(NotFound):
            graph.snapshot(at=point)
    with pytest.raises(NotFound):
        graph.query("match { $p: Person } return { $p.name }", branch=f"__proposal/{proposal.id}")


def test_a_cursor_of_a_diff_is_no_authority(raw):
    """A cursor is not signed. It continues at the commits of the proposal, and names no others."""
    policy = policy_of(POLICY + OTHERS)
    raw.branch_create("private")
    raw.mutate('insert Person { name: "secret-canary" }', branch="private")
    raw.load([{"type": "Person", "data": {"name": name}} for name in ("rae", "sam")], mode="append", branch="feature")
    ana = as_(raw, "ana", policy)
    with pytest.raises(Denied):
        ana.diff("main", "private")
    proposal = ana.propose("feature", title="Three persons")
    page = proposal.diff(limit=1)
    assert [change.id for change in proposal.diff(limit=2, after=page.next)] == ["rae", "sam"]
    main, feature, private = (raw.snapshot(branch).commit_id for branch in ("main", "feature", "private"))
    trial = proposal.trial
    assert trial is not None
    assert page.commits == (main, trial.commit)
    root = raw.commits()[-1].id
    pairs = [(root, private), (main, private), (private, main), (main, feature), (trial.commit, main), (main, "x")]
    for before, after in pairs:
        with pytest.raises(PageCursorRejected, match="have changed since its first page"):
            proposal.diff(limit=9, after=forged(page.next, before, after))
    with pytest.raises(PageCursorRejected, match="have changed since its first page"):
        raw.proposal(proposal.id).diff(limit=9, after=forged(page.next, root, private))


def forged(cursor: str | None, before: str, after: str) -> str:
    """Return a cursor at other commits, as a caller can make it."""
    assert cursor is not None
    data = json.loads(base64.urlsafe_b64decode(cursor)[:-32]) | {"from": before, "to": after, "key": "node:Person"}
    text = json.dumps(data | {"id": "pia"}, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text + hashlib.sha256(text).digest()).decode()


def test_condition_on_a_proposal(raw, tmp_path):
    text = POLICY.replace(
        "rules:",
        """rules:
  - id: no-hot-approvals
    deny: { actors: { any: true }, actions: [proposal_approve], when: 'resource.labels.contains("frozen")' }
  - id: landers
    allow: { actors: { group: staff }, actions: [proposal_land, branch_merge], target_branches: [side] }""",
    )
    policy = policy_of(text)
    raw.branch_create("side")
    proposal = as_(raw, "ana", policy).propose("feature", into="side", title="x", labels=["frozen"])
    with pytest.raises(Denied, match="no-hot-approvals"):
        as_(raw, "bo", policy).proposal(proposal.id).approve()
    proposal.edit(labels=[])
    as_(raw, "bo", policy).proposal(proposal.id).approve()
    as_(raw, "eve", policy).proposal(proposal.id).land()
    (tmp_path / "p").mkdir()
    (tmp_path / "p/policy.yaml").write_text(POLICY)
    (tmp_path / "p/more.cedar").write_text(
        'forbid(principal, action == Omnigraph::Action::"proposal_comment", resource is Omnigraph::Proposal)\n'
        'when { resource.source == "feature" && resource.author == "ana" };'
    )
    with pytest.raises(Denied, match="more"):
        as_(raw, "bo", load_policy(tmp_path / "p")).proposal(proposal.id).comment("x")


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("main: { approvals: -1 }", "approvals: must be an integer from 0 to 100"),
        ("main: { approval: 1 }", "unknown key 'approval'"),
        ("main: { from: { group: nobody } }", "there is no group 'nobody'"),
        ("main: { from: {} }", "from.group: is missing"),
        ("main: { not_author: 3 }", "must be true or false"),
        ("main: { required_checks: x }", "must be a list"),
        ("main: { for_types: [x] }", "must be a map"),
        ("main: { changes_max: 0 }", "changes_max: must be an integer from 1"),
        ('"***": {}', "asterisks"),
    ],
)
def test_problems_of_the_section(section, problem):
    with pytest.raises(PolicyInvalid, match=problem):
        parse_policy_text(f"version: 2\ngroups: {{ staff: [ana] }}\nproposals: {{ {section} }}\nrules: []")


ROWS = """
version: 2
groups: { staff: [ana, bo], leads: [cleo] }
rows: { default: allow }
proposals: { main: { approvals: 0 } }
rules:
  - { id: all, allow: { actors: { group: staff }, role: maintainer } }
  - { id: lead, allow: { actors: { group: leads }, role: maintainer } }
  - id: writers
    allow: { actors: { group: staff }, actions: [row_read, row_insert, row_update, row_delete], types: [Person],
             when: 'resource.town == "oslo"' }
  - id: leaders
    allow: { actors: { group: leads }, actions: [row_read, row_insert, row_update, row_delete], types: [Person] }
  - id: pay
    allow: { actors: { group: leads }, actions: [property_read, property_write], types: [Person], properties: [salary] }
"""


def test_hidden_rows_appear_nowhere(raw):
    policy = policy_of(ROWS)
    raw.mutate(
        'insert Person { name: "hidden-canary", town: "bergen", salary: 777000777000777 }',
        branch="feature",
        actor="cleo",
    )
    raw.store_query(
        "query towns() @check(no_more_than_before) { match { $p: Person } return { $p.name as name, $p.town as town } }"
    )
    lead = as_(raw, "cleo", policy).propose("feature", title="Two persons")
    lead.comment("canary comment", on={"table_key": "node:Person", "row_id": "hidden-canary"})
    lead.comment("open comment", on={"table_key": "node:Person", "row_id": "quinn"})
    lead.comment("canary salary", on={"table_key": "node:Person", "row_id": "quinn", "property": "salary"})
    seen = as_(raw, "bo", policy).proposal(lead.id)
    assert [change.id for change in lead.diff()] == ["hidden-canary", "quinn"]
    assert [change.id for change in seen.diff()] == ["quinn"]
    assert [change.id for change in seen.diff(limit=10)] == ["quinn"]
    assert len(lead.comments().comments) == 3
    comments = seen.comments()
    assert [one.text for one in comments.comments] == ["open comment"]
    assert comments.hidden == 2
    assert lead.check_rows("towns").total == 3
    assert {row["name"] for row in seen.check_rows("towns").rows} == {"pia", "quinn"}
    assert seen.trial is not None
    assert seen.trial.tables == {}
    everything = repr((seen.to_json(), comments, [event.to_json() for event in seen.events()], seen.conflicts()))
    assert "canary" not in everything
    assert "777000777000777" not in everything
    assert [one.details for one in seen.checks()][1:] == [None] * (len(seen.checks()) - 1)
    with pytest.raises(NotFound):
        seen.comment("x", on={"table_key": "node:Person", "row_id": "hidden-canary"})
    with pytest.raises(NotFound):
        seen.comment("x", on={"table_key": "node:Person", "row_id": "quinn", "property": "salary"})


def test_limited_actors_store_no_checks(raw):
    probe = 'query probe() @check(empty) {{ match {{ $p: Person $p.town = "{}" }} return {{ $p.name }} }}'
    store = """  - { id: store, allow: { actors: { any: true }, actions: [query_store] } }
  - { id: main-change, allow: { actors: { any: true }, actions: [change] } }
"""
    # Everything is visible on other branches than main.
    head, _, _ = ROWS.partition("  - id: writers")
    main = "{ actors: { group: staff }, actions: [row_read], types: [Person], branches: [main] }"
    for rules in (ROWS + store, f"{head}{store}  - {{ id: main, deny: {main} }}\n"):
        limited = as_(raw, "ana", rules)
        for branch in ("main", "feature"):
            with pytest.raises(Denied) as caught:
                limited.store_query(probe.format("bergen"), branch=branch)
            assert caught.value.reasons == ("a check reads all rows, and rules limit the rows that you may see",)
        limited.store_query("query names() { match { $p: Person } return { $p.name } }", branch="feature")
        as_(raw, "cleo", rules).store_query(probe.format("oslo"), branch="feature")


def test_hidden_conflicts_are_counted(raw):
    policy = policy_of(ROWS)
    raw.mutate('insert Person { name: "hidden-canary", town: "bergen" }')
    raw.branch_create("other")
    raw.mutate('update Person set { town: "canary-a" } where name = "hidden-canary"', branch="other")
    raw.mutate('update Person set { town: "canary-b" } where name = "hidden-canary"')
    lead = as_(raw, "cleo", policy).propose("other", title="x")
    assert [one.id for one in lead.conflicts().conflicts] == ["node:Person:hidden-canary"]
    preview = as_(raw, "bo", policy).proposal(lead.id).conflicts()
    assert (preview.conflicts, preview.hidden_conflicts) == ([], 1)


def test_hidden_conflicts_cannot_be_named(raw):
    policy = policy_of(ROWS)
    raw.load([{"type": "Person", "data": {"name": name, "town": "bergen"}} for name in ("h1", "h2")], mode="append")
    raw.branch_create("other")
    for branch in ("other", "main"):
        raw.mutate(f'update Person set {{ town: "{branch}" }} where name in ["h1", "pia"]', branch=branch)
        raw.mutate(f'unify Person "h2" into "{"pia" if branch == "main" else "h1"}"', branch=branch)
    proposal = as_(raw, "bo", policy).propose("other", title="x")
    before = repr(proposal.to_json())
    for name in ("node:Person:h1", "node:Person:none", "alias:Person:h2", "alias:Person:none"):
        with pytest.raises(InputError, match=f"there is no conflict '{name}'"):
            proposal.resolve({name: "ours"})
        assert repr(as_(raw, "bo", policy).proposal(proposal.id).to_json()) == before
    lead = as_(raw, "cleo", policy).proposal(proposal.id)
    lead.resolve({"node:Person:h1": "ours", "alias:Person:h2": "ours"})


def test_rights_of_the_author_are_a_check(raw):
    policy = policy_of(ROWS)
    raw.mutate('insert Person { name: "rae", town: "bergen" }', branch="feature", actor="ana")
    proposal = as_(raw, "ana", policy).propose("feature", title="x")
    found = {check.name: check for check in as_(raw, "cleo", policy).proposal(proposal.id).checks()}
    assert (found["author-rights"].state, found["author-rights"].required) == ("fail", True)
    with pytest.raises(ProposalBlocked):
        as_(raw, "cleo", policy).proposal(proposal.id).land()
    own = as_(raw, "cleo", policy).propose("feature", title="x")
    assert {check.name: check.state for check in own.checks()}["author-rights"] == "pass"
    with pytest.raises(Denied):
        as_(raw, "ana", policy).proposal(own.id).land()
    own.land()


SKIP = """
version: 2
groups: { staff: [ana, bo], landers: [cleo], mergers: [dora] }
rows: { default: allow }
proposals: { main: { approvals: 0 } }
rules:
  - { id: work, allow: { actors: { any: true }, role: editor } }
  - id: merge
    allow: { actors: { any: true }, actions: [branch_merge, proposal_land], target_branches: any }
  - id: reviewed
    allow: { actors: { group: landers }, actions: [proposal_land], target_branches: [main], row_check: skip,
             when: 'resource.labels.contains("reviewed")' }
  - id: writers
    allow: { actors: { any: true }, actions: [row_read, row_insert, row_update, row_delete], types: [Person],
             when: 'resource.town == "oslo"' }
  - id: reader
    allow: { actors: { group: staff }, actions: [row_read, row_insert, row_update], types: [Person] }
"""


def test_row_check_skip_of_a_landing(raw):
    """A rule for `proposal_land` trusts the reviewed landing, with its own scope and condition; no other merge."""
    policy = policy_of(SKIP)
    raw.mutate('insert Person { name: "rae", town: "bergen" }', branch="feature", actor="ana")
    proposal = as_(raw, "ana", policy).propose("feature", title="Rae of Bergen")
    assert {check.name: check.state for check in proposal.checks()}["author-rights"] == "pass"
    lander = as_(raw, "cleo", policy)
    with pytest.raises(Denied, match="cannot read"):
        lander.proposal(proposal.id).land()
    proposal.edit(labels=["reviewed"])
    with pytest.raises(Denied, match="cannot read"):
        as_(raw, "dora", policy).proposal(proposal.id).land()
    with pytest.raises(Denied, match="cannot read"):
        lander.merge("feature")
    lander.proposal(proposal.id).land()
    assert raw.get("Person", "rae") is not None
    assert lander.get("Person", "rae") is None


def test_the_author_check_knows_row_check_skip(raw):
    policy = policy_of(SKIP)
    raw.mutate('insert Person { name: "rae", town: "bergen" }', branch="feature", actor="cleo")
    plain = as_(raw, "cleo", policy).propose("feature", title="Not reviewed")
    assert {check.name: check.state for check in plain.checks()}["author-rights"] == "fail"
    marked = as_(raw, "cleo", policy).propose("feature", title="Reviewed", labels=["reviewed"])
    assert {check.name: check.state for check in marked.checks()}["author-rights"] == "pass"


def test_a_schema_that_breaks_the_policy_is_a_failing_check(raw):
    policy = policy_of(ROWS)
    raw.apply_schema(
        SCHEMA.replace("town: String?  salary", 'city: String? @rename_from("town")  salary'), branch="feature"
    )
    proposal = as_(raw, "cleo", policy).propose("feature", title="Rename the town")
    check = next(one for one in proposal.checks() if one.name == "author-rights")
    assert (check.state, check.required) == ("fail", True)
    assert check.details is not None
    assert "'Person' has no property 'town'" in check.details
    assert proposal.state == "blocked"
    assert proposal.check(again=True).state == "blocked"
    with pytest.raises(ProposalBlocked, match="author-rights"):
        proposal.land()


def test_the_author_cannot_report_that_a_check_passes(raw):
    policy = policy_of(POLICY)
    proposal = as_(raw, "ana", policy).propose("feature", title="Add Quinn")
    assert proposal.trial is not None
    commit = proposal.trial.commit
    assert commit is not None
    with pytest.raises(Conflict, match="author"):
        proposal.report_check("ci/review", "pass", commit=commit)
    proposal.report_check("ci/review", "fail", commit=commit)


BY_BRANCH = """
version: 2
groups: { staff: [bo], leads: [cleo] }
rows: { default: allow }
proposals: { main: { approvals: 0 } }
rules:
  - { id: all, allow: { actors: { any: true }, role: maintainer } }
"""
HIDDEN = """  - id: hidden
    deny: { actors: { group: staff }, actions: [row_read], types: [Person], branches: [feature],
            when: 'resource has town && resource.town == "bergen"' }
"""
MASKED = """  - id: masked
    deny: { actors: { group: staff }, actions: [property_read], types: [Person], properties: [salary],
            branches: [feature], otherwise: mask }
"""
OTHER_ROWS = "the rules for rows of 'main' show other rows and values of 'feature'"


@pytest.mark.parametrize("rule", [HIDDEN, MASKED])
def test_rows_of_a_source_with_other_rules_are_not_shown(raw, rule):
    """The rules of the target do not show rows and values of the source that the rules of the source hide."""
    policy = policy_of(BY_BRANCH + rule)
    raw.mutate('insert Person { name: "canary", town: "bergen", salary: 777000777 }', branch="feature")
    raw.store_query("query people() @check(some) { match { $p: Person } return { $p.name, $p.salary } }")
    lead = as_(raw, "cleo", policy).propose("feature", title="Two persons")
    for row in ("canary", "quinn", "pia"):
        lead.comment(f"on {row}", on={"table_key": "node:Person", "row_id": row})
    proposal = as_(raw, "bo", policy).proposal(lead.id)

    cursor = lead.diff(limit=1).next
    for read in (
        lambda: proposal.diff(),
        lambda: proposal.diff(limit=1),
        lambda: proposal.diff(limit=1, after=cursor),
        lambda: proposal.check_rows("people"),
    ):
        with pytest.raises(Denied) as caught:
            read()
        assert caught.value.reasons == (OTHER_ROWS,)
    for row in ("canary", "quinn", "none"):
        with pytest.raises(Denied) as caught:
            proposal.comment("x", on={"table_key": "node:Person", "row_id": row})
        assert caught.value.message == f"a comment on a row of proposal {lead.id} is denied: {OTHER_ROWS}"
    for call in (proposal.conflicts, lambda: proposal.resolve({"node:Person:canary": "ours"})):
        with pytest.raises(Denied, match="the rules for rows of 'main' show other rows and values of its source"):
            call()
    # What the proposal is about, and the rows of the target, are readable.
    (listed,) = as_(raw, "bo", policy).proposals()
    assert (listed.id, listed.title, listed.source, listed.target) == (lead.id, "Two persons", "feature", "main")
    proposal.comment("on the target", on={"table_key": "node:Person", "row_id": "pia"})
    comments = proposal.comments()
    assert ([one.text for one in comments.comments], comments.hidden) == (["on pia", "on the target"], 2)
    for info in (listed, proposal.refresh().info):
        assert info.trial is not None
        assert info.trial.tables == {}
        assert {one.details for one in info.checks[1:]} == {None}
    shown = repr((listed.to_json(), proposal.to_json(), [event.to_json() for event in proposal.events()]))
    assert "canary" not in shown
    assert "inserted" not in shown
    # An actor to whom the rules show the same is not concerned.
    assert {change.id for change in lead.diff()} == {"canary", "quinn"}
    assert lead.check_rows("people").total == 3
    assert lead.refresh().trial is not None
    assert lead.trial.tables == {"node:Person": {"inserted": 2, "updated": 0, "deleted": 0}}
    raw.branch_delete("feature", force=True)
    with pytest.raises(Denied, match=OTHER_ROWS):
        proposal.diff()


def test_landed_rows_are_shown_by_the_rules_of_the_target(raw):
    policy = policy_of(BY_BRANCH + HIDDEN)
    raw.mutate('insert Person { name: "rae", town: "bergen" }', branch="feature")
    raw.store_query("query people() @check(some) { match { $p: Person } return { $p.name } }")
    lead = as_(raw, "cleo", policy).propose("feature", title="Two persons")
    lead.comment("on rae", on={"table_key": "node:Person", "row_id": "rae"})
    proposal = as_(raw, "bo", policy).proposal(lead.id)
    with pytest.raises(Denied, match="other rows and values"):
        proposal.land()
    assert proposal.comments().hidden == 1
    lead.land()
    assert {change.id for change in proposal.diff()} == {"quinn", "rae"}
    assert proposal.check_rows("people").total == 3
    assert proposal.comments().hidden == 0
    assert proposal.refresh().trial is not None
    assert proposal.trial.tables == {"node:Person": {"inserted": 2, "updated": 0, "deleted": 0}}


def test_row_check_skip_lands_a_source_with_other_rules(raw):
    """The rule trusts the landing. It shows no row."""
    trust = "  - { id: trust, allow: { actors: { group: staff }, actions: [proposal_land], row_check: skip } }\n"
    policy = policy_of(BY_BRANCH + HIDDEN + trust)
    raw.mutate('insert Person { name: "rae", town: "bergen" }', branch="feature")
    proposal = as_(raw, "bo", policy).propose("feature", title="Two persons")
    assert {check.name: check.state for check in proposal.checks()}["author-rights"] == "pass"
    with pytest.raises(Denied):
        proposal.diff()
    proposal.land()
    assert raw.get("Person", "rae") is not None


def test_sources_that_break_the_policy_are_compared_by_the_schema_of_the_target(raw):
    policy = policy_of(BY_BRANCH + HIDDEN)
    raw.apply_schema(
        SCHEMA.replace("town: String?  salary", 'city: String? @rename_from("town")  salary'), branch="feature"
    )
    lead = as_(raw, "cleo", policy).propose("feature", title="Rename the town")
    proposal = as_(raw, "bo", policy).proposal(lead.id)
    for one, details in ((lead, False), (proposal, True)):
        check = next(check for check in one.refresh().info.checks if check.name == "author-rights")
        assert (check.state, check.details is None) == ("fail", details)
    with pytest.raises(Denied) as caught:
        proposal.diff()
    assert caught.value.reasons == (OTHER_ROWS,)


def test_earlier_heads_of_a_source_are_compared_too(raw):
    """A type that the source had when the merge was tried counts, although it has the type no longer."""
    memo = "node Memo { code: String @key }\n"
    rule = (
        "  - { id: memo, deny: { actors: { group: staff }, actions: [row_read], types: [Memo], branches: [memos] } }\n"
    )
    raw.apply_schema(SCHEMA + memo)
    raw.branch_create("memos")
    raw.mutate('insert Memo { code: "m1" }', branch="memos")
    policy = policy_of(BY_BRANCH + rule)
    lead = as_(raw, "cleo", policy).propose("memos", title="A memo")
    proposal = as_(raw, "bo", policy).proposal(lead.id)
    raw.on("memos").apply_schema(SCHEMA, allow_data_loss=True)
    with pytest.raises(Denied, match="show other rows and values of 'memos'"):
        proposal.diff()
