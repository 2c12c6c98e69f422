"""An annotation → the type of a property and its marks.

What the schema language cannot say is refused with the name of the field. Nothing is guessed.
"""

from __future__ import annotations

import datetime
import enum
import types
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from omnigraph.errors import InputError
from omnigraph.models.marks import Check, Mark, Note, Range, Vector, _Scalar
from omnigraph.scalar_types.registry import ScalarName
from omnigraph.types import INTEGER_RANGES, PropertyType

_SCALARS: dict[Any, ScalarName] = {
    str: "String",
    bool: "Bool",
    int: "I64",
    float: "F64",
    bytes: "Blob",
    datetime.date: "Date",
    datetime.datetime: "DateTime",
    uuid.UUID: "Uuid",
}
_REFUSED = ("gt", "lt", "multiple_of", "min_length", "max_length")
"""Constraints of other packages without a counterpart."""
_TYPES = "use str, int, float, bool, date, datetime, UUID, bytes, Literal, an Enum or a list"
_TAKEN = ("ge", "le", "pattern", "description")


class FieldType(NamedTuple):
    """The type of a property and the marks of its field."""

    type: PropertyType
    marks: tuple[Mark, ...]


def field_type(annotation: Any, metadata: Sequence[Any], where: str) -> FieldType:
    """Return the type and marks of a field; `where` names it in errors."""
    plain, nullable, notes = _unwrapped(annotation, list(metadata), where)
    own = [note for note in notes if isinstance(note, Mark)]
    foreign = dict(pair for note in notes if not isinstance(note, Mark) for pair in _constraints(note))
    has_length = any(isinstance(mark, Vector) for mark in own)  # which other packages check as a length
    for name in _REFUSED:
        if name in foreign and not (has_length and name.endswith("_length")):
            raise InputError(
                f"{where}: the schema language has no '{name}'",
                code="bad_model",
                hint="use ge and le, or og.Check with a pattern, or validate it in Python only",
            )
    found = replace(_scalar_type(plain, own, foreign, where), nullable=nullable)
    return FieldType(found, (*own, *_marks_of(foreign, own, found)))


def _unwrapped(annotation: Any, notes: list[Any], where: str) -> tuple[Any, bool, list[Any]]:
    """Return the annotation without `Annotated` and `None`, whether it had `None`, and all metadata."""
    nullable = False
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            notes += more
        elif get_origin(annotation) in (Union, types.UnionType):
            arms = [arm for arm in get_args(annotation) if arm is not types.NoneType]
            if len(arms) != 1 or len(arms) == len(get_args(annotation)):
                raise _refused(annotation, where, "a property has one type; declare one property per type")
            annotation, nullable = arms[0], True
        else:
            return annotation, nullable, notes


def _scalar_type(plain: Any, own: list[Mark], foreign: dict[str, Any], where: str) -> PropertyType:
    vector = next((mark for mark in own if isinstance(mark, Vector)), None)
    if vector is not None:
        if plain != list[float]:
            raise _refused(plain, where, "a vector is a list[float]")
        return PropertyType("Vector", dim=vector.dim)
    if get_origin(plain) is list:
        item, optional, notes = _unwrapped(get_args(plain)[0], [], where)
        marks = [*own, *(note for note in notes if isinstance(note, Mark))]
        found = None if optional or get_origin(item) is list else _named(item, marks, {}, where)
        if found is None or found.enum_values is not None or found.scalar == "Blob":
            raise _refused(plain, where, "a list has scalars: str, int, float, bool, date, datetime or UUID")
        return replace(found, is_list=True)
    return _named(plain, own, foreign, where)


def _named(plain: Any, own: list[Mark], foreign: dict[str, Any], where: str) -> PropertyType:
    values = _enum_values(plain)
    if values is not None:
        return PropertyType("String", enum_values=tuple(sorted(set(values))))
    scalar = _SCALARS.get(plain)
    if scalar is None:
        raise _refused(
            plain, where, "use str, int, float, bool, date, datetime, UUID, bytes, Literal, an Enum or a list"
        )
    marked = next((mark.scalar for mark in own if isinstance(mark, _Scalar)), None)
    if marked is None:
        # A number with the bound 0 alone is a number without sign.
        unsigned = scalar == "I64" and foreign.get("ge") == 0 and "le" not in foreign
        return PropertyType("U64" if unsigned and not any(isinstance(mark, Range) for mark in own) else scalar)
    if (plain, marked[0]) not in ((int, "I"), (int, "U"), (float, "F")):
        raise InputError(f"{where}: og.{marked}() does not fit {_shown(plain)}", code="bad_model")
    return PropertyType(marked)


def _enum_values(plain: Any) -> list[str] | None:
    if get_origin(plain) is Literal:
        values = list(get_args(plain))
    elif isinstance(plain, type) and issubclass(plain, enum.Enum):
        values = [member.value for member in plain]
    else:
        return None
    return values if values and all(isinstance(value, str) for value in values) else None


def _marks_of(foreign: dict[str, Any], own: list[Mark], type_: PropertyType) -> Iterator[Mark]:
    """Yield the marks for constraints of other packages; an own mark of the kind replaces them."""
    has = {type(mark) for mark in own}
    least, most = INTEGER_RANGES.get(type_.scalar, (None, None))
    low = None if foreign.get("ge") == least else foreign.get("ge")
    high = None if foreign.get("le") == most else foreign.get("le")
    if Range not in has and (low is not None or high is not None):
        yield Range(low, high)
    if Check not in has and "pattern" in foreign:
        yield Check(foreign["pattern"])
    described = any(isinstance(mark, Note) and mark.name == "description" for mark in own)
    if not described and "description" in foreign:
        yield Note("description", foreign["description"])


def _constraints(note: Any) -> Iterator[tuple[str, Any]]:
    """Yield the constraints in metadata of pydantic, annotated-types or msgspec."""
    for inner in getattr(note, "metadata", None) or ():
        yield from _constraints(inner)
    for name in (*_TAKEN, *_REFUSED):
        value = getattr(note, name, None)
        if value is not None and not callable(value):
            yield name, getattr(value, "pattern", value)


def _refused(annotation: Any, where: str, hint: str) -> InputError:
    return InputError(f"{where}: {_shown(annotation)} is not a type of a property", code="bad_model", hint=hint)


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
