"""Version 2 of a policy: rules that allow or deny, down to rows and properties.

A rule names actors, actions, and what they apply to. `PolicyStatements` is a valid file together with the Cedar files
beside it; `statements_cedar` compiles it, and `row_policies` binds it to the schema of a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.policy.branch_patterns import matches_branch
from omnigraph.policy.proposal_rules import ProposalRules
from omnigraph.policy.rules import (
    ON_PROPOSALS,
    PROPERTY_ACTIONS,
    PROPOSAL_ACTIONS,
    ROW_ACTIONS,
    SERVER_ACTIONS,
    STATEMENT_ACTIONS,
    WITHOUT_EFFECT,
    BranchScope,
    PolicyKind,
)

Effect = Literal["allow", "deny"]
Family = Literal["graph", "row", "property"]
Otherwise = Literal["hide", "mask"]
"""What becomes of a property without the right to read it: it is not in the schema of the actor, or it is null."""

AttributeType = Literal["String", "Long", "Bool", "Datetime", "Set<String>", "Set<Long>"]
AttributeValue = str | int | bool | tuple[str, ...] | tuple[int, ...]
Attributes = tuple[tuple[str, AttributeValue], ...]
"""The attributes of an actor by name; hashable."""

ATTRIBUTE_TYPES: tuple[AttributeType, ...] = ("String", "Long", "Bool", "Datetime", "Set<String>", "Set<Long>")
BranchOwners = tuple[tuple[str, str], ...]
"""Branch → the actor that created it; hashable."""

BRANCH_ATTRIBUTES = frozenset({"name", "protected", "owner"})
"""The attributes of a branch that a condition of a rule for branches can read."""
QUERY_ATTRIBUTES = frozenset({"name", "changes", "definer"})
"""The attributes of a stored query that a condition of a rule for `invoke_query` can read."""


@dataclass(frozen=True)
class QueryFacts:
    """What a policy can read of a stored query besides its name."""

    changes: bool = False
    """True if the query changes the graph."""
    definer: bool = False
    """True if the query runs with the rights of the actor who stored it."""


LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

FAMILIES: Mapping[str, Family] = {
    **dict.fromkeys(STATEMENT_ACTIONS, "graph"),
    **dict.fromkeys(SERVER_ACTIONS, "graph"),
    **dict.fromkeys(ROW_ACTIONS, "row"),
    **dict.fromkeys(PROPERTY_ACTIONS, "property"),
}
"""Action → its family. The actions of one rule belong to one family."""

_PROPOSALS = tuple(action for action in PROPOSAL_ACTIONS if action not in ("proposal_land", "proposal_bypass"))
CALLS = ("invoke_query",)
"""The actions of roles on stored queries that run with the rights of their caller, without `@definer`."""
_EDITOR: tuple[tuple[tuple[str, ...], BranchScope], ...] = (
    (("read", "export", *_PROPOSALS), "any"),
    (("change", "branch_create", "branch_delete"), "unprotected"),
    (CALLS, "any"),
)
_ALL = tuple(action for action in STATEMENT_ACTIONS if action not in WITHOUT_EFFECT)
ROLES: Mapping[str, tuple[tuple[tuple[str, ...], BranchScope], ...]] = {
    "viewer": ((("read",), "any"), (CALLS, "any")),
    "editor": _EDITOR,
    "maintainer": (*_EDITOR, (("branch_merge", "tag_create", "tag_delete", "maintain", "proposal_land"), "any")),
    "owner": (((*_ALL, *ROW_ACTIONS, *PROPERTY_ACTIONS), "any"),),
}
"""Role → actions, and the branches on which it grants them."""


@dataclass(frozen=True)
class BranchSelector:
    """The branches of a rule: those of a scope, or those that match a pattern."""

    scope: BranchScope | None = None
    patterns: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        """True if every branch is selected, and requests without a branch."""
        return self.scope == "any"

    def selects(self, name: str | None, *, protected: bool) -> bool:
        """Return True if a branch, or a request without one, is selected."""
        if self.scope is not None:
            return self.is_any or (name is not None and protected == (self.scope == "protected"))
        return name is not None and any(matches_branch(pattern, name) for pattern in self.patterns)

    def describe(self) -> str:
        """Return the selection in words."""
        return f"{self.scope} branches" if self.scope is not None else f"branches that match {_list(self.patterns)}"


@dataclass(frozen=True)
class Grant:
    """Some actions of a rule that share a selection of branches."""

    actions: tuple[str, ...]
    branches: BranchSelector
    own_rights: bool = False
    """True for the stored queries of a role: those that run with the rights of their caller, without `@definer`."""


@dataclass(frozen=True)
class Statement:
    """One rule."""

    id: str
    effect: Effect
    group: str | None
    """The group of the actors; None for every actor."""
    grants: tuple[Grant, ...]
    except_group: str | None = None
    role: str | None = None
    types: tuple[str, ...] = ()
    """Types whose rows or properties the rule concerns; empty for all types."""
    properties: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    """Patterns of the names of stored queries; empty for all."""
    when: str | None = None
    """A condition in Cedar."""
    otherwise: Otherwise = "hide"
    row_check: Literal["always", "skip"] = "always"
    """Whether a merge that the rule allows is checked by the rules for rows."""
    line: int | None = None

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """All actions of the rule."""
        return tuple(dict.fromkeys(action for grant in self.grants for action in grant.actions))

    @property
    def family(self) -> Family:
        """The family of the actions; that of a role is "graph"."""
        return "graph" if self.role is not None else FAMILIES[self.actions[0]]

    @property
    def is_of_queries(self) -> bool:
        """True if the rule concerns calls of stored queries alone."""
        return self.role is None and {*self.actions} == {"invoke_query"}

    def covers(self, groups: tuple[str, ...]) -> bool:
        """Return True if the rule concerns an actor in these groups."""
        if self.except_group is not None and self.except_group in groups:
            return False
        return self.group is None or self.group in groups


@dataclass(frozen=True)
class CedarSource:
    """The policies of one `.cedar` file in the JSON form of Cedar, by id."""

    path: str
    policies: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class PolicyStatements:
    """A valid policy of version 2: its file and the Cedar files beside it."""

    groups: Mapping[str, tuple[str, ...]]
    protected_patterns: tuple[str, ...]
    rules: tuple[Statement, ...]
    declared: Mapping[str, AttributeType]
    """Attribute of actors → its type."""
    attributes: Mapping[str, Mapping[str, AttributeValue]]
    """Actor → its attributes."""
    rows_default: Effect | None
    """What holds for the rows of a type that no rule allows; None if the file does not say it."""
    cedar_files: tuple[CedarSource, ...] = ()
    source: str = "policy.yaml"
    kind: PolicyKind = "graph"
    rows_audit: int = 0
    """Returned rows of a variable or table that Cedar judges again in each read; 0 outside audit mode."""
    proposals: tuple[ProposalRules, ...] = ()
    """What proposals need before they land; the first whose pattern matches the target counts."""

    version = 2

    @cached_property
    def groups_of(self) -> Mapping[str, tuple[str, ...]]:
        """Actor → the groups that list it, in file order."""
        found: dict[str, list[str]] = {}
        for group, actors in self.groups.items():
            for actor in dict.fromkeys(actors):
                found.setdefault(actor, []).append(group)
        return {actor: tuple(groups) for actor, groups in found.items()}

    @cached_property
    def rule_by_id(self) -> Mapping[str, Statement]:
        """The rules by id."""
        return {rule.id: rule for rule in self.rules}

    @cached_property
    def cedar_policies(self) -> Mapping[str, Mapping[str, Any]]:
        """The policies of all Cedar files by id."""
        return {policy_id: policy for file in self.cedar_files for policy_id, policy in file.policies.items()}

    @cached_property
    def cedar_groups(self) -> frozenset[str]:
        """The groups that the Cedar files name; tokens can bring them, too."""
        return frozenset(_groups_in(list(self.cedar_policies.values())))

    def groups_for(self, actor: str, more: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the groups of an actor: those of the file, then those of a token that the policy names."""
        known = (group for group in more if group in self.groups or group in self.cedar_groups)
        return tuple(dict.fromkeys((*self.groups_of.get(actor, ()), *known)))

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """All patterns of branches that a rule compares a branch with."""
        written = (p for rule in self.rules for grant in rule.grants for p in grant.branches.patterns)
        cedar = (p for policy in self.cedar_policies.values() for p in matched_patterns(policy))
        return tuple(sorted({*written, *cedar}))

    def is_protected(self, branch: str | None) -> bool:
        """Return True if a branch is protected."""
        return branch is not None and any(matches_branch(pattern, branch) for pattern in self.protected_patterns)

    def matching_patterns(self, branch: str) -> list[str]:
        """Return the patterns of the rules that match a branch."""
        return [pattern for pattern in self.patterns if matches_branch(pattern, branch)]

    def attributes_of(self, actor: str, *sources: Attributes) -> Attributes:
        """Return the declared attributes of an actor: those of the file, then those of the sources; the first wins.

        A value that does not have the declared type is an `InputError`. Other attributes are ignored.
        """
        found: dict[str, AttributeValue] = dict(self.attributes.get(actor, {}))
        for source in sources:
            for name, value in source:
                if name in self.declared and name not in found:
                    found[name] = typed_attribute(name, value, self.declared[name], f"actor '{actor}'")
        return tuple(sorted(found.items()))

    @cached_property
    def reads_owners(self) -> bool:
        """True if a decision can depend on the owner of a branch."""
        written = (rule.when for rule in self.rules if rule.family == "graph" and rule.when is not None)
        return any("owner" in text for text in written) or _names_owner(list(self.cedar_policies.values()))

    @cached_property
    def reads_proposals(self) -> bool:
        """True if a decision can depend on a proposal, not on its target branch alone."""
        written = (rule for rule in self.rules if rule.when is not None or rule.effect == "deny")
        if any({*rule.actions} & {*ON_PROPOSALS} for rule in written):
            return True
        return any(
            (actions := actions_of(policy)) is None or bool(actions & {*ON_PROPOSALS})
            for policy in self.cedar_policies.values()
        )

    @cached_property
    def reads_queries(self) -> bool:
        """True if a decision can depend on a stored query, not on its name alone."""
        if any(grant.own_rights for rule in self.rules for grant in rule.grants):
            return True
        written = (rule.when for rule in self.rules if rule.is_of_queries and rule.when is not None)
        return any("resource" in text for text in written) or any(
            (actions := actions_of(policy)) is None or "invoke_query" in actions
            for policy in self.cedar_policies.values()
        )

    @cached_property
    def has_row_rules(self) -> bool:
        """True if the policy limits rows or properties."""
        if self.rows_default == "deny" or any(rule.family != "graph" for rule in self.rules):
            return True
        return any(limits_rows(policy) for policy in self.cedar_policies.values())


