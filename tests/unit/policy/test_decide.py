from __future__ import annotations

import threading

import pytest

from omnigraph.errors import Denied, InputError, OmniGraphError
from omnigraph.policy import Policy, parse_rules
from omnigraph.policy.rules import GRAPH_ACTIONS, SCOPES
from support.policies import EXAMPLE, evaluate


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy(parse_rules(EXAMPLE))


def policy_of(*rules: str, protected: str = "[main]", groups: str = "{ g: [ana] }") -> Policy:
    lines = "".join(f"  - {rule}\n" for rule in rules)
    text = f"version: 1\ngroups: {groups}\nprotected_branches: {protected}\nrules:\n{lines}"
    return Policy(parse_rules(text))


@pytest.mark.parametrize(
    ("actor", "action", "branch", "target", "rule"),
    [
        ("act-visitor", "read", "main", None, "everyone-reads"),
        ("act-visitor", "export", "main", None, None),
        ("act-maren", "change", "main", None, None),
        ("act-maren", "change", "intake/x", None, "curators-edit-drafts"),
        ("act-maren", "branch_merge", "intake/x", "main", None),
        ("act-idris", "branch_merge", "intake/x", "main", "registrar-publishes"),
        ("act-idris", "branch_merge", "intake/x", "scratch", None),
        ("act-idris", "read", None, None, "curators-read"),
        ("act-nobody", "read", "main", None, None),
    ],
)
def test_decision_table_of_the_specification(policy, actor, action, branch, target, rule):
    decision = policy.decide(actor, action, branch, target)
    assert (decision.allowed, decision.matched_rule) == (rule is not None, rule)


@pytest.mark.parametrize(
    ("action", "scope"),
    [(action, scope) for action, key in GRAPH_ACTIONS.items() for scope in (None, *(SCOPES if key else ()))],
)
@pytest.mark.parametrize("name", [None, "main", "draft"])
def test_every_action_scope_and_branch(action, scope, name):
    key = GRAPH_ACTIONS[action]
    limit = f", {key}: {scope}" if scope else ""
    policy = policy_of(f"{{id: r, allow: {{actors: {{group: g}}, actions: [{action}]{limit}}}}}")
    branch, target = (name, None) if key == "branch_scope" else ("main", name)
    decision = policy.decide("ana", action, branch, target)
    holds = scope in (None, "any") or (name is not None and (name == "main") == (scope == "protected"))
    assert decision.allowed == (holds and action not in ("run_publish", "run_abort"))
    assert decision.matched_rules == evaluate(policy.rules, "ana", action, branch, target)
    for other in GRAPH_ACTIONS:
        assert other == action or not policy.decide("ana", other, branch, target).allowed


def test_empty_policy_denies_everything():
    policy = Policy(parse_rules("version: 1"))
    assert not any(policy.decide("ana", action, "main", "main").allowed for action in GRAPH_ACTIONS)


@pytest.mark.parametrize("actor", [None, "", " ", "g", "ana ", "ANA", 'ana" || true || "'])
def test_unknown_actors_are_denied(actor):
    policy = policy_of("{id: r, allow: {actors: {group: g}, actions: [read]}}")
    decision = policy.decide(actor, "read", "main")
    assert not decision.allowed
    assert decision.reasons == (
        ("no actor was given",) if actor is None else (f"actor '{actor}' is unknown to the policy: no group lists it",)
    )
    assert decision.reasons[0] in decision.message


def test_branch_names_are_trimmed_before_the_decision(policy):
    decision = policy.decide("act-maren", "change", " main ")
    assert (decision.allowed, decision.branch) == (False, "main")
    assert policy.decide("act-idris", "branch_merge", " x\t", "\nmain").target_branch == "main"


def test_protected_branches_are_trimmed():
    policy = policy_of(
        "{id: r, allow: {actors: {group: g}, actions: [change], branch_scope: unprotected}}", protected='[" main "]'
    )
    assert not policy.decide("ana", "change", "main").allowed


@pytest.mark.parametrize("name", ["", " ", "\t\n", "\ud800"])
def test_invalid_branch_names_are_rejected(policy, name):
    for branch, target in ((name, None), (None, name)):
        with pytest.raises(InputError) as caught:
            policy.decide("act-idris", "read", branch, target)
        assert caught.value.code == "bad_branch_name"


def test_unknown_action_is_rejected(policy):
    with pytest.raises(InputError, match="there is no action 'reed'") as caught:
        policy.decide("act-idris", "reed")
    assert (caught.value.code, caught.value.hint) == ("unknown_action", "did you mean 'read'?")


@pytest.mark.parametrize("request_", [(1, "read"), ("ana", None), ("ana", "read", 1), ("ana", "read", None, b"x")])
def test_values_of_wrong_types_are_rejected(policy, request_):
    with pytest.raises(InputError, match="must be a string"):
        policy.decide(*request_)


def test_matched_rule_is_the_smallest_id():
    rules = [
        f"{{id: {name}, allow: {{actors: {{group: g}}, actions: [read], branch_scope: {scope}}}}}"
        for name, scope in (("b", "any"), ("a", "protected"), ("B", "any"), ("0", "unprotected"))
    ]
    decision = policy_of(*(rule.replace("id: 0", 'id: "0"') for rule in rules)).decide("ana", "read", "main")
    assert (decision.matched_rule, decision.matched_rules) == ("B", ("B", "a", "b"))


