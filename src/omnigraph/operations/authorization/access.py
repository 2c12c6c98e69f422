"""`Access`: what one caller may do. `Graph` asks it before every call.

An `Access` is a policy, an actor, and the limits of the actor's token. What the policy does not allow is denied. A
failure of the evaluation is an error of its own, never a decision.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from omnigraph.errors import Denied, Hint, PolicyInvalid
from omnigraph.policy.decide import Policy, PolicyDecision, describe_request
from omnigraph.policy.proposal_rules import ProposalFacts
from omnigraph.policy.rules import EFFECTS, SERVER_ACTIONS, action_name, branch_name
from omnigraph.policy.statements import BranchOwners, QueryFacts, attributes_key
from omnigraph.suggestions import listing

if TYPE_CHECKING:
    from omnigraph.policy.rows.row_policies import RowPolicies
    from omnigraph.policy.rows.row_tables import PolicyActor
    from omnigraph.query.visibility import Visibility
    from omnigraph.query.write_guard import WriteGuard
    from omnigraph.schema.catalog import Catalog

_log = logging.getLogger(__name__)

Default = Literal["deny", "allow", "read"]
"""What is allowed without a policy: nothing, everything, or the action `read`."""

OwnerOf = Callable[[str], str | None]
"""Branch → the actor that created it; None if it is not known."""

DECISIONS_MAX = 10_000
"""Number of decisions that an access keeps; a program can use one for a long time."""

_ALLOWED = "no policy is configured; every action is allowed"
_READ_ALLOWED = "no policy is configured; 'read' is allowed"
_ONLY_READ = "tokens are configured, but no policy is; only 'read' is allowed"
_ONLY_READ_HINT = "set 'policy.file' in the configuration of the server to allow more"
_UNFIT_HINT = Hint("the log lists the problems", cli="'omnigraph policy validate' with the graph lists the problems")
_NO_ACTOR_HINT = Hint("name an actor", cli="name an actor: --as ACTOR")
_NO_SERVER_POLICY = "actions of the server need a policy of the server: 'server.policy.file' is not set"
_NOTHING = "no policy is configured, and nothing is allowed without one"


@dataclass(frozen=True)
class Only:
    """Limits of a token. It narrows what a policy allows; None does not limit.

    Branches are glob patterns, in which `*` also matches `/`. A token that is limited to some branches cannot make a
    request that concerns all branches, such as a list of branches, and has no action with an effect on the whole graph.
    """

    actions: tuple[str, ...] | None = None
    graphs: tuple[str, ...] | None = None
    branches: tuple[str, ...] | None = None
    _branches: re.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.branches is not None:
            pattern = "|".join(map(translate, self.branches)) or r"(?!)"
            object.__setattr__(self, "_branches", re.compile(pattern))

    @property
    def branch_limit(self) -> str | None:
        """The limit to some branches in words; None if there is none."""
        return None if self.branches is None else f"the token is limited to {_listed('branch', self.branches)}"

    def excludes(self, decision: PolicyDecision, graph: str | None, *, on_any: bool = False) -> str | None:
        """Return why the token does not permit a request; None if it does.

        With `on_any`, the request stands for those on any branch.
        """
        if self.actions is not None and decision.action not in self.actions:
            return f"the token is limited to {_listed('action', self.actions)}"
        if self.graphs is not None and graph not in self.graphs:
            return f"the token is limited to {_listed('graph', self.graphs)}"
        if self._branches is None:
            return None
        effect = EFFECTS[decision.action]
        if effect == "whole":
            return f"{self.branch_limit}, and '{decision.action}' is not limited by branches"
        if on_any or effect == "further":
            return None
        branch, target = decision.branch, decision.target_branch
        for name in (branch, target):
            if name is not None and self._branches.match(name) is None:
                return f"{self.branch_limit}, not '{name}'"
        return f"{self.branch_limit}; the request names no branch" if branch is None and target is None else None


class Access:
    """The rights of one caller. `decisions` collects the decisions; a server uses one object per request.

    With a policy, the policy decides; without one, `default`. `groups` are added to those in which the policy lists the
    actor. `only` limits what is then allowed. `graph` is the id that `only.graphs` is compared with.
    """

    __slots__ = (
        "_attributes", "_default", "_groups", "actor", "attributes", "decisions", "graph", "has_row_rules", "only",
        "owner_of", "policy",
    )  # fmt: skip

    def __init__(
        self,
        policy: Policy | None,
        actor: str | None,
        *,
        groups: Iterable[str] = (),
        only: Only | None = None,
        attributes: Mapping[str, Any] | None = None,
        default: Default = "deny",
        graph: str | None = None,
    ) -> None:
        self.policy = policy
        self.has_row_rules = policy is not None and policy.has_row_rules
        self.actor = actor
        self.only = only
        self.attributes = attributes or {}
        self.graph = graph
        self.owner_of: OwnerOf | None = None
        """Returns the owner of a branch; None if no decision depends on it, or no graph is known yet."""
        self.decisions: list[PolicyDecision] = []
        self._default: Default = default
        self._groups = tuple(sorted(set(groups))) if groups else ()
        self._attributes = attributes_key(attributes) if attributes else ()

    def __repr__(self) -> str:
        return f"Access(actor={self.actor!r})"

    @property
    def reads_owners(self) -> bool:
        """True if a decision can depend on the owner of a branch."""
        return self.policy is not None and self.policy.reads_owners

    def for_graph(self, owner_of: OwnerOf) -> Access:
        """Return this access for the branches of a graph; one that is in use on another graph is copied."""
        if not self.reads_owners:
            return self
        bound = self if self.owner_of is None else copy(self)
        bound.owner_of = owner_of
        return bound

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the caller brings, in addition to those of the policy."""
        return self._groups

    def as_actor(self, actor: str | None, groups: Iterable[str] = (), only: Only | None = None) -> Access:
        """Return the rights of another actor by the same policy, without the groups and limits of the token.

        `groups` are those that the token of the other actor brings, and `only` limits what is then allowed.
        """
        return Access(self.policy, actor, groups=groups, only=only, default=self._default, graph=self.graph)

    def as_definer(self, actor: str) -> Access:
        """Return the rights of the actor who stored a query, within the limits of the token of the caller."""
        return self.as_actor(actor, only=self.only)

    def row_policies(self, catalog: Catalog) -> RowPolicies | None:
        """Return the rules for rows. Rules that do not fit the schema deny everything; the log has their problems."""
        if self.policy is None:
            return None
        try:
            return self.policy.row_policies(catalog)
        except PolicyInvalid as error:
            # The problems name types and properties that the caller may not see.
            graph = "the graph" if self.graph is None else f"graph '{self.graph}'"
            _log.error("the rules for rows do not fit the schema of %s: %s", graph, error.message)
            raise Denied(
                "the rules for rows of the policy do not fit the schema of the graph, so nothing is visible",
                hint=_UNFIT_HINT,
            ) from None

    def visibility(self, catalog: Catalog, branch: str) -> Visibility | None:
        """Return the rows and values of a branch that the caller may see; None if it sees everything."""
        rules = self.row_policies(catalog)
        return rules.visibility(self._policy_actor(rules), branch) if rules is not None else None

    def write_guard(self, catalog: Catalog, branch: str) -> WriteGuard | None:
        """Return the rows and properties of a branch that the caller may change; None if it may change everything."""
        rules = self.row_policies(catalog)
        return rules.write_guard(self._policy_actor(rules), branch) if rules is not None else None

    def _policy_actor(self, rules: RowPolicies) -> PolicyActor:
        if self.actor is None:
            raise Denied("a caller without an actor sees no rows: the policy has rules for rows", hint=_NO_ACTOR_HINT)
        return rules.actor(self.actor, self._groups, self.attributes)

    def check(
        self,
        action: str,
        branch: str | None = None,
        target: str | None = None,
        name: str | None = None,
        proposal: ProposalFacts | None = None,
        query: QueryFacts | None = None,
    ) -> PolicyDecision:
        """Return the decision on an allowed request; raises `Denied` otherwise.

        The decision contains the trimmed names of the branches; the operation must use them.
        """
        decision = self.decide(action, branch, target, name, proposal, query)
        self._record(decision)
        if not decision.allowed:
            self._raise(decision)
        return decision

    def check_possible(self, action: str) -> None:
        """Raise `Denied` if an action is allowed on no branch; called before the branch is known."""
        decision = self._decide_without_branch(action)
        if not decision.allowed and not decision.nearest_rules:
            self._record(decision)
            self._raise(decision)

    def is_possible(self, action: str) -> bool:
        """Return False if an action is allowed on no branch; the decision is not recorded."""
        decision = self._decide_without_branch(action)
        return decision.allowed or bool(decision.nearest_rules)

    def _decide_without_branch(self, action: str) -> PolicyDecision:
        decision = self._judge(action, None, None)
        if self.only is None or not decision.allowed:
            return decision
        return self._narrow(decision, self.only, on_any=True)

    def decide(
        self,
        action: str,
        branch: str | None = None,
        target: str | None = None,
        name: str | None = None,
        proposal: ProposalFacts | None = None,
        query: QueryFacts | None = None,
    ) -> PolicyDecision:
        """Return the decision on a request without recording it."""
        decision = self._judge(action, branch, target, name, proposal, query)
        if self.only is not None and decision.allowed:
            decision = self._narrow(decision, self.only)
        return decision if name is None else replace(decision, name=name)

    def check_actor(self, actor: str | None) -> None:
        """Refuse a call that names another actor than that of this access."""
        if actor is None or actor == self.actor:
            return
        mine = "the caller has no actor" if self.actor is None else f"the caller is '{self.actor}'"
        reason = f"a call cannot name another actor: {mine}"
        message = f"the actor '{actor}' is denied: {reason}"
        self._record(PolicyDecision(False, self.actor, "actor", None, None, (), message, (reason,)))
        raise Denied(message, (reason,), hint="leave 'actor' out")

    def _judge(
        self,
        action: str,
        branch: str | None,
        target: str | None,
        name: str | None = None,
        proposal: ProposalFacts | None = None,
        query: QueryFacts | None = None,
    ) -> PolicyDecision:
        """Return the decision of the policy, without the limits of the token."""
        if self.policy is not None:
            owners = self._owners(self.owner_of, branch, target) if self.owner_of is not None else ()
            return self.policy.decide(
                self.actor, action, branch, target, groups=self._groups, attributes=self._attributes, name=name,
                owners=owners, proposal=proposal, query=query,
            )  # fmt: skip
        try:
            return _by_default(self._default, self.actor, action, branch, target)
        except TypeError:
            _check_names(branch, target)
            raise

    def _owners(self, owner_of: OwnerOf, *branches: str | None) -> BranchOwners:
        names = dict.fromkeys(branch.strip() for branch in branches if isinstance(branch, str))
        found = ((name, owner_of(name)) for name in names)
        return tuple((name, owner) for name, owner in found if owner is not None)

    def _raise(self, decision: PolicyDecision) -> NoReturn:
        hint: str | None = _ONLY_READ_HINT if self.policy is None and decision.reasons == (_ONLY_READ,) else None
        if self.policy is not None and self.actor is None:
            hint = _NO_ACTOR_HINT
        raise Denied(decision.message, decision.reasons, rules=decision.nearest_rules, hint=hint)

    def _record(self, decision: PolicyDecision) -> None:
        if len(self.decisions) >= DECISIONS_MAX:
            del self.decisions[: DECISIONS_MAX // 2]
        self.decisions.append(decision)

    def _narrow(self, decision: PolicyDecision, only: Only, *, on_any: bool = False) -> PolicyDecision:
        reason = only.excludes(decision, self.graph, on_any=on_any)
        if reason is None:
            return decision
        request = describe_request(decision.action, decision.branch, decision.target_branch)
        message = f"{request} is denied: {reason}"
        return replace(decision, allowed=False, matched_rules=(), message=message, reasons=(reason,))


def _check_names(*branches: str | None) -> None:
    """Refuse names of branches that are not texts and cannot be looked up."""
    for name in branches:
        if name is not None:
            branch_name(name)


@lru_cache(4096)
def _by_default(
    default: Default, actor: str | None, action: str, branch: str | None, target: str | None
) -> PolicyDecision:
    """Return the decision without a policy."""
    action = action_name(action)
    branch = branch_name(branch) if branch is not None else None
    target = branch_name(target) if target is not None else None
    if default == "allow" or (default == "read" and action == "read"):
        message = _ALLOWED if default == "allow" else _READ_ALLOWED
        return PolicyDecision(True, actor, action, branch, target, (), message)
    reason = _ONLY_READ if default == "read" else _NO_SERVER_POLICY if action in SERVER_ACTIONS else _NOTHING
    message = f"{describe_request(action, branch, target)} is denied: {reason}"
    return PolicyDecision(False, actor, action, branch, target, (), message, (reason,))


def _listed(word: str, names: tuple[str, ...]) -> str:
    if not names:
        return f"no {word}"
    plural = f"{word}es" if word == "branch" else f"{word}s"
    return f"the {word if len(names) == 1 else plural} {listing(names)}"
