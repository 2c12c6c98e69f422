"""`Access`: defaults without a policy, groups and limits of tokens, recorded decisions."""

from __future__ import annotations

import pytest

from omnigraph.errors import Denied, InputError, OmniGraphError
from omnigraph.operations.authorization.access import DECISIONS_MAX, Access, Only
from omnigraph.policy import Policy, parse_rules
from omnigraph.policy.rules import ACTIONS
from support.policies import EXAMPLE


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy(parse_rules(EXAMPLE))


def denied(access: Access, *request: str | None) -> Denied:
    with pytest.raises(Denied) as caught:
        access.check(*request)
    return caught.value


@pytest.mark.parametrize("action", ACTIONS)
def test_without_a_policy_the_default_decides(action):
    assert Access(None, None, default="allow").check(action, "main", "main").allowed
    assert Access(None, "ana", default="read").decide(action, "main").allowed == (action == "read")
    assert not Access(None, "ana").decide(action, "main").allowed


def test_tokens_without_a_policy_name_the_key_that_allows_more():
    error = denied(Access(None, "ana", default="read"), "change", "main")
    assert error.message == (
        "action 'change' on branch 'main' is denied: tokens are configured, but no policy is; only 'read' is allowed"
    )
    assert "'policy.file'" in str(error.hint)


def test_the_policy_decides_whatever_the_default_is(policy):
    for default in ("allow", "read", "deny"):
        error = denied(Access(policy, "act-nobody", default=default), "read", "main")
        assert error.reasons == ("actor 'act-nobody' is unknown to the policy: no group lists it",)


def test_without_an_actor_everything_is_denied(policy):
    for action in ACTIONS:
        assert not Access(policy, None, groups=["curators"]).decide(action, "draft", "draft").allowed


def test_a_denial_carries_reasons_and_rules(policy):
    error = denied(Access(policy, "act-maren"), "change", "main")
    assert error.rules == ("curators-edit-drafts",)
    assert error.reasons == (
        "rule 'curators-edit-drafts' allows 'change' on unprotected branches only; 'main' is protected",
    )


def test_every_decision_is_recorded(policy):
    access = Access(policy, "act-maren")
    access.check("read", " main ")
    denied(access, "change", "main")
    assert access.decide("export", "main").allowed
    assert [(found.action, found.branch, found.allowed) for found in access.decisions] == [
        ("read", "main", True),
        ("change", "main", False),
    ]


def test_recorded_decisions_are_bounded(policy):
    access = Access(policy, "act-maren")
    for index in range(2 * DECISIONS_MAX):
        access.check("read", "main" if index % 2 else "draft")
    assert DECISIONS_MAX // 2 <= len(access.decisions) <= DECISIONS_MAX
    assert access.decisions[-1].branch == "main"


def test_a_group_of_the_token_is_added_to_those_of_the_policy(policy):
    assert Access(policy, "zoe", groups=["registrar"]).check("schema_apply", None, "main").allowed
    assert (
        Access(policy, "act-visitor", groups=["curators"]).check("change", "x").matched_rule == "curators-edit-drafts"
    )
    both = Access(policy, "act-maren", groups=["registrar", "curators"])
    assert both.check("branch_merge", "x", "main").matched_rule == "registrar-publishes"
    assert both.check("change", "x").matched_rule == "curators-edit-drafts"
    # Decisions with and without the group are cached apart.
    denied(Access(policy, "zoe"), "schema_apply", None, "main")
    denied(Access(policy, "act-maren"), "branch_merge", "x", "main")


def test_a_group_that_the_policy_does_not_define_grants_nothing(policy):
    assert "unknown to the policy" in denied(Access(policy, "zoe", groups=["staff"]), "read", "main").message


