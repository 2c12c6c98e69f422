"""The contents of a policy: actions, groups, protected branches and rules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.suggestions import did_you_mean

ScopeKey = Literal["branch_scope", "target_branch_scope"]
BranchScope = Literal["any", "protected", "unprotected"]
PolicyKind = Literal["graph", "server"]
"""What a policy file governs: one graph, or the server."""

Effect = Literal["branch", "further", "whole"]
"""Where an action has its effect, which decides whether a token that is limited to branches can have it.

- `branch`: on the branches that the request names.
- `further`: by other actions, which name a branch and are judged as well.
- `whole`: on the whole graph or server; a token that is limited to branches never has the action.
"""


@dataclass(frozen=True)
class Action:
    """The declaration of an action of requests. Each action is classified: the fields have no defaults."""

    scope: ScopeKey | None
    """The key that can limit a rule for the action to some branches."""
    effect: Effect


SCOPE_KEYS: tuple[ScopeKey, ...] = ("branch_scope", "target_branch_scope")
SCOPES: tuple[BranchScope, ...] = ("any", "protected", "unprotected")

_ON_BRANCH = Action("branch_scope", "branch")
_ON_TARGET = Action("target_branch_scope", "branch")
_FURTHER = Action(None, "further")
_WHOLE = Action(None, "whole")
_ADMIN = {"admin": _WHOLE}

_OF_GRAPH: Mapping[str, Action] = {
    "read": _ON_BRANCH,
    "export": _ON_BRANCH,
    "change": _ON_BRANCH,
    "schema_apply": _ON_TARGET,
    "branch_create": _ON_TARGET,
    "branch_delete": _ON_TARGET,
    "branch_merge": _ON_TARGET,
    "tag_create": _ON_BRANCH,
    "tag_delete": _ON_BRANCH,
    "maintain": _ON_BRANCH,
    "purge": _WHOLE,
    "invoke_query": _FURTHER,
    "run_publish": _ON_TARGET,
    "run_abort": _ON_TARGET,
}
_OF_QUERIES: Mapping[str, Action] = {"query_store": _FURTHER, "query_define": _FURTHER}
_OF_PROPOSALS: Mapping[str, Action] = {
    "proposal_create": _ON_TARGET,
    "proposal_comment": _ON_TARGET,
    "proposal_check": _ON_TARGET,
    "proposal_approve": _ON_TARGET,
    "proposal_land": _ON_TARGET,
    "proposal_close": _ON_TARGET,
    "proposal_bypass": _ON_TARGET,
}
_OF_SERVER: Mapping[str, Action] = {"graph_list": _WHOLE, "audit_read": _WHOLE, **_ADMIN}

_DECLARED: Mapping[str, Action] = {**_OF_GRAPH, **_OF_QUERIES, **_OF_PROPOSALS, **_ADMIN, **_OF_SERVER}


def _scopes(*parts: Mapping[str, Action]) -> Mapping[str, ScopeKey | None]:
    return {action: declared.scope for part in parts for action, declared in part.items()}


GRAPH_ACTIONS = _scopes(_OF_GRAPH, _ADMIN)
SERVER_ACTIONS = _scopes(_OF_SERVER)
ACTIONS = _scopes(_OF_GRAPH, _ADMIN, _OF_SERVER)
"""Action → the key that can limit it to some branches."""

EFFECTS: Mapping[str, Effect] = {action: declared.effect for action, declared in _DECLARED.items()}
"""Action of requests → where it has its effect."""

ACTIONS_OF: Mapping[PolicyKind, Mapping[str, ScopeKey | None]] = {"graph": GRAPH_ACTIONS, "server": SERVER_ACTIONS}
FILE_KEYS: Mapping[PolicyKind, str] = {"graph": "policy.file", "server": "server.policy.file"}
"""Kind of a policy → the configuration key that names its file."""

ROW_ACTIONS = ("row_read", "row_insert", "row_update", "row_delete")
PROPERTY_ACTIONS = ("property_read", "property_write")
PROPOSAL_ACTIONS = tuple(_OF_PROPOSALS)
"""Actions of version 2 on proposals; a rule limits them by the target branch.

