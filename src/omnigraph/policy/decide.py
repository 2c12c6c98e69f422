"""Decisions of a policy: what is not allowed is denied, and a failure allows nothing."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from omnigraph.errors import Denied, InputError
from omnigraph.policy.cedar import CedarPolicies
from omnigraph.policy.rules import WITHOUT_EFFECT, PolicyRule, PolicyRules, action_name, branch_name
from omnigraph.policy.yaml import read_rules
from omnigraph.suggestions import listing

CACHE_MAX = 16_384
"""Number of decisions that a policy keeps."""

Why = Literal["ok", "actor_not_in_group", "action_not_listed", "no_effect", "scope"]
Key = tuple[str | None, str, str | None, str | None]


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

    @property
    def matched_rule(self) -> str | None:
        """The first of `matched_rules`, or None."""
        return self.matched_rules[0] if self.matched_rules else None


@dataclass(frozen=True)
class ConsideredRule:
    """A rule and whether it allows a request."""

    rule: str
    why: Why

    def to_json(self) -> dict[str, Any]:
        """Return the rule as a JSON object."""
        return {"rule": self.rule, "matched": self.why == "ok", "why": self.why}


@dataclass
class Policy:
    """A compiled policy. It is immutable apart from its cache and can be shared by threads.

    The cache maps (actor, action, branch, target branch) to a decision. It belongs to this object, so a reloaded
    policy starts with an empty cache. When it is full, the oldest entry is removed.
    """

    rules: PolicyRules
    graph: str = "graph"
    """The id of the graph; it does not influence decisions."""
    cache_max: int = CACHE_MAX
    _cedar: CedarPolicies = field(init=False, repr=False)
    _decisions: dict[Key, PolicyDecision] = field(init=False, repr=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._cedar = CedarPolicies(self.rules, self.graph)

    @property
    def cedar_text(self) -> str:
        """The policy as Cedar text."""
        return self._cedar.text

    @property
    def cached(self) -> int:
        """The number of cached decisions."""
        return len(self._decisions)

    def decide(
        self, actor: str | None, action: str, branch: str | None = None, target_branch: str | None = None
    ) -> PolicyDecision:
        """Return the decision on a request.

        Without an actor, every request is denied. An unknown action and a blank branch name are an `InputError`.
        """
        key = (actor, action, branch, target_branch)
        found = self._decisions.get(key)
        return found if found is not None else self._decide_and_keep(key)

    def check(
        self, actor: str | None, action: str, branch: str | None = None, target_branch: str | None = None
    ) -> PolicyDecision:
        """Return the decision on an allowed request; raises `Denied` with the reasons otherwise."""
        decision = self.decide(actor, action, branch, target_branch)
        if not decision.allowed:
            raise Denied(decision.message, decision.reasons)
        return decision

    def consider(self, decision: PolicyDecision) -> list[ConsideredRule]:
        """Return every rule in file order, and why it does or does not allow the request of a decision."""
        groups = self._groups(decision.actor)
        return [ConsideredRule(rule.id, _why(rule, decision, groups)) for rule in self.rules.rules]

    def _decide_and_keep(self, key: Key) -> PolicyDecision:
        _check_types(key)
        decision = self._decide(*key)
        with self._lock:
            if len(self._decisions) >= self.cache_max:
                del self._decisions[next(iter(self._decisions))]
            self._decisions[key] = decision
        return decision

    def _decide(self, actor: str | None, action: str, branch: str | None, target_branch: str | None) -> PolicyDecision:
        action = action_name(action)
        branch = branch_name(branch) if branch is not None else None
        target = branch_name(target_branch) if target_branch is not None else None
        groups = self._groups(actor)
        # An actor without groups can match no permit; Cedar has no entity for it.
        decidable = actor is not None and groups and action not in WITHOUT_EFFECT
        matched = self._cedar.matches(actor or "", action, branch, target) if decidable else ()
        request = _request(action, branch, target)
        if matched:
            message = f"rule '{matched[0]}' allows {request} for actor '{actor}'"
            return PolicyDecision(True, actor, action, branch, target, matched, message)
        decision = PolicyDecision(False, actor, action, branch, target, (), "")
        reasons = tuple(self._reasons(decision, groups))
        if actor is None or not groups:
            message = f"{request} is denied: {reasons[0]}"
        else:
            message = f"no rule allows {request} for actor '{actor}'"
        return PolicyDecision(False, actor, action, branch, target, (), message, reasons)

    def _groups(self, actor: str | None) -> tuple[str, ...]:
        return self.rules.groups_of.get(actor, ()) if actor is not None else ()

    def _reasons(self, decision: PolicyDecision, groups: tuple[str, ...]) -> list[str]:
        """Return why a request is denied: one sentence per rule that fails only because of its scope."""
        actor, action = decision.actor, decision.action
        if actor is None:
            return ["no actor was given"]
        if not groups:
            return [f"actor '{actor}' is unknown to the policy: no group lists it"]
        if action in WITHOUT_EFFECT:
            return [f"action '{action}' has no effect and is always denied"]
        near = [rule for rule in self.rules.rules if _why(rule, decision, groups) == "scope"]
        if not near:
            return [f"no rule lists action '{action}' for a group of actor '{actor}' ({listing(groups)})"]
        return [_scope_reason(rule, decision) for rule in near]


def _check_types(key: tuple[object, ...]) -> None:
    for name, value in zip(("actor", "action", "branch", "target_branch"), key, strict=True):
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


def _request(action: str, branch: str | None, target: str | None) -> str:
    parts = [f"action '{action}'"]
    if branch is not None:
        parts.append(f"on branch '{branch}'")
    if target is not None:
        parts.append(f"with target branch '{target}'")
    return " ".join(parts)


def load_policy(path: Path | str, *, graph: str = "graph") -> Policy:
    """Read and compile a policy file; raises `PolicyInvalid` with all problems."""
    return Policy(read_rules(path), graph)
