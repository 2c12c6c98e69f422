"""Decisions of a policy: what is not allowed is denied, and a failure allows nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.errors import Denied, InputError
from omnigraph.policy.cedar import CedarPolicies
from omnigraph.policy.proposal_rules import ProposalFacts
from omnigraph.policy.rules import (
    ACTIONS_OF,
    FILE_KEYS,
    KNOWN_ACTIONS,
    WITHOUT_EFFECT,
    PolicyKind,
    PolicyRule,
    PolicyRules,
    action_name,
    branch_name,
    other_kind,
)
from omnigraph.policy.statements import (
    Attributes,
    BranchOwners,
    PolicyStatements,
    QueryFacts,
    Statement,
    actions_of,
)
from omnigraph.suggestions import listing

if TYPE_CHECKING:
    from omnigraph.policy.rows.row_policies import RowPolicies
    from omnigraph.policy.statements_cedar import CedarStatements
    from omnigraph.schema.catalog import Catalog

SCHEMAS_MAX = 64
"""Number of schemas for which a policy keeps its rules for rows."""
CACHE_MAX = 16_384
"""Number of decisions that a policy keeps."""

Why = Literal["ok", "actor_not_in_group", "action_not_listed", "no_effect", "scope", "denies", "condition"]
Key = tuple[
    str | None, str, str | None, str | None, tuple[str, ...], Attributes, str | None, BranchOwners,
    ProposalFacts | None, QueryFacts | None,
]  # fmt: skip


@dataclass(frozen=True)
class PolicyDecision:
    """The decision on one request. `branch` and `target_branch` are the trimmed names; the operation must use them."""

    allowed: bool
    actor: str | None
    action: str
    branch: str | None
    target_branch: str | None
    matched_rules: tuple[str, ...]
    """The ids of all rules that allow the request, in code point order."""
    message: str
    reasons: tuple[str, ...] = ()
    """Why the request is denied; empty if it is allowed."""
    nearest_rules: tuple[str, ...] = ()
    """The ids of the rules that list the action for the actor, and whose scope excludes the request."""
    name: str | None = None
    """The name of the stored query, for `invoke_query`; version 1 of a policy does not read it."""
    denied_by: tuple[str, ...] = ()
    """The ids of the rules that deny the request, in code point order."""
    skips_row_check: bool = False
    """True if a rule that allows a merge says that its rows are not checked."""

    @property
    def matched_rule(self) -> str | None:
        """The first of `matched_rules`, or None."""
        return self.matched_rules[0] if self.matched_rules else None

    def to_json(self) -> dict[str, Any]:
        """Return the decision as a JSON object, without its reasons."""
        return {
            "decision": "allow" if self.allowed else "deny",
            "actor": self.actor,
            "action": self.action,
            "branch": self.branch,
            "target_branch": self.target_branch,
            "matched_rule": self.matched_rule,
            "message": self.message,
        }

    def raise_denied(self) -> None:
        """Raise `Denied` if the request is denied."""
        if not self.allowed:
            raise Denied(self.message, self.reasons, rules=self.nearest_rules)


@dataclass(frozen=True)
class ConsideredRule:
    """A rule and whether it allows a request."""

    rule: str
    why: Why
    line: int | None = None
    """The line of the rule in the file; None for a Cedar policy."""

    def to_json(self) -> dict[str, Any]:
        """Return the rule as a JSON object."""
        found = {"rule": self.rule, "matched": self.why == "ok", "why": self.why}
        return found if self.line is None else {**found, "line": self.line}


@dataclass
class Policy:
    """A compiled policy. It is immutable apart from its cache and can be shared by threads.

    The cache maps the parts of a request to a decision. It belongs to this object, so a reloaded policy starts with an
    empty cache. When it is full, the oldest entry is removed.
    """

    rules: PolicyRules | PolicyStatements
    graph: str = "graph"
    """The id of the graph; it does not influence decisions."""
    cache_max: int = CACHE_MAX
    _cedar: CedarPolicies | CedarStatements = field(init=False, repr=False)
    _decisions: dict[Key, PolicyDecision] = field(init=False, repr=False, default_factory=dict)
    _row_policies: dict[int, RowPolicies] = field(init=False, repr=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if isinstance(self.rules, PolicyRules):
            self._cedar = CedarPolicies(self.rules, self.graph)
            return
        from omnigraph.policy.statements_cedar import CedarStatements  # noqa: PLC0415 (version 1 does not need it)

        self._cedar = CedarStatements(self.rules, self.graph)

    @property
    def has_row_rules(self) -> bool:
        """True if the policy limits rows or properties."""
        return isinstance(self.rules, PolicyStatements) and self.rules.has_row_rules

    def row_policies(self, catalog: Catalog) -> RowPolicies | None:
        """Return the rules for rows and properties, bound to a schema; None if there are none.

        A schema for which the rules are not valid is an `InputError`.
        """
        if not isinstance(self.rules, PolicyStatements) or not self.rules.has_row_rules:
            return None
        found = self._row_policies.get(id(catalog))
        if found is None or found.catalog is not catalog:
            from omnigraph.policy.rows.row_policies import RowPolicies  # noqa: PLC0415 (only for rules for rows)

            found = RowPolicies(self.rules, catalog, self.graph)
            with self._lock:
                while len(self._row_policies) >= SCHEMAS_MAX:
                    del self._row_policies[next(iter(self._row_policies))]
                self._row_policies[id(catalog)] = found
        return found

    @property
    def reads_owners(self) -> bool:
        """True if a decision can depend on the owner of a branch."""
        return isinstance(self.rules, PolicyStatements) and self.rules.reads_owners

    @property
    def cedar_text(self) -> str:
        """The policy as Cedar text."""
        return self._cedar.text

    @property
    def cached(self) -> int:
        """The number of cached decisions."""
        return len(self._decisions)

    def decide(
        self,
        actor: str | None,
        action: str,
        branch: str | None = None,
        target_branch: str | None = None,
        *,
        groups: tuple[str, ...] = (),
        attributes: Attributes = (),
        name: str | None = None,
        owners: BranchOwners = (),
        proposal: ProposalFacts | None = None,
        query: QueryFacts | None = None,
    ) -> PolicyDecision:
        """Return the decision on a request. `groups` are added to those in which the policy lists the actor.

        `attributes` supply those that the policy declares and does not set; `name` and `query` are those of a stored
        query, `owners` those of the branches, and `proposal` is the one that an action concerns. Version 1 reads none
        of them. A query that is known by its name alone counts as a read with the rights of its caller.
        Without an actor, every request is denied. An unknown action and a blank branch name are an `InputError`.
        """
        if isinstance(self.rules, PolicyRules):
            attributes, name, owners, proposal, query = (), None, (), None, None
        else:
            proposal = proposal if self.rules.reads_proposals else None
            query = query if self.rules.reads_queries else None
        key = (actor, action, branch, target_branch, groups, attributes, name, owners, proposal, query)
        try:
            found = self._decisions.get(key)
        except TypeError:
            _check_types(key)
            raise
        return found if found is not None else self._decide_and_keep(key)

    def check(
        self, actor: str | None, action: str, branch: str | None = None, target_branch: str | None = None
    ) -> PolicyDecision:
        """Return the decision on an allowed request; raises `Denied` with the reasons otherwise."""
        decision = self.decide(actor, action, branch, target_branch)
        decision.raise_denied()
        return decision

    def explain(self, decision: PolicyDecision) -> dict[str, Any]:
        """Return a decision as a JSON object with its reasons and the rules that were considered."""
        considered = [rule.to_json() for rule in self.consider(decision)]
        return {**decision.to_json(), "reasons": list(decision.reasons), "considered": considered}

    def consider(self, decision: PolicyDecision) -> list[ConsideredRule]:
        """Return every rule in file order, and why it does or does not allow the request of a decision."""
        groups = self._groups(decision.actor)
        if isinstance(self.rules, PolicyStatements):
            return [
                *(ConsideredRule(rule.id, self._why_statement(rule, decision, groups), rule.line)
                  for rule in self.rules.rules),
                *(ConsideredRule(policy_id, _why_cedar(policy_id, policy, decision))
                  for policy_id, policy in self.rules.cedar_policies.items()),
            ]  # fmt: skip
        return [ConsideredRule(rule.id, _why(rule, decision, groups), rule.line) for rule in self.rules.rules]

    def _decide_and_keep(self, key: Key) -> PolicyDecision:
        _check_types(key)
        decision = self._decide(*key)
        with self._lock:
            if len(self._decisions) >= self.cache_max:
                del self._decisions[next(iter(self._decisions))]
            self._decisions[key] = decision
        return decision

    def _decide(
        self,
        actor: str | None,
        action: str,
        branch: str | None,
        target_branch: str | None,
        groups: tuple[str, ...],
        attributes: Attributes,
        name: str | None,
        owners: BranchOwners,
        proposal: ProposalFacts | None,
        query: QueryFacts | None,
    ) -> PolicyDecision:
        action = action_name(action)
        branch = branch_name(branch) if branch is not None else None
        target = branch_name(target_branch) if target_branch is not None else None
        groups = self._groups(actor, groups)
        if isinstance(self.rules, PolicyStatements):
            return self._decide_statements(
                self.rules, actor, action, branch, target, groups, attributes, name, owners, proposal, query
            )
        assert isinstance(self._cedar, CedarPolicies)
        # An actor without groups can match no permit; Cedar has no entity for it.
        undecidable = action in WITHOUT_EFFECT or other_kind(action, self.rules.kind) is not None
        decidable = actor is not None and groups and not undecidable and action in ACTIONS_OF[self.rules.kind]
        matched = self._cedar.matches(actor or "", groups, action, branch, target) if decidable else ()
        request = describe_request(action, branch, target)
        if matched:
            message = f"rule '{matched[0]}' allows {request} for actor '{actor}'"
            return PolicyDecision(True, actor, action, branch, target, matched, message)
        decision = PolicyDecision(False, actor, action, branch, target, (), "")
        near = tuple(rule for rule in self.rules.rules if _why(rule, decision, groups) == "scope")
        reasons = tuple(self._reasons(decision, groups, near))
        if actor is None or not groups or undecidable:
            message = f"{request} is denied: {reasons[0]}"
        else:
            message = f"no rule allows {request} for actor '{actor}'"
        return replace(decision, message=message, reasons=reasons, nearest_rules=tuple(rule.id for rule in near))

    def _decide_statements(
        self,
        statements: PolicyStatements,
        actor: str | None,
        action: str,
        branch: str | None,
        target: str | None,
        groups: tuple[str, ...],
        attributes: Attributes,
        name: str | None,
        owners: BranchOwners,
        proposal: ProposalFacts | None,
        query: QueryFacts | None,
    ) -> PolicyDecision:
        """Return the decision of a policy of version 2."""
        from omnigraph.policy.statements_cedar import CedarStatements  # noqa: PLC0415 (imported with the policy)

        assert isinstance(self._cedar, CedarStatements)
        request = describe_request(action, branch, target)
        decision = PolicyDecision(False, actor, action, branch, target, (), "", name=name)
        reason = self._undecidable(actor, action)
        if reason is not None or actor is None:
            message = f"{request} is denied: {reason}"
            return replace(decision, message=message, reasons=(reason or "",))
        held = statements.attributes_of(actor, attributes)
        found = self._cedar.judge(actor, groups, held, action, branch, target, name, owners, proposal, query)
        if found.allowed:
            known = (statements.rule_by_id.get(rule) for rule in found.allowing)
            skipping = [rule.id for rule in known if rule is not None and rule.row_check == "skip"]
            message = f"rule '{found.allowing[0]}' allows {request} for actor '{actor}'"
            if skipping:
                message += f"; rule '{skipping[0]}' skips the check of rows"
            return replace(
                decision, allowed=True, matched_rules=found.allowing, message=message, skips_row_check=bool(skipping)
            )
        decision = replace(decision, denied_by=found.denying)
        near = tuple(
            rule
            for rule in statements.rules
            if rule.effect == "allow" and self._why_statement(rule, decision, groups) in ("scope", "condition")
        )
        more = tuple(
            policy_id
            for policy_id, policy in statements.cedar_policies.items()
            if policy["effect"] == "permit" and _why_cedar(policy_id, policy, decision) == "condition"
        )
        if found.denying:
            message = f"rule '{found.denying[0]}' denies {request} for actor '{actor}'"
            reasons: tuple[str, ...] = tuple(f"rule '{rule}' denies the request" for rule in found.denying)
        else:
            message = f"no rule allows {request} for actor '{actor}'"
            reasons = tuple(_statement_reason(rule, decision) for rule in near)
            reasons += tuple(f"the Cedar policy '{policy_id}' does not match" for policy_id in more)
        if not reasons:
            listed = f"no rule lists action '{action}' for a group of actor '{actor}' ({listing(groups)})"
            unknown = f"actor '{actor}' is unknown to the policy: no group lists it"
            reasons = (listed if groups else unknown,)
        nearest = (*(rule.id for rule in near), *more)
        return replace(decision, message=message, reasons=reasons, nearest_rules=nearest)

    def _undecidable(self, actor: str | None, action: str) -> str | None:
        """Return why a request is denied without asking Cedar; None if Cedar decides."""
        other = other_kind(action, self.rules.kind)
        if actor is None:
            return "no actor was given"
        if other is not None:
            return f"rules for action '{action}' are in the {other} policy ('{FILE_KEYS[other]}')"
        if action in WITHOUT_EFFECT:
            return f"action '{action}' has no effect and is always denied"
        return None

    def _why_statement(self, rule: Statement, decision: PolicyDecision, groups: tuple[str, ...]) -> Why:
        """Return why a rule does or does not decide a request; Cedar has decided whether it does."""
        assert isinstance(self.rules, PolicyStatements)
        if rule.id in decision.denied_by:
            return "denies"
        if rule.id in decision.matched_rules:
            return "ok"
        if not rule.covers(groups):
            return "actor_not_in_group"
        if decision.action not in rule.actions:
            return "action_not_listed"
        if decision.action in WITHOUT_EFFECT:
            return "no_effect"
        judged = _judged_branch(decision)
        protected = self.rules.is_protected(judged)
        grants = (grant for grant in rule.grants if decision.action in grant.actions)
        selected = any(grant.branches.selects(judged, protected=protected) for grant in grants)
        return "condition" if selected and (rule.when is not None or rule.queries) else "scope"

    def _groups(self, actor: str | None, more: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the groups of an actor; a group that the policy does not define has no effect."""
        if actor is None:
            return ()
        if isinstance(self.rules, PolicyStatements):
            return self.rules.groups_for(actor, more)
        listed = self.rules.groups_of.get(actor, ())
        if not more:
            return listed
        return tuple(dict.fromkeys((*listed, *(group for group in more if group in self.rules.groups))))

    def _reasons(self, decision: PolicyDecision, groups: tuple[str, ...], near: tuple[PolicyRule, ...]) -> list[str]:
        """Return why a request is denied: one sentence per rule that fails only because of its scope."""
        actor, action = decision.actor, decision.action
        other = other_kind(action, self.rules.kind)
        if actor is None:
            return ["no actor was given"]
        if other is not None:
            return [f"rules for action '{action}' are in the {other} policy ('{FILE_KEYS[other]}')"]
        if not groups:
            return [f"actor '{actor}' is unknown to the policy: no group lists it"]
        if action in WITHOUT_EFFECT:
            return [f"action '{action}' has no effect and is always denied"]
        if not near:
            return [f"no rule lists action '{action}' for a group of actor '{actor}' ({listing(groups)})"]
        return [_scope_reason(rule, decision) for rule in near]


