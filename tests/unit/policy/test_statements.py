"""Policies of version 2: files, decisions on branches, attributes, Cedar files."""

from __future__ import annotations

import json

import pytest

from omnigraph.errors import InputError, OmniGraphError, PolicyInvalid
from omnigraph.operations.authorization.access import Access, Only
from omnigraph.policy import Policy, load_policy, load_server_policy
from omnigraph.policy.advice import warnings_of
from omnigraph.policy.branch_patterns import example_branches, matches_branch
from omnigraph.policy.load import parse_policy_text
from omnigraph.policy.statements import PolicyStatements, QueryFacts, datetime_milliseconds
from support.statements import matches

TEAM = """\
version: 2
groups:      { staff: [ana, bo], bots: [importer], leads: [cleo], owners: [olga] }
attributes:  { declare: { level: Long, team: String }, ana: { level: 3 } }
protected_branches: [main, "release/*"]
rules:
  - id: staff-work
    allow: { actors: { group: staff }, role: editor }
  - id: bots-import
    allow: { actors: { group: bots }, actions: [change], branches: ["import/*"] }
  - id: leads-merge
    allow: { actors: { group: leads }, actions: [branch_merge], target_branches: [main, "team/**"] }
  - id: owners
    allow: { actors: { group: owners }, role: owner }
  - id: no-export
    deny: { actors: { any: true }, except: { group: owners }, actions: [export], branches: protected }
  - id: reports
    allow: { actors: { group: staff }, actions: [invoke_query], queries: ["report_*"] }
  - id: seniors-tag
    allow: { actors: { any: true }, actions: [tag_create], when: 'principal.level >= 3' }
"""


def policy_of(text: str = TEAM) -> Policy:
    return Policy(parse_policy_text(text))


def problems(text: str) -> list[str]:
    with pytest.raises(PolicyInvalid) as caught:
        policy_of(text)
    return [problem.describe() for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("actor", "action", "branch", "target", "rule"),
    [
        ("ana", "read", "main", None, "staff-work"),
        ("ana", "read", None, None, "staff-work"),
        ("ana", "change", "draft", None, "staff-work"),
        ("ana", "change", "main", None, None),
        ("ana", "change", "release/1", None, None),
        ("ana", "change", "release/1/fix", None, "staff-work"),
        ("ana", "branch_create", "main", "release/2", None),
        ("ana", "branch_create", "main", "draft", "staff-work"),
        ("ana", "branch_merge", "draft", "main", None),
        ("ana", "proposal_create", "draft", "main", "staff-work"),
        ("ana", "proposal_land", "draft", "main", None),
        ("ana", "tag_create", "main", None, "seniors-tag"),
        ("bo", "tag_create", "main", None, None),
        ("importer", "change", "import/a", None, "bots-import"),
        ("importer", "change", "import/a/b", None, None),
        ("importer", "read", "import/a", None, None),
        ("cleo", "branch_merge", "draft", "team/a/b", "leads-merge"),
        ("cleo", "branch_merge", "draft", "teams/a", None),
        ("olga", "schema_apply", None, "main", "owners"),
        ("olga", "export", "main", None, "owners"),
        ("olga", "query_define", None, None, "owners"),
        ("stranger", "read", "main", None, None),
    ],
)
def test_decisions(actor, action, branch, target, rule):
    decision = policy_of().decide(actor, action, branch, target)
    assert (decision.allowed, decision.matched_rule) == (rule is not None, rule)
    assert bool(decision.reasons) != decision.allowed


def test_a_denying_rule_wins_and_is_named():
    policy = policy_of()
    assert policy.decide("ana", "export", "draft").allowed
    decision = policy.decide("ana", "export", "main")
    assert (decision.allowed, decision.denied_by) == (False, ("no-export",))
    assert decision.message == "rule 'no-export' denies action 'export' on branch 'main' for actor 'ana'"
    considered = {one.rule: one.why for one in policy.consider(decision)}
    assert considered == {
        "staff-work": "scope",
        "bots-import": "actor_not_in_group",
        "leads-merge": "actor_not_in_group",
        "owners": "actor_not_in_group",
        "no-export": "denies",
        "reports": "action_not_listed",
        "seniors-tag": "action_not_listed",
    }


def test_reasons_name_patterns_and_conditions():
    policy = policy_of()
    assert policy.decide("importer", "change", "main").reasons == (
        "rule 'bots-import' allows 'change' on branches that match 'import/*' only; 'main' is not one of them",
    )
    assert policy.decide("bo", "tag_create", "main").reasons == (
        "rule 'seniors-tag' allows 'tag_create' under a condition that does not hold",
    )
    assert policy.decide("nobody", "change", "main").reasons == (
        "actor 'nobody' is unknown to the policy: no group lists it",
    )
    assert "no actor was given" in policy.decide(None, "read").message


