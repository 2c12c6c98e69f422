"""Steps of a schema change: data with a JSON form and a description.

A step uses the names that are valid after the previous steps: after a rename, later steps use the new name. `migrate`
determines the steps; `operations.migrate` applies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.lang.comment_printer import quote
from omnigraph.scalar_types.floats import spell_float
from omnigraph.schema.catalog import MergeProperties, Metadata, TypeKind
from omnigraph.schema.constraints import Check, Constraint, Range, Valid, constraint_to_json
from omnigraph.types import PropertyType

_KEPT = "older versions keep it until they are cleaned up"


@dataclass(frozen=True, slots=True)
class AddType:
    """Add an interface, node or edge type with all its declarations."""

    type_kind: TypeKind
    name: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"kind": "add_type", "type_kind": self.type_kind, "name": self.name}

    def describe(self) -> str:
        """Return a one-line description."""
        return f"add {spell_type(self.type_kind, self.name)}"


@dataclass(frozen=True, slots=True)
class RenameType:
    """Rename a node or edge type; rows, ids and history are kept."""

    type_kind: TypeKind
    old_name: str
    new_name: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": "rename_type",
            "type_kind": self.type_kind,
            "from": self.old_name,
            "to": self.new_name,
        }

    def describe(self) -> str:
        """Return a one-line description."""
        return f"rename {spell_type(self.type_kind, self.old_name)} to {self.new_name}"


@dataclass(frozen=True, slots=True)
class AddProperty:
    """Add a nullable property; existing rows have null."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: PropertyType

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": "add_property",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "property_type": self.property_type.to_json(),
        }

    def describe(self) -> str:
        """Return a one-line description."""
        what = _spell_property(self.type_kind, self.type_name, self.property_name)
        return f"add {what}: {self.property_type}"


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """Rename a property; values and composite ids are kept."""

    type_kind: TypeKind
    type_name: str
    old_name: str
    new_name: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": "rename_property",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "from": self.old_name,
            "to": self.new_name,
        }

    def describe(self) -> str:
        """Return a one-line description."""
        what = _spell_property(self.type_kind, self.type_name, self.old_name)
        return f"rename {what} to {self.new_name}"


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """Add a constraint that existing rows cannot violate: an index declaration."""

    type_kind: TypeKind
    type_name: str
    constraint: Constraint

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": "add_constraint",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "constraint": constraint_to_json(self.constraint),
        }

    def describe(self) -> str:
        """Return a one-line description."""
        return f"add {spell_constraint(self.constraint)} to {spell_type(self.type_kind, self.type_name)}"


@dataclass(frozen=True, slots=True)
class ExtendEnum:
    """Add values to an enum; existing values remain allowed."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": "extend_enum",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "added_values": list(self.added_values),
        }

    def describe(self) -> str:
        """Return a one-line description."""
        what = _spell_property(self.type_kind, self.type_name, self.property_name)
        return f"extend the enum of {what} by {', '.join(self.added_values)}"


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata:
    """Change the description or instruction of a type; `annotations` are all annotations after the change."""

    type_kind: TypeKind
    name: str
    annotations: tuple[Metadata, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": "update_type_metadata",
            "type_kind": self.type_kind,
            "name": self.name,
            "annotations": [note.to_json() for note in self.annotations],
        }

    def describe(self) -> str:
        """Return a one-line description."""
        return _describe_notes(spell_type(self.type_kind, self.name), self.annotations)


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata:
    """Change the description of a property; `annotations` are all annotations after the change."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    annotations: tuple[Metadata, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": "update_property_metadata",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "annotations": [note.to_json() for note in self.annotations],
        }

    def describe(self) -> str:
        """Return a one-line description."""
        what = _spell_property(self.type_kind, self.type_name, self.property_name)
        return _describe_notes(what, self.annotations)


@dataclass(frozen=True, slots=True)
class UpdateMerge:
    """Change how edits of different properties of one row merge."""

    properties: MergeProperties

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"kind": "update_merge", "properties": self.properties}

    def describe(self) -> str:
        """Return a one-line description."""
        return f"set merge {{ properties: {self.properties} }}"


@dataclass(frozen=True, slots=True)
class DropProperty:
    """Drop a property and the constraints over it alone."""

    type_kind: TypeKind
    type_name: str
    property_name: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "kind": "drop_property",
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
        }

    def describe(self) -> str:
        """Return a one-line description."""
        return f"drop {_spell_property(self.type_kind, self.type_name, self.property_name)} ({_KEPT})"


@dataclass(frozen=True, slots=True)
class DropType:
    """Drop a node or edge type and its table."""

    type_kind: TypeKind
    name: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"kind": "drop_type", "type_kind": self.type_kind, "name": self.name}

    def describe(self) -> str:
        """Return a one-line description."""
        return f"drop {spell_type(self.type_kind, self.name)} ({_KEPT})"


@dataclass(frozen=True, slots=True)
class UnsupportedChange:
    """An unsupported change; a plan that contains one is refused as a whole."""

    entity: str
    reason: str
    code: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data = {"kind": "unsupported_change", "entity": self.entity, "reason": self.reason}
        return data if self.code is None else {**data, "code": self.code}

    def describe(self) -> str:
        """Return a one-line description."""
        code = f"[{self.code}] " if self.code else ""
        return f"cannot change {self.entity}: {code}{self.reason}"


Step = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | AddConstraint
    | ExtendEnum
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | UpdateMerge
    | DropProperty
    | DropType
    | UnsupportedChange
)


def spell_type(kind: TypeKind, name: str) -> str:
    """Return kind and name of a type: `node type Person`, `interface Named`."""
    return f"interface {name}" if kind == "interface" else f"{kind} type {name}"


def spell_constraint(constraint: Constraint) -> str:
    """Return the constraint in schema syntax."""
    match constraint:
        case Range(column, low, high):
            bounds = ["" if bound is None else spell_float(bound, single=False) for bound in (low, high)]
            return f"@range({column}, {'..'.join(bounds)})"
        case Check(column, pattern):
            return f"@check({column}, {quote(pattern)})"
        case Valid(start, end):
            return f"@valid(from: {start}, to: {end})"
        case _:
            return f"@{type(constraint).__name__.lower()}({', '.join(constraint.columns)})"


def spell_note(note: Metadata) -> str:
    """Return the annotation in schema syntax."""
    if note.value is None:
        return f"@{note.name}"
    return f"@{note.name}({', '.join([quote(note.value), *(f'{k}={quote(v)}' for k, v in note.arguments)])})"


def _spell_property(kind: TypeKind, type_name: str, name: str) -> str:
    word = "property" if kind == "node" else f"{kind} property"
    return f"{word} {type_name}.{name}"


def _describe_notes(what: str, notes: Sequence[Metadata]) -> str:
    if not notes:
        return f"remove the annotations of {what}"
    return f"set the annotations of {what} to {' '.join(map(spell_note, notes))}"
