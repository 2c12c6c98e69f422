"""The rules for rows and properties of a policy, bound to the schema of a graph.

`RowPolicies` holds the policies that `row_compiler` made and answers

    condition    which rows of a type an actor may read or change
    visibility   what an actor sees of a branch: all that reads know of a policy
    write_guard  what an actor may change of a branch: all that writes know of a policy
    decisions    the decisions of Cedar on single rows, with the rules that decided

A type is fully visible if `rows.default` is `allow` and no rule that allows actions on rows names it. A property is
visible if no rule that allows actions on properties names it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.errors import TypeNotFound
from omnigraph.policy.rows.row_audit import RowAudit
from omnigraph.policy.rows.row_compiler import compile_rows
from omnigraph.policy.rows.row_conditions import RowCondition
from omnigraph.policy.rows.row_decisions import RowDecisions
from omnigraph.policy.rows.row_tables import PolicyActor, request_facts, row_facts
from omnigraph.policy.rows.row_translation import visible_rows
from omnigraph.policy.statements import PolicyStatements, attributes_key
from omnigraph.policy.statements_cedar import policies_text
from omnigraph.query.plan import ir
from omnigraph.query.visibility import Visibility
from omnigraph.query.write_guard import ROW_CHANGES, RowAction, WriteGuard
from omnigraph.schema.catalog import Catalog
from omnigraph.suggestions import did_you_mean

_KEPT_MAX = 16_384
_UNKNOWN = Visibility()
"""Stands for a visibility that is not kept."""


class RowPolicies:
    """The policies for rows and properties of one graph. Immutable apart from its caches; threads can share it."""

    def __init__(self, statements: PolicyStatements, catalog: Catalog, graph: str = "graph") -> None:
        self.statements = statements
        self.catalog = catalog
        self.graph = graph
        self.compiled = compile_rows(statements, catalog)
        self.decisions = RowDecisions(statements, self.compiled)
        self._conditions: dict[tuple[Any, ...], RowCondition] = {}
        self._visibilities: dict[tuple[PolicyActor, str], Visibility | None] = {}
        self._lock = threading.Lock()

    @property
    def schema(self) -> Any:
        """The Cedar schema of the graph."""
        return self.compiled.schema

    @property
    def cedar_text(self) -> str:
        """The policies for rows and properties as Cedar text."""
        return policies_text(self.compiled.policies)

    def actor(self, name: str, groups: Iterable[str] = (), attributes: Mapping[str, Any] | None = None) -> PolicyActor:
        """Return an actor with its groups and attributes: those of the policy, then those given."""
        held = self.statements.attributes_of(name, attributes_key(attributes))
        return PolicyActor(name, self.statements.groups_for(name, groups), held)

    def table_key(self, type_name: str) -> str:
        """Return the key of the table of a node or edge type."""
        for key, table in self.compiled.tables.items():
            if table.type.name == type_name:
                return key
        names = [table.type.name for table in self.compiled.tables.values()]
        raise TypeNotFound(f"there is no type '{type_name}'", hint=did_you_mean(type_name, names))

    def condition(
        self, actor: PolicyActor, action: str, table_key: str, branch: str, name: str | None = None
    ) -> RowCondition:
        """Return the rows on which an actor may perform an action; `name` is the property of an action on one."""
        found = self._conditions.get((actor, action, table_key, branch, name))
        if found is None:
            policies = [self.compiled.trees[one] for one in self.compiled.by_scope.get((action, table_key), ())]
            facts = row_facts(self.statements, self.compiled.tables[table_key], action, name)
            found = visible_rows(policies, request_facts(self.statements, facts, actor, branch))
            _keep(self._conditions, (actor, action, table_key, branch, name), found, self._lock)
        return found

    def visibility(self, actor: PolicyActor, branch: str) -> Visibility | None:
        """Return what an actor sees of a branch; None if it sees everything."""
        key = (actor, branch)
        found = self._visibilities.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            # Another thread can remove what is kept: the computed value is returned, never a missing one.
            found = self._visibility(actor, branch)
            _keep(self._visibilities, key, found, self._lock)
        return found

    def _visibility(self, actor: PolicyActor, branch: str) -> Visibility | None:
        rows: dict[str, ir.Condition | None] = {}
        properties: dict[tuple[str, str], ir.Condition | None] = {}
        for key in sorted(self.compiled.tables):
            seen = self.condition(actor, "row_read", key, branch)
            if not isinstance(seen, bool):
                rows[key] = seen
            elif not seen and self.condition(actor, "row_insert", key, branch) is not False:
                # An actor that may insert rows knows the type; it sees none of its rows.
                rows[key] = ir.Const(False, ir.BOOL)
            elif not seen:
                rows[key] = None
                continue
            for name, otherwise in self.compiled.guarded[key].items():
                shown = self.condition(actor, "property_read", key, branch, name)
                if not isinstance(shown, bool):
                    properties[key, name] = shown
                elif not shown:
                    properties[key, name] = None if otherwise == "hide" else ir.Const(False, ir.BOOL)
        if not rows and not properties:
            return None
        sample = self.statements.rows_audit
        audit = RowAudit(self.compiled, self.decisions, actor, branch, sample) if sample else None
        return Visibility(rows, properties, audit)

    def write_guard(self, actor: PolicyActor, branch: str) -> WriteGuard | None:
        """Return what an actor may change of a branch; None if it sees everything and may change everything."""
        rows: dict[tuple[RowAction, str], ir.Condition | None] = {}
        properties: dict[tuple[str, str], ir.Condition | None] = {}
        for key in sorted(self.compiled.tables):
            for action in ROW_CHANGES:
                allowed = self.condition(actor, action, key, branch)
                if allowed is not True:
                    rows[action, key] = None if isinstance(allowed, bool) else allowed
            for name in self.compiled.guarded[key]:
                allowed = self.condition(actor, "property_write", key, branch, name)
                if allowed is not True:
                    properties[key, name] = None if isinstance(allowed, bool) else allowed
        visibility = self.visibility(actor, branch)
        if visibility is None and not rows and not properties:
            return None
        rules: dict[tuple[str, str], tuple[str, ...]] = {
            (action, key): self._rules_for(actor, action, key) for action, key in rows
        }
        of_properties = {(key, name): self._rules_for(actor, "property_write", key, name) for key, name in properties}
        return WriteGuard(visibility or Visibility(), rows, properties, rules, of_properties)

    def _rules_for(
        self, actor: PolicyActor, action: str, table_key: str, property_: str | None = None
    ) -> tuple[str, ...]:
        """Return the rules, without roles, that name an action, a table and a property.

        These are the rules that concern an actor, or all if there is none.
        """
        known = self.statements.rule_by_id
        found = [
            rule
            for rule in self.compiled.rules_of(action, table_key)
            if rule not in known
            or (known[rule].role is None and (property_ is None or property_ in known[rule].properties))
        ]
        concerning = [rule for rule in found if rule not in known or known[rule].covers(actor.groups)]
        return tuple(concerning or found)


def _keep(kept: dict[Any, Any], key: Any, value: Any, lock: threading.Lock) -> None:
    with lock:
        if len(kept) >= _KEPT_MAX:
            kept.clear()
        kept[key] = value
