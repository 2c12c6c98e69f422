"""Strict parser of the schema document: JSON → records.

Every value must have exactly the expected form: no missing key, no extra key, no `true` in place of a number. Any other
value raises a `SchemaChangeError` with its path in the document. `document_rules` checks that the records are
consistent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from omnigraph.errors import SchemaChangeError
from omnigraph.scalar_types.describe import describe_json
from omnigraph.schema import document
from omnigraph.schema.catalog import Cardinality, MergeProperties, Metadata
from omnigraph.schema.constraints import Check, Constraint, Index, Key, Range, Unique, Valid
from omnigraph.types import SCALARS, VECTOR_DIM_MAX, PropertyType

Part = TypeVar("Part")

_TYPE_NAME = re.compile(r"[A-Z]\w*", re.ASCII)
_PROPERTY_NAME = re.compile(r"[a-z_]\w*", re.ASCII)
_ENUM_VALUE = re.compile(r"[\w-]+", re.ASCII)
_U32_MAX = 2**32 - 1
_COLUMN_CONSTRAINTS: dict[str, type[Key] | type[Unique] | type[Index]] = {
    "Key": Key,
    "Unique": Unique,
    "Index": Index,
}


def bad_document(message: str) -> SchemaChangeError:
    """Return the error for an invalid document."""
    return SchemaChangeError(
        f"the stored schema document is not valid: {message}",
        code="bad_schema_document",
        hint="restore the document from an earlier version; it is not meant to be edited by hand",
    )


class At:
    """JSON value with its path in the document."""

    def __init__(self, value: Any, path: str = "") -> None:
        self.value = value
        self.path = path

    def fail(self, expected: str) -> SchemaChangeError:
        """Return the error that states the expected and the actual value."""
        where = self.path or "the document"
        return bad_document(f"{where} should be {expected}, but is {describe_json(self.value)}")

    def object(self, *keys: str, optional: str | None = None) -> dict[str, At]:
        """Return the members of an object that has exactly these keys, and possibly `optional`."""
        if not isinstance(self.value, dict):
            raise self.fail("an object")
        prefix = f"{self.path}." if self.path else ""
        for key in keys:
            if key not in self.value:
                raise bad_document(f"{prefix}{key} is missing")
        for key in self.value:
            if key not in keys and (optional is None or key != optional):
                raise bad_document(f"{self.path or 'the document'} has an unknown member {ascii(key)[:60]}")
        return {key: At(value, f"{prefix}{key}") for key, value in self.value.items()}

    def only_member(self) -> tuple[str, At]:
        """Return the only member of an object."""
        if not isinstance(self.value, dict) or len(self.value) != 1:
            raise self.fail("an object with one member")
        [(key, value)] = self.value.items()
        return str(key), At(value, f"{self.path}.{ascii(key)[1:-1][:60]}")

    def array(self, parse: Callable[[At], Part]) -> tuple[Part, ...]:
        """Return the items of an array, each parsed by `parse`."""
        if not isinstance(self.value, list):
            raise self.fail("an array")
        return tuple(parse(At(item, f"{self.path}[{index}]")) for index, item in enumerate(self.value))

    def optional(self, parse: Callable[[At], Part]) -> Part | None:
        """Return None for null, otherwise the value parsed by `parse`."""
        return None if self.value is None else parse(self)

    def integer(self, low: int, high: int) -> int:
        """Return an integer between `low` and `high`."""
        if type(self.value) is not int or not low <= self.value <= high:
            raise self.fail(f"a whole number from {low} to {high}")
        return self.value

    def identity(self) -> int:
        """Return a number of the counter; zero is never assigned."""
        return self.integer(1, document.IDENTITY_MAX)

    def number(self) -> float:
        """Return a finite number."""
        if type(self.value) not in (int, float):
            raise self.fail("a number")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.fail("a finite number")
        return number

    def boolean(self) -> bool:
        """Return a truth value."""
        if not isinstance(self.value, bool):
            raise self.fail("true or false")
        return self.value

    def text(self) -> str:
        """Return a string of valid Unicode."""
        if not isinstance(self.value, str):
            raise self.fail("a string")
        if not self.value.isascii():
            try:
                self.value.encode()
            except UnicodeEncodeError:
                raise bad_document(f"{self.path} contains an unpaired surrogate") from None
        return self.value

    def matching(self, pattern: re.Pattern[str], what: str) -> str:
        """Return a string that matches `pattern` as a whole."""
        text = self.text()
        if not pattern.fullmatch(text):
            raise self.fail(what)
        return text

    def type_name(self) -> str:
        """Return the name of a type."""
        return self.matching(_TYPE_NAME, "a type name")

    def property_name(self) -> str:
        """Return the name of a property."""
        return self.matching(_PROPERTY_NAME, "a property name")


def parse_merge(at: At) -> MergeProperties:
    """Return how edits of different properties merge; the default is not stored."""
    if at.object("properties")["properties"].value != "combine":
        raise at.fail('{"properties": "combine"}')
    return "combine"


def parse_interface(at: At) -> document.IRInterface:
    """Parse the JSON form of an `IRInterface`."""
    members = at.object("id", "name", "properties", "constraints")
    return document.IRInterface(*_parse_type(members))


def _parse_type(
    members: Mapping[str, At],
) -> tuple[int, str, tuple[document.IRProperty, ...], tuple[document.IRConstraint, ...]]:
    """Parse the members that all types have."""
    return (
        members["id"].identity(),
        members["name"].type_name(),
        members["properties"].array(_parse_property),
        members["constraints"].array(_parse_constraint),
    )


def parse_node(at: At) -> document.IRNode:
    """Parse the JSON form of an `IRNode`."""
    members = at.object("id", "incarnation_id", "name", "annotations", "implements", "properties", "constraints")
    return document.IRNode(
        *_parse_type(members),
        members["incarnation_id"].identity(),
        members["annotations"].array(_parse_note),
        members["implements"].array(_parse_type_ref),
    )


def parse_edge(at: At) -> document.IREdge:
    """Parse the JSON form of an `IREdge`."""
    members = at.object(
        "id", "incarnation_id", "name", "annotations", "from", "to", "cardinality", "properties", "constraints"
    )
    bounds = members["cardinality"].object("min", "max")
    return document.IREdge(
        *_parse_type(members),
        members["incarnation_id"].identity(),
        members["annotations"].array(_parse_note),
        _parse_type_ref(members["from"]),
        _parse_type_ref(members["to"]),
        Cardinality(_parse_u32(bounds["min"]), bounds["max"].optional(_parse_u32)),
    )


def _parse_u32(at: At) -> int:
    return at.integer(0, _U32_MAX)


def _parse_type_ref(at: At) -> document.Ref:
    members = at.object("id", "name")
    return document.Ref(members["id"].identity(), members["name"].type_name())


def _parse_property_ref(at: At) -> document.Ref:
    members = at.object("id", "name")
    return document.Ref(members["id"].identity(), members["name"].property_name())


def _parse_column(at: At) -> document.Column:
    if isinstance(at.value, dict) and "system" in at.value:
        name = at.object("system")["system"]
        if name.value == "src":
            return document.SystemField("src")
        if name.value == "dst":
            return document.SystemField("dst")
        raise name.fail("'src' or 'dst'")
    return _parse_property_ref(at)


def _parse_property(at: At) -> document.IRProperty:
    members = at.object("id", "name", "type", "annotations", "embed", "injected", "satisfies")
    return document.IRProperty(
        members["id"].identity(),
        members["name"].property_name(),
        _parse_property_type(members["type"]),
        members["annotations"].array(_parse_note),
        members["embed"].optional(_parse_embed),
        members["injected"].boolean(),
        members["satisfies"].array(_parse_link),
    )


def _parse_property_type(at: At) -> PropertyType:
    members = at.object("scalar", "nullable", "list", "enum_values")
    nullable, is_list = members["nullable"].boolean(), members["list"].boolean()
    values = members["enum_values"].optional(lambda values: values.array(_parse_enum_value))
    scalar = members["scalar"]
    if isinstance(scalar.value, dict):
        dim = scalar.object("Vector")["Vector"].integer(1, VECTOR_DIM_MAX)
        if is_list or values is not None:
            raise bad_document(f"{at.path} is a vector and a list or enum at once")
        return PropertyType("Vector", nullable, dim=dim)
    for name in SCALARS:
        if scalar.value == name:
            break
    else:
        raise scalar.fail("the name of a type")
    if is_list and (name == "Blob" or values is not None):
        raise bad_document(f"{at.path} is a list of {'Blob' if name == 'Blob' else 'enum'}, which does not exist")
    if values is not None and (name != "String" or not values or tuple(sorted(set(values))) != values):
        raise bad_document(f"{at.path}.enum_values must be sorted, without repeats, on a String")
    return PropertyType(name, nullable, is_list, enum_values=values)


def _parse_enum_value(at: At) -> str:
    return at.matching(_ENUM_VALUE, "an enum value")


def _parse_note(at: At) -> Metadata:
    members = at.object("name", "value", optional="kwargs")
    arguments: list[tuple[str, str]] = []
    if "kwargs" in members:
        if not isinstance(members["kwargs"].value, dict) or not members["kwargs"].value:
            raise members["kwargs"].fail("an object that is not empty")
        for key, value in members["kwargs"].value.items():
            at_key = At(key, f"{members['kwargs'].path} key")
            arguments.append((at_key.property_name(), At(value, f"{at.path}.kwargs.{key}").text()))
    return Metadata(members["name"].property_name(), members["value"].optional(At.text), tuple(sorted(arguments)))


def _parse_embed(at: At) -> document.IREmbed:
    members = at.object("source", "model")
    source = members["source"].object("id", "name")
    return document.IREmbed(
        source["id"].optional(At.identity), source["name"].text(), members["model"].optional(At.text)
    )


def _parse_link(at: At) -> document.Link:
    members = at.object("interface", "property")
    return document.Link(_parse_type_ref(members["interface"]), _parse_property_ref(members["property"]))


def _parse_constraint(at: At) -> document.IRConstraint:
    kind, body = at.only_member()
    if kind in _COLUMN_CONSTRAINTS:
        columns = body.array(_parse_column)
        return document.IRConstraint(_COLUMN_CONSTRAINTS[kind](tuple(column.name for column in columns)), columns)
    constraint: Constraint
    if kind == "Valid":
        members = body.object("from", "to")
        start, end = _parse_property_ref(members["from"]), _parse_property_ref(members["to"])
        return document.IRConstraint(Valid(start.name, end.name), (start, end))
    if kind == "Range":
        members = body.object("property", "min", "max")
        ref = _parse_property_ref(members["property"])
        constraint = Range(ref.name, members["min"].optional(At.number), members["max"].optional(At.number))
    elif kind == "Check":
        members = body.object("property", "pattern")
        ref = _parse_property_ref(members["property"])
        constraint = Check(ref.name, members["pattern"].text())
    else:
        raise bad_document(f"{at.path} is a constraint of an unknown kind")
    return document.IRConstraint(constraint, (ref,))