def attributes_key(attributes: Mapping[str, Any] | None) -> Attributes:
    """Return attributes of a token in their hashable form."""
    return tuple(
        sorted(
            (name, tuple(value) if isinstance(value, list | tuple | set | frozenset) else value)
            for name, value in (attributes or {}).items()
        )
    )


def typed_attribute(name: str, value: Any, wanted: AttributeType, owner: str) -> AttributeValue:
    """Return a value of an attribute; raises `InputError` if it does not have the declared type."""
    if wanted.startswith("Set<"):
        items = list(value) if isinstance(value, list | tuple) else None
        item: type = str if wanted == "Set<String>" else int
        if items is not None and all(_is(one, item) for one in items):
            return tuple(sorted(set(items)))
    elif wanted == "Long":
        if _is(value, int):
            return int(value)
    elif wanted == "Bool":
        if isinstance(value, bool):
            return value
    elif isinstance(value, str) and (wanted == "String" or datetime_milliseconds(value) is not None):
        return value
    raise InputError(
        f"the attribute '{name}' of {owner} must be a {wanted} (got {value!r})",
        code="bad_attribute",
        hint=f"the policy declares '{name}: {wanted}'",
    )


def _is(value: Any, wanted: type) -> bool:
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool) and LONG_MIN <= value <= LONG_MAX
    return isinstance(value, wanted)


