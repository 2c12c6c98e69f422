"""The rules of a policy as short texts, for `omnigraph policy show` and `omnigraph policy diff`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.policy.proposal_rules import ProposalRules
from omnigraph.policy.rules import PolicyRule, PolicyRules
from omnigraph.policy.statements import Grant, PolicyStatements, Statement, actions_of


def describe_rules(rules: PolicyRules | PolicyStatements) -> list[dict[str, Any]]:
    """Return every rule as `{rule, effect, actors, actions, limits}`; a rule with several grants once for each."""
    if isinstance(rules, PolicyRules):
        return [_version_1(rule) for rule in rules.rules]
    found = [_grant(rule, grant) for rule in rules.rules for grant in rule.grants]
    found += [_cedar(policy_id, policy) for policy_id, policy in rules.cedar_policies.items()]
    return [*found, *map(_proposals, rules.proposals)]


def _version_1(rule: PolicyRule) -> dict[str, Any]:
    scope = rule.scope
    limits = "" if scope is None or scope[1] == "any" else f"on {scope[1]} branches"
    return _rule(rule.id, "allow", f"group '{rule.group}'", rule.actions, limits)


def _grant(rule: Statement, grant: Grant) -> dict[str, Any]:
    actors = "everyone" if rule.group is None else f"group '{rule.group}'"
    if rule.except_group is not None:
        actors += f" except group '{rule.except_group}'"
    return _rule(rule.id, rule.effect, actors, grant.actions, ", ".join(_limits(rule, grant)))


def _limits(rule: Statement, grant: Grant) -> Iterator[str]:
    if not grant.branches.is_any:
        yield f"on {grant.branches.describe()}"
    if rule.types:
        yield f"of types {', '.join(rule.types)}"
    if rule.properties:
        yield f"of properties {', '.join(rule.properties)} (otherwise {rule.otherwise})"
    if rule.queries:
        yield f"of queries {', '.join(rule.queries)}"
    if grant.own_rights:
        yield "of queries without @definer"
    if rule.when is not None:
        yield f"when {' '.join(rule.when.split())}"
    if rule.row_check == "skip":
        yield "without a check of rows"


def _proposals(rules: ProposalRules) -> dict[str, Any]:
    return _rule(f"proposals.{rules.pattern}", "need", "proposals", ("proposal_land",), "; ".join(_needs(rules)))


def _needs(rules: ProposalRules) -> Iterator[str]:
    group = f" of group '{rules.from_group}'" if rules.from_group is not None else ""
    yield f"{rules.approvals} approvals{group}"
    for name, needed in (rules.for_types or {}).items():
        yield f"one of group '{needed}' for '{name}'"
    if rules.required_checks:
        yield f"the checks {', '.join(rules.required_checks)}"
    if rules.changes_max is not None:
        yield f"at most {rules.changes_max:,} changed rows"
    if not rules.not_author:
        yield "authors of commits may approve"
    if not rules.dismiss:
        yield "approvals stay valid when the source moves"


def _cedar(policy_id: str, policy: Mapping[str, Any]) -> dict[str, Any]:
    actions = actions_of(policy)
    effect = "allow" if policy["effect"] == "permit" else "deny"
    named = tuple(sorted(actions)) if actions is not None else ("every action",)
    return _rule(policy_id, effect, "Cedar policy", named, "")


def _rule(rule: str, effect: str, actors: str, actions: tuple[str, ...], limits: str) -> dict[str, Any]:
    return {"rule": rule, "effect": effect, "actors": actors, "actions": list(actions), "limits": limits}