def test_stored_queries_are_selected_by_name():
    policy = policy_of()
    assert policy.decide("ana", "invoke_query", name="report_daily").matched_rule == "reports"
    assert policy.decide("ana", "invoke_query", name="wipe").matched_rule == "staff-work"
    wipe = policy.decide("ana", "invoke_query", name="wipe", query=QueryFacts(definer=True))
    assert "rule 'staff-work' allows 'invoke_query' of queries without '@definer' only" in wipe.reasons
    assert not policy.decide("importer", "invoke_query", name="wipe").allowed
    assert not policy.decide("ana", "invoke_query").allowed
    access = Access(policy, "ana")
    assert access.check("invoke_query", name="report_daily").name == "report_daily"


def test_attributes_come_from_the_file_then_from_the_token():
    policy = policy_of()
    assert Access(policy, "bo", attributes={"level": 3}).decide("tag_create", "main").allowed
    assert not Access(policy, "bo", attributes={"level": 2}).decide("tag_create", "main").allowed
    # The file sets the level of ana; the token cannot change it.
    assert Access(policy, "ana", attributes={"level": 0}).decide("tag_create", "main").allowed
    assert not Access(policy, "bo", attributes={"undeclared": 3}).decide("tag_create", "main").allowed
    with pytest.raises(InputError, match="'level' of actor 'bo' must be a Long") as caught:
        Access(policy, "bo", attributes={"level": "3"}).decide("tag_create", "main")
    assert caught.value.code == "bad_attribute"


def test_groups_and_limits_of_a_token_apply():
    policy = policy_of()
    assert Access(policy, "eve", groups=["staff"]).decide("change", "draft").allowed
    limited = Access(policy, "ana", only=Only(actions=("proposal_create",)))
    assert not limited.decide("change", "draft").allowed
    assert limited.decide("proposal_create", "draft", "main").allowed


def test_check_possible_considers_other_branches():
    policy = policy_of()
    Access(policy, "importer").check_possible("change")
    with pytest.raises(OmniGraphError):
        Access(policy, "importer").check_possible("export")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rules: [{id: a}]", "rule 'a' has neither 'allow' nor 'deny'"),
        ("rules: [{id: a, allow: {actors: {any: true}, role: vewer}}]", "did you mean 'viewer'"),
        ("rules: [{id: a, deny: {actors: {any: true}, role: viewer}}]", "names actions, not a role"),
        ("rules: [{id: a, allow: {actors: {any: false}, actions: [read]}}]", "must be true"),
        ("rules: [{id: a, allow: {actors: {}, actions: [read]}}]", "exactly one of 'group' and 'any'"),
        ("rules: [{id: a, allow: {actors: {any: true}, actions: [read, row_read]}}]", "cannot be in one rule"),
        ("rules: [{id: a, allow: {actors: {any: true}, actions: [graph_list]}}]", "action of a server policy"),
        (
            "rules: [{id: a, allow: {actors: {any: true}, actions: [branch_merge], branches: any}}]",
            "branches does not apply to action 'branch_merge' ('branch_merge' takes 'target_branches'",
        ),
        ("rules: [{id: a, allow: {actors: {any: true}, actions: [read], branches: [any]}}]", "'any' is not a pattern"),
        ("rules: [{id: a, allow: {actors: {any: true}, actions: [read], branches: ['a***']}}]", "two asterisks"),
        ("rules: [{id: a, allow: {actors: {any: true}, actions: [read], branches: []}}]", "selects no branch"),
        ("rules: [{id: a, allow: {actors: {any: true}, actions: [read], types: [T]}}]", "'types' does not apply"),
        ("rules: [{id: a, allow: {actors: {any: true}, actions: [row_read]}}]", "types: is missing"),
        (
            "rules: [{id: a, allow: {actors: {any: true}, actions: [row_read], types: [T]}}]",
            "rows.default: is missing: the policy has rules for rows",
        ),
        ("rules: [{id: a, allow: {actors: {any: true}, actions: [read], when: 'true }; permit(principal'}}]", "when"),
        (
            "rules: [{id: a, allow: {actors: {any: true}, actions: [read], when: 'true} unless {false'}}]",
            "more than one",
        ),
        (
            "rules: [{id: a, allow: {actors: {any: true}, actions: [read], when: 'principal.nope'}}]",
            "has no attribute 'nope'",
        ),
        (
            "rules: [{id: a, allow: {actors: {any: true}, actions: [read], when: 'resource.tenant == 1'}}]",
            "'resource' alone",
        ),
        (
            "rules: [{id: a, deny: {actors: {any: true}, actions: [row_read], types: any, "
            "when: 'context.matches.contains(\"a/*\")'}}]\nrows: { default: allow }",
            "cannot read 'context.matches'",
        ),
        ("attributes: { declare: { level: Long }, ana: { level: high } }", "must be a Long (got 'high')"),
        ("attributes: { declare: { level: Lng } }", "did you mean 'Long'"),
        ("attributes: { declare: { id: String } }", "it cannot be declared"),
        ("attributes: { ana: { level: 3 } }", "attributes.declare"),
        ("attributes: { declare: {}, ana: { lab: x } }", "attributes.ana.lab: unknown key 'lab'"),
        ("rows: { default: hide }", "there is no default 'hide'"),
    ],
)
def test_problems(text, wanted):
    found = problems(f"version: 2\ngroups: {{ g: [ana] }}\n{text}\n")
    assert any(wanted in one for one in found), found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "rules: [{id: a, allow: {actors: {actor: ana}, actions: [read]}}]",
            "line 3, rules[0].allow.actors.actor: unknown key 'actor' (the keys are group, any)",
        ),
        (
            "attributes: { declare: { lab: Strng }, ana: { lab: x } }",
            "line 3, attributes.declare.lab: there is no type 'Strng' (did you mean 'String'?)",
        ),
    ],
)
def test_one_mistake_is_one_problem(text, wanted):
    assert problems(f"version: 2\ngroups: {{ g: [ana] }}\n{text}\n") == [wanted]


