"""Audit records of requests: which requests are recorded, and what their record says."""

from __future__ import annotations

import hashlib

from omnigraph.policy.decide import PolicyDecision
from omnigraph.server.caller import Caller
from omnigraph.server.route import Route
from omnigraph.wire.audit import AuditRecord

_RECORDED_ACTIONS = frozenset({"export", "admin"})
"""Actions that are recorded although they write nothing."""
_DENIED = (401, 403)


def is_recorded(route: Route, caller: Caller, status: int) -> bool:
    """Return True if a request is recorded: a write, a denial, an export, or with `audit.reads: all` every request."""
    if route.scope == "public":
        return False
    if caller.writes or status in _DENIED or any(not decision.allowed for decision in _decisions(caller)):
        return True
    if any(gate.action in _RECORDED_ACTIONS for gate in route.gates):
        return True
    audit = caller.state.audit
    return audit is not None and audit.reads == "all"


def audit_record(route: Route, caller: Caller, status: int, commit: str | None, ms: float) -> AuditRecord:
    """Return the record of a request. The decision is the denial if there is one, else the last decision."""
    decisions = _decisions(caller)
    decision = next((each for each in decisions if not each.allowed), decisions[-1] if decisions else None)
    denied = status in _DENIED or (decision is not None and not decision.allowed)
    principal = caller.principal
    return AuditRecord(
        request_id=caller.request_id,
        actor=caller.actor,
        token_name=principal.token_name if principal is not None else None,
        remote=caller.remote,
        route=f"{route.method} {route.path}",
        graph=caller.served.graph_id if caller.served is not None else None,
        branch=_branch(decision),
        action=_action(route, decision, status),
        decision="deny" if denied else "allow",
        rules=list(decision.matched_rules) if decision is not None else [],
        commit=commit,
        rows=caller.audit.get("rows"),
        query_hash=_query_hash(caller),
        definer=caller.audit.get("definer"),
        status=status,
        ms=round(ms, 3),
    )


def _decisions(caller: Caller) -> list[PolicyDecision]:
    return caller.access.decisions if caller.access is not None else []


def _branch(decision: PolicyDecision | None) -> str | None:
    return (decision.target_branch or decision.branch) if decision is not None else None


def _action(route: Route, decision: PolicyDecision | None, status: int) -> str:
    if status == 401:
        return "authenticate"
    if decision is not None:
        return decision.action
    return route.gates[-1].action if route.gates else "none"


def _query_hash(caller: Caller) -> str | None:
    source = caller.audit.get("source")
    if source is None:
        return None
    return hashlib.sha256(source.encode(errors="backslashreplace")).hexdigest()[:24]
