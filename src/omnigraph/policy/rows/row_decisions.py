"""Decisions of Cedar on single rows, with the rules that decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.errors import InputError, ValueFormatError
from omnigraph.policy.cedar_schema import uid
from omnigraph.policy.rows.row_compiler import CompiledRows
from omnigraph.policy.rows.row_tables import PolicyActor, branch_context
from omnigraph.policy.rules import PROPERTY_ACTIONS
from omnigraph.policy.statements import PolicyStatements
from omnigraph.policy.statements_cedar import CedarJson, Judgement, accesses, actor_entities, judge, policy_set
from omnigraph.suggestions import did_you_mean
from omnigraph.values import read_json

PropertyView = Literal["show", "mask", "hide"]
RowWhy = Literal["ok", "denies", "actor_not_in_group", "scope", "condition"]

_LONG_MAX = 2**63 - 1
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class ConsideredRowRule:
    """A rule for rows, why it does or does not decide on a row, and the missing attributes that it reads."""

    rule: str
    why: RowWhy
    missing: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the rule as a JSON object."""
        return {"rule": self.rule, "why": self.why, "missing": list(self.missing)}


class RowDecisions:
    """The decisions of compiled policies on rows that are given as JSON values."""

    def __init__(self, statements: PolicyStatements, rows: CompiledRows) -> None:
        self._statements = statements
        self._rows = rows

    def judge(
        self, actor: PolicyActor, action: str, table_key: str, data: Mapping[str, Any], branch: str,
        name: str | None = None,
    ) -> Judgement:  # fmt: skip
        """Return the decision of Cedar on a row that is given as JSON values."""
        ids = self._rows.by_scope.get((action, table_key), ())
        return self._judge(actor, action, table_key, self._row(table_key, data), branch, name, ids)

    def consider(
        self, actor: PolicyActor, action: str, table_key: str, data: Mapping[str, Any], branch: str,
        name: str | None = None,
    ) -> list[ConsideredRowRule]:  # fmt: skip
        """Return every rule that names an action and a type, and why it does or does not decide on a row."""
        row = self._row(table_key, data)
        found: dict[str, ConsideredRowRule] = {}
        for policy_id in self._rows.by_scope.get((action, table_key), ()):
            policy = self._rows.policies[policy_id]
            judged = self._judge(actor, action, table_key, row, branch, name, (policy_id,))
            matched = bool(judged.allowing or judged.denying)
            why: RowWhy = ("ok" if policy["effect"] == "permit" else "denies") if matched else "condition"
            rule = self._statements.rule_by_id.get(self._rows.rule_of[policy_id])
            if not matched and rule is not None:
                protected = self._statements.is_protected(branch)
                if not rule.covers(actor.groups):
                    why = "actor_not_in_group"
                elif not any(grant.branches.selects(branch, protected=protected) for grant in rule.grants):
                    why = "scope"
            missing = self._missing(policy, actor, row) if why in ("condition", "denies") else ()
            found[policy_id] = ConsideredRowRule(self._rows.rule_of[policy_id], why, missing)
        return list(found.values())

    def property_views(
        self, actor: PolicyActor, table_key: str, data: Mapping[str, Any], branch: str
    ) -> dict[str, PropertyView]:
        """Return how an actor sees the properties of a row."""
        guarded = self._rows.guarded[table_key]
        views: dict[str, PropertyView] = {}
        for name in self._rows.tables[table_key].type.properties:
            if name not in guarded or self.judge(actor, "property_read", table_key, data, branch, name).allowed:
                views[name] = "show"
            else:
                views[name] = guarded[name]
        return views

    def _judge(
        self, actor: PolicyActor, action: str, table_key: str, row: CedarJson, branch: str, name: str | None,
        policy_ids: tuple[str, ...],
    ) -> Judgement:  # fmt: skip
        context = branch_context(self._statements, branch)
        if action in PROPERTY_ACTIONS:
            context["property"] = name or ""
        request = {
            "principal": uid("Actor", actor.name),
            "action": uid("Action", action),
            "resource": row["uid"],
            "context": context,
        }
        entities = [row, *actor_entities(self._statements, actor.name, actor.groups, actor.attributes)]
        interfaces = self._rows.tables[table_key].interfaces
        entities += [{"uid": uid("Interface", one), "attrs": {}, "parents": []} for one in interfaces]
        policies = {one: self._rows.policies[one] for one in policy_ids}
        self._check_given(table_key, policies.values(), row)
        return judge(request, policy_set(policies), entities, self._rows.schema, self._rows.rule_of, complete=False)

    def _check_given(self, table_key: str, policies: Iterable[CedarJson], row: CedarJson) -> None:
        """Refuse a row without a required property that a policy reads."""
        table = self._rows.tables[table_key]
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
        table = self._rows.tables[table_key]
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


def stored_to_cedar(value: Any, scalar: str) -> Any:
    """Return a stored value in the JSON form of Cedar entities."""
    if isinstance(value, list):
        return [stored_to_cedar(item, scalar) for item in value]
    if scalar in ("Date", "DateTime"):
        milliseconds = value * _DAY_MS if scalar == "Date" else value
        return {"__extn": {"fn": "datetime", "arg": _datetime_text(milliseconds)}}
    # No constant of a rule exceeds the largest Long, so a larger value compares like it.
    return min(value, _LONG_MAX) if scalar == "U64" else value


def _datetime_text(milliseconds: int) -> str:
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415 (few rows have dates)

    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    return f"{time.year:04}-{time:%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"