def test_a_condition_cannot_leave_its_place():
    text = (
        "version: 2\nrules:\n  - id: a\n    allow:\n      actors: { any: true }\n      actions: [read]\n"
        "      when: 'false }; permit(principal, action, resource) when { true'\n"
    )
    assert "more than one condition" in problems(text)[0]


@pytest.mark.parametrize("name", ["x\\", 'a"b', "a*b", "é\u2028", "Omnigraph::Group"])
def test_names_are_values(name):
    document = {
        "version": 2,
        "groups": {name: [name]},
        "rules": [
            {"id": name, "allow": {"actors": {"group": name}, "actions": ["read"], "branches": [name]}},
        ],
    }
    policy = policy_of(json.dumps(document))
    assert policy.decide(name, "read", name.replace("*", "-")).matched_rules == (name,)
    assert not policy.decide(name, "read", "other").allowed


@pytest.mark.parametrize("pattern", ["*", "**", "a/*", "a/**", "*/b", "**/b", "*/b/**", "a*c", "a**c", "*b/**", "main"])
@pytest.mark.parametrize("name", ["a", "main", "a/b", "a/b/c", "b", "x/b", "x/y/b", "x/b/y", "a/c", "ac", "", "axb/c"])
def test_patterns(pattern, name):
    assert matches_branch(pattern, name) == matches(pattern, name)


@pytest.mark.parametrize("pattern", ["*", "**", "a/*", "a/**", "*/b/**", "main"])
def test_examples_of_patterns_match(pattern):
    assert all(matches_branch(pattern, name) for name in example_branches(pattern))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1970-01-01", 0),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T00:00:00.005Z", 5),
        ("1970-01-01T01:00:00+0100", 0),
        ("1969-12-31T23:00:00.001-0100", 1),
        ("1970-13-01", None),
        ("1970-01-01T24:00:00Z", None),
        ("1970-01-01 00:00:00", None),
        ("now", None),
    ],
)
def test_datetimes(text, value):
    assert datetime_milliseconds(text) == value


# -- Cedar files -------------------------------------------------------------------------------------