def _check_types(key: tuple[object, ...]) -> None:
    for name, value in zip(("actor", "action", "branch", "target_branch"), key, strict=False):
        if not isinstance(value, str) and (value is not None or name == "action"):
            raise InputError(f"'{name}' must be a string (got {value!r})")


def _why(rule: PolicyRule, decision: PolicyDecision, groups: tuple[str, ...]) -> Why:
    """Return why a rule does or does not match; Cedar has decided whether it does."""
    if rule.id in decision.matched_rules:
        return "ok"
    if rule.group not in groups:
        return "actor_not_in_group"
    if decision.action not in rule.actions:
        return "action_not_listed"
    return "no_effect" if decision.action in WITHOUT_EFFECT else "scope"


def _why_cedar(policy_id: str, policy: Mapping[str, Any], decision: PolicyDecision) -> Why:
    if policy_id in decision.denied_by:
        return "denies"
    if policy_id in decision.matched_rules:
        return "ok"
    actions = actions_of(policy)
    return "condition" if actions is None or decision.action in actions else "action_not_listed"


def _judged_branch(decision: PolicyDecision) -> str | None:
    """Return the branch that a rule of version 2 is compared with."""
    target = KNOWN_ACTIONS[decision.action] == "target_branch_scope"
    return decision.target_branch if target else decision.branch


