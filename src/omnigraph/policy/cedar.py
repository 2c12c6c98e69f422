"""Rules of version 1 as Cedar policies, and their evaluation.

Other modules get cedarpy from `load_cedarpy`; only `rows` imports it, for the types of the syntax tree.

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
from omnigraph.policy.rules import ACTIONS_OF, WITHOUT_EFFECT, PolicyKind, PolicyRule, PolicyRules

_NAMESPACE = "Omnigraph"
_FLAGS = ("has_branch", "branch_is_protected", "has_target_branch", "target_branch_is_protected")
_TEXTS = ("branch", "target_branch")
_PARSED_MAX = 4096
_NO_MEMBERS: dict[str, Any] = {"attrs": {}, "parents": []}
_CONDITIONS = {
    "branch_scope": ("has_branch", "branch_is_protected"),
    "target_branch_scope": ("has_target_branch", "target_branch_is_protected"),
}
"""Key of a scope → the context attributes that its condition reads."""


class CedarPolicies:
    """The compiled policies of one graph, or of the server.

    A decision evaluates only the permits that name the action and a group of the actor: no other permit can match,
    because its scope names another action or group. Of several permits that differ only in their ids, one is
    evaluated for all. These subsets are parsed once.
    """

    def __init__(self, rules: PolicyRules, graph: str) -> None:
        cedarpy = load_cedarpy()
        self._rules = rules
        self._resource = _uid("Graph", graph) if rules.kind == "graph" else _uid("Server", "root")
        permits: dict[str, Any] = {}
        representatives: dict[tuple[object, ...], str] = {}
        self._permits: dict[tuple[str, str], dict[str, Any]] = {}
        self._rule_ids: dict[str, list[str]] = {}
        for rule in rules.rules:
            for action in rule.actions:
                if action in WITHOUT_EFFECT:
                    continue
                permit_id = f"{rule.id}:{action}"
                permits[permit_id] = permit = _permit(rule, action, self._resource)
                evaluated = representatives.setdefault((action, rule.group, rule.scope), permit_id)
                self._permits.setdefault((action, rule.group), {}).setdefault(evaluated, permit)
                self._rule_ids.setdefault(evaluated, []).append(rule.id)
        try:
            self._schema = cedarpy.Schema.from_json_str(json.dumps(_schema(rules.kind)))
            self._entities = cedarpy.Entities.from_json_str(json.dumps(self._all_entities()), self._schema)
            everything = _policy_set(cedarpy, [permits])
            found = cedarpy.validate_policies(str(everything), self._schema)
        except ValueError as error:
            raise _rejected(rules, [str(error)]) from error
        if not found.validation_passed:
            raise _rejected(rules, [str(problem) for problem in found.errors])
        self._text = str(everything)
        self._subsets: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._entity_sets: dict[tuple[str, tuple[str, ...]], Any] = {}
        """Actor and groups → entities, for actors with groups of a token."""
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """The policies as Cedar text."""
        return self._text

    def matches(
        self, actor: str, groups: tuple[str, ...], action: str, branch: str | None, target_branch: str | None
    ) -> tuple[str, ...]:
        """Return the ids of all rules that allow a request, in code point order; empty if it is denied.

        `groups` are all groups of the actor: those of the policy, and those of the caller's token. A failure of the
        evaluation raises an error with the code `policy_failed`. It never allows a request.
        """
        request = {
            "principal": _uid("Actor", actor),
            "action": _uid("Action", action),
            "resource": self._resource,
            "context": self._context(branch, target_branch),
        }
        try:
            subset = self._subset(action, groups)
            result = load_cedarpy().is_authorized(request, subset, self._entities_of(actor, groups), self._schema)
            failures, allowed, permits = result.diagnostics.errors, result.allowed, result.diagnostics.reasons
        except Exception as error:
            raise policy_failed(str(error)) from error
        if failures:
            raise policy_failed("; ".join(failures))
        found = tuple(sorted({rule for permit in permits for rule in self._rule_ids[permit]}))
        if allowed != bool(found):
            raise policy_failed("the decision contradicts its reasons")
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

    def _all_entities(self) -> list[dict[str, Any]]:
        rules = self._rules
        found = [_entity("Actor", actor, groups) for actor, groups in rules.groups_of.items()]
        return [*found, *(_entity("Group", group) for group in rules.groups), {**_NO_MEMBERS, "uid": self._resource}]

    def _entities_of(self, actor: str, groups: tuple[str, ...]) -> Any:
        """Return entities with an actor in these groups; those of the policy unless a token adds a group."""
        if groups == self._rules.groups_of.get(actor, ()):
            return self._entities
        found = self._entity_sets.get((actor, groups))
        if found is None:
            members = [_entity("Actor", actor, groups), *(_entity("Group", group) for group in groups)]
            text = json.dumps([*members, {**_NO_MEMBERS, "uid": self._resource}])
            found = load_cedarpy().Entities.from_json_str(text, self._schema)
            self._keep(self._entity_sets, (actor, groups), found)
        return found

    def _subset(self, action: str, groups: tuple[str, ...]) -> Any:
        found = self._subsets.get((action, groups))
        if found is None:
            permits = [self._permits[action, group] for group in groups if (action, group) in self._permits]
            found = _policy_set(load_cedarpy(), permits)
            self._keep(self._subsets, (action, groups), found)
        return found

    def _keep(self, kept: dict[tuple[str, tuple[str, ...]], Any], key: tuple[str, tuple[str, ...]], value: Any) -> None:
        """Keep a parsed object. Tokens can bring any combination of groups, so the number of objects is limited."""
        with self._lock:
            if len(kept) >= _PARSED_MAX:
                kept.clear()
            kept[key] = value


def load_cedarpy() -> Any:
    """Return the package cedarpy; raises `MissingPackage` if it is not installed."""
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


def _permit(rule: PolicyRule, action: str, resource: dict[str, str]) -> dict[str, Any]:
    return {
        "effect": "permit",
        "principal": {"op": "in", "entity": _uid("Group", rule.group)},
        "action": {"op": "==", "entity": _uid("Action", action)},
        "resource": {"op": "==", "entity": resource},
        "conditions": _conditions(rule),
    }


def _conditions(rule: PolicyRule) -> list[dict[str, Any]]:
    if rule.scope is None or rule.scope[1] == "any":
        return []
    key, scope = rule.scope
    present, protected = ({".": {"left": {"Var": "context"}, "attr": name}} for name in _CONDITIONS[key])
    right: dict[str, Any] = protected if scope == "protected" else {"!": {"arg": protected}}
    return [{"kind": "when", "body": {"&&": {"left": present, "right": right}}}]


def _schema(kind: PolicyKind) -> dict[str, Any]:
    attributes = {name: {"type": "Boolean"} for name in _FLAGS} | {name: {"type": "String"} for name in _TEXTS}
    applies = {
        "principalTypes": ["Actor"],
        "resourceTypes": ["Graph" if kind == "graph" else "Server"],
        "context": {"type": "Record", "attributes": attributes},
    }
    types: dict[str, Any] = {"Actor": {"memberOfTypes": ["Group"]}, "Group": {}, "Graph": {}, "Server": {}}
    actions = {action: {"appliesTo": applies} for action in ACTIONS_OF[kind]}
    return {_NAMESPACE: {"entityTypes": types, "actions": actions}}


def _entity(kind: str, name: str, groups: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"uid": _uid(kind, name), "attrs": {}, "parents": [_uid("Group", group) for group in groups]}


def _rejected(rules: PolicyRules, messages: list[str]) -> PolicyInvalid:
    from omnigraph.policy.yaml_nodes import PolicyProblem  # noqa: PLC0415 (imports YAML)

    problems = [PolicyProblem("", f"Cedar rejects the policy: {message}") for message in messages]
    text = "\n".join(f"  {problem.message}" for problem in problems)
    return PolicyInvalid(f"'{rules.source}' is not a valid policy:\n{text}", problems)


def policy_failed(reason: str) -> OmniGraphError:
    """Return the error of a decision that Cedar could not make."""
    return OmniGraphError(
        f"the policy could not be evaluated: {reason}",
        code="policy_failed",
        hint="the request was not executed; this is a defect",
    )