CEDAR = """\
@id("freeze")
forbid (principal, action == Omnigraph::Action::"change", resource is Omnigraph::Branch)
when { resource.name like "frozen*" };

permit (principal in Omnigraph::Group::"staff", action == Omnigraph::Action::"branch_merge",
        resource is Omnigraph::Branch)
when { context has source && !context.source.protected && resource.matches.contains("team/**") };
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "policy.yaml").write_text(TEAM)
    (tmp_path / "more.cedar").write_text(CEDAR)
    return tmp_path


@pytest.mark.parametrize("whole_folder", [True, False])
def test_cedar_files_are_part_of_the_policy(folder, whole_folder):
    policy = load_policy(folder if whole_folder else folder / "policy.yaml")
    assert policy.decide("ana", "change", "draft").allowed
    frozen = policy.decide("ana", "change", "frozen-1")
    assert (frozen.allowed, frozen.denied_by) == (False, ("freeze",))
    assert policy.decide("ana", "branch_merge", "draft", "team/a").matched_rules == ("more.cedar:2",)
    assert not policy.decide("ana", "branch_merge", "main", "team/a").allowed
    assert "the Cedar policy 'more.cedar:2' does not match" in policy.decide("ana", "branch_merge", "a", "b").reasons
    assert '@id("freeze")' in policy.cedar_text


def test_a_group_of_a_token_that_only_a_cedar_file_names_counts(folder):
    (folder / "more.cedar").write_text(
        'forbid (principal in Omnigraph::Group::"guests", action == Omnigraph::Action::"read", resource);'
    )
    policy = load_policy(folder)
    assert policy.decide("ana", "read", "main").allowed
    assert policy.decide("ana", "read", "main", groups=("guests",)).denied_by == ("more.cedar:1",)
    assert policy.decide("ana", "read", "main", groups=("others",)).allowed


def test_cedar_files_beside_version_1_are_refused_in_a_folder(tmp_path):
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    (tmp_path / "more.cedar").write_text(CEDAR)
    with pytest.raises(InputError, match="has no effect"):
        load_policy(tmp_path)
    assert load_policy(tmp_path / "policy.yaml").rules.rules == ()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("permit (", "more.cedar: is not Cedar"),
        (f"permit (principal, action, resource) when {{ {'(' * 100_000}", "more.cedar: is not Cedar: it is nested too"),
        ("permit (principal == ?principal, action, resource);", "templates are not supported"),
        ('@id("owners") permit (principal, action, resource);', "the id 'owners' is also that of a rule"),
        ('permit (principal, action == Omnigraph::Action::"raed", resource);', "Cedar rejects it"),
        (
            'forbid (principal, action == Omnigraph::Action::"read", resource is Omnigraph::Branch) '
            'when { resource.matches.containsAny(["a/*"]) };',
            "'matches' must be tested with 'contains' and a text",
        ),
        (
            'forbid (principal, action == Omnigraph::Action::"branch_merge", resource) '
            'when { context has source && context.source.matches == ["a/*"] };',
            "'matches' must be tested with 'contains' and a text",
        ),
        ('permit (principal, action == Omnigraph::Action::"read", resource) when { resource.owner };', "Cedar rejects"),
    ],
)
def test_problems_of_cedar_files(folder, text, wanted):
    (folder / "more.cedar").write_text(text)
    with pytest.raises(PolicyInvalid, match=wanted):
        load_policy(folder)


@pytest.mark.parametrize(
    ("cedar", "limits"),
    [
        ("permit (principal, action, resource);", False),
        ('permit (principal, action == Omnigraph::Action::"read", resource);', False),
        ("forbid (principal, action, resource) when { principal.level < 1 };", True),
        ("forbid (principal, action, resource is Omnigraph::Branch) when { principal has level };", False),
        ('permit (principal, action == Omnigraph::Action::"row_read", resource is Node::T);', True),
        ('forbid (principal, action, resource in Omnigraph::Interface::"I");', True),
        ('forbid (principal, action, resource in Omnigraph::Graph::"g");', False),
    ],
)
def test_policies_that_limit_rows_are_recognised(folder, cedar, limits):
    (folder / "more.cedar").write_text(cedar.replace("principal.level", "principal has level && principal.level"))
    text = TEAM + "rows: { default: allow }\n"
    (folder / "policy.yaml").write_text(text)
    policy = load_policy(folder)
    assert policy.has_row_rules == limits
    assert Access(policy, "ana").has_row_rules == limits


def test_server_policy(tmp_path):
    path = tmp_path / "server.yaml"
    path.write_text(
        "version: 2\ngroups: { ops: [ada], out: [bob] }\nrules:\n"
        "  - { id: all, allow: { actors: { any: true }, actions: [graph_list] } }\n"
        "  - { id: not-out, deny: { actors: { group: out }, actions: [graph_list] } }\n"
    )
    (tmp_path / "graph.cedar").write_text("not for the server")
    policy = load_server_policy(path)
    assert policy.decide("anyone", "graph_list").matched_rule == "all"
    assert policy.decide("bob", "graph_list").denied_by == ("not-out",)
    assert "in the graph policy" in policy.decide("ada", "read").message
    path.write_text("version: 2\nrules: [{id: a, allow: {actors: {any: true}, actions: [row_read]}}]\n")
    with pytest.raises(PolicyInvalid, match="action of a graph policy"):
        load_server_policy(path)


def test_warnings():
    text = TEAM.replace("owners: [olga]", "owners: [olga], idle: [zoe]")
    text += "  - { id: old, allow: { actors: { group: staff }, actions: [run_abort] } }\n"
    statements = parse_policy_text(text)
    assert isinstance(statements, PolicyStatements)
    assert warnings_of(statements) == [
        "no rule uses group 'idle'",
        "rule 'old': action 'run_abort' grants nothing; remove it",
    ]
