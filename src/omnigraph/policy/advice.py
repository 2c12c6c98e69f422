"""Warnings about a valid policy: entries without effect and likely mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.policy.rules import WITHOUT_EFFECT, PolicyRules
from omnigraph.policy.statements import PolicyStatements
from omnigraph.suggestions import did_you_mean


def warnings_of(rules: PolicyRules | PolicyStatements) -> list[str]:
    """Return the warnings about a policy."""
    if isinstance(rules, PolicyStatements):
        return list(_statement_warnings(rules))
    return [*_unused(rules), *_actions(rules), *_scoped_reads(rules)]


def warnings_of_names(
    rules: PolicyRules | PolicyStatements, groups: Iterable[str], attributes: Iterable[str]
) -> list[str]:
    """Return the warnings about groups and attributes of an actor that a policy does not name."""
    held = rules.declared if isinstance(rules, PolicyStatements) else ()
    named = {*rules.groups, *(rules.cedar_groups if isinstance(rules, PolicyStatements) else ())}
    found = []
    for kind, names, known in (("group", groups, sorted(named)), ("attribute", attributes, sorted(held))):
        for name in dict.fromkeys(names):
            if name not in known:
                near = did_you_mean(name, known)
                verb = "names" if kind == "group" else "declares"
                found.append(f"the policy {verb} no {kind} '{name}', which has no effect{f' ({near})' if near else ''}")
    return found


def _unused(rules: PolicyRules) -> Iterator[str]:
    used = {rule.group for rule in rules.rules}
    for group in rules.groups:
        if group not in used:
            yield f"no rule uses group '{group}'"
    for actor, groups in rules.groups_of.items():
        if used.isdisjoint(groups):
            yield f"actor '{actor}' is only in groups that no rule uses; all its requests are denied"


def _actions(rules: PolicyRules) -> Iterator[str]:
    for rule in rules.rules:
        for action in rule.actions:
            if action in WITHOUT_EFFECT:
                yield f"rule '{rule.id}': action '{action}' grants nothing; remove it"


def _scoped_reads(rules: PolicyRules) -> Iterator[str]:
    scopes: dict[str, set[str | None]] = {}
    for rule in rules.rules:
        if "read" in rule.actions:
            scopes.setdefault(rule.group, set()).add(rule.branch_scope)
    for group, found in scopes.items():
        if found.isdisjoint({None, "any"}):
            yield (
                f"group '{group}' may read only with a scope other than 'any'; requests without a branch "
                "(lists of branches and tags) are denied"
            )


def _statement_warnings(statements: PolicyStatements) -> Iterator[str]:
    used = {group for rule in statements.rules for group in (rule.group, rule.except_group)}
    used |= statements.cedar_groups
    for group in statements.groups:
        if group not in used:
            yield f"no rule uses group '{group}'"
    for rule in statements.rules:
        for action in rule.actions:
            if action in WITHOUT_EFFECT:
                yield f"rule '{rule.id}': action '{action}' grants nothing; remove it"
