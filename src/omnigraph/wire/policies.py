"""Documents of policy decisions."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from omnigraph.wire.document import Document

Verdict = Literal["allow", "deny"]
Why = Literal["ok", "actor_not_in_group", "action_not_listed", "no_effect", "scope", "denies", "condition"]


class ConsideredRuleDocument(Document):
    """A rule, and why it does or does not allow a request."""

    rule: str
    matched: bool
    why: Why
    line: int | UnsetType = UNSET
    """The line of the rule in the policy file."""
    missing: list[str] | UnsetType = UNSET
    """The attributes that the rule reads and that the row or the actor does not have."""


class EndDecisionDocument(Document):
    """The decision on reading the node at an end of an edge."""

    end: Literal["from", "to"]
    type: str
    id: str
    decision: Verdict
    rules: list[str]


class PolicyExplainDocument(Document):
    """The decision on one request, and the rules that were considered.

    The members after `considered` are those of a decision on a row.
    """

    decision: Verdict
    actor: str | None
    action: str
    branch: str | None
    target_branch: str | None
    matched_rule: str | None
    message: str
    reasons: list[str]
    considered: list[ConsideredRuleDocument]
    type: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    rules: list[str] | UnsetType = UNSET
    """The rules that decided."""
    condition: str | UnsetType = UNSET
    """The condition that a scan tests, with the constants of the actor and the branch."""
    properties: dict[str, Literal["show", "mask", "hide"]] | UnsetType = UNSET
    readable: bool | UnsetType = UNSET
    """Whether the actor may read the stored row that it is to change."""
    ends: list[EndDecisionDocument] | UnsetType = UNSET


class PolicyCaseDocument(Document):
    """A case, its expected and its actual decision, and the views of its properties."""

    id: str
    expect: Verdict
    actual: Verdict
    ok: bool
    matched_rule: str | None
    properties: dict[str, Literal["show", "mask", "hide"]] | UnsetType = UNSET


class PolicyTestDocument(Document):
    """The result of the cases of a policy."""

    passed: int
    failed: int
    cases: list[PolicyCaseDocument]
