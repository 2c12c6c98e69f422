"""The rules for rows and properties of a policy, bound to the schema of a graph.

`RowPolicies` compiles the rules of a policy of version 2 to Cedar policies, one per rule and type, validates them
strictly against the schema generated from the graph, and refuses what `rows` cannot translate. It answers

    condition    which rows of a type an actor may read or change
    visibility   what an actor sees of a branch: all that reads know of a policy
    write_guard  what an actor may change of a branch: all that writes know of a policy
    judge_row    the decision of Cedar on one row, with the rules that decided

A type is fully visible if `rows.default` is `allow` and no rule that allows actions on rows names it. A property is
visible if no rule that allows actions on properties names it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from omnigraph.errors import InputError, TypeNotFound, ValueFormatError
from omnigraph.policy.cedar import load_cedarpy
from omnigraph.policy.cedar_schema import (
    attributes_of,
    cedar_schema,
    entity_type,
    has_cedar_type,
    uid,
)
from omnigraph.policy.cedar_values import PolicyRefused
from omnigraph.policy.row_conditions import RowCondition
from omnigraph.policy.rows import RowFacts, names_rows, policy_condition, visible_rows
from omnigraph.policy.rules import PROPERTY_ACTIONS, ROW_ACTIONS
from omnigraph.policy.statements import (
    Attributes,
    AttributeType,
    Otherwise,
    PolicyStatements,
    Statement,
    actions_of,
    attributes_key,
)
from omnigraph.policy.statements_cedar import (
    CedarJson,
    Judgement,
    accesses,
    actor_entities,
    any_of,
    attribute,
    branch_condition,
    graph_policies,
    judge,
    policies_text,
    policy_set,
    rule_condition,
    statement_policy,
    validate,
)
from omnigraph.policy.yaml_nodes import ProblemLog
from omnigraph.query.plan import ir
from omnigraph.query.visibility import Visibility
from omnigraph.query.write_guard import ROW_CHANGES, RowAction, WriteGuard
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean
from omnigraph.values import read_json

ROWS_DEFAULT, PROPERTIES_DEFAULT = "rows.default", "properties.default"
PropertyView = Literal["show", "mask", "hide"]
RowWhy = Literal["ok", "denies", "actor_not_in_group", "scope", "condition"]

_KEPT_MAX = 16_384
_ROW_CONTEXT: Mapping[str, AttributeType] = {"branch": "String", "protected": "Bool", "matches": "Set<String>"}
_PROPERTY_CONTEXT: Mapping[str, AttributeType] = {**_ROW_CONTEXT, "property": "String"}
_DAY_MS = 86_400_000
_IN_RULES = frozenset({*ROW_ACTIONS, *PROPERTY_ACTIONS})


@dataclass(frozen=True)
class PolicyActor:
    """An actor with its groups and attributes."""

    name: str
    groups: tuple[str, ...] = ()
    attributes: Attributes = ()


@dataclass(frozen=True)
class ConsideredRowRule:
    """A rule for rows, why it does or does not decide on a row, and the missing attributes that it reads."""

    rule: str
    why: RowWhy
    missing: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the rule as a JSON object."""
        return {"rule": self.rule, "why": self.why, "missing": list(self.missing)}


@dataclass(frozen=True)
class _Table:
    """A type with rows, as rules see it."""

    type: NodeType | EdgeType
    entity: str
    columns: Mapping[str, tuple[str, Any]]
    optional: frozenset[str]

    @property
    def key(self) -> str:
        return str(self.type.table_key)

    @property
    def interfaces(self) -> tuple[str, ...]:
        return self.type.implements if isinstance(self.type, NodeType) else ()

    @property
    def fixed(self) -> tuple[str, ...]:
        """Properties that cannot be hidden: those of the key."""
        return self.type.key if isinstance(self.type, NodeType) else ()