def test_denial_names_action_branches_and_actor(policy):
    with pytest.raises(Denied) as caught:
        policy.check("act-maren", "branch_merge", "intake/x", "main")
    for word in ("branch_merge", "intake/x", "main", "act-maren"):
        assert f"'{word}'" in caught.value.message
    assert caught.value.reasons == (
        "no rule lists action 'branch_merge' for a group of actor 'act-maren' ('curators')",
    )
    assert policy.check("act-visitor", "read", "main").allowed


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (
            ("act-maren", "change", "main"),
            "rule 'curators-edit-drafts' allows 'change' on unprotected branches only; 'main' is protected",
        ),
        (
            ("act-maren", "change"),
            "rule 'curators-edit-drafts' allows 'change' on unprotected branches only; the request names no branch",
        ),
        (
            ("act-idris", "schema_apply", None, "x"),
            "rule 'registrar-publishes' allows 'schema_apply' on protected target branches only; 'x' is not protected",
        ),
        (("act-idris", "run_publish", None, "main"), "action 'run_publish' has no effect and is always denied"),
    ],
)
def test_reasons_of_a_denial(policy, request_, reason):
    assert policy.decide(*request_).reasons == (reason,)


def test_every_rule_is_considered(policy):
    decision = policy.decide("act-maren", "change", "main")
    assert [(found.rule, found.why) for found in policy.consider(decision)] == [
        ("everyone-reads", "actor_not_in_group"),
        ("curators-read", "action_not_listed"),
        ("curators-edit-drafts", "scope"),
        ("curators-open-drafts", "action_not_listed"),
        ("registrar-publishes", "actor_not_in_group"),
    ]
    decision = policy.decide("act-idris", "run_abort", None, "main")
    assert policy.consider(decision)[-1].why == "no_effect"
    decision = policy.decide("act-visitor", "read")
    found = policy.consider(decision)[0].to_json()
    line = next(at for at, text in enumerate(EXAMPLE.splitlines(), 1) if "everyone-reads" in text)
    assert found == {"rule": "everyone-reads", "matched": True, "why": "ok", "line": line}


def test_repeated_requests_return_the_cached_decision(policy):
    assert policy.decide("act-idris", "read", "main") is policy.decide("act-idris", "read", "main")


def test_cache_is_bounded():
    policy = Policy(parse_rules(EXAMPLE), cache_max=10)
    first = policy.decide("act-idris", "read", "b0")
    for index in range(25):
        assert policy.decide("act-idris", "read", f"b{index}").allowed
        assert policy.cached <= 10
    assert policy.decide("act-idris", "read", "b0") == first
    assert policy.decide("act-idris", "read", "b0") is not first


def test_errors_are_not_cached(policy):
    before = policy.cached
    for _ in range(2):
        with pytest.raises(InputError):
            policy.decide("act-idris", "read", " ")
    assert policy.cached == before


def test_threads_share_a_policy():
    policy = Policy(parse_rules(EXAMPLE), cache_max=8)
    wrong: list[object] = []

    def ask(seed: int) -> None:
        for index in range(200):
            branch = ("main", "published", "x", "y", "z")[(seed + index) % 5]
            if policy.decide("act-maren", "change", branch).allowed != (branch in "xyz"):
                wrong.append(branch)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_failed_evaluation_allows_nothing():
    policy = policy_of("{id: r, allow: {actors: {group: g}, actions: [read]}}")
    policy._cedar._resource = None
    for _ in range(2):
        with pytest.raises(OmniGraphError) as caught:
            policy.decide("ana", "read", "main")
        assert caught.value.code == "policy_failed"
        assert not isinstance(caught.value, Denied | InputError)


def test_graph_id_does_not_influence_decisions():
    for graph in ("g", "s3://bucket/a b", 'x"; permit(principal, action, resource);//'):
        policy = Policy(parse_rules(EXAMPLE), graph)
        assert policy.decide("act-visitor", "read", "main").allowed
        assert not policy.decide("act-visitor", "change", "main").allowed


def test_five_hundred_rules():
    groups = ", ".join(f"g{index}: [a{index}, a{index + 1}]" for index in range(500))
    rules = [
        f"{{id: r{index}, allow: {{actors: {{group: g{index}}}, actions: [read, change], "
        f"branch_scope: {('any', 'protected', 'unprotected')[index % 3]}}}}}"
        for index in range(500)
    ]
    policy = policy_of(*rules, groups=f"{{ {groups} }}")
    assert policy.cedar_text.count("permit(") == 1000
    for index in range(0, 501, 7):
        for action in ("read", "change", "export"):
            for branch in (None, "main", "x"):
                found = policy.decide(f"a{index}", action, branch).matched_rules
                assert found == evaluate(policy.rules, f"a{index}", action, branch, None)


def test_equal_rules_all_match():
    rules = [f"{{id: r{index}, allow: {{actors: {{group: g}}, actions: [read]}}}}" for index in range(500)]
    assert len(policy_of(*rules).decide("ana", "read").matched_rules) == 500
