"""The explanation of a decision on one row: its rules, its condition, its ends and its properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.errors import NotFound
from omnigraph.policy.rows.row_conditions import condition_text
from omnigraph.policy.rows.row_decisions import ConsideredRowRule, PropertyView
from omnigraph.policy.rows.row_policies import RowPolicies
from omnigraph.policy.rows.row_tables import PolicyActor
from omnigraph.schema.catalog import EdgeType
from omnigraph.table_key import TableKey

ReadRow = Callable[[str, str, Literal["node", "edge"]], Mapping[str, Any] | None]
"""Type, id and kind → the columns of a row by name; None if it does not exist."""

_READ = "row_read"
_NEED_READ = ("row_update", "row_delete")
_EXPLAINED = {
    "ok": "allows",
    "denies": "denies",
    "actor_not_in_group": "does not apply to the actor",
    "scope": "does not apply to the branch",
    "condition": "its condition does not hold",
}


@dataclass(frozen=True)
class StoredRow:
    """A row of a graph as rules see it, and the nodes at its ends if it is an edge."""

    id: str
    data: Mapping[str, Any]
    ends: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    """For each end of an edge: "from" or "to", the type of the node, and the node as rules see it."""


@dataclass(frozen=True)
class EndDecision:
    """The decision on reading a node at an end of an edge."""

    end: str
    type: str
    id: str
    allowed: bool
    rules: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the decision as a JSON object."""
        decision = "allow" if self.allowed else "deny"
        return {"end": self.end, "type": self.type, "id": self.id, "decision": decision, "rules": list(self.rules)}


@dataclass(frozen=True)
class RowExplanation:
    """The decision on one row, and what led to it."""

    actor: str
    action: str
    type: str
    branch: str
    rules: tuple[str, ...]
    condition: str
    considered: tuple[ConsideredRowRule, ...]
    properties: Mapping[str, PropertyView]
    allowed_by_rules: bool
    id: str | None = None
    readable: bool | None = None
    """Whether rules let the actor read the stored row that it wants to change; None for other requests."""
    ends: tuple[EndDecision, ...] = ()

    @property
    def decision(self) -> str:
        """The decision: "allow" or "deny"."""
        reachable = self.readable is not False and all(end.allowed for end in self.ends)
        return "allow" if self.allowed_by_rules and reachable else "deny"

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON object."""
        found: dict[str, Any] = {
            "decision": self.decision,
            "actor": self.actor,
            "action": self.action,
            "type": self.type,
            "branch": self.branch,
            "rules": list(self.rules),
            "condition": self.condition,
            "considered": [one.to_json() for one in self.considered],
            "properties": dict(self.properties),
        }
        if self.id is not None:
            found["id"] = self.id
            found["ends"] = [end.to_json() for end in self.ends]
        if self.readable is not None:
            found["readable"] = self.readable
        return found

    def lines(self) -> list[str]:
        """Return the explanation as lines of text."""
        found = [f"decision: {self.decision}", f"actor: {self.actor}", f"action: {self.action}", f"type: {self.type}"]
        if self.id is not None:
            found.append(f"id: {self.id}")
        found += [f"branch: {self.branch}", f"condition: {self.condition}", *self.reasons()]
        shown = {"hide": "hidden", "mask": "masked"}
        found += [f"property {name}: {shown[view]}" for name, view in self.properties.items() if view != "show"]
        return found

    def reasons(self) -> list[str]:
        """Return the reasons of the decision as lines of text."""
        found = []
        for one in self.considered:
            missing = f" (missing: {', '.join(one.missing)})" if one.missing else ""
            found.append(f"rule {one.rule}: {_EXPLAINED[one.why]}{missing}")
        if not self.considered:
            found.append(f"no rule grants {self.action} of {self.type}")
        if self.readable is False:
            found.append("the actor cannot read the row")
        found += [
            f"{end.end}: the actor {'reads' if end.allowed else 'cannot read'} {end.type} '{end.id}'"
            for end in self.ends
        ]
        return found


def read_stored_row(rows: RowPolicies, read: ReadRow, type_name: str, id_: str, branch: str) -> StoredRow:
    """Return a row of a branch, and the nodes at its ends if it is an edge, as rules see them."""

    def attributes(table_key: str, row_id: str) -> dict[str, Any]:
        table = rows.compiled.tables[table_key]
        found = read(table.type.name, row_id, table.type.kind)
        if found is None:
            raise NotFound(
                f"{table.type.name} '{row_id}' does not exist on branch '{branch}'",
                code="entity_not_found",
                hint="the id of a keyed node is its key; an export lists ids",
            )
        return {name: found[column] for name, (column, _) in table.columns.items()}

    key = rows.table_key(type_name)
    data, type_ = attributes(key, id_), rows.compiled.tables[key].type
    ends: list[tuple[str, str, Mapping[str, Any]]] = []
    if isinstance(type_, EdgeType):
        for end, node_type in (("from", type_.from_type), ("to", type_.to_type)):
            ends.append((end, node_type, attributes(str(TableKey.node(node_type)), data[end])))
    return StoredRow(id_, data, tuple(ends))


def explain_row(
    rows: RowPolicies, actor: PolicyActor, action: str, type_name: str, branch: str, row: Mapping[str, Any] | StoredRow
) -> RowExplanation:
    """Explain the decision on a row that is given as JSON values, or on a stored one.

    The rules for the ends of an edge are judged for a stored edge only: given values do not contain its nodes. So is
    the right to read a row that is to be updated or deleted.
    """
    stored = row if isinstance(row, StoredRow) else None
    data = row.data if isinstance(row, StoredRow) else row
    key, decisions = rows.table_key(type_name), rows.decisions
    judged = decisions.judge(actor, action, key, data, branch)
    readable = None
    if stored is not None and action in _NEED_READ:
        readable = decisions.judge(actor, _READ, key, data, branch).allowed
    return RowExplanation(
        actor.name, action, type_name, branch, judged.allowing or judged.denying,
        condition_text(rows.condition(actor, action, key, branch)),
        tuple(decisions.consider(actor, action, key, data, branch)),
        decisions.property_views(actor, key, data, branch),
        judged.allowed,
        stored.id if stored is not None else None,
        readable,
        _ends(rows, actor, branch, stored) if stored is not None else (),
    )  # fmt: skip


def _ends(rows: RowPolicies, actor: PolicyActor, branch: str, stored: StoredRow) -> tuple[EndDecision, ...]:
    found = []
    for end, type_name, node in stored.ends:
        judged = rows.decisions.judge(actor, _READ, rows.table_key(type_name), node, branch)
        rules = judged.allowing or judged.denying
        found.append(EndDecision(end, type_name, str(node["id"]), judged.allowed, rules))
    return tuple(found)
