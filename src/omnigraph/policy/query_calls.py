"""Calls of stored queries that stand for all: the kinds of queries, and names of queries that rules mention.

A rule can read the name of a query, and whether it changes the graph or runs with the rights of its definer. A decision
on a query of which only the name is known holds if it is the same for all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from omnigraph.policy.cedar_schema import NAMESPACE
from omnigraph.policy.decide import PolicyDecision
from omnigraph.policy.rules import PolicyRules
from omnigraph.policy.statements import PolicyStatements, QueryFacts, actions_of

QUERY_KINDS = tuple(QueryFacts(changes, definer) for changes in (False, True) for definer in (False, True))
"""All kinds of stored queries; the first is a read with the rights of its caller."""
QueryLookup = Callable[[str, str], QueryFacts | None]
"""Name, branch → what a policy can read of the stored query; None if it is not known."""
_INVOKE = "invoke_query"
_QUERY = f"{NAMESPACE}::StoredQuery"
_NAME = {".": {"left": {"Var": "resource"}, "attr": "name"}}


def kinds_of(changes: bool | None, definer: bool | None) -> list[QueryFacts]:
    """Return the kinds that are possible; None stands for both values."""
    return [kind for kind in QUERY_KINDS if changes in (None, kind.changes) and definer in (None, kind.definer)]


def describe_kind(changes: bool | None, definer: bool | None) -> str:
    """Return some kinds of queries as words; nothing for all kinds."""
    word = {None: "", False: "a read", True: "a mutation"}[changes]
    rights = {None: "", False: "without @definer", True: "with @definer"}[definer]
    return " ".join(filter(None, (word or (rights and "a query"), rights)))


def decide_call(
    decide: Callable[..., PolicyDecision], kinds: Iterable[QueryFacts], known: Callable[[], QueryFacts | None]
) -> PolicyDecision | None:
    """Return the decision on a call of a query of one of some kinds; None if it depends on the kind.

    `decide` is `Policy.decide` with all arguments but `query`. `known` returns what is known of the query; it is called
    if the kinds are decided differently.
    """
    decisions = [decide(query=kind) for kind in kinds]
    if len({(one.allowed, one.matched_rules, one.denied_by) for one in decisions}) == 1:
        return decisions[0]
    facts = known()
    if facts is not None:
        return decide(query=facts)
    return decisions[0] if len({one.allowed for one in decisions}) == 1 else None


def example_queries(*policies: PolicyRules | PolicyStatements) -> list[str]:
    """Return names of stored queries that rules mention, and examples of their patterns."""
    patterns = [
        pattern for rules in policies if isinstance(rules, PolicyStatements) for pattern in _query_patterns(rules)
    ]
    return list(dict.fromkeys(pattern.replace("*", "x") for pattern in patterns))


def _query_patterns(rules: PolicyStatements) -> Iterator[str]:
    from omnigraph.policy.cedar_files import parse_condition  # noqa: PLC0415 (imported with the policy)

    for rule in rules.rules:
        yield from rule.queries
        if rule.is_of_queries and rule.when is not None:
            yield from _names(parse_condition(rule.when))
    for policy in rules.cedar_policies.values():
        actions = actions_of(policy)
        if actions is None or _INVOKE in actions:
            yield from _names([policy["resource"], *policy["conditions"]])


def _names(node: Any) -> Iterator[str]:
    """Yield the stored queries of an expression, and texts that it compares with a name; `*` stands for any text."""
    if isinstance(node, dict):
        if node.get("type") == _QUERY:
            yield str(node["id"])
        for part in node.values():
            if isinstance(part, dict) and _NAME in part.values():
                yield from _texts(part)
            yield from _names(part)
    elif isinstance(node, list):
        for part in node:
            yield from _names(part)


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("Value"), str):
            yield node["Value"]
        if isinstance(node.get("pattern"), list):
            yield "".join("*" if one == "Wildcard" else one["Literal"] for one in node["pattern"])
        for part in node.values():
            yield from _texts(part)
    elif isinstance(node, list):
        for part in node:
            yield from _texts(part)
