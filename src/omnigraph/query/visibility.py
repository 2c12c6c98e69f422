"""What an actor may see of a graph: a condition per table, and a rule per guarded property.

A policy is compiled to a `Visibility` for one actor and branch. It is the only part of a policy that the engine sees.
Conditions refer to the row as the variable `ROW`. A row or value is visible where its condition is true; unknown is not
true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import SYSTEM_FIELDS, Catalog, EdgeType, InterfaceType, NodeType, Property
from omnigraph.schema.constraints import Constraint, Key, Unique, constraint_columns
from omnigraph.schema.document import IREdge, IRInterface, IRNode
from omnigraph.schema.identity import SchemaIR

TableType = TypeVar("TableType", NodeType, EdgeType)
DocumentType = TypeVar("DocumentType", IRInterface, IRNode, IREdge)

ROW = "row"
"""The variable of the judged row in a condition."""


class RowAuditor(Protocol):
    """Judges a sample of the rows that reads return once more, without the conditions of the visibility."""

    @property
    def sample(self) -> int:
        """The number of rows of a variable or table that are judged in each read."""

    def columns(self, table_key: str) -> Sequence[str]:
        """Return the columns of a table that are needed to judge its rows."""

    def check(self, table_key: str, rows: Sequence[Mapping[str, Any]], shown: Mapping[str, Sequence[bool]]) -> None:
        """Raise `Denied` if a row, or a masked property whose value is shown, must not be seen."""


@dataclass(frozen=True)
class PeriodTest:
    """The test of a valid clause on the rows of a table: they hold at `instant`, or in [instant, until).

    `start` and `end` are the properties of the period. Instants are in the stored form of the properties.
    """

    start: str
    end: str
    instant: int
    until: int | None = None


@dataclass(frozen=True)
class Visibility:
    """The visible part of a graph. Tables and properties that are not named are visible."""

    rows: Mapping[str, ir.Condition | None] = field(default_factory=dict)
    """Table key → the condition of a visible row; None if no row is visible."""
    properties: Mapping[tuple[str, str], ir.Condition | None] = field(default_factory=dict)
    """Table key and property → the condition of a visible value, which is else null; None hides the property."""
    audit: RowAuditor | None = field(default=None, compare=False, repr=False)
    """Judges a sample of returned rows again; None in normal operation."""
    periods: Mapping[str, PeriodTest] = field(default_factory=dict, compare=False, repr=False)
    """Table key → the test of a valid clause, whose condition is in `rows`."""
    policy: Visibility | None = field(default=None, compare=False, repr=False)
    """What the actor may see, if this is the visibility of a read with a valid clause."""

    @property
    def of_policy(self) -> Visibility | None:
        """What a policy shows, without the valid clause of a read; None if there is no policy."""
        return self.policy if self.periods else self

    @cached_property
    def digest(self) -> str:
        """Identifies the visibility: actors with equal conditions share what is computed under it."""
        rows = [self.row_digest(key) for key in sorted(self.rows)]
        values = sorted((key, repr(condition)) for key, condition in self.properties.items())
        return _digest(repr((rows, values)))

    def row_digest(self, table_key: str) -> str:
        """Identify the condition of the rows of a guarded table."""
        return _digest(f"{table_key} {self.rows[table_key]!r}")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def project_catalog(catalog: Catalog, visibility: Visibility) -> Catalog:
    """Return the catalog of what is visible: hidden properties, types without a visible row, edges at such types and
    interfaces that only such types implement do not exist in it.

    Guarantees that hidden rows and values would break are not in it either: a masked property is nullable and belongs
    to no constraint, and a node may have fewer edges than the minimum of the edge type.
    """
    nodes = {
        name: _projected(node, visibility)
        for name, node in catalog.nodes.items()
        if visibility.rows.get(node.table_key, True) is not None
    }
    edges = {
        name: replace(_projected(edge, visibility), cardinality=replace(edge.cardinality, min=0))
        for name, edge in catalog.edges.items()
        if visibility.rows.get(edge.table_key, True) is not None and {edge.from_type, edge.to_type} <= nodes.keys()
    }
    interfaces = {
        name: _interface(interface, catalog, nodes)
        for name, interface in catalog.interfaces.items()
        if not catalog.implementers[name] or not nodes.keys().isdisjoint(catalog.implementers[name])
    }
    return Catalog(interfaces, nodes, edges, catalog.merge_properties)


def _projected(type_: TableType, visibility: Visibility) -> TableType:
    """Return a type without its hidden properties; masked ones are nullable."""
    guarded = {name: condition for (key, name), condition in visibility.properties.items() if key == type_.table_key}
    identity = {*SYSTEM_FIELDS[type_.kind], *(type_.key if isinstance(type_, NodeType) else ())}
    period = () if type_.valid is None else (type_.valid.start, type_.valid.end)
    for name in guarded:
        if name in identity:
            raise InputError(f"'{type_.name}.{name}' identifies the row: it can be neither hidden nor masked")
        if name in period:
            raise InputError(f"'{type_.name}.{name}' bounds the period of a row: it can be neither hidden nor masked")
    hidden = {name for name, condition in guarded.items() if condition is None}
    properties: dict[str, Property] = {}
    for name, property_ in type_.properties.items():
        if name in hidden:
            continue
        if property_.embed is not None and property_.embed.source in hidden:
            property_ = replace(property_, embed=replace(property_.embed, source=""))
        if name in guarded:
            property_ = replace(property_, type=property_.type.with_nullable(True))
        properties[name] = property_
    return replace(
        type_,
        properties=properties,
        constraints=tuple(one for one in type_.constraints if _holds(one, hidden, guarded.keys())),
    )


def project_document(document: SchemaIR, catalog: Catalog) -> SchemaIR:
    """Return the part of a schema document that a projected catalog contains."""
    interfaces = tuple(
        _projected_members(one, catalog.interfaces[one.name])
        for one in document.interfaces
        if one.name in catalog.interfaces
    )
    known = {one.name for one in interfaces}
    nodes = tuple(
        replace(
            _projected_members(node, catalog.nodes[node.name]),
            implements=tuple(ref for ref in node.implements if ref.name in known),
        )
        for node in document.nodes
        if node.name in catalog.nodes
    )
    edges = tuple(
        replace(_projected_members(edge, catalog.edges[edge.name]), cardinality=catalog.edges[edge.name].cardinality)
        for edge in document.edges
        if edge.name in catalog.edges
    )
    return replace(document, interfaces=interfaces, nodes=nodes, edges=edges)


def _projected_members(type_: DocumentType, shown: InterfaceType | NodeType | EdgeType) -> DocumentType:
    properties = tuple(
        replace(
            one,
            type=shown.properties[one.name].type,
            embed=one.embed if one.embed is None or one.embed.source_name in shown.properties else None,
            satisfies=(),
        )
        for one in type_.properties
        if one.name in shown.properties
    )
    constraints = tuple(one for one in type_.constraints if one.constraint in shown.constraints)
    return replace(type_, properties=properties, constraints=constraints)


def _holds(constraint: Constraint, hidden: Set[str], guarded: Set[str]) -> bool:
    """Return True if a constraint of a type holds for what is visible of it."""
    broken = guarded if isinstance(constraint, Key | Unique) else hidden
    return broken.isdisjoint(constraint_columns(constraint))


def _interface(interface: InterfaceType, catalog: Catalog, nodes: Mapping[str, NodeType]) -> InterfaceType:
    """Return an interface with the properties that all its visible implementations have."""
    own = [nodes[name].properties for name in catalog.implementers[interface.name] if name in nodes]
    shared = {name: property_ for name, property_ in interface.properties.items() if all(name in one for one in own)}
    nullable = {name for name in shared for one in own if one[name].type.nullable}
    return replace(
        interface,
        properties={
            name: replace(property_, type=property_.type.with_nullable(name in nullable or property_.type.nullable))
            for name, property_ in shared.items()
        },
        constraints=tuple(one for one in interface.constraints if {*constraint_columns(one)} <= shared.keys()),
    )
