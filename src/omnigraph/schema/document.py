"""Records of the schema document: types, properties and constraints with numbers that survive renames.

Every record is immutable and has a JSON form. A reference contains the number, which identifies the target, and the
name, for display. Lists are in canonical order: types, properties and references by name, constraints as in the
catalog, the columns of a key by ascending number.

`document_parser` reads the records from JSON, `document_rules` checks that they are consistent, and `identity` holds
the whole document.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from omnigraph.fast_dataclass import dataclass
from omnigraph.schema.catalog import Cardinality, Metadata, TypeKind
from omnigraph.schema.constraints import Check, Constraint, Range, Valid
from omnigraph.types import PropertyType

IDENTITY_MAX = 2**63 - 1
"""Largest number that the counter may reach: the maximum of a signed 64-bit column."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Reference to a type or property by number; the name is for display."""

    id: int
    name: str

    def to_json(self) -> dict[str, Any]:
        """Return `{id, name}`."""
        return {"id": self.id, "name": self.name}


@dataclass(frozen=True, slots=True)
class SystemField:
    """Reference to a system column of edge tables, which has no number."""

    name: Literal["src", "dst"]

    def to_json(self) -> dict[str, Any]:
        """Return `{system: name}`."""
        return {"system": self.name}


Column = Ref | SystemField


@dataclass(frozen=True, slots=True)
class IREmbed:
    """Source and model of an embedded vector; `source_id` is None if an interface leaves the source to its nodes."""

    source_id: int | None
    source_name: str
    model: str | None

    @property
    def meaning(self) -> tuple[object, ...]:
        """Return the content that a rename does not change."""
        source = self.source_name if self.source_id is None else self.source_id
        return source, self.model

    def to_json(self) -> dict[str, Any]:
        """Return `{source: {id, name}, model}`."""
        return {"source": {"id": self.source_id, "name": self.source_name}, "model": self.model}


@dataclass(frozen=True, slots=True)
class Link:
    """Link from a property of a node to the interface property that it implements."""

    interface: Ref
    property: Ref

    def to_json(self) -> dict[str, Any]:
        """Return `{interface: {id, name}, property: {id, name}}`."""
        return {"interface": self.interface.to_json(), "property": self.property.to_json()}


@dataclass(frozen=True, slots=True)
class IRProperty:
    """Property with its number; `injected` if the node inherits it from an interface without declaring it."""

    id: int
    name: str
    type: PropertyType
    notes: tuple[Metadata, ...] = ()
    embed: IREmbed | None = None
    injected: bool = False
    satisfies: tuple[Link, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form with all fields."""
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
    """Constraint of the catalog with a reference for each of its columns, in the same order."""

    constraint: Constraint
    fields: tuple[Column, ...]

    @property
    def meaning(self) -> tuple[object, ...]:
        """Return the content that a rename does not change: the kind, the set of columns, the bounds or the pattern."""
        columns = frozenset(column.id if isinstance(column, Ref) else column.name for column in self.fields)
        match self.constraint:
            case Range(_, low, high):
                return "Range", columns, low, high
            case Check(_, pattern):
                return "Check", columns, pattern
            case Valid():
                return "Valid", *(column.id if isinstance(column, Ref) else column.name for column in self.fields)
            case _:
                return type(self.constraint).__name__, columns

    @property
    def property_ids(self) -> frozenset[int]:
        """Return the properties of the constraint, without system columns."""
        return frozenset(column.id for column in self.fields if isinstance(column, Ref))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the catalog's constraint, with references instead of names."""
        match self.constraint:
            case Range(_, low, high):
                return {"Range": {"property": self.fields[0].to_json(), "min": low, "max": high}}
            case Check(_, pattern):
                return {"Check": {"property": self.fields[0].to_json(), "pattern": pattern}}
            case Valid():
                return {"Valid": {"from": self.fields[0].to_json(), "to": self.fields[1].to_json()}}
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
    """Interface with its number. It has no table."""

    kind: Literal["interface"] = field(default="interface", init=False)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form without the kind, which the position in the document implies."""
        return {"id": self.id, "name": self.name, **self._members_to_json()}


@dataclass(frozen=True, slots=True)
class _IRTableType(_IRType):
    incarnation_id: int
    notes: tuple[Metadata, ...]

    def _head_to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "incarnation_id": self.incarnation_id,
            "name": self.name,
            "annotations": [note.to_json() for note in self.notes],
        }


@dataclass(frozen=True, slots=True)
class IRNode(_IRTableType):
    """Node type with its number; `incarnation_id` identifies its table, and a type that is dropped and added again gets
    a new one.
    """

    implements: tuple[Ref, ...]
    kind: Literal["node"] = field(default="node", init=False)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form without the kind, which the position in the document implies."""
        return {
            **self._head_to_json(),
            "implements": [ref.to_json() for ref in self.implements],
            **self._members_to_json(),
        }


@dataclass(frozen=True, slots=True)
class IREdge(_IRTableType):
    """Edge type with its number; `incarnation_id` identifies its table."""

    from_type: Ref
    to_type: Ref
    cardinality: Cardinality
    kind: Literal["edge"] = field(default="edge", init=False)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form without the kind, which the position in the document implies."""
        return {
            **self._head_to_json(),
            "from": self.from_type.to_json(),
            "to": self.to_type.to_json(),
            "cardinality": {"min": self.cardinality.min, "max": self.cardinality.max},
            **self._members_to_json(),
        }


IRType = IRInterface | IRNode | IREdge

KINDS: tuple[TypeKind, ...] = ("interface", "node", "edge")
"""Order in which kinds are numbered, compared and listed."""


def note_order(note: Metadata) -> tuple[object, ...]:
    """Return the canonical sort key of annotations: name, then absent before present value, then the rest."""
    return note.name, note.value is not None, note.value or "", note.arguments
