"""Decisions of the policy in force: on requests, on rows, and on cases of tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.errors import InputError, NotFound, TypeNotFound
from omnigraph.graph_handle import context_of
from omnigraph.operations.authorization.access import Access
from omnigraph.operations.stored_queries import query_facts
from omnigraph.policy.decide import Policy
from omnigraph.policy.rules import ROW_ACTIONS
from omnigraph.policy.statements import attributes_key
from omnigraph.policy.tests import PolicyCase, run_cases
from omnigraph.server.caller import Caller
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.policies import PolicyCaseDocument, PolicyExplainDocument, PolicyTestDocument
from omnigraph.wire.requests.admin import PolicyCase as GivenCase
from omnigraph.wire.requests.admin import PolicyExplainRequest, PolicyTestRequest

if TYPE_CHECKING:  # a server without a policy runs without cedarpy
    from omnigraph.policy.rows.row_explanation import RowExplanation, StoredRow
    from omnigraph.policy.rows.row_policies import RowPolicies

_READ = "row_read"
_MATCHED = ("ok", "denies")
_DECIDED = {"allow": "allowed", "deny": "denied"}


def explain_policy(caller: Caller, body: PolicyExplainRequest) -> PolicyExplainDocument:
    """Return the decision of the policy in force on one request or row, and the rules that were considered."""
    policy = _policy(caller)
    if body.type is not None:
        return _explain_row(caller, policy, body, body.type)
    if body.action is None or body.data is not None or body.id is not None:
        raise InputError("give 'action', or 'type' and 'data' or 'id'", code="bad_member")
    if body.actor is None:
        _refuse_identity(body)
        own = _access(caller).decide(body.action, body.branch, body.target_branch)
        # The other rules are not shown to a caller without the right 'admin'.
        members = {**own.to_json(), "reasons": list(own.reasons), "considered": []}
        return PolicyExplainDocument.of(members)
    decision = policy.decide(
        body.actor,
        body.action,
        body.branch,
        body.target_branch,
        groups=tuple(body.groups),
        attributes=attributes_key(body.attributes),
    )
    return PolicyExplainDocument.of(policy.explain(decision))


def _explain_row(caller: Caller, policy: Policy, body: PolicyExplainRequest, type_name: str) -> PolicyExplainDocument:
    """Explain the decision on a row.

    A caller without the right `admin` learns the decision on itself and on a row that it sees, but no rules and no
    condition. Other explanations contain names and values that rules may hide, so they need a caller who sees all.
    """
    action, branch = body.action or _READ, body.branch or MAIN
    if action not in ROW_ACTIONS:
        raise InputError(
            f"'{action}' is not an action on rows", code="bad_member", hint=did_you_mean(action, ROW_ACTIONS)
        )
    if body.id is not None and body.data is not None:
        raise InputError("give 'data' or 'id'", code="bad_member")
    context = context_of(caller.graph)
    snapshot = context.snapshot(branch)
    if body.actor is None:
        _refuse_identity(body)
        if type_name not in {each.name for each in context.catalog(snapshot).tables()}:
            raise TypeNotFound(f"there is no type '{type_name}'")
    if body.actor is not None or body.id is None:
        context.check_whole("the explanation of a decision on a row", snapshot)
    rows = _rows(caller, policy, branch)
    actor = rows.actor(*_identity(caller, body))
    row: Mapping[str, Any] | StoredRow = body.data or {}
    if body.id is not None:
        if body.actor is None and caller.graph.get(type_name, body.id, branch=branch) is None:
            # A row that the caller cannot see does not exist for it.
            raise NotFound(f"{type_name} '{body.id[:80]}' does not exist on branch '{branch}'", code="entity_not_found")
        row = _stored(caller, rows, type_name, body.id, branch)
    from omnigraph.policy.rows.row_explanation import explain_row  # noqa: PLC0415

    found = explain_row(rows, actor, action, type_name, branch, row)
    return _row_document(found, with_rules=body.actor is not None)


def _identity(caller: Caller, body: PolicyExplainRequest) -> tuple[str, Sequence[str], Mapping[str, Any]]:
    """Return the actor that a request names, or the caller, with the groups and attributes of its token."""
    if body.actor is not None:
        return body.actor, body.groups, body.attributes
    access = _access(caller)
    assert access.actor is not None, "a caller without an actor sees no rows"
    return access.actor, access.groups, access.attributes


def _stored(caller: Caller, rows: RowPolicies, type_name: str, id_: str, branch: str) -> StoredRow:
    assert caller.served is not None
    assert caller.served.graph is not None
    graph = caller.served.graph

    def read(name: str, row_id: str, kind: Literal["node", "edge"]) -> dict[str, Any] | None:
        return graph.get(name, row_id, branch=branch, kind=kind)

    from omnigraph.policy.rows.row_explanation import read_stored_row  # noqa: PLC0415

    return read_stored_row(rows, read, type_name, id_, branch)


def _row_document(found: RowExplanation, *, with_rules: bool) -> PolicyExplainDocument:
    members = found.to_json()
    considered = [{**one, "matched": one["why"] in _MATCHED} for one in members["considered"]]
    decided = f"action '{found.action}' on the row of '{found.type}' is {_DECIDED[found.decision]}"
    members |= {
        "target_branch": None,
        "matched_rule": found.rules[0] if found.rules else None,
        "message": f"{decided} for actor '{found.actor}'",
        "reasons": found.reasons() if with_rules else [],
        "considered": considered if with_rules else [],
    }
    if not with_rules:
        members["properties"] = {name: view for name, view in found.properties.items() if view != "hide"}
        for member in ("condition", "ends", "readable"):
            members.pop(member, None)
    return PolicyExplainDocument.of(members)


def check_policy(caller: Caller, body: PolicyTestRequest) -> PolicyTestDocument:
    """Compare the decisions of the policy in force with expected ones."""
    policy, rows = _policy(caller), None
    if any(case.type is not None for case in body.cases):
        context = context_of(caller.graph)
        context.check_whole("a case on a row", context.snapshot(MAIN))
        rows = _rows(caller, policy, MAIN)
    # A query that the caller may not call does not exist for it.
    stored = partial(query_facts, caller.graph.queries)
    outcomes = run_cases(policy, [_case(case) for case in body.cases], rows, stored)
    passed = sum(outcome.ok for outcome in outcomes)
    documents = [PolicyCaseDocument.of(outcome.to_json()) for outcome in outcomes]
    return PolicyTestDocument(passed, len(outcomes) - passed, documents)


def _case(case: GivenCase) -> PolicyCase:
    action = case.action if case.action is not None or case.type is None else _READ
    if action is None:
        raise InputError(f"case '{case.id}' has no action", code="bad_member")
    if case.type is not None and action not in ROW_ACTIONS:
        raise InputError(f"case '{case.id}': '{action}' is not an action on rows", code="bad_member")
    return PolicyCase(
        case.id,
        case.actor,
        action,
        case.branch,
        case.target_branch,
        case.expect,
        case.type,
        case.data,
        case.properties,
        tuple(case.groups),
        case.attributes,
        case.query,
        case.changes,
        case.definer,
    )


def _refuse_identity(body: PolicyExplainRequest) -> None:
    if body.groups or body.attributes:
        raise InputError("'groups' and 'attributes' are those of 'actor'", code="bad_member", hint="give 'actor'")


def _access(caller: Caller) -> Access:
    access = context_of(caller.graph).access
    assert access is not None, "a graph with a policy gives every caller an access"
    return access


def _rows(caller: Caller, policy: Policy, branch: str) -> RowPolicies:
    """Return the rules for rows of the policy, bound to the schema of a branch."""
    context = context_of(caller.graph)
    found = _access(caller).row_policies(context.catalogs.of(context.snapshot(branch)))
    if found is None:
        raise InputError("the policy has no rules for rows", code="no_row_rules")
    return found


def _policy(caller: Caller) -> Policy:
    assert caller.served is not None
    if caller.served.policy is None:
        raise InputError("the graph has no policy", code="no_policy", hint="set 'policy.file' in the configuration")
    return caller.served.policy