class RowPolicies:
    """The policies for rows and properties of one graph. Immutable apart from its caches; threads can share it."""

    def __init__(self, statements: PolicyStatements, catalog: Catalog, graph: str = "graph") -> None:
        self.statements = statements
        self.catalog = catalog
        self.graph = graph
        self._tables = {table.key: table for table in _tables(catalog)}
        self._policies: dict[str, CedarJson] = {}
        self._rule_of: dict[str, str] = {}
        log = ProblemLog(statements.source, "policy")
        self._compile(log)
        log.raise_any()
        schema = cedar_schema("graph", statements.declared, catalog)
        self.schema = load_cedarpy().Schema.from_json_str(json.dumps(schema))
        self._validate(log)
        log.raise_any()
        self._trees: Mapping[str, Any] = policy_set(self._policies).to_pst().static_policies
        self._guarded: dict[str, dict[str, Otherwise]] = {}
        self._translate(log)
        log.raise_any()
        self._compile_defaults()
        self._trees = policy_set(self._policies).to_pst().static_policies
        self._by_scope = self._index()
        self._conditions: dict[tuple[Any, ...], RowCondition] = {}
        self._visibilities: dict[tuple[PolicyActor, str], Visibility | None] = {}
        self._lock = threading.Lock()

    @property
    def cedar_text(self) -> str:
        """The policies for rows and properties as Cedar text."""
        return policies_text(self._policies)

    def actor(self, name: str, groups: Iterable[str] = (), attributes: Mapping[str, Any] | None = None) -> PolicyActor:
        """Return an actor with its groups and attributes: those of the policy, then those given."""
        held = self.statements.attributes_of(name, attributes_key(attributes))
        return PolicyActor(name, self.statements.groups_for(name, groups), held)

    def table_key(self, type_name: str) -> str:
        """Return the key of the table of a node or edge type."""
        for key, table in self._tables.items():
            if table.type.name == type_name:
                return key
        names = [table.type.name for table in self._tables.values()]
        raise TypeNotFound(f"there is no type '{type_name}'", hint=did_you_mean(type_name, names))

    # -- conditions ----------------------------------------------------------------------------------

    def condition(
        self, actor: PolicyActor, action: str, table_key: str, branch: str, name: str | None = None
    ) -> RowCondition:
        """Return the rows on which an actor may perform an action; `name` is the property of an action on one."""
        found = self._conditions.get((actor, action, table_key, branch, name))
        if found is None:
            policies = [self._trees[one] for one in self._by_scope.get((action, table_key), ())]
            found = visible_rows(policies, self._facts(self._tables[table_key], action, actor, branch, name))
            _keep(self._conditions, (actor, action, table_key, branch, name), found, self._lock)
        return found

    def visibility(self, actor: PolicyActor, branch: str) -> Visibility | None:
        """Return what an actor sees of a branch; None if it sees everything."""
        key = (actor, branch)
        if key not in self._visibilities:
            _keep(self._visibilities, key, self._visibility(actor, branch), self._lock)
        return self._visibilities.get(key)

    def _visibility(self, actor: PolicyActor, branch: str) -> Visibility | None:
        rows: dict[str, ir.Condition | None] = {}
        properties: dict[tuple[str, str], ir.Condition | None] = {}
        for key in sorted(self._tables):
            seen = self.condition(actor, "row_read", key, branch)
            if not isinstance(seen, bool):
                rows[key] = seen
            elif not seen:
                rows[key] = None
                continue
            for name, otherwise in self._guarded[key].items():
                shown = self.condition(actor, "property_read", key, branch, name)
                if not isinstance(shown, bool):
                    properties[key, name] = shown
                elif not shown:
                    properties[key, name] = None if otherwise == "hide" else ir.Const(False, ir.BOOL)
        return Visibility(rows, properties) if rows or properties else None

    def write_guard(self, actor: PolicyActor, branch: str) -> WriteGuard | None:
        """Return what an actor may change of a branch; None if it sees everything and may change everything."""
        rows: dict[tuple[RowAction, str], ir.Condition | None] = {}
        properties: dict[tuple[str, str], ir.Condition | None] = {}
        for key in sorted(self._tables):
            for action in ROW_CHANGES:
                allowed = self.condition(actor, action, key, branch)
                if allowed is not True:
                    rows[action, key] = None if isinstance(allowed, bool) else allowed
            for name in self._guarded[key]:
                allowed = self.condition(actor, "property_write", key, branch, name)
                if allowed is not True:
                    properties[key, name] = None if isinstance(allowed, bool) else allowed
        visibility = self.visibility(actor, branch)
        if visibility is None and not rows and not properties:
            return None
        limited = [*rows, *(("property_write", key) for key, _ in properties)]
        rules = {(action, key): self._rules_of(action, key) for action, key in limited}
        return WriteGuard(visibility or Visibility(), rows, properties, rules)

    def _rules_of(self, action: str, table_key: str) -> tuple[str, ...]:
        """Return the rules that name an action and a table, without defaults."""
        found = (self._rule_of[one] for one in self._by_scope.get((action, table_key), ()))
        return tuple(dict.fromkeys(rule for rule in found if rule not in (ROWS_DEFAULT, PROPERTIES_DEFAULT)))

    def _facts(
        self, table: _Table, action: str, actor: PolicyActor | None, branch: str | None, name: str | None
    ) -> RowFacts:
        facts = RowFacts(
            action, table.entity, table.columns, table.interfaces, declared=self.statements.declared,
            context={"property": name} if name is not None else {},
            context_types=_PROPERTY_CONTEXT if action in PROPERTY_ACTIONS else _ROW_CONTEXT,
        )  # fmt: skip
        if actor is None or branch is None:
            return facts
        context = {**self._branch(branch), **facts.context}
        return replace(facts, actor=actor.name, groups=actor.groups, attributes=dict(actor.attributes), context=context)

    def _branch(self, branch: str) -> dict[str, Any]:
        found = self.statements
        return {
            "branch": branch,
            "protected": found.is_protected(branch),
            "matches": found.matching_patterns(branch),
        }

    # -- decisions on one row ------------------------------------------------------------------------

    def judge_row(
        self, actor: PolicyActor, action: str, table_key: str, data: Mapping[str, Any], branch: str,
        name: str | None = None,
    ) -> Judgement:  # fmt: skip
        """Return the decision of Cedar on a row that is given as JSON values."""
        ids = self._by_scope.get((action, table_key), ())
        return self._judge(actor, action, table_key, self._row(table_key, data), branch, name, ids)

    def consider_row(
        self, actor: PolicyActor, action: str, table_key: str, data: Mapping[str, Any], branch: str,
        name: str | None = None,
    ) -> list[ConsideredRowRule]:  # fmt: skip
        """Return every rule that names an action and a type, and why it does or does not decide on a row."""
        row = self._row(table_key, data)
        found: dict[str, ConsideredRowRule] = {}
        for policy_id in self._by_scope.get((action, table_key), ()):
            policy = self._policies[policy_id]
            judged = self._judge(actor, action, table_key, row, branch, name, (policy_id,))
            matched = bool(judged.allowing or judged.denying)
            why: RowWhy = ("ok" if policy["effect"] == "permit" else "denies") if matched else "condition"
            rule = self._rules.get(self._rule_of[policy_id])
            if not matched and rule is not None:
                protected = self.statements.is_protected(branch)
                if not rule.covers(actor.groups):
                    why = "actor_not_in_group"
                elif not any(grant.branches.selects(branch, protected=protected) for grant in rule.grants):
                    why = "scope"
            missing = self._missing(policy, actor, row) if why in ("condition", "denies") else ()
            found[policy_id] = ConsideredRowRule(self._rule_of[policy_id], why, missing)
        return list(found.values())

    def property_views(
        self, actor: PolicyActor, table_key: str, data: Mapping[str, Any], branch: str
    ) -> dict[str, PropertyView]:
        """Return how an actor sees the properties of a row."""
        guarded = self._guarded[table_key]
        views: dict[str, PropertyView] = {}
        for name in self._tables[table_key].type.properties:
            if name not in guarded or self.judge_row(actor, "property_read", table_key, data, branch, name).allowed:
                views[name] = "show"
            else:
                views[name] = guarded[name]
        return views

    def _judge(
        self, actor: PolicyActor, action: str, table_key: str, row: CedarJson, branch: str, name: str | None,
        policy_ids: tuple[str, ...],
    ) -> Judgement:  # fmt: skip
        context = self._branch(branch)
        if action in PROPERTY_ACTIONS:
            context["property"] = name or ""
        request = {
            "principal": uid("Actor", actor.name),
            "action": uid("Action", action),
            "resource": row["uid"],
            "context": context,
        }
        entities = [row, *actor_entities(self.statements, actor.name, actor.groups, actor.attributes)]
        interfaces = self._tables[table_key].interfaces
        entities += [{"uid": uid("Interface", one), "attrs": {}, "parents": []} for one in interfaces]
        policies = {one: self._policies[one] for one in policy_ids}
        self._check_given(table_key, policies.values(), row)
        return judge(request, policy_set(policies), entities, self.schema, self._rule_of, complete=False)

    def _check_given(self, table_key: str, policies: Iterable[CedarJson], row: CedarJson) -> None:
        """Refuse a row without a required property that a policy reads."""
        table = self._tables[table_key]
        read = {
            name
            for policy in policies
            for variable, name, _ in accesses(policy["conditions"])
            if variable == "resource"
        }
        for name in sorted((read & set(table.columns)) - table.optional - set(row["attrs"])):
            message = f"the row has no '{name}', which '{table.type.name}' requires and a rule reads"
            raise InputError(message, code="required_property")

    def _row(self, table_key: str, data: Mapping[str, Any]) -> CedarJson:
        """Return a row as a Cedar entity."""
        table = self._tables[table_key]
        known = {*table.type.properties, *table.columns}
        for name in data:
            if name not in known:
                message = f"'{table.type.name}' has no property '{name}'"
                raise InputError(message, hint=did_you_mean(name, known))
        attrs = {}
        for name, (_, type_) in table.columns.items():
            if name not in data:
                continue
            try:
                value = read_json(data[name], type_)
            except ValueFormatError as error:
                message = f"property '{name}' of '{table.type.name}': {error.message}"
                raise InputError(message, code="bad_value", hint=error.hint) from None
            if value is not None:
                attrs[name] = stored_to_cedar(value, type_.scalar)
        parents = [uid("Interface", one) for one in table.interfaces]
        return {"uid": {"type": table.entity, "id": str(data.get("id", ""))}, "attrs": attrs, "parents": parents}

    def _missing(self, policy: CedarJson, actor: PolicyActor, row: CedarJson) -> tuple[str, ...]:
        present = {"resource": row["attrs"], "principal": {"id": "", **dict(actor.attributes)}}
        read = {
            f"{variable}.{name}"
            for variable, name, _ in accesses(policy["conditions"])
            if variable in present and name and name not in present[variable]
        }
        return tuple(sorted(read))

    @cached_property
    def _rules(self) -> Mapping[str, Statement]:
        return {rule.id: rule for rule in self.statements.rules}

    # -- compilation ---------------------------------------------------------------------------------

    def _compile(self, log: ProblemLog) -> None:
        for rule in self.statements.rules:
            if rule.family == "graph":
                self._compile_role(rule)
                continue
            for table in self._named(rule, log):
                self._check_rule(rule, table, log)
                policy_id = f"{rule.id}:{table.key}"
                self._add(policy_id, rule.id, self._statement(rule, table, log))
        for policy_id, policy in self.statements.cedar_policies.items():
            actions = actions_of(policy)
            if actions is None or not actions.isdisjoint(_IN_RULES):
                self._add(policy_id, policy_id, dict(policy))

    def _compile_role(self, rule: Statement) -> None:
        actions = [action for action in rule.actions if action in _IN_RULES]
        if rule.role is not None and actions and all(grant.branches.is_any for grant in rule.grants):
            optional = {"principal": self.statements.declared}
            condition = rule_condition(rule, optional, ProblemLog(self.statements.source, "policy"))
            self._add(f"{rule.id}:rows", rule.id, statement_policy(rule, actions, {"op": "All"}, condition))

    def _statement(self, rule: Statement, table: _Table, log: ProblemLog) -> CedarJson:
        grant = rule.grants[0]
        conditions = [] if grant.branches.is_any else [branch_condition("context", grant.branches)]
        if rule.properties:
            named = attribute("context", "property")
            conditions.append(any_of([{"==": {"left": named, "right": {"Value": p}}} for p in rule.properties]))
        optional = {"resource": table.optional, "principal": self.statements.declared}
        conditions += rule_condition(rule, optional, log)
        return statement_policy(rule, rule.actions, {"op": "is", "entity_type": table.entity}, conditions)

    def _add(self, policy_id: str, rule: str, policy: CedarJson) -> None:
        self._policies[policy_id] = policy
        self._rule_of[policy_id] = rule

    def _named(self, rule: Statement, log: ProblemLog) -> Iterator[_Table]:
        """Yield the tables of the types that a rule names; an interface stands for its node types."""
        if not rule.types:
            yield from self._tables.values()
            return
        names = {table.type.name for table in self._tables.values()} | set(self.catalog.interfaces)
        for name in rule.types:
            members = {name, *self.catalog.implementers.get(name, ())}
            if name not in names:
                message = f"rule '{rule.id}': there is no type '{name}'"
                log.add("", message, rule.line, rule=rule.id, hint=did_you_mean(name, names))
            yield from (table for table in self._tables.values() if table.type.name in members)

    def _check_rule(self, rule: Statement, table: _Table, log: ProblemLog) -> None:
        """Report properties that do not exist, have no Cedar type, or cannot be hidden."""

        def add(message: str, hint: str | None = None) -> None:
            log.add("", f"rule '{rule.id}': {message}", rule.line, rule=rule.id, hint=hint)

        properties, name_of = table.type.properties, table.type.name
        for name in rule.properties:
            if name in ("id", "from", "to", "src", "dst") or name in table.fixed:
                add(f"'{name}' of '{name_of}' identifies the row and cannot be hidden")
            elif name not in properties:
                add(f"'{name_of}' has no property '{name}'", did_you_mean(name, properties))
        if rule.when is None:
            return
        read = {name for variable, name, _ in self._reads(rule) if variable == "resource"}
        for name in sorted(read - set(table.columns)):
            if name in properties and not has_cedar_type(properties[name].type):
                add(f"'{name}' of '{name_of}' is a {properties[name].type}, which has no Cedar type")
            elif name:
                add(f"'{name_of}' has no property '{name}'", did_you_mean(name, properties))

    def _reads(self, rule: Statement) -> list[tuple[str, str, bool]]:
        condition = rule_condition(replace(rule, line=None), {}, ProblemLog("", ""))
        return list(accesses(condition))

    def _validate(self, log: ProblemLog) -> None:
        """Validate the policies for rows, and all policies of Cedar files, against the schema of the graph."""
        files = {one: dict(policy) for one, policy in self.statements.cedar_policies.items()}
        plain, rule_of = graph_policies(self.statements, log)
        names = {**rule_of, **{one: one for one in files}, **self._rule_of}
        validate({**plain, **files, **self._policies}, names, self.schema, log)

    # -- translation ---------------------------------------------------------------------------------

    def _translate(self, log: ProblemLog) -> None:
        """Refuse what cannot be translated, and find the properties that rules guard."""
        for key, table in self._tables.items():
            found: dict[str, Otherwise] = {}
            for policy_id, policy in self._policies.items():
                actions = actions_of(policy) or _IN_RULES
                try:
                    for action in sorted(actions & set(ROW_ACTIONS)):
                        policy_condition(self._trees[policy_id], self._facts(table, action, None, None, None))
                    if actions_of(policy) is None:
                        self._check_uniform(policy_id, policy, table, log)
                        continue
                    for action in sorted(actions & set(PROPERTY_ACTIONS)):
                        self._guard(policy_id, policy, table, action, found, log)
                except PolicyRefused as error:
                    rule = self._rule_of[policy_id]
                    message = f"rule '{rule}': a policy for rows cannot use {error}"
                    if not any(problem.message == message for problem in log.problems):
                        log.add("", message, self._line(rule), rule=rule)
            self._guarded[key] = dict(sorted(found.items()))

    def _check_uniform(self, policy_id: str, policy: CedarJson, table: _Table, log: ProblemLog) -> None:
        """Report a forbid without actions that hides properties of rows that it does not hide."""
        if policy["effect"] == "permit":
            return
        tree, rule = self._trees[policy_id], self._rule_of[policy_id]
        rows = policy_condition(tree, self._facts(table, "row_read", None, None, None))
        for name in table.type.properties:
            if policy_condition(tree, self._facts(table, "property_read", None, None, name)) != rows:
                message = f"rule '{rule}': it names no action and treats rows and properties differently"
                log.add("", message, rule=rule, hint="name the actions of the policy")
                return

    def _guard(
        self, policy_id: str, policy: CedarJson, table: _Table, action: str, found: dict[str, Otherwise],
        log: ProblemLog,
    ) -> None:  # fmt: skip
        """Note the properties of a type that a policy for properties can concern."""
        rule = self._rules.get(self._rule_of[policy_id])
        for name in table.type.properties:
            facts = self._facts(table, action, None, None, name)
            condition = policy_condition(self._trees[policy_id], facts)
            if not self._concerns(policy_id, table, action, name):
                continue
            otherwise: Otherwise = "mask" if policy.get("annotations", {}).get("otherwise") == "mask" else "hide"
            if rule is not None:
                otherwise = rule.otherwise
            self._check_guard(policy_id, table, name, otherwise, found, log, by_row=_reads_row(condition))
            found.setdefault(name, otherwise)

    def _check_guard(
        self, policy_id: str, table: _Table, name: str, otherwise: Otherwise, found: Mapping[str, Otherwise],
        log: ProblemLog, *, by_row: bool,
    ) -> None:  # fmt: skip
        rule, shown = self._rule_of[policy_id], f"'{name}' of '{table.type.name}'"
        message = None
        if name in table.fixed:
            message = f"{shown} identifies the row and cannot be hidden"
        elif found.get(name, otherwise) != otherwise:
            message = f"{shown} is hidden by one rule and masked by another; write the same 'otherwise'"
        elif by_row and otherwise == "hide":
            message = f"whether {shown} is visible depends on the row; write 'otherwise: mask'"
        if message is not None and not any(message in problem.message for problem in log.problems):
            log.add("", f"rule '{rule}': {message}", self._line(rule), rule=rule)

    def _line(self, rule: str) -> int | None:
        found = self._rules.get(rule)
        return found.line if found is not None else None

    def _compile_defaults(self) -> None:
        """Add the permits of types and properties that no rule names."""
        everyone = Statement("", "allow", None, ())
        found: list[tuple[str, str, CedarJson]] = []
        for table in self._tables.values():
            scope: CedarJson = {"op": "is", "entity_type": table.entity}
            if self.statements.rows_default != "deny" and not self._is_allowed(table):
                rule = replace(everyone, id=ROWS_DEFAULT)
                policy = statement_policy(rule, ROW_ACTIONS, scope, [])
                found.append((f"{ROWS_DEFAULT}:{table.key}", rule.id, policy))
            allowed = [name for name in self._guarded[table.key] if self._allows_property(table, name)]
            rule = replace(everyone, id=PROPERTIES_DEFAULT)
            policy = statement_policy(rule, PROPERTY_ACTIONS, scope, [])
            if allowed:
                named = attribute("context", "property")
                body = any_of([{"==": {"left": named, "right": {"Value": name}}} for name in allowed])
                policy["conditions"] = [{"kind": "unless", "body": body}]
            found.append((f"{PROPERTIES_DEFAULT}:{table.key}", rule.id, policy))
        for policy_id, rule_id, policy in found:
            self._add(policy_id, rule_id, policy)

    def _is_allowed(self, table: _Table) -> bool:
        """Return True if a rule that allows actions on rows names a type."""
        return any(
            names_rows(self._trees[one], self._facts(table, action, None, None, None))
            for one, policy in self._policies.items()
            if policy["effect"] == "permit" and self._is_row_rule(one)
            for action in sorted((actions_of(policy) or frozenset()) & set(ROW_ACTIONS))
        )

    def _allows_property(self, table: _Table, name: str) -> bool:
        """Return True if a rule that allows actions on properties names a property."""
        return any(
            self._concerns(one, table, action, name)
            for one, policy in self._policies.items()
            if policy["effect"] == "permit" and self._is_row_rule(one)
            for action in sorted((actions_of(policy) or frozenset()) & set(PROPERTY_ACTIONS))
        )

    def _concerns(self, policy_id: str, table: _Table, action: str, name: str) -> bool:
        """Return True if a policy for properties names a property, or can be satisfied for it."""
        facts = self._facts(table, action, None, None, name)
        rule = self._rules.get(self._rule_of[policy_id])
        if rule is not None:
            return name in rule.properties and names_rows(self._trees[policy_id], facts)
        return policy_condition(self._trees[policy_id], facts) is not False

    def _is_row_rule(self, policy_id: str) -> bool:
        """Return True for a rule for rows or properties; the role of an owner and a default are none."""
        rule = self._rules.get(self._rule_of[policy_id])
        return rule is None or rule.role is None

    def _index(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Return action and table → the policies that can match."""
        found: dict[tuple[str, str], list[str]] = {}
        for policy_id, policy in self._policies.items():
            for action in sorted(actions_of(policy) or _IN_RULES):
                if action not in _IN_RULES:
                    continue
                for key, table in self._tables.items():
                    if _can_match(self._trees[policy_id], table):
                        found.setdefault((action, key), []).append(policy_id)
        return {key: tuple(ids) for key, ids in found.items()}


def stored_to_cedar(value: Any, scalar: str) -> Any:
    """Return a stored value in the JSON form of Cedar entities."""
    if isinstance(value, list):
        return [stored_to_cedar(item, scalar) for item in value]
    if scalar in ("Date", "DateTime"):
        milliseconds = value * _DAY_MS if scalar == "Date" else value
        return {"__extn": {"fn": "datetime", "arg": _datetime_text(milliseconds)}}
    return value


def _datetime_text(milliseconds: int) -> str:
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415 (few rows have dates)

    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    return f"{time.year:04}-{time:%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


def _tables(catalog: Catalog) -> Iterator[_Table]:
    for type_ in catalog.tables():
        columns = attributes_of(type_)
        optional = frozenset(name for name, (_, property_type) in columns.items() if property_type.nullable)
        yield _Table(type_, entity_type(type_.kind, type_.name), columns, optional)


def _reads_row(condition: RowCondition) -> bool:
    return not isinstance(condition, bool) and any(isinstance(part, ir.Prop) for part in ir.walk(condition))


def _can_match(tree: Any, table: _Table) -> bool:
    named = getattr(tree.resource, "entity_type", None)
    return named is None or str(named) == table.entity


def _keep(kept: dict[Any, Any], key: Any, value: Any, lock: threading.Lock) -> None:
    with lock:
        if len(kept) >= _KEPT_MAX:
            kept.clear()
        kept[key] = value
