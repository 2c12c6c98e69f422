"""Parser of the JSON forms of migration steps; the inverse of their `to_json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.schema.catalog import Metadata
from omnigraph.schema.constraints import Check, Constraint, Index, Key, Range, Unique, Valid
from omnigraph.schema.migration_steps import (
    AddConstraint,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdateMerge,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.types import PropertyType

_Members = Mapping[str, Any]
_COLUMN_CONSTRAINTS: dict[str, type[Key | Unique | Index]] = {"Key": Key, "Unique": Unique, "Index": Index}


def parse_step(data: _Members) -> Step:
    """Return the step with this JSON form; KeyError or ValueError if the data is not one."""
    return _STEPS[data["kind"]](data)


def _parse_constraint(data: _Members) -> Constraint:
    ((kind, body),) = data.items()
    if kind == "Range":
        return Range(body["property"], body["min"], body["max"])
    if kind == "Valid":
        return Valid(body["from"], body["to"])
    if kind == "Check":
        return Check(body["property"], body["pattern"])
    return _COLUMN_CONSTRAINTS[kind](tuple(body))


def _parse_notes(notes: list[_Members]) -> tuple[Metadata, ...]:
    return tuple(Metadata(note["name"], note["value"], tuple(note.get("kwargs", {}).items())) for note in notes)


_STEPS: dict[str, Callable[[_Members], Step]] = {
    "add_type": lambda data: AddType(data["type_kind"], data["name"]),
    "rename_type": lambda data: RenameType(data["type_kind"], data["from"], data["to"]),
    "add_property": lambda data: AddProperty(
        data["type_kind"], data["type_name"], data["property_name"], PropertyType.from_json(data["property_type"])
    ),
    "rename_property": lambda data: RenameProperty(data["type_kind"], data["type_name"], data["from"], data["to"]),
    "add_constraint": lambda data: AddConstraint(
        data["type_kind"], data["type_name"], _parse_constraint(data["constraint"])
    ),
    "extend_enum": lambda data: ExtendEnum(
        data["type_kind"], data["type_name"], data["property_name"], tuple(data["added_values"])
    ),
    "update_type_metadata": lambda data: UpdateTypeMetadata(
        data["type_kind"], data["name"], _parse_notes(data["annotations"])
    ),
    "update_property_metadata": lambda data: UpdatePropertyMetadata(
        data["type_kind"], data["type_name"], data["property_name"], _parse_notes(data["annotations"])
    ),
    "update_merge": lambda data: UpdateMerge(data["properties"]),
    "drop_property": lambda data: DropProperty(data["type_kind"], data["type_name"], data["property_name"]),
    "drop_type": lambda data: DropType(data["type_kind"], data["name"]),
    "unsupported_change": lambda data: UnsupportedChange(data["entity"], data["reason"], data.get("code")),
}