def _statement_reason(rule: Statement, decision: PolicyDecision) -> str:
    judged = _judged_branch(decision)
    grant = next(grant for grant in rule.grants if decision.action in grant.actions)
    if rule.queries and (decision.name is None or grant.branches.is_any):
        return f"rule '{rule.id}' allows '{decision.action}' of the queries {listing(rule.queries)} only"
    if grant.own_rights:
        return f"rule '{rule.id}' allows '{decision.action}' of queries without '@definer' only"
    if grant.branches.is_any:
        return f"rule '{rule.id}' allows '{decision.action}' under a condition that does not hold"
    found = "the request names no branch" if judged is None else f"'{judged}' is not one of them"
    return f"rule '{rule.id}' allows '{decision.action}' on {grant.branches.describe()} only; {found}"


def _scope_reason(rule: PolicyRule, decision: PolicyDecision) -> str:
    assert rule.scope is not None
    key, scope = rule.scope
    name = decision.branch if key == "branch_scope" else decision.target_branch
    word = "branch" if key == "branch_scope" else "target branch"
    plural = "branches" if key == "branch_scope" else "target branches"
    if name is None:
        found = f"the request names no {word}"
    else:
        found = f"'{name}' is {'not protected' if scope == 'protected' else 'protected'}"
    return f"rule '{rule.id}' allows '{decision.action}' on {scope} {plural} only; {found}"


def describe_request(action: str, branch: str | None, target: str | None) -> str:
    """Return a request as words, for messages."""
    parts = [f"action '{action}'"]
    if branch is not None:
        parts.append(f"on branch '{branch}'")
    if target is not None:
        parts.append(f"with target branch '{target}'")
    return " ".join(parts)


def load_policy(path: Path | str, *, graph: str = "graph") -> Policy:
    """Read and compile the policy of a graph, a file or a folder; raises `PolicyInvalid` with all problems."""
    return Policy(_read_rules(path, "graph"), graph)


def load_server_policy(path: Path | str) -> Policy:
    """Read and compile the policy of a server, which decides on the actions of `SERVER_ACTIONS` only."""
    return Policy(_read_rules(path, "server"), "server")


def _read_rules(path: Path | str, kind: PolicyKind) -> PolicyRules | PolicyStatements:
    from omnigraph.policy.load import parse_policy, read_policy  # noqa: PLC0415 (a graph without a policy reads no YAML)

    return parse_policy(read_policy(path, kind), kind)
