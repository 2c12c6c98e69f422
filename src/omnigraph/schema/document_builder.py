"""Builds the records of a schema document from a catalog and the numbers of its declarations.

`identity` determines which declaration continues which number. Declarations without a number get the next ones here, in
the specified order, so that all implementations assign the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from omnigraph.checkpoints import checkpoint, paced
from omnigraph.errors import SchemaChangeError
from omnigraph.schema import document
from omnigraph.schema.catalog import AnyType, Catalog, EdgeType, Embed, InterfaceType, Metadata, NodeType, TypeKind
from omnigraph.schema.constraints import Constraint, Key, constraint_columns

TypeKey = tuple[TypeKind, str]
PropertyKey = tuple[TypeKind, str, str]


@dataclass
class Numbers:
    """Known numbers of the types, properties and tables of a catalog."""

    types: dict[TypeKey, int] = field(default_factory=dict)
    properties: dict[PropertyKey, int] = field(default_factory=dict)
    incarnations: dict[TypeKey, int] = field(default_factory=dict)


class Parts(NamedTuple):
    """All records of a document and the first free number."""

    next_id: int
    interfaces: tuple[document.IRInterface, ...]
    nodes: tuple[document.IRNode, ...]
    edges: tuple[document.IREdge, ...]


def build_parts(catalog: Catalog, kept: Numbers, next_id: int) -> Parts:
    """Assign numbers from `next_id` to declarations that are not in `kept`, and return the records of the document."""
    numbers, next_id = _complete(catalog, kept, next_id)
    builder = _Builder(catalog, numbers)
    return Parts(
        next_id,
        tuple(builder.interface(interface) for interface in catalog.interfaces.values()),
        tuple(builder.node(node) for node in catalog.nodes.values()),
        tuple(builder.edge(edge) for edge in catalog.edges.values()),
    )


def _complete(catalog: Catalog, kept: Numbers, next_id: int) -> tuple[Numbers, int]:
    """Assign numbers to types by kind and name, then to properties by number of the owner and name, then to tables by
    type number.
    """
    numbers = Numbers(dict(kept.types), dict(kept.properties), dict(kept.incarnations))
    for kind in document.KINDS:
        for name in catalog.of_kind(kind):
            if (kind, name) not in numbers.types:
                numbers.types[kind, name] = next_id
                next_id += 1
    by_number = sorted(numbers.types, key=numbers.types.__getitem__)
    for kind, owner in by_number:
        for name in catalog.of_kind(kind)[owner].properties:
            if (kind, owner, name) not in numbers.properties:
                numbers.properties[kind, owner, name] = next_id
                next_id += 1
    for kind, name in by_number:
        if kind != "interface" and (kind, name) not in numbers.incarnations:
            numbers.incarnations[kind, name] = next_id
            next_id += 1
    if next_id > document.IDENTITY_MAX:
        raise SchemaChangeError("the graph has no free schema identities left")
    return numbers, next_id


class _Builder:
    def __init__(self, catalog: Catalog, numbers: Numbers) -> None:
        self.catalog = catalog
        self.numbers = numbers

    def members(
        self, type_: AnyType
    ) -> tuple[int, str, tuple[document.IRProperty, ...], tuple[document.IRConstraint, ...]]:
        """Return the members that all types have."""
        checkpoint()
        id_ = self.numbers.types[type_.kind, type_.name]
        return id_, type_.name, self.properties(type_), self.constraints(type_)

    def interface(self, type_: InterfaceType) -> document.IRInterface:
        return document.IRInterface(*self.members(type_))

    def node(self, type_: NodeType) -> document.IRNode:
        return document.IRNode(
            *self.members(type_),
            self.numbers.incarnations["node", type_.name],
            _notes(type_.notes),
            tuple(self.type_ref("interface", name) for name in type_.implements),
        )

    def edge(self, type_: EdgeType) -> document.IREdge:
        return document.IREdge(
            *self.members(type_),
            self.numbers.incarnations["edge", type_.name],
            _notes(type_.notes),
            self.type_ref("node", type_.from_type),
            self.type_ref("node", type_.to_type),
            type_.cardinality,
        )

    def type_ref(self, kind: TypeKind, name: str) -> document.Ref:
        return document.Ref(self.numbers.types[kind, name], name)

    def properties(self, type_: AnyType) -> tuple[document.IRProperty, ...]:
        links = self.links(type_)
        return tuple(
            document.IRProperty(
                self.numbers.properties[type_.kind, type_.name, property_.name],
                property_.name,
                property_.type,
                _notes(property_.notes),
                self.embed(type_, property_.embed) if property_.embed else None,
                bool(property_.injected_from),
                tuple(links.get(property_.name, ())),
            )
            for property_ in paced(type_.properties.values())
        )

    def embed(self, type_: AnyType, embed: Embed) -> document.IREmbed:
        source = self.numbers.properties.get((type_.kind, type_.name, embed.source))
        return document.IREmbed(source, embed.source, embed.model)

    def links(self, type_: AnyType) -> dict[str, list[document.Link]]:
        """Return the properties of interfaces that each property of a node implements."""
        links: dict[str, list[document.Link]] = {}
        for interface in type_.implements if isinstance(type_, NodeType) else ():
            ref = self.type_ref("interface", interface)
            for name in paced(self.catalog.interfaces[interface].properties):
                implemented = document.Ref(self.numbers.properties["interface", interface, name], name)
                links.setdefault(name, []).append(document.Link(ref, implemented))
        return links

    def constraints(self, type_: AnyType) -> tuple[document.IRConstraint, ...]:
        return tuple(self.constraint(type_, constraint) for constraint in type_.constraints)

    def constraint(self, type_: AnyType, constraint: Constraint) -> document.IRConstraint:
        columns = [self.column(type_, name) for name in constraint_columns(constraint)]
        if isinstance(constraint, Key):
            columns.sort(key=lambda column: column.id if isinstance(column, document.Ref) else 0)
            constraint = Key(tuple(column.name for column in columns))
        return document.IRConstraint(constraint, tuple(columns))

    def column(self, type_: AnyType, name: str) -> document.Column:
        if isinstance(type_, EdgeType):
            if name == "src":
                return document.SystemField("src")
            if name == "dst":
                return document.SystemField("dst")
        return document.Ref(self.numbers.properties[type_.kind, type_.name, name], name)


def _notes(notes: tuple[Metadata, ...]) -> tuple[Metadata, ...]:
    # JSON stores one value per keyword, so a repeated keyword would be lost.
    once = (Metadata(note.name, note.value, tuple(sorted(dict(note.arguments).items()))) for note in notes)
    return tuple(sorted(set(once), key=document.note_order))
