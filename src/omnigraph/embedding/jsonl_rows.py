"""Rows of a JSONL file for offline embedding: parsing, selection and text."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from omnigraph.embedding.specification import TypeTarget
from omnigraph.errors import InputError
from omnigraph.scalar_types.describe import describe_json
from omnigraph.scalar_types.readers import is_unicode


@dataclass(frozen=True, slots=True)
class EntityRow:
    """Line with a `type`. `members` is the whole line; `data`, a part of it, may be changed in place."""

    type: str
    members: dict[str, Any]
    data: dict[str, Any]

    def line(self) -> str:
        """Return the row as compact JSON with its keys in input order."""
        text = _compact(self.members)
        # An unpaired surrogate has no UTF-8 form, but an escape.
        return text if is_unicode(text) else json.dumps(self.members, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Selector:
    """Selector `Type:field=value` or `field=value`: selects rows by the text of a field."""

    type: str | None
    field: str
    value: str

    def matches(self, row: EntityRow) -> bool:
        """Return True if the row has the type, if one is given, and the text of the field equals the value."""
        return self.type in (None, row.type) and render(row.data.get(self.field)) == self.value


def parse_selector(text: str) -> Selector:
    """Parse `Type:field=value` or `field=value`; all parts are trimmed."""
    left, equals, value = text.partition("=")
    before, colon, after = left.partition(":")
    type_, field = (before.strip(), after.strip()) if colon else (None, before.strip())
    if not equals or not field or type_ == "":
        raise InputError(
            f"'{text}' does not select anything", hint="write Type:field=value, or field=value for every type"
        )
    return Selector(type_, field, value.strip())


def parse_row(line: str) -> EntityRow | None:
    """Return the entity row of a line; None for an object without `type`, which is an edge.

    Raises `InputError` with a message that follows the line number, and `RecursionError` for a line that is nested too
    deeply.
    """
    try:
        members = json.loads(line, parse_float=_finite, parse_constant=_refuse)
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from None
    if not isinstance(members, dict):
        raise InputError(f"expected a JSON object, found {describe_json(members)}")
    if "type" not in members:
        return None
    type_, data = members["type"], members.get("data")
    if not isinstance(type_, str):
        raise InputError(f"'type' must be a string, found {describe_json(type_)}")
    if not isinstance(data, dict):
        found = describe_json(data) if "data" in members else "nothing"
        raise InputError(f"a row of type '{type_}' needs an object 'data', found {found}")
    return EntityRow(type_, members, data)


def is_selected(row: EntityRow, types: Collection[str], selectors: Sequence[Selector]) -> bool:
    """Return True if the type is among `types` (empty means all) and any selector matches (empty means all)."""
    if types and row.type not in types:
        return False
    return not selectors or any(selector.matches(row) for selector in selectors)


def row_text(row: EntityRow, target: TypeTarget) -> str:
    """Return the text to embed for a row: its type, then each field that is not empty, on separate lines."""
    values = ((field, render(row.data.get(field))) for field in target.fields)
    return "\n".join([f"type: {row.type}", *(f"{field}: {value}" for field, value in values if value)])


def render(value: Any) -> str:
    """Return a JSON value as readable text; empty for null."""
    match value:
        case None:
            return ""
        case str():
            return value.strip()
        case list():
            return ", ".join(filter(None, map(render, value)))
        case _:
            return _compact(value)


def _compact(value: Mapping[str, Any] | bool | float) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
