"""Compilation of rules for rows and properties to Cedar policies, for the schema of one graph.

`compile_rows` makes one Cedar policy per rule and type, validates all of them strictly against the schema generated
from the graph, refuses what `rows` cannot translate, and adds the permits of types and properties that no rule names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.policy.cedar import load_cedarpy
from omnigraph.policy.cedar_schema import cedar_schema, has_cedar_type
from omnigraph.policy.cedar_values import PolicyRefused
from omnigraph.policy.rows.row_conditions import RowCondition
from omnigraph.policy.rows.row_tables import RowTable, row_facts, row_tables
from omnigraph.policy.rows.row_translation import RowFacts, names_rows, policy_condition
from omnigraph.policy.rules import PROPERTY_ACTIONS, ROW_ACTIONS
from omnigraph.policy.statements import Otherwise, PolicyStatements, Statement, actions_of
from omnigraph.policy.statements_cedar import (
    CedarJson,
    accesses,
    any_of,
    attribute,
    branch_condition,
    graph_policies,
    policy_set,
    reads_resource,
    rule_condition,
    statement_policy,
    validate,
)
from omnigraph.policy.yaml_nodes import ProblemLog
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.suggestions import did_you_mean

ROWS_DEFAULT, PROPERTIES_DEFAULT = "rows.default", "properties.default"
_IN_RULES = frozenset({*ROW_ACTIONS, *PROPERTY_ACTIONS})


@dataclass(frozen=True)
class CompiledRows:
    """The Cedar policies for the rows and properties of one graph."""

    tables: Mapping[str, RowTable]
    policies: Mapping[str, CedarJson]
    rule_of: Mapping[str, str]
    """Policy → its rule, or the default that it states."""
    trees: Mapping[str, Any]
    """Policy → its syntax tree."""
    by_scope: Mapping[tuple[str, str], tuple[str, ...]]
    """Action and table → the policies that can match."""
    guarded: Mapping[str, Mapping[str, Otherwise]]
    """Table → the properties that rules guard, and what becomes of them without the right to read them."""
    schema: Any
    """The Cedar schema of the graph."""

    def rules_of(self, action: str, table_key: str) -> tuple[str, ...]:
        """Return the rules that name an action and a table, without defaults."""
        found = (self.rule_of[one] for one in self.by_scope.get((action, table_key), ()))
        return tuple(dict.fromkeys(rule for rule in found if rule not in (ROWS_DEFAULT, PROPERTIES_DEFAULT)))


def compile_rows(statements: PolicyStatements, catalog: Catalog) -> CompiledRows:
    """Compile the rules for rows and properties of a policy; raises `PolicyInvalid` with all problems."""
    return _Compiler(statements, catalog).compile()


class _Compiler:
    def __init__(self, statements: PolicyStatements, catalog: Catalog) -> None:
        self._statements = statements
        self._catalog = catalog
        self._tables = {table.key: table for table in row_tables(catalog)}
        self._policies: dict[str, CedarJson] = {}
        self._rule_of: dict[str, str] = {}
        self._trees: dict[str, Any] = {}
        self._matching: dict[str, list[str]] = {key: [] for key in self._tables}
        """Table → the policies whose scope can match its rows."""
        self._guarded: dict[str, dict[str, Otherwise]] = {}
        schema = cedar_schema("graph", statements.declared, catalog)
        self._schema = load_cedarpy().Schema.from_json_str(json.dumps(schema))

    def compile(self) -> CompiledRows:
        log = ProblemLog(self._statements.source, "policy")
        self._compile(log)
        log.raise_any()
        self._validate(log)
        log.raise_any()
        self._parse(self._policies)
        self._translate(log)
        log.raise_any()
        self._parse(self._compile_defaults())
        return CompiledRows(
            self._tables, self._policies, self._rule_of, self._trees, self._index(), self._guarded, self._schema
        )

    def _parse(self, policies: Mapping[str, CedarJson]) -> None:
        """Read the syntax trees of policies, and the tables that their scopes can match."""
        trees = policy_set(policies).to_pst().static_policies
        self._trees.update(trees)
        for policy_id in policies:
            named = getattr(trees[policy_id].resource, "entity_type", None)
            for key, table in self._tables.items():
                if named is None or str(named) == table.entity:
                    self._matching[key].append(policy_id)

    def _facts(self, table: RowTable, action: str, name: str | None = None) -> RowFacts:
        return row_facts(self._statements, table, action, name)

    def _compile(self, log: ProblemLog) -> None:
        for rule in self._statements.rules:
            if rule.family == "graph":
                self._compile_role(rule)
                continue
            tables = list(self._named(rule, log))
            self._check_enums(rule, tables, log)
            for table in tables:
                self._check_rule(rule, table, log)
                policy_id = f"{rule.id}:{table.key}"
                self._add(policy_id, rule.id, self._statement(rule, table, log))
        for policy_id, policy in self._statements.cedar_policies.items():
            actions = actions_of(policy)
            if actions is None or not actions.isdisjoint(_IN_RULES):
                self._add(policy_id, policy_id, dict(policy))

    def _compile_role(self, rule: Statement) -> None:
        actions = [action for action in rule.actions if action in _IN_RULES]
        if rule.role is not None and actions and all(grant.branches.is_any for grant in rule.grants):
            optional = {"principal": self._statements.declared}
            condition = rule_condition(rule, optional, ProblemLog(self._statements.source, "policy"))
            if reads_resource(condition):
                # The condition is about the branch; the role grants nothing on rows.
                return
            self._add(f"{rule.id}:rows", rule.id, statement_policy(rule, actions, {"op": "All"}, condition))

    def _statement(self, rule: Statement, table: RowTable, log: ProblemLog) -> CedarJson:
        grant = rule.grants[0]
        conditions = [] if grant.branches.is_any else [branch_condition("context", grant.branches)]
        if rule.properties:
            named = attribute("context", "property")
            conditions.append(any_of([{"==": {"left": named, "right": {"Value": p}}} for p in rule.properties]))
        optional = {"resource": table.optional, "principal": self._statements.declared}
        conditions += rule_condition(rule, optional, log)
        return statement_policy(rule, rule.actions, {"op": "is", "entity_type": table.entity}, conditions)

    def _add(self, policy_id: str, rule: str, policy: CedarJson) -> None:
        self._policies[policy_id] = policy
        self._rule_of[policy_id] = rule

    def _named(self, rule: Statement, log: ProblemLog) -> Iterator[RowTable]:
        """Yield the tables of the types that a rule names; an interface stands for its node types."""
        if not rule.types:
            yield from self._tables.values()
            return
        names = {table.type.name for table in self._tables.values()} | set(self._catalog.interfaces)
        for name in rule.types:
            members = {name, *self._catalog.implementers.get(name, ())}
            if name not in names:
                message = f"rule '{rule.id}': there is no type '{name}'"
                log.add("", message, rule.line, rule=rule.id, hint=did_you_mean(name, names))
            yield from (table for table in self._tables.values() if table.type.name in members)

    def _check_rule(self, rule: Statement, table: RowTable, log: ProblemLog) -> None:
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
                floats = "properties of type F64 and F32 cannot be used in conditions: Cedar has no floats"
                hint = floats if properties[name].type.scalar in ("F32", "F64") else None
                add(f"'{name}' of '{name_of}' is a {properties[name].type}, which has no Cedar type", hint)
            elif name:
                add(f"'{name_of}' has no property '{name}'", did_you_mean(name, properties))

    def _check_enums(self, rule: Statement, tables: Sequence[RowTable], log: ProblemLog) -> None:
        """Report texts that a condition compares with a property and that are a value of it in no type of the rule."""
        if rule.when is None:
            return
        condition = rule_condition(rule, {}, ProblemLog("", ""))
        for name, value in sorted(set(_compared_texts(condition))):
            types = [table.type.properties[name].type for table in tables if name in table.type.properties]
            enums = [type_.enum_values for type_ in types]
            known = sorted({one for values in enums if values is not None for one in values})
            if types and None not in enums and value not in known:
                message = (
                    f"rule '{rule.id}': '{value}' is not a value of '{name}', which is {types[0].with_nullable(False)}"
                )
                hint = did_you_mean(value, known) or f"the values are {', '.join(known)}"
                log.add("", message, rule.line, rule=rule.id, hint=hint)

    def _reads(self, rule: Statement) -> list[tuple[str, str, bool]]:
        condition = rule_condition(replace(rule, line=None), {}, ProblemLog("", ""))
        return list(accesses(condition))

    def _validate(self, log: ProblemLog) -> None:
        """Validate the policies for rows, and all policies of Cedar files, against the schema of the graph."""
        files = {one: dict(policy) for one, policy in self._statements.cedar_policies.items()}
        plain, rule_of = graph_policies(self._statements, log)
        names = {**rule_of, **{one: one for one in files}, **self._rule_of}
        validate({**plain, **files, **self._policies}, names, self._statements, self._schema, log)

    def _translate(self, log: ProblemLog) -> None:
        """Refuse what cannot be translated, and find the properties that rules guard."""
        for key, table in self._tables.items():
            found: dict[str, Otherwise] = {}
            for policy_id, policy in self._policies_of(table):
                actions = actions_of(policy) or _IN_RULES
                try:
                    for action in sorted(actions & set(ROW_ACTIONS)):
                        policy_condition(self._trees[policy_id], self._facts(table, action))
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

    def _check_uniform(self, policy_id: str, policy: CedarJson, table: RowTable, log: ProblemLog) -> None:
        """Report a forbid without actions that hides properties of rows that it does not hide."""
        if policy["effect"] == "permit":
            return
        tree, rule = self._trees[policy_id], self._rule_of[policy_id]
        rows = policy_condition(tree, self._facts(table, "row_read"))
        for name in table.type.properties:
            if policy_condition(tree, self._facts(table, "property_read", name)) != rows:
                message = f"rule '{rule}': it names no action and treats rows and properties differently"
                log.add("", message, rule=rule, hint="name the actions of the policy")
                return

    def _guard(
        self, policy_id: str, policy: CedarJson, table: RowTable, action: str, found: dict[str, Otherwise],
        log: ProblemLog,
    ) -> None:  # fmt: skip
        """Note the properties of a type that a policy for properties can concern."""
        rule = self._statements.rule_by_id.get(self._rule_of[policy_id])
        for name in table.type.properties:
            if not self._concerns(policy_id, table, action, name):
                continue
            condition = policy_condition(self._trees[policy_id], self._facts(table, action, name))
            otherwise: Otherwise = "mask" if policy.get("annotations", {}).get("otherwise") == "mask" else "hide"
            if rule is not None:
                otherwise = rule.otherwise
            if action == "property_read" and name in table.period:
                self._refuse(
                    policy_id, f"'{name}' of '{table.type.name}' bounds the period of a row and cannot be hidden", log
                )
            self._check_guard(policy_id, table, name, otherwise, found, log, by_row=_reads_row(condition))
            found.setdefault(name, otherwise)

    def _check_guard(
        self, policy_id: str, table: RowTable, name: str, otherwise: Otherwise, found: Mapping[str, Otherwise],
        log: ProblemLog, *, by_row: bool,
    ) -> None:  # fmt: skip
        shown = f"'{name}' of '{table.type.name}'"
        message = None
        if name in table.fixed:
            message = f"{shown} identifies the row and cannot be hidden"
        elif found.get(name, otherwise) != otherwise:
            message = f"{shown} is hidden by one rule and masked by another; write the same 'otherwise'"
        elif by_row and otherwise == "hide":
            message = f"whether {shown} is visible depends on the row; write 'otherwise: mask'"
        if message is not None:
            self._refuse(policy_id, message, log)

    def _refuse(self, policy_id: str, message: str, log: ProblemLog) -> None:
        """Report a problem of a policy once."""
        rule = self._rule_of[policy_id]
        if not any(message in problem.message for problem in log.problems):
            log.add("", f"rule '{rule}': {message}", self._line(rule), rule=rule)

    def _line(self, rule: str) -> int | None:
        found = self._statements.rule_by_id.get(rule)
        return found.line if found is not None else None

    def _compile_defaults(self) -> dict[str, CedarJson]:
        """Add and return the permits of types and properties that no rule names."""
        everyone = Statement("", "allow", None, ())
        found: list[tuple[str, str, CedarJson]] = []
        for table in self._tables.values():
            scope: CedarJson = {"op": "is", "entity_type": table.entity}
            if self._statements.rows_default != "deny" and not self._is_allowed(table):
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
        return {policy_id: policy for policy_id, _, policy in found}

    def _is_allowed(self, table: RowTable) -> bool:
        """Return True if a rule that allows actions on rows names a type."""
        return any(
            names_rows(self._trees[one], self._facts(table, action))
            for one, policy in self._policies_of(table)
            if policy["effect"] == "permit" and self._is_row_rule(one)
            for action in sorted((actions_of(policy) or frozenset()) & set(ROW_ACTIONS))
        )

    def _allows_property(self, table: RowTable, name: str) -> bool:
        """Return True if a rule that allows actions on properties names a property."""
        return any(
            self._concerns(one, table, action, name)
            for one, policy in self._policies_of(table)
            if policy["effect"] == "permit" and self._is_row_rule(one)
            for action in sorted((actions_of(policy) or frozenset()) & set(PROPERTY_ACTIONS))
        )

    def _concerns(self, policy_id: str, table: RowTable, action: str, name: str) -> bool:
        """Return True if a policy for properties names a property, or can be satisfied for it."""
        facts = self._facts(table, action, name)
        rule = self._statements.rule_by_id.get(self._rule_of[policy_id])
        if rule is not None:
            return name in rule.properties and names_rows(self._trees[policy_id], facts)
        return policy_condition(self._trees[policy_id], facts) is not False

    def _policies_of(self, table: RowTable) -> Iterator[tuple[str, CedarJson]]:
        return ((one, self._policies[one]) for one in self._matching[table.key])

    def _is_row_rule(self, policy_id: str) -> bool:
        """Return True for a rule for rows or properties; the role of an owner and a default are none."""
        rule = self._statements.rule_by_id.get(self._rule_of[policy_id])
        return rule is None or rule.role is None

    def _index(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Return action and table → the policies that can match."""
        found: dict[tuple[str, str], list[str]] = {}
        for key, table in self._tables.items():
            for policy_id, policy in self._policies_of(table):
                for action in (actions_of(policy) or _IN_RULES) & _IN_RULES:
                    found.setdefault((action, key), []).append(policy_id)
        return {key: tuple(ids) for key, ids in found.items()}


def _compared_texts(node: Any) -> Iterator[tuple[str, str]]:
    """Yield the properties of a row that an expression compares with texts, each with a text."""
    if isinstance(node, list):
        for part in node:
            yield from _compared_texts(part)
    if not isinstance(node, dict):
        return
    for operator, part in node.items():
        if operator in ("==", "!=", "contains") and isinstance(part, dict) and {*part} == {"left", "right"}:
            sides = part["left"], part["right"]
            names = [name for side in sides if (name := _property_of(side)) is not None]
            yield from ((name, text) for name in names for side in sides for text in _texts_in(side))
        yield from _compared_texts(part)


def _property_of(node: CedarJson) -> str | None:
    access = node.get(".")
    return str(access["attr"]) if access is not None and access["left"] == {"Var": "resource"} else None


def _texts_in(node: CedarJson) -> list[str]:
    """Return the texts of a literal or of a set of literals."""
    values = [member.get("Value") for member in node.get("Set", [node])]
    return [value for value in values if isinstance(value, str)]


def _reads_row(condition: RowCondition) -> bool:
    return not isinstance(condition, bool) and any(isinstance(part, ir.Prop) for part in ir.walk(condition))