@pytest.mark.parametrize(
    ("only", "request_", "reason"),
    [
        (Only(actions=("read",)), ("export", "main"), "the token is limited to the action 'read'"),
        (Only(actions=("read", "export")), ("change", "x"), "the token is limited to the actions 'export', 'read'"),
        (Only(graphs=("kb",)), ("read", "main"), "the token is limited to the graph 'kb'"),
        (Only(graphs=()), ("read", "main"), "the token is limited to no graph"),
        (
            Only(branches=("main", "mcp/*")),
            ("read", "draft"),
            "the token is limited to the branches 'main', 'mcp/*', not 'draft'",
        ),
        (Only(branches=("mcp/*",)), ("branch_create", "main", "mcp/a"), "the token is limited to the branch 'mcp/*'"),
        (Only(branches=("mcp/*",)), ("branch_create", "mcp/a", "other"), "the token is limited to the branch 'mcp/*'"),
        (Only(branches=("main",)), ("read",), "the request names no branch"),
        (Only(branches=()), ("read", "main"), "the token is limited to no branch"),
    ],
)
def test_a_token_narrows_the_policy(policy, only, request_, reason):
    access = Access(policy, "act-idris", only=only, graph="other")
    assert Access(policy, "act-idris").check(*request_).allowed
    error = denied(access, *request_)
    assert reason in error.message
    assert access.decisions[-1].matched_rules == ()


def test_what_a_token_permits_passes(policy):
    only = Only(("read", "change"), ("kb",), ("main", "mcp/*"))
    access = Access(policy, "act-maren", only=only, graph="kb")
    assert access.check("read", "main").allowed
    assert access.check("change", "mcp/a/b").allowed
    assert "no rule allows" in denied(access, "change", "main").message


def test_a_limit_of_branches_does_not_concern_actions_without_a_scope():
    access = Access(None, "ana", default="allow", only=Only(branches=("main",)))
    assert access.check("invoke_query", name="people").name == "people"


def test_a_limit_narrows_the_mode_without_a_policy():
    access = Access(None, "ana", default="allow", only=Only(actions=("read",)))
    assert access.check("read").allowed
    assert "the token is limited" in denied(access, "change", "main").message


def test_no_call_can_name_another_actor(policy):
    access = Access(policy, "act-maren")
    access.check_actor(None)
    access.check_actor("act-maren")
    with pytest.raises(Denied, match="the caller is 'act-maren'"):
        access.check_actor("act-idris")
    with pytest.raises(Denied, match="the caller has no actor"):
        Access(policy, None).check_actor("act-idris")
    assert not access.decisions[-1].allowed


def test_a_failed_evaluation_is_no_decision():
    policy = Policy(parse_rules(EXAMPLE))
    policy._cedar._resource = None
    access = Access(policy, "act-maren")
    with pytest.raises(OmniGraphError) as caught:
        access.check("read", "main")
    assert caught.value.code == "policy_failed"
    assert not isinstance(caught.value, Denied | InputError)
    assert access.decisions == []


@pytest.mark.parametrize("branch", ["  ", 7, ["main"], "\ud800"])
def test_a_wrong_branch_name_is_no_denial(policy, branch):
    for access in (Access(policy, "act-maren"), Access(None, None, default="allow")):
        with pytest.raises(InputError):
            access.check("read", branch)


def test_an_action_that_is_allowed_on_some_branch_is_possible(policy):
    access = Access(policy, "act-maren")
    access.check_possible("change")
    assert access.decisions == []
    with pytest.raises(Denied):
        access.check_possible("schema_apply")
    assert [decision.allowed for decision in access.decisions] == [False]


def test_a_token_limits_what_is_possible_but_for_its_branches():
    access = Access(None, "ana", only=Only(actions=("read",), branches=("draft/*",)), default="allow")
    access.check_possible("read")
    with pytest.raises(Denied, match="limited to"):
        access.check_possible("change")
    with pytest.raises(Denied, match="limited to"):
        Access(None, "ana", only=Only(graphs=("a",)), default="allow", graph="b").check_possible("read")
