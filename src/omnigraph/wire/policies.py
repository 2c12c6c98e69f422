"""Documents of policy decisions."""

from __future__ import annotations

from typing import Literal

from omnigraph.wire.document import Document

Verdict = Literal["allow", "deny"]
Why = Literal["ok", "actor_not_in_group", "action_not_listed", "no_effect", "scope", "denies", "condition"]


class ConsideredRuleDocument(Document):
    """A rule, and why it does or does not allow a request."""

    rule: str
    matched: bool
    why: Why


class PolicyExplainDocument(Document):
    """The decision on one request, and the rules that were considered."""

    decision: Verdict
    actor: str | None
    action: str
    branch: str | None
    target_branch: str | None
    matched_rule: str | None
    message: str
    reasons: list[str]
    considered: list[ConsideredRuleDocument]


class PolicyCaseDocument(Document):
    """A case, its expected and its actual decision."""

    id: str
    expect: Verdict
    actual: Verdict
    ok: bool
    matched_rule: str | None


class PolicyTestDocument(Document):
    """The result of the cases of a policy."""

    passed: int
    failed: int
    cases: list[PolicyCaseDocument]
