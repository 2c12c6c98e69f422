"""Differences between two policies: their rules, and their decisions on every actor, action and kind of branch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.policy.branch_patterns import example_branches
from omnigraph.policy.decide import Policy
from omnigraph.policy.describe import describe_rules
from omnigraph.policy.row_conditions import condition_text
from omnigraph.policy.rules import (
    PROPERTY_ACTIONS,
    ROW_ACTIONS,
    SERVER_ACTIONS,
    STATEMENT_ACTIONS,
    WITHOUT_EFFECT,
    PolicyRules,
)

if TYPE_CHECKING:
    from omnigraph.policy.row_policies import RowPolicies

OTHER_ACTOR, OTHER_BRANCH = "any other actor", "any/other/branch"
"""Stand for the actors and branches that neither policy names."""


@dataclass(frozen=True)
class DecisionChange:
    """A request on which two policies decide differently."""

    actor: str
    action: str
    branch: str | None
    """The branch that the rules are compared with; None for a request without one."""
    allowed: bool
    """The decision of the new policy."""
    rule: str | None
    """The rule that decides now, or that allowed before."""

    def describe(self) -> str:
        """Return the change as one line."""
        where = f" on '{self.branch}'" if self.branch is not None else " without a branch"
        change = "deny -> allow" if self.allowed else "allow -> deny"
        rule = f" (rule '{self.rule}')" if self.rule is not None else ""
        return f"{self.actor}: {self.action}{where}: {change}{rule}"

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        new = "allow" if self.allowed else "deny"
        members = {"actor": self.actor, "action": self.action, "branch": self.branch, "decision": new}
        return {**members, "rule": self.rule}


@dataclass(frozen=True)
class RowChange:
    """A type or property of which an actor sees, or may change, other rows."""

    actor: str
    action: str
    place: str
    old: str
    new: str

    def describe(self) -> str:
        """Return the change as one line."""
        return f"{self.actor}: {self.action} of {self.place}: {self.old} -> {self.new}"

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        return {"actor": self.actor, "action": self.action, "of": self.place, "old": self.old, "new": self.new}


def rule_differences(old: Policy, new: Policy) -> dict[str, list[str]]:
    """Return the ids of the rules that were added, removed and changed."""
    before, after = _rules(old), _rules(new)
    return {
        "added": [rule for rule in after if rule not in before],
        "removed": [rule for rule in before if rule not in after],
        "changed": [rule for rule in after if rule in before and before[rule] != after[rule]],
    }


def decision_differences(old: Policy, new: Policy) -> Iterator[DecisionChange]:
    """Yield the requests on which two policies decide differently.

    Branches are represented by the names and examples of the patterns that a policy mentions, and by one other name;
    actors by those of the groups, and by one other actor.
    """
    actions = STATEMENT_ACTIONS if old.rules.kind == "graph" else SERVER_ACTIONS
    branches = _branches(old, new)
    for actor in _actors(old, new):
        for action, scope in actions.items():
            if action in WITHOUT_EFFECT:
                continue
            for branch in branches if scope is not None else [None]:
                target = branch if scope == "target_branch_scope" else None
                asked = (actor, action, branch if target is None else None, target)
                before, after = old.decide(*asked), new.decide(*asked)
                if before.allowed != after.allowed:
                    deciding = (*after.matched_rules, *after.denied_by) or before.matched_rules
                    yield DecisionChange(actor, action, branch, after.allowed, deciding[0] if deciding else None)


def row_differences(old: RowPolicies, new: RowPolicies, branch: str) -> Iterator[RowChange]:
    """Yield the conditions on rows and properties of a branch that differ."""
    actors = dict.fromkeys((*old.statements.groups_of, *new.statements.groups_of, OTHER_ACTOR))
    for name in actors:
        before, after = old.actor(name), new.actor(name)
        for type_ in new.catalog.tables():
            key = type_.table_key
            asked: list[tuple[str, str | None]] = [(action, None) for action in ROW_ACTIONS]
            asked += [(action, one) for one in type_.properties for action in PROPERTY_ACTIONS]
            for action, one in asked:
                texts = [
                    condition_text(policies.condition(actor, action, key, branch, one))
                    for policies, actor in ((old, before), (new, after))
                ]
                if texts[0] != texts[1]:
                    place = type_.name if one is None else f"{type_.name}.{one}"
                    yield RowChange(name, action, place, *texts)


def _rules(policy: Policy) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for rule in describe_rules(policy.rules):
        found.setdefault(rule["rule"], []).append(rule)
    if not isinstance(policy.rules, PolicyRules):
        for policy_id, source in policy.rules.cedar_policies.items():
            found[policy_id].append(dict(source))
    return found


def _actors(old: Policy, new: Policy) -> list[str]:
    return list(dict.fromkeys((*old.rules.groups_of, *new.rules.groups_of, OTHER_ACTOR)))


def _branches(old: Policy, new: Policy) -> list[str | None]:
    found: list[str | None] = [None, "main"]
    for policy in (old, new):
        rules = policy.rules
        if isinstance(rules, PolicyRules):
            found += sorted(rules.protected_branches)
        else:
            for pattern in (*rules.protected_patterns, *rules.patterns):
                found += example_branches(pattern)
    return list(dict.fromkeys((*found, OTHER_BRANCH)))
