"""Statements as Cedar policies, and the decisions on branches.

Policies are built in the JSON form of Cedar, so a name cannot change their structure. The condition of a rule is parsed
alone and inserted as a tree. An optional attribute that a condition reads without testing it with `has` is guarded: in
a rule that allows, a missing attribute means not granted; in one that denies, denied.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.policy.cedar import load_cedarpy, policy_failed
from omnigraph.policy.cedar_files import parse_condition
from omnigraph.policy.cedar_schema import NAMESPACE, cedar_schema, uid
from omnigraph.policy.proposal_rules import PROPOSAL_ATTRIBUTES, ProposalFacts
from omnigraph.policy.rules import KNOWN_ACTIONS, ON_PROPOSALS, PROPERTY_ACTIONS, ROW_ACTIONS, WITHOUT_EFFECT
from omnigraph.policy.statements import (
    BRANCH_ATTRIBUTES,
    QUERY_ATTRIBUTES,
    Attributes,
    BranchOwners,
    BranchSelector,
    PolicyStatements,
    QueryFacts,
    Statement,
    actions_of,
)
from omnigraph.policy.yaml_nodes import ProblemLog
from omnigraph.suggestions import did_you_mean

CedarJson = dict[str, Any]
"""A policy or an expression in the JSON form of Cedar."""

_ALL: CedarJson = {"op": "All"}
_IN_RULES = frozenset({*ROW_ACTIONS, *PROPERTY_ACTIONS})
_ANY_QUERY = QueryFacts()
"""A query that is known by its name alone: a read with the rights of its caller."""


@dataclass(frozen=True)
class Judgement:
    """The answer of Cedar: the rules that allow a request and those that deny it, in code point order."""

    allowed: bool
    allowing: tuple[str, ...]
    denying: tuple[str, ...]


class CedarStatements:
    """The policies of a policy of version 2 that decide on branches, or on the server."""

    def __init__(self, statements: PolicyStatements, graph: str) -> None:
        self._statements = statements
        self._graph = graph
        log = ProblemLog(statements.source, "policy")
        self._policies, self._rule_of = graph_policies(statements, log)
        log.raise_any()
        for policy_id, policy in statements.cedar_policies.items():
            actions = actions_of(policy)
            if actions is None or not actions <= _IN_RULES:
                self._policies[policy_id] = dict(policy)
                self._rule_of[policy_id] = policy_id
        self.schema = load_cedarpy().Schema.from_json_str(
            json.dumps(cedar_schema(statements.kind, statements.declared, None))
        )
        self._validate(log)
        self._subsets: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """The policies as Cedar text, without those for rows and properties."""
        return policies_text(self._policies)

    def judge(
        self,
        actor: str,
        groups: tuple[str, ...],
        attributes: Attributes,
        action: str,
        branch: str | None,
        target: str | None,
        name: str | None,
        owners: BranchOwners = (),
        proposal: ProposalFacts | None = None,
        query: QueryFacts | None = None,
    ) -> Judgement:
        """Return the decision on a request. A failure of the evaluation raises `policy_failed` and allows nothing."""
        statements = self._statements
        resource, context, entities = self._request(action, branch, target, name, dict(owners), query)
        if proposal is not None and target is not None and action in ON_PROPOSALS:
            entity = self._proposal(proposal, target, dict(owners).get(target))
            resource = entity["uid"]
            entities.append(entity)
        entities += actor_entities(statements, actor, groups, attributes)
        request = {
            "principal": uid("Actor", actor),
            "action": uid("Action", action),
            "resource": resource,
            "context": context,
        }
        return judge(request, self._subset(action), entities, self.schema, self._rule_of)

    def _request(
        self,
        action: str,
        branch: str | None,
        target: str | None,
        name: str | None,
        owners: Mapping[str, str],
        query: QueryFacts | None,
    ) -> tuple[dict[str, str], CedarJson, list[CedarJson]]:
        """Return the resource, the context and the entities of a request, without the actor."""
        if self._statements.kind == "server":
            return uid("Server", "root"), {}, []
        graph = uid("Graph", self._graph)
        entities: list[CedarJson] = [{"uid": graph, "attrs": {"id": self._graph}, "parents": []}]
        scope = KNOWN_ACTIONS[action]
        judged, other = (target, branch) if scope == "target_branch_scope" else (branch, None)
        context: CedarJson = {}
        if action == "invoke_query" and name is not None:
            known = query or _ANY_QUERY
            attributes = {"name": name, "changes": known.changes, "definer": known.definer}
            entities.append({"uid": uid("StoredQuery", name), "attrs": attributes, "parents": [graph]})
            return uid("StoredQuery", name), context, entities
        if scope is None:
            return graph, context, entities
        for found in dict.fromkeys(one for one in (judged, other) if one is not None):
            entities.append(self._branch(found, graph, owners.get(found)))
        if other is not None:
            context["source"] = {"__entity": uid("Branch", other)}
        return (uid("Branch", judged) if judged is not None else graph), context, entities

    def _branch(self, name: str, graph: dict[str, str], owner: str | None) -> CedarJson:
        return {"uid": uid("Branch", name), "attrs": self._branch_attributes(name, owner), "parents": [graph]}

    def _branch_attributes(self, name: str, owner: str | None) -> CedarJson:
        found = self._statements
        attributes = {
            "name": name,
            "protected": found.is_protected(name),
            "matches": found.matching_patterns(name),
        }
        return attributes if owner is None else {**attributes, "owner": owner}

    def _proposal(self, proposal: ProposalFacts, target: str, owner: str | None) -> CedarJson:
        attributes = {
            **self._branch_attributes(target, owner),
            "approvals": list(proposal.approvals),
            "checks": proposal.checks,
            "source": proposal.source,
            "labels": list(proposal.labels),
            "author": proposal.author or "",
        }
        return {"uid": uid("Proposal", proposal.id), "attrs": attributes, "parents": [uid("Branch", target)]}

    def _subset(self, action: str) -> Any:
        """Return the policies that can match an action."""
        found = self._subsets.get(action)
        if found is None:
            some = {key: policy for key, policy in self._policies.items() if _concerns(policy, action)}
            found = policy_set(some)
            with self._lock:
                self._subsets[action] = found
        return found

    def _validate(self, log: ProblemLog) -> None:
        """Validate strictly. Policies that name types of rows are validated with the schema of the graph only."""
        plain = {key: policy for key, policy in self._policies.items() if not _names_rows(policy)}
        validate(plain, self._rule_of, self._statements, self.schema, log)
        log.raise_any()


def _concerns(policy: Mapping[str, Any], action: str) -> bool:
    actions = actions_of(policy)
    return actions is None or action in actions


def _names_rows(policy: Mapping[str, Any]) -> bool:
    actions = actions_of(policy)
    if actions is not None and not actions.isdisjoint(_IN_RULES):
        return True
    text = json.dumps(policy)
    return '"Node::' in text or '"Edge::' in text or f'"{NAMESPACE}::Interface"' in text


# -- compilation -------------------------------------------------------------------------------------


def graph_policies(statements: PolicyStatements, log: ProblemLog) -> tuple[dict[str, CedarJson], dict[str, str]]:
    """Return the policies of the rules for branches by id, and the rule of each."""
    policies: dict[str, CedarJson] = {}
    rule_of: dict[str, str] = {}
    for rule in statements.rules:
        optional = {"principal": statements.declared, "resource": () if rule.is_of_queries else ("owner",)}
        condition = rule_condition(rule, optional, log)
        if rule.family != "graph":
            continue
        of_branch = reads_resource(condition)
        for number, grant in enumerate(rule.grants, 1):
            actions = [a for a in grant.actions if a not in WITHOUT_EFFECT and a not in _IN_RULES]
            if not actions:
                continue
            policy_id = rule.id if len(rule.grants) == 1 else f"{rule.id}:{number}"
            resource, conditions = _graph_scope(rule, grant.branches, of_branch=of_branch)
            if statements.kind == "server":
                resource = {"op": "==", "entity": uid("Server", "root")}
            if grant.own_rights:
                if of_branch:
                    continue
                resource = {"op": "is", "entity_type": f"{NAMESPACE}::StoredQuery"}
                conditions = [{"!": {"arg": attribute("resource", "definer")}}]
            conditions = [*conditions, *condition]
            on_proposals = [action for action in actions if action in ON_PROPOSALS]
            if on_proposals and conditions:
                # A proposal has the attributes of its target branch.
                scope = {"op": "is", "entity_type": f"{NAMESPACE}::Proposal"}
                policies[f"{policy_id}:proposals"] = statement_policy(rule, on_proposals, scope, conditions)
                rule_of[f"{policy_id}:proposals"] = rule.id
            if not reads_proposal(rule, condition):
                policies[policy_id] = statement_policy(rule, actions, resource, conditions)
                rule_of[policy_id] = rule.id
    return policies, rule_of


def reads_proposal(rule: Statement, condition: list[CedarJson]) -> bool:
    """Return True if the condition of a rule reads attributes that only a proposal has."""
    read = {name for variable, name, _ in accesses(condition) if variable == "resource"}
    return {*rule.actions} <= {*ON_PROPOSALS} and bool(read & PROPOSAL_ATTRIBUTES)


def reads_resource(condition: list[CedarJson]) -> bool:
    """Return True if a condition reads the resource of a request."""
    return any(variable == "resource" for variable, _, _ in accesses(condition))


def _graph_scope(rule: Statement, branches: BranchSelector, *, of_branch: bool) -> tuple[CedarJson, list[CedarJson]]:
    if rule.queries or (rule.is_of_queries and of_branch):
        tests = [_like(attribute("resource", "name"), pattern) for pattern in rule.queries]
        return {"op": "is", "entity_type": f"{NAMESPACE}::StoredQuery"}, [any_of(tests)] if tests else []
    if branches.is_any and not of_branch:
        return _ALL, []
    conditions = [] if branches.is_any else [branch_condition("resource", branches)]
    return {"op": "is", "entity_type": f"{NAMESPACE}::Branch"}, conditions


def statement_policy(
    rule: Statement, actions: Collection[str], resource: CedarJson, conditions: Iterable[CedarJson]
) -> CedarJson:
    """Return the Cedar policy of a rule for some actions and a resource scope."""
    entities = [uid("Action", action) for action in actions]
    clauses = [{"kind": "when", "body": condition} for condition in conditions]
    if rule.except_group is not None:
        inside = {"in": {"left": {"Var": "principal"}, "right": entity_literal("Group", rule.except_group)}}
        clauses.append({"kind": "unless", "body": inside})
    return {
        "effect": "permit" if rule.effect == "allow" else "forbid",
        "principal": {"op": "in", "entity": uid("Group", rule.group)} if rule.group is not None else _ALL,
        "action": {"op": "==", "entity": entities[0]} if len(entities) == 1 else {"op": "in", "entities": entities},
        "resource": resource,
        "conditions": clauses,
        "annotations": {"id": rule.id},
    }


def rule_condition(rule: Statement, optional: Mapping[str, Collection[str]], log: ProblemLog) -> list[CedarJson]:
    """Return the condition of a rule with its guards, or nothing; `optional` lists optional attributes by variable."""
    if rule.when is None:
        return []
    try:
        body = parse_condition(rule.when)
    except ValueError as error:
        message = f"rule '{rule.id}': 'when' is not a condition of Cedar: {error}"
        log.add("", message, rule.line, rule=rule.id, hint=_syntax_hint(rule.when))
        return []
    read = {(variable, name) for variable, name, _ in accesses(body)}
    problem = None
    of_branch = {name for variable, name in read if variable == "resource"} if rule.family == "graph" else set()
    if rule.is_of_queries:
        if of_branch - QUERY_ATTRIBUTES:
            problem = "'when' of a rule for 'invoke_query' can read 'name', 'changes' and 'definer' of 'resource' alone"
    elif of_branch - BRANCH_ATTRIBUTES - (PROPOSAL_ATTRIBUTES if {*rule.actions} <= {*ON_PROPOSALS} else set()):
        problem = "'when' of a rule for branches can read 'owner', 'name' and 'protected' of 'resource' alone"
    elif ("context", "matches") in read:
        problem = "'when' cannot read 'context.matches'"
    for name in sorted(name for variable, name in read if variable == "principal" and "principal" in optional):
        known = ("id", *optional["principal"])
        if name and name not in known:
            hint = did_you_mean(name, known) or "attributes of actors are declared under 'attributes.declare'"
            message = f"rule '{rule.id}': 'principal' has no attribute '{name}'"
            log.add("", message, rule.line, rule=rule.id, hint=hint)
            return []
    if problem is not None:
        hint = "write 'queries' to select queries" if rule.is_of_queries else "write 'branches' to select branches"
        log.add("", f"rule '{rule.id}': {problem}", rule.line, rule=rule.id, hint=hint)
        return []
    return [guarded(body, deny=rule.effect == "deny", optional=optional)]


def _syntax_hint(text: str) -> str | None:
    """Return what Cedar lacks that a condition seems to use, or None."""
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    if re.search(r"\b[0-9]+\.[0-9]", plain):
        return "Cedar has no floats: write an integer; properties of type F64 and F32 cannot be used in conditions"
    if "'" in plain:
        return "texts are in double quotes"
    return None


def guarded(body: CedarJson, *, deny: bool, optional: Mapping[str, Collection[str]]) -> CedarJson:
    """Return a condition that reads optional attributes only where they are present."""
    read: set[tuple[str, str]] = set()
    tested: set[tuple[str, str]] = set()
    for variable, name, is_test in accesses(body):
        if name in optional.get(variable, ()):
            (tested if is_test else read).add((variable, name))
    missing = sorted(read - tested, key=lambda pair: (pair[0] == "principal", pair))
    if not missing:
        return body
    present = all_of([{"has": {"left": {"Var": variable}, "attr": name}} for variable, name in missing])
    if deny:
        return {"if-then-else": {"if": present, "then": body, "else": {"Value": True}}}
    return {"&&": {"left": present, "right": body}}


def accesses(node: Any) -> Iterator[tuple[str, str, bool]]:
    """Yield the attributes of variables that an expression reads (False) or tests with `has` (True).

    A variable that is used as a whole has the attribute "".
    """
    if isinstance(node, dict):
        for operator, part in node.items():
            if operator in (".", "has") and isinstance(part, dict):
                left = part.get("left")
                if isinstance(left, dict) and set(left) == {"Var"}:
                    yield str(left["Var"]), str(part["attr"]), operator == "has"
                    continue
            if operator == "Var":
                yield str(part), "", False
            yield from accesses(part)
    elif isinstance(node, list):
        for part in node:
            yield from accesses(part)


def branch_condition(variable: str, branches: BranchSelector) -> CedarJson:
    """Return the condition that the branch of a request is selected."""
    if branches.scope is not None:
        protected = attribute(variable, "protected")
        return protected if branches.scope == "protected" else {"!": {"arg": protected}}
    matches = attribute(variable, "matches")
    return any_of([{"contains": {"left": matches, "right": {"Value": pattern}}} for pattern in branches.patterns])


def attribute(variable: str, name: str) -> CedarJson:
    """Return the expression `variable.name`."""
    return {".": {"left": {"Var": variable}, "attr": name}}


def entity_literal(kind: str, name: str) -> CedarJson:
    """Return an entity as an expression."""
    return {"Value": {"__entity": uid(kind, name)}}


def any_of(parts: list[CedarJson]) -> CedarJson:
    """Return the disjunction of some conditions."""
    return _chain("||", parts)


def all_of(parts: list[CedarJson]) -> CedarJson:
    """Return the conjunction of some conditions."""
    return _chain("&&", parts)


def _chain(operator: str, parts: list[CedarJson]) -> CedarJson:
    found = parts[0]
    for part in parts[1:]:
        found = {operator: {"left": found, "right": part}}
    return found


def _like(left: CedarJson, pattern: str) -> CedarJson:
    elements = ["Wildcard" if char == "*" else {"Literal": char} for char in pattern]
    return {"like": {"left": left, "pattern": elements}}


# -- evaluation --------------------------------------------------------------------------------------


def policy_set(policies: Mapping[str, CedarJson]) -> Any:
    """Return parsed policies."""
    document = {"staticPolicies": dict(policies), "templates": {}, "templateLinks": []}
    return load_cedarpy().PolicySet.from_json_str(json.dumps(document))


def policies_text(policies: Mapping[str, CedarJson]) -> str:
    """Return policies as Cedar text, each with its id as an annotation."""
    texts = [str(policy_set({policy_id: policy})).strip() for policy_id, policy in policies.items()]
    return str(load_cedarpy().format_policies("\n\n".join(texts))) if texts else ""


def validate(
    policies: Mapping[str, CedarJson],
    rule_of: Mapping[str, str],
    statements: PolicyStatements,
    schema: Any,
    log: ProblemLog,
) -> None:
    """Validate policies strictly and report the errors of Cedar with the rule of each."""
    if not policies:
        return
    cedarpy = load_cedarpy()
    everything = policy_set(policies)
    if cedarpy.validate_policies(str(everything), schema).validation_passed:
        return
    for policy_id, policy in policies.items():
        found = cedarpy.validate_policies(str(policy_set({policy_id: policy})), schema)
        for error in found.errors:
            message = str(error.error).removeprefix("for policy `policy0`, ")
            rule = rule_of[policy_id]
            written = statements.rule_by_id.get(rule)
            line = written.line if written is not None else None
            log.add("", f"rule '{rule}': Cedar rejects it: {message}", line, rule=rule)


def judge(
    request: CedarJson,
    policies: Any,
    entities: list[CedarJson],
    schema: Any,
    rule_of: Mapping[str, str],
    *,
    complete: bool = True,
) -> Judgement:
    """Return the decision of Cedar on a request; raises `policy_failed` if a policy cannot be evaluated.

    With `complete`, the entities must have all required attributes.
    """
    cedarpy = load_cedarpy()
    try:
        parsed = cedarpy.Entities.from_json_str(json.dumps(entities), schema if complete else None)
        result = cedarpy.is_authorized(request, policies, parsed, schema)
        failures, allowed, reasons = result.diagnostics.errors, result.allowed, result.diagnostics.reasons
    except Exception as error:
        raise policy_failed(str(error)) from error
    if failures:
        raise policy_failed("; ".join(failures))
    rules = tuple(sorted({rule_of[policy_id] for policy_id in reasons}))
    if allowed and not rules:
        raise policy_failed("the decision contradicts its reasons")
    return Judgement(allowed, rules if allowed else (), () if allowed else rules)


def actor_entities(
    statements: PolicyStatements, actor: str, groups: tuple[str, ...], attributes: Attributes
) -> list[CedarJson]:
    """Return the entities of an actor and its groups."""
    attrs: CedarJson = {"id": actor}
    for name, value in attributes:
        attrs[name] = cedar_value(value, is_datetime=statements.declared[name] == "Datetime")
    entity = {"uid": uid("Actor", actor), "attrs": attrs, "parents": [uid("Group", group) for group in groups]}
    return [entity, *({"uid": uid("Group", group), "attrs": {}, "parents": []} for group in groups)]


def cedar_value(value: Any, *, is_datetime: bool = False) -> Any:
    """Return a value in the JSON form of Cedar entities."""
    if isinstance(value, tuple | list):
        return [cedar_value(item, is_datetime=is_datetime) for item in value]
    if is_datetime:
        return {"__extn": {"fn": "datetime", "arg": value}}
    return value
