"""Differences between two policies: their rules, and their decisions on every actor, action and kind of branch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omnigraph.policy.branch_patterns import example_branches
from omnigraph.policy.decide import Policy, PolicyDecision
from omnigraph.policy.describe import describe_rules
from omnigraph.policy.query_calls import QUERY_KINDS, describe_kind, example_queries, kinds_of
from omnigraph.policy.rows.row_conditions import condition_text
from omnigraph.policy.rules import (
    PROPERTY_ACTIONS,
    ROW_ACTIONS,
    SERVER_ACTIONS,
    STATEMENT_ACTIONS,
    WITHOUT_EFFECT,
    PolicyRules,
)

if TYPE_CHECKING:
    from omnigraph.policy.rows.row_policies import RowPolicies
    from omnigraph.policy.statements import AttributeValue, PolicyStatements, QueryFacts

OTHER_ACTOR, OTHER_BRANCH, OTHER_QUERY = "any other actor", "any/other/branch", "any_other_query"
"""Stand for the actors, branches and stored queries that neither policy names."""
MAIN = "main"


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
    query: str | None = None
    """The stored query of an action that calls one."""
    changes: bool | None = None
    """With a query: True if the decision is that on mutations, False on reads, None on both."""
    definer: bool | None = None
    """With a query: True if the decision is that on queries with `@definer`, False on others, None on both."""

    def describe(self) -> str:
        """Return the change as one line."""
        where = f" on '{self.branch}'" if self.branch is not None else " without a branch"
        kind = describe_kind(self.changes, self.definer)
        where = f" of '{self.query}'{f' ({kind})' if kind else ''}" if self.query is not None else where
        change = "deny -> allow" if self.allowed else "allow -> deny"
        rule = f" (rule '{self.rule}')" if self.rule is not None else ""
        return f"{self.actor}: {self.action}{where}: {change}{rule}"

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        new = "allow" if self.allowed else "deny"
        members = {"actor": self.actor, "action": self.action, "branch": self.branch, "decision": new}
        query = {"query": self.query, "changes": self.changes, "definer": self.definer}
        return {**members, "rule": self.rule, **{name: one for name, one in query.items() if one is not None}}


@dataclass(frozen=True)
class RowChange:
    """A type or property of which an actor sees, or may change, other rows."""

    actor: str
    action: str
    place: str
    branch: str
    old: str
    new: str

    def describe(self) -> str:
        """Return the change as one line."""
        where = self.place if self.branch == MAIN else f"{self.place} on '{self.branch}'"
        return f"{self.actor}: {self.action} of {where}: {self.old} -> {self.new}"

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        place = {"of": self.place, "branch": self.branch}
        return {"actor": self.actor, "action": self.action, **place, "old": self.old, "new": self.new}


@dataclass(frozen=True)
class AttributeChange:
    """An attribute of an actor that two policies set differently; None is no value."""

    actor: str
    name: str
    old: AttributeValue | None
    new: AttributeValue | None

    def describe(self) -> str:
        """Return the change as one line."""
        return f"{self.actor}: attribute '{self.name}': {_shown(self.old)} -> {_shown(self.new)}"

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        return {"actor": self.actor, "attribute": self.name, "old": _plain(self.old), "new": _plain(self.new)}


def attribute_differences(old: Policy, new: Policy) -> Iterator[AttributeChange]:
    """Yield the attributes of actors that two policies set differently."""
    before, after = ({} if isinstance(p.rules, PolicyRules) else p.rules.attributes for p in (old, new))
    for actor in dict.fromkeys((*before, *after)):
        first, second = before.get(actor, {}), after.get(actor, {})
        for name in dict.fromkeys((*first, *second)):
            if first.get(name) != second.get(name):
                yield AttributeChange(actor, name, first.get(name), second.get(name))


def _shown(value: AttributeValue | None) -> str:
    return "none" if value is None else json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: AttributeValue | None) -> Any:
    return list(value) if isinstance(value, tuple) else value


def rule_differences(old: Policy, new: Policy) -> dict[str, list[str]]:
    """Return the ids of the rules that were added, removed and changed."""
    before, after = _rules(old), _rules(new)
    return {
        "added": [rule for rule in after if rule not in before],
        "removed": [rule for rule in before if rule not in after],
        "changed": [rule for rule in after if rule in before and before[rule] != after[rule]],
    }


def decision_differences(
    old: Policy, new: Policy, stored: Mapping[str, QueryFacts] | None = None
) -> Iterator[DecisionChange]:
    """Yield the requests on which two policies decide differently.

    Branches and stored queries are represented by the names and examples of the patterns that a policy mentions, and
    by one other name; actors by those of the groups, and by one other actor. A query is of its own kind if it is one of
    `stored`, the stored queries of a graph. Otherwise all kinds are compared.
    """
    actions = STATEMENT_ACTIONS if old.rules.kind == "graph" else SERVER_ACTIONS
    known = stored or {}
    branches = _branches(old.rules, new.rules)
    queries = dict.fromkeys((*example_queries(old.rules, new.rules), *known, OTHER_QUERY))
    for actor in _actors(old.rules, new.rules):
        for action, scope in actions.items():
            if action in WITHOUT_EFFECT:
                continue
            for branch in branches if scope is not None else [None]:
                target = branch if scope == "target_branch_scope" else None
                asked = (actor, action, branch if target is None else None, target)
                change = _change(branch, old.decide(*asked), new.decide(*asked))
                if change is not None:
                    yield change
            for query in queries if action == "invoke_query" else ():
                of_kind = {
                    kind: _change(
                        None, *(policy.decide(actor, action, name=query, query=kind) for policy in (old, new))
                    )
                    for kind in ((known[query],) if query in known else QUERY_KINDS)
                }
                yield from _of_query(query, of_kind)


def _change(branch: str | None, before: PolicyDecision, after: PolicyDecision) -> DecisionChange | None:
    """Return the difference between two decisions on a request; None if there is none."""
    if before.allowed == after.allowed:
        return None
    deciding = (*after.matched_rules, *after.denied_by) or before.matched_rules
    return DecisionChange(
        str(after.actor), after.action, branch, after.allowed, deciding[0] if deciding else None, after.name
    )


def _of_query(query: str, of_kind: Mapping[QueryFacts, DecisionChange | None]) -> Iterator[DecisionChange]:
    """Yield the changes of the decisions on a query: one for all kinds whose decisions change in the same way."""
    left = {kind: replace(change, query=query) for kind, change in of_kind.items() if change is not None}
    groups = [(None, None), (False, None), (True, None), (None, False), (None, True)]
    groups += [(kind.changes, kind.definer) for kind in QUERY_KINDS]
    for changes, definer in groups:
        kinds = [kind for kind in kinds_of(changes, definer) if kind in of_kind]
        found = {left.get(kind) for kind in kinds}
        one = found.pop() if len(found) == 1 else None
        if one is not None:
            yield replace(one, changes=changes, definer=definer)
            left = {kind: change for kind, change in left.items() if kind not in kinds}


def row_differences(old: RowPolicies, new: RowPolicies, branch: str | None = None) -> Iterator[RowChange]:
    """Yield the conditions on rows and properties of a branch that differ.

    Without a branch, these are the differences of `main`, and those of the branches that a policy mentions and of one
    other branch where they are not the same as on `main`.
    """
    if branch is not None:
        yield from _row_differences(old, new, branch)
        return
    on_main = list(_row_differences(old, new, MAIN))
    yield from on_main
    same = {replace(change, branch="") for change in on_main}
    for name in _branches(*(policies.statements for policies in (old, new))):
        if name not in (None, MAIN):
            changes = _row_differences(old, new, str(name))
            yield from (change for change in changes if replace(change, branch="") not in same)


def _row_differences(old: RowPolicies, new: RowPolicies, branch: str) -> Iterator[RowChange]:
    for name in _actors(old.statements, new.statements):
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
                    yield RowChange(name, action, place, branch, *texts)


def _rules(policy: Policy) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for rule in describe_rules(policy.rules):
        found.setdefault(rule["rule"], []).append(rule)
    if not isinstance(policy.rules, PolicyRules):
        for policy_id, source in policy.rules.cedar_policies.items():
            found[policy_id].append(dict(source))
    return found


def _actors(*policies: PolicyRules | PolicyStatements) -> list[str]:
    """Return the actors that policies name in a group or with attributes, and one other."""
    found = [actor for rules in policies for actor in rules.groups_of]
    found += [actor for rules in policies if not isinstance(rules, PolicyRules) for actor in rules.attributes]
    return list(dict.fromkeys((*found, OTHER_ACTOR)))


def _branches(*policies: PolicyRules | PolicyStatements) -> list[str | None]:
    found: list[str | None] = [None, MAIN]
    for rules in policies:
        if isinstance(rules, PolicyRules):
            found += sorted(rules.protected_branches)
        else:
            for pattern in (*rules.protected_patterns, *rules.patterns):
                found += example_branches(pattern)
    return list(dict.fromkeys((*found, OTHER_BRANCH)))
