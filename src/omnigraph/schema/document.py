"""The parts of the schema document: types, properties and constraints with numbers that outlive names.

Every part is an immutable record that knows its JSON form. A reference carries the number it means
and the name to show; the number decides. Lists are in canonical order: types, properties and
references by name, constraints as in the catalog, the columns of a key by ascending number.

The parts know nothing of one another's existence: `ir_parser` makes them from JSON, `ir_rules` decides whether
they fit together, and `identity` holds the whole document.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.schema.catalog import Cardinality, Check, Constraint, Metadata, Range, TypeKind
from omnigraph.types import PropertyType

IDENTITY_MAX = 2**63 - 1
"""The largest number the counter may reach: what a signed 64-bit column can hold."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A type or property meant by its number; the name is for people."""

    id: int
    name: str

    def to_json(self) -> dict[str, Any]:
        """`{id, name}`."""
        return {"id": self.id, "name": self.name}


@dataclass(frozen=True, slots=True)
class SystemField:
    """A column every edge table has, so it needs no number."""

    name: Literal["src", "dst"]

    def to_json(self) -> dict[str, Any]:
        """`{system: name}`."""
        return {"system": self.name}


Column = Ref | SystemField


@dataclass(frozen=True, slots=True)
class IREmbed:
    """What a vector is made from; `source_id` is None where an interface leaves the text to its nodes."""

    source_id: int | None
    source_name: str
    model: str | None

    @property
    def meaning(self) -> tuple[object, ...]:
        """What a rename leaves equal."""
        source = self.source_name if self.source_id is None else self.source_id
        return source, self.model

    def to_json(self) -> dict[str, Any]:
        """`{source: {id, name}, model}`."""
        return {"source": {"id": self.source_id, "name": self.source_name}, "model": self.model}


@dataclass(frozen=True, slots=True)
class Link:
    """A property of a node fulfils this property of an interface."""

    interface: Ref
    property: Ref

    def to_json(self) -> dict[str, Any]:
        """`{interface: {id, name}, property: {id, name}}`."""
        return {"interface": self.interface.to_json(), "property": self.property.to_json()}


@dataclass(frozen=True, slots=True)
class IRProperty:
    """A property; `injected` when the node has it only because an interface brings it."""

    id: int
    name: str
    type: PropertyType
    notes: tuple[Metadata, ...] = ()
    embed: IREmbed | None = None
    injected: bool = False
    satisfies: tuple[Link, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All fields, always."""
        return {
            "id": self.id,
            "name": self.name,
            "type": self.type.to_json(),
            "annotations": [note.to_json() for note in self.notes],
            "embed": self.embed.to_json() if self.embed else None,
            "injected": self.injected,
            "satisfies": [link.to_json() for link in self.satisfies],
        }


@dataclass(frozen=True, slots=True)
class IRConstraint:
    """A constraint of the catalog, and what each of its columns is, in the same order."""

    constraint: Constraint
    fields: tuple[Column, ...]

    @property
    def meaning(self) -> tuple[object, ...]:
        """What a rename leaves equal: the kind, the columns as a set, the bounds or the pattern."""
        columns = frozenset(column.id if isinstance(column, Ref) else column.name for column in self.fields)
        match self.constraint:
            case Range(_, low, high):
                return "Range", columns, low, high
            case Check(_, pattern):
                return "Check", columns, pattern
            case _:
                return type(self.constraint).__name__, columns

    @property
    def property_ids(self) -> frozenset[int]:
        """The properties it speaks of, system fields left out."""
        return frozenset(column.id for column in self.fields if isinstance(column, Ref))

    def to_json(self) -> dict[str, Any]:
        """The form of the catalog's constraints, with references in place of names."""
        match self.constraint:
            case Range(_, low, high):
                return {"Range": {"property": self.fields[0].to_json(), "min": low, "max": high}}
            case Check(_, pattern):
                return {"Check": {"property": self.fields[0].to_json(), "pattern": pattern}}
            case _:
                return {type(self.constraint).__name__: [column.to_json() for column in self.fields]}


@dataclass(frozen=True, slots=True)
class _IRType:
    id: int
    name: str
    properties: tuple[IRProperty, ...]
    constraints: tuple[IRConstraint, ...]

    def _members_to_json(self) -> dict[str, Any]:
        return {
            "properties": [property_.to_json() for property_ in self.properties],
            "constraints": [constraint.to_json() for constraint in self.constraints],
        }


@dataclass(frozen=True, slots=True)
class IRInterface(_IRType):
    """An interface: numbers for its contract, no table."""

    kind: Literal["interface"] = field(default="interface", init=False)

    def to_json(self) -> dict[str, Any]:
        """All fields but the kind, which the place in the document tells."""
        return {"id": self.id, "name": self.name, **self._members_to_json()}


@dataclass(frozen=True, slots=True)
class IRNode(_IRType):
    """A node type; `incarnation_id` is its table's, and a dropped and re-added type gets a new one."""

    incarnation_id: int
    notes: tuple[Metadata, ...]
    implements: tuple[Ref, ...]
    kind: Literal["node"] = field(default="node", init=False)

    def to_json(self) -> dict[str, Any]:
        """All fields but the kind, which the place in the document tells."""
        return {
            "id": self.id,
            "incarnation_id": self.incarnation_id,
            "name": self.name,
            "annotations": [note.to_json() for note in self.notes],
            "implements": [ref.to_json() for ref in self.implements],
            **self._members_to_json(),
        }


@dataclass(frozen=True, slots=True)
class IREdge(_IRType):
    """An edge type; `incarnation_id` is its table's."""

    incarnation_id: int
    notes: tuple[Metadata, ...]
    from_type: Ref
    to_type: Ref
    cardinality: Cardinality
    kind: Literal["edge"] = field(default="edge", init=False)

    def to_json(self) -> dict[str, Any]:
        """All fields but the kind, which the place in the document tells."""
        return {
            "id": self.id,
            "incarnation_id": self.incarnation_id,
            "name": self.name,
            "annotations": [note.to_json() for note in self.notes],
            "from": self.from_type.to_json(),
            "to": self.to_type.to_json(),
            "cardinality": {"min": self.cardinality.min, "max": self.cardinality.max},
            **self._members_to_json(),
        }


IRType = IRInterface | IRNode | IREdge

KINDS: tuple[TypeKind, ...] = ("interface", "node", "edge")
"""The order in which kinds are numbered, compared and listed."""


def note_order(note: Metadata) -> tuple[object, ...]:
    """The canonical order of annotations: name, then without a value before with one, then the rest."""
    return note.name, note.value is not None, note.value or "", note.arguments
