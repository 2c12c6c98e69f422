"""Cedar agrees with the direct evaluation of the rules on generated policies and requests."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.operations.authorization.access import Access
from omnigraph.policy import Policy, parse_rules
from omnigraph.policy.load import parse_policy_text
from omnigraph.policy.rules import GRAPH_ACTIONS, SCOPES, STATEMENT_ACTIONS
from support.policies import evaluate
from support.statements import decide

NAMES = ["a", "b", 'c"\\', "é", "Omnigraph::Group", "x:read", "y\u2028\n"]
BRANCHES = ["main", "release/1", "draft", 'q"uote', "Main"]


@st.composite
def allows(draw: st.DrawFn, groups: list[str]) -> dict[str, object]:
    key = draw(st.sampled_from([None, "branch_scope", "target_branch_scope"]))
    usable = [action for action, needed in GRAPH_ACTIONS.items() if key is None or needed == key]
    allow: dict[str, object] = {
        "actors": {"group": draw(st.sampled_from(groups))},
        "actions": draw(st.lists(st.sampled_from(usable), min_size=1, max_size=4)),
    }
    if key is not None:
        allow[key] = draw(st.sampled_from(SCOPES))
    return allow


@st.composite
def documents(draw: st.DrawFn) -> dict[str, object]:
    members = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)
    groups = draw(st.dictionaries(st.sampled_from(NAMES), members, min_size=1, max_size=4))
    ids = draw(st.lists(st.sampled_from([*NAMES, "r1", "r2", "r3"]), unique=True, max_size=8))
    rules = [{"id": name, "allow": draw(allows(list(groups)))} for name in ids]
    protected = draw(st.lists(st.sampled_from(BRANCHES), max_size=3))
    return {"version": 1, "groups": groups, "protected_branches": protected, "rules": rules}


branches = st.none() | st.sampled_from([*BRANCHES, " main ", "draft\t"])
requests = st.tuples(st.sampled_from([*NAMES, "stranger"]), st.sampled_from(list(GRAPH_ACTIONS)), branches, branches)


@settings(max_examples=120)
@given(document=documents(), asked=st.lists(requests, min_size=1, max_size=25))
def test_cedar_agrees_with_direct_evaluation(document, asked):
    # JSON is YAML.
    policy = Policy(parse_rules(json.dumps(document)))
    for actor, action, branch, target in asked:
        decision = policy.decide(actor, action, branch, target)
        assert decision.matched_rules == evaluate(policy.rules, actor, action, branch, target)
        assert decision.allowed == bool(decision.matched_rules)
        assert bool(decision.reasons) != decision.allowed
        matched = [found.rule for found in policy.consider(decision) if found.why == "ok"]
        assert sorted(matched) == list(decision.matched_rules)


@settings(max_examples=80)
@given(
    document=documents(),
    asked=st.lists(
        st.tuples(requests, st.lists(st.sampled_from([*NAMES, "other"]), max_size=3)), min_size=1, max_size=10
    ),
)
def test_groups_of_a_token_act_like_groups_of_the_file(document, asked):
    policy = Policy(parse_rules(json.dumps(document)))
    for (actor, action, branch, target), groups in asked:
        listed = {name: [*actors, *([actor] if name in groups else [])] for name, actors in document["groups"].items()}
        rules = parse_rules(json.dumps({**document, "groups": listed}))
        decision = Access(policy, actor, groups=groups).decide(action, branch, target)
        assert decision.matched_rules == evaluate(rules, actor, action, branch, target)
        assert policy.decide(actor, action, branch, target).matched_rules == evaluate(
            policy.rules, actor, action, branch, target
        )


# -- version 2 ---------------------------------------------------------------------------------------

PATTERNS = ["main", "*", "**", "release/*", "release/**", "*/1", "*/1/**", "d*t"]


@st.composite
def bodies(draw: st.DrawFn, groups: list[str], *, deny: bool) -> dict[str, object]:
    body: dict[str, object] = {
        "actors": draw(st.sampled_from([{"any": True}, *({"group": group} for group in groups)])),
    }
    if draw(st.booleans()):
        body["except"] = {"group": draw(st.sampled_from(groups))}
    if not deny and draw(st.booleans()):
        return {**body, "role": draw(st.sampled_from(["viewer", "editor", "maintainer", "owner"]))}
    key = draw(st.sampled_from([None, "branches", "target_branches"]))
    family = {"branches": "branch_scope", "target_branches": "target_branch_scope"}
    usable = [action for action, needed in STATEMENT_ACTIONS.items() if key is None or needed == family[key]]
    body["actions"] = draw(st.lists(st.sampled_from(usable), min_size=1, max_size=4))
    if key is not None:
        patterns = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3)
        body[key] = draw(st.sampled_from(SCOPES) | patterns)
    return body


@st.composite
def statement_documents(draw: st.DrawFn) -> dict[str, object]:
    members = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)
    groups = draw(st.dictionaries(st.sampled_from(NAMES), members, min_size=1, max_size=4))
    rules = []
    for name in draw(st.lists(st.sampled_from([*NAMES, "r1", "r2", "r3"]), unique=True, max_size=8)):
        deny = draw(st.integers(0, 3)) == 0
        rules.append({"id": name, "deny" if deny else "allow": draw(bodies(list(groups), deny=deny))})
    protected = draw(st.lists(st.sampled_from(PATTERNS), max_size=3))
    return {"version": 2, "groups": groups, "protected_branches": protected, "rules": rules}


statement_branches = st.none() | st.sampled_from(["main", "release/1", "release/1/x", "draft", "a/1/b", 'q"uote'])
statement_requests = st.tuples(
    st.sampled_from([*NAMES, "stranger"]), st.sampled_from(list(STATEMENT_ACTIONS)), statement_branches,
    statement_branches,
)  # fmt: skip


@settings(max_examples=100)
@given(document=statement_documents(), asked=st.lists(statement_requests, min_size=1, max_size=25))
def test_version_2_agrees_with_direct_evaluation(document, asked):
    policy = Policy(parse_policy_text(json.dumps(document)))
    for actor, action, branch, target in asked:
        decision = policy.decide(actor, action, branch, target)
        allowed, rules = decide(document, actor, action, branch, target)
        assert decision.allowed == allowed
        assert {*decision.matched_rules, *decision.denied_by} == rules
        assert bool(decision.reasons) != decision.allowed
        considered = {one.rule: one.why for one in policy.consider(decision)}
        assert {rule for rule, why in considered.items() if why in ("ok", "denies")} == rules