`proposal_bypass` permits a forced merge into a branch whose rules need a proposal.
"""

ON_PROPOSALS = tuple(action for action in PROPOSAL_ACTIONS if action not in ("proposal_create", "proposal_bypass"))
"""Actions whose resource is a proposal that exists."""

STATEMENT_ACTIONS = _scopes(_OF_GRAPH, _OF_QUERIES, _OF_PROPOSALS, _ADMIN)
"""The actions of version 2 on a graph and its branches, as in `GRAPH_ACTIONS`."""

KNOWN_ACTIONS = _scopes(_DECLARED)
"""The actions of requests, in any version. Actions on rows and properties are decided by `row_policies`."""

WITHOUT_EFFECT = frozenset({"run_publish", "run_abort"})
"""Actions of older policies. They are accepted in a file and grant nothing."""


@dataclass(frozen=True)
class PolicyRule:
    """A rule: a group may perform some actions, on all branches or on those of a scope."""

    id: str
    group: str
    actions: tuple[str, ...]
    branch_scope: BranchScope | None = None
    target_branch_scope: BranchScope | None = None
    line: int | None = None
    """The line of the rule in its file."""

    @property
    def scope(self) -> tuple[ScopeKey, BranchScope] | None:
        """The key and value of the scope, or None if the rule has no scope."""
        if self.branch_scope is not None:
            return "branch_scope", self.branch_scope
        if self.target_branch_scope is not None:
            return "target_branch_scope", self.target_branch_scope
        return None


@dataclass(frozen=True)
class PolicyRules:
    """A valid policy file."""

    groups: Mapping[str, tuple[str, ...]]
    protected_branches: frozenset[str]
    rules: tuple[PolicyRule, ...]
    source: str = "policy.yaml"
    """The file, for messages."""
    kind: PolicyKind = "graph"

    @cached_property
    def groups_of(self) -> Mapping[str, tuple[str, ...]]:
        """Actor → the groups that list it, in file order."""
        found: dict[str, list[str]] = {}
        for group, actors in self.groups.items():
            for actor in dict.fromkeys(actors):
                found.setdefault(actor, []).append(group)
        return {actor: tuple(groups) for actor, groups in found.items()}


def action_name(name: str) -> str:
    """Return the name of an action, which may be written with `-`; raises `InputError` for an unknown action."""
    folded = name.strip().replace("-", "_")
    if folded not in KNOWN_ACTIONS:
        raise InputError(
            f"there is no action '{name}'; the actions are {', '.join(KNOWN_ACTIONS)}",
            code="unknown_action",
            hint=did_you_mean(folded, KNOWN_ACTIONS),
        )
    return folded


def other_kind(action: str, kind: PolicyKind) -> PolicyKind | None:
    """Return the kind of policy that an action belongs to if it is not `kind`; None otherwise."""
    known = STATEMENT_ACTIONS if kind == "graph" else SERVER_ACTIONS
    if action in known or action not in KNOWN_ACTIONS:
        return None
    return "server" if kind == "graph" else "graph"


def branch_name(name: str) -> str:
    """Return a branch name without surrounding whitespace; the operation must use the returned name.

    A name that is blank or not valid Unicode is an `InputError`.
    """
    if not isinstance(name, str):
        raise InputError(f"the name of a branch is a str, not {type(name).__name__}", code="bad_branch_name")
    trimmed = name.strip()
    if not trimmed:
        raise InputError(f"a branch name must not be blank (got {name!r})", code="bad_branch_name")
    try:
        trimmed.encode()
    except UnicodeEncodeError:
        raise InputError(f"a branch name must be valid Unicode (got {name!r})", code="bad_branch_name") from None
    return trimmed
