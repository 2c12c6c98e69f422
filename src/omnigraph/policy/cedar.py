"""Rules as Cedar policies, and their evaluation. The only module that imports cedarpy.

Each rule and action is one permit with the id `<rule id>:<action>`. Policies, entities and requests are passed to
Cedar as JSON, so a name cannot change the structure of a policy. A policy set contains permits only; what no permit
allows is denied.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.errors import MissingPackage, OmniGraphError, PolicyInvalid
from omnigraph.policy.rules import ACTIONS, WITHOUT_EFFECT, PolicyRule, PolicyRules
from omnigraph.policy.yaml_nodes import PolicyProblem

_NAMESPACE = "Omnigraph"
_FLAGS = ("has_branch", "branch_is_protected", "has_target_branch", "target_branch_is_protected")
_TEXTS = ("branch", "target_branch")
_CONDITIONS = {
    "branch_scope": ("has_branch", "branch_is_protected"),
    "target_branch_scope": ("has_target_branch", "target_branch_is_protected"),
}
"""Key of a scope → the context attributes that its condition reads."""


class CedarPolicies:
    """The compiled policies of one graph.

    A decision evaluates only the permits that name the action and a group of the actor: no other permit can match,
    because its scope names another action or group. Of several permits that differ only in their ids, one is
    evaluated for all. These subsets are parsed once.
    """

    def __init__(self, rules: PolicyRules, graph: str) -> None:
        cedarpy = _cedarpy()
        self._rules = rules
        self._graph = graph
        permits: dict[str, Any] = {}
        representatives: dict[tuple[object, ...], str] = {}
        self._permits: dict[tuple[str, str], dict[str, Any]] = {}
        self._rule_ids: dict[str, list[str]] = {}
        for rule in rules.rules:
            for action in rule.actions:
                if action in WITHOUT_EFFECT:
                    continue
                permit_id = f"{rule.id}:{action}"
                permits[permit_id] = permit = _permit(rule, action, graph)
                evaluated = representatives.setdefault((action, rule.group, rule.scope), permit_id)
                self._permits.setdefault((action, rule.group), {}).setdefault(evaluated, permit)
                self._rule_ids.setdefault(evaluated, []).append(rule.id)
        try:
            self._schema = cedarpy.Schema.from_json_str(json.dumps(_schema()))
            self._entities = cedarpy.Entities.from_json_str(json.dumps(_entities(rules, graph)), self._schema)
            everything = _policy_set(cedarpy, [permits])
            found = cedarpy.validate_policies(str(everything), self._schema)
        except ValueError as error:
            raise _rejected(rules, [str(error)]) from error
        if not found.validation_passed:
            raise _rejected(rules, [str(problem) for problem in found.errors])
        self._text = str(everything)
        self._subsets: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """The policies as Cedar text."""
        return self._text

    def matches(self, actor: str, action: str, branch: str | None, target_branch: str | None) -> tuple[str, ...]:
        """Return the ids of all rules that allow a request, in code point order; empty if it is denied.

        A failure of the evaluation raises an error with the code `policy_failed`. It never allows a request.
        """
        groups = self._rules.groups_of.get(actor, ())
        request = {
            "principal": _uid("Actor", actor),
            "action": _uid("Action", action),
            "resource": _uid("Graph", self._graph),
            "context": self._context(branch, target_branch),
        }
        try:
            subset = self._subset(action, groups)
            result = _cedarpy().is_authorized(request, subset, self._entities, self._schema)
            failures, allowed, permits = result.diagnostics.errors, result.allowed, result.diagnostics.reasons
        except Exception as error:
            raise _failed(str(error)) from error
        if failures:
            raise _failed("; ".join(failures))
        found = tuple(sorted({rule for permit in permits for rule in self._rule_ids[permit]}))
        if allowed != bool(found):
            raise _failed("the decision contradicts its reasons")
        return found

    def _context(self, branch: str | None, target_branch: str | None) -> dict[str, Any]:
        protected = self._rules.protected_branches
        return {
            "has_branch": branch is not None,
            "branch": branch or "",
            "branch_is_protected": branch in protected,
            "has_target_branch": target_branch is not None,
            "target_branch": target_branch or "",
            "target_branch_is_protected": target_branch in protected,
        }

    def _subset(self, action: str, groups: tuple[str, ...]) -> Any:
        found = self._subsets.get((action, groups))
        if found is None:
            permits = [self._permits[action, group] for group in groups if (action, group) in self._permits]
            found = _policy_set(_cedarpy(), permits)
            with self._lock:
                self._subsets[action, groups] = found
        return found


def _cedarpy() -> Any:
    try:
        import cedarpy  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackage(
            "'cedarpy' is not installed", hint="install it: pip install 'omnigraph[policy]'"
        ) from error
    return cedarpy


def _policy_set(cedarpy: Any, permits: Iterable[Mapping[str, Any]]) -> Any:
    static = {name: permit for group in permits for name, permit in group.items()}
    return cedarpy.PolicySet.from_json_str(json.dumps({"staticPolicies": static, "templates": {}, "templateLinks": []}))


def _uid(kind: str, name: str) -> dict[str, str]:
    return {"type": f"{_NAMESPACE}::{kind}", "id": name}


def _permit(rule: PolicyRule, action: str, graph: str) -> dict[str, Any]:
    return {
        "effect": "permit",
        "principal": {"op": "in", "entity": _uid("Group", rule.group)},
        "action": {"op": "==", "entity": _uid("Action", action)},
        "resource": {"op": "==", "entity": _uid("Graph", graph)},
        "conditions": _conditions(rule),
    }


def _conditions(rule: PolicyRule) -> list[dict[str, Any]]:
    if rule.scope is None or rule.scope[1] == "any":
        return []
    key, scope = rule.scope
    present, protected = ({".": {"left": {"Var": "context"}, "attr": name}} for name in _CONDITIONS[key])
    right: dict[str, Any] = protected if scope == "protected" else {"!": {"arg": protected}}
    return [{"kind": "when", "body": {"&&": {"left": present, "right": right}}}]


def _schema() -> dict[str, Any]:
    attributes = {name: {"type": "Boolean"} for name in _FLAGS} | {name: {"type": "String"} for name in _TEXTS}
    applies = {
        "principalTypes": ["Actor"],
        "resourceTypes": ["Graph"],
        "context": {"type": "Record", "attributes": attributes},
    }
    types: dict[str, Any] = {"Actor": {"memberOfTypes": ["Group"]}, "Group": {}, "Graph": {}}
    return {_NAMESPACE: {"entityTypes": types, "actions": {action: {"appliesTo": applies} for action in ACTIONS}}}


def _entities(rules: PolicyRules, graph: str) -> list[dict[str, Any]]:
    found = [_entity("Actor", actor, groups) for actor, groups in rules.groups_of.items()]
    return [*found, *(_entity("Group", group) for group in rules.groups), _entity("Graph", graph)]


def _entity(kind: str, name: str, groups: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"uid": _uid(kind, name), "attrs": {}, "parents": [_uid("Group", group) for group in groups]}


def _rejected(rules: PolicyRules, messages: list[str]) -> PolicyInvalid:
    problems = [PolicyProblem("", f"Cedar rejects the policy: {message}") for message in messages]
    text = "\n".join(f"  {problem.message}" for problem in problems)
    return PolicyInvalid(f"'{rules.source}' is not a valid policy:\n{text}", problems)


def _failed(reason: str) -> OmniGraphError:
    return OmniGraphError(
        f"the policy could not be evaluated: {reason}",
        code="policy_failed",
        hint="the request was not executed; this is a defect",
    )