def datetime_milliseconds(text: str) -> int | None:
    """Return a Cedar datetime as milliseconds since 1970-01-01 UTC; None if the text is not one."""
    import re  # noqa: PLC0415 (few policies have datetimes)
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415

    found = re.fullmatch(
        r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?(?:Z|([+-])(\d\d)(\d\d)))?", text, re.ASCII
    )
    if found is None:
        return None
    year, month, day, hour, minute, second, milli, sign, off_hour, off_minute = found.groups()
    parts = [int(part or 0) for part in (year, month, day, hour, minute, second, milli)]
    try:
        time = datetime(parts[0], parts[1], parts[2], tzinfo=UTC)
    except ValueError:
        return None
    hours, minutes = int(off_hour or 0), int(off_minute or 0)
    if max(parts[3], hours) > 23 or max(parts[4], parts[5], minutes) > 59:
        return None
    time += timedelta(hours=parts[3], minutes=parts[4], seconds=parts[5], milliseconds=parts[6])
    offset = timedelta(hours=hours, minutes=minutes)
    since = time - datetime(1970, 1, 1, tzinfo=UTC) + (offset if sign == "-" else -offset)
    return since // timedelta(milliseconds=1)


# -- Cedar policies in their JSON form ---------------------------------------------------------------


def actions_of(policy: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the actions that the scope of a Cedar policy names; None if it names none."""
    scope = policy["action"]
    if scope["op"] == "All":
        return None
    named = scope.get("entities") or [scope["entity"]]
    return frozenset(str(entity["id"]) for entity in named)


def limits_rows(policy: Mapping[str, Any]) -> bool:
    """Return True if a Cedar policy names an action on rows or properties, or denies all actions."""
    actions = actions_of(policy)
    if actions is not None:
        return not actions.isdisjoint((*ROW_ACTIONS, *PROPERTY_ACTIONS))
    resource = _resource_type(policy)
    of_rows = resource == "Omnigraph::Interface" or not resource.startswith("Omnigraph::")
    return policy["effect"] == "forbid" and of_rows


def _names_owner(node: Any) -> bool:
    """Return True if Cedar policies read or test an attribute `owner`."""
    if isinstance(node, Mapping):
        return node.get("attr") == "owner" or any(map(_names_owner, node.values()))
    return isinstance(node, list) and any(map(_names_owner, node))


def _groups_in(node: Any) -> Iterator[str]:
    """Yield the groups that Cedar policies name."""
    if isinstance(node, Mapping):
        if node.get("type") == "Omnigraph::Group":
            yield str(node.get("id"))
        for part in node.values():
            yield from _groups_in(part)
    elif isinstance(node, list):
        for part in node:
            yield from _groups_in(part)


def _resource_type(policy: Mapping[str, Any]) -> str:
    scope = policy["resource"]
    return str(scope.get("entity_type") or (scope.get("entity") or {}).get("type") or "")


def matched_patterns(node: Any) -> Iterator[str]:
    """Yield the patterns that a Cedar policy tests with `….matches.contains("PATTERN")`."""
    if isinstance(node, dict):
        contains = node.get("contains")
        if isinstance(contains, dict):
            left, right = contains.get("left"), contains.get("right")
            reads = left.get(".") if isinstance(left, dict) else None
            value = right.get("Value") if isinstance(right, dict) else None
            if isinstance(reads, dict) and reads.get("attr") == "matches" and isinstance(value, str):
                yield value
        for part in node.values():
            yield from matched_patterns(part)
    elif isinstance(node, list | tuple):
        for part in node:
            yield from matched_patterns(part)


def reads_patterns(policy: Mapping[str, Any]) -> int:
    """Return how often a Cedar policy reads the patterns that match a branch."""
    of_row = _resource_type(policy).startswith(("Node::", "Edge::"))
    variables = ("context",) if of_row else ("context", "resource")
    return sum(_reads(policy["conditions"], variable) for variable in variables)


def _reads(node: Any, variable: str) -> int:
    if isinstance(node, dict):
        found = node.get(".")
        if isinstance(found, dict) and found.get("attr") == "matches":
            base = found.get("left")
            inner = base.get(".") if isinstance(base, dict) else None
            while isinstance(inner, dict):
                base = inner.get("left")
                inner = base.get(".") if isinstance(base, dict) else None
            return int(isinstance(base, dict) and base.get("Var") == variable)
        return sum(_reads(part, variable) for part in node.values())
    return sum(_reads(part, variable) for part in node) if isinstance(node, list | tuple) else 0


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
