"""Types with rows, as rules for rows see them, and the facts of a request on a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.policy.cedar_schema import attributes_of, entity_type
from omnigraph.policy.rows.row_translation import RowFacts
from omnigraph.policy.rules import PROPERTY_ACTIONS
from omnigraph.policy.statements import Attributes, AttributeType, PolicyStatements
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType

_ROW_CONTEXT: Mapping[str, AttributeType] = {"branch": "String", "protected": "Bool", "matches": "Set<String>"}
_PROPERTY_CONTEXT: Mapping[str, AttributeType] = {**_ROW_CONTEXT, "property": "String"}


@dataclass(frozen=True)
class PolicyActor:
    """An actor with its groups and attributes."""

    name: str
    groups: tuple[str, ...] = ()
    attributes: Attributes = ()


@dataclass(frozen=True)
class RowTable:
    """A type with rows, as rules see it."""

    type: NodeType | EdgeType
    entity: str
    columns: Mapping[str, tuple[str, Any]]
    optional: frozenset[str]

    @property
    def key(self) -> str:
        """The key of the table."""
        return str(self.type.table_key)

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The interfaces of the type."""
        return self.type.implements if isinstance(self.type, NodeType) else ()

    @property
    def fixed(self) -> tuple[str, ...]:
        """Properties that cannot be hidden: those of the key."""
        return self.type.key if isinstance(self.type, NodeType) else ()

    @property
    def period(self) -> tuple[str, ...]:
        """Properties whose values cannot be hidden: valid clauses show whether a row holds at an instant."""
        valid = self.type.valid
        return () if valid is None else (valid.start, valid.end)


def row_tables(catalog: Catalog) -> Iterator[RowTable]:
    """Yield the types with rows of a catalog."""
    for type_ in catalog.tables():
        columns = attributes_of(type_)
        optional = frozenset(name for name, (_, property_type) in columns.items() if property_type.nullable)
        yield RowTable(type_, entity_type(type_.kind, type_.name), columns, optional)


def branch_context(statements: PolicyStatements, branch: str) -> dict[str, Any]:
    """Return the context of a request on a row of a branch."""
    return {
        "branch": branch,
        "protected": statements.is_protected(branch),
        "matches": statements.matching_patterns(branch),
    }


def row_facts(statements: PolicyStatements, table: RowTable, action: str, name: str | None = None) -> RowFacts:
    """Return what is known of an action on the rows of a table, for any actor and branch."""
    return RowFacts(
        action, table.entity, table.columns, table.interfaces, declared=statements.declared,
        context={"property": name} if name is not None else {},
        context_types=_PROPERTY_CONTEXT if action in PROPERTY_ACTIONS else _ROW_CONTEXT,
    )  # fmt: skip


def request_facts(statements: PolicyStatements, facts: RowFacts, actor: PolicyActor, branch: str) -> RowFacts:
    """Return the facts of an action by an actor on a branch."""
    context = {**branch_context(statements, branch), **facts.context}
    return replace(facts, actor=actor.name, groups=actor.groups, attributes=dict(actor.attributes), context=context)
