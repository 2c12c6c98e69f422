"""Values of property types: read from JSON and Python, written as JSON, spelled in ids.

A value is held in the form that the table stores: Date as days and DateTime as milliseconds since 1970-01-01 UTC, F32
as the float that it rounds to, a vector as a list of such floats. Reading is strict: a string is not a number, `3.0` is
not an integer, `1` is not a Bool. Python values that JSON does not have (dates, numpy scalars, Decimal, enums, UUID,
paths, bytes) are accepted where their type fits. Constraints (enum membership, `@range`, …) are not checked here.

The rules of each scalar are entries of `scalar_types.registry`; this module adds null, lists and vectors.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from omnigraph.errors import ValueFormatError
from omnigraph.scalar_types.describe import describe_json, short_text
from omnigraph.scalar_types.readers import WrongJsonType, read_f32
from omnigraph.scalar_types.registry import KINDS
from omnigraph.types import PropertyType

_JSON = frozenset({type(None), bool, int, float, str, list, dict})
_NO_VALUE = frozenset({"nan", "null", "none", "nil", "na", "n/a", "#n/a", "nat", "-", "?"})

Fetch = Callable[[str], bytes]
"""Reads the bytes of a reference, or raises `ValueFormatError`."""


# -- reading -----------------------------------------------------------------------------------------


def read_json(value: Any, type_: PropertyType) -> Any:
    """Return a value of a JSON document or of Python in stored form.

    Raises `ValueFormatError` with a sentence that fits behind "property 'x': ".
    """
    if type(value) not in _JSON:
        value = _from_python(value, type_)
    if value is None:
        if type_.nullable:
            return None
        raise ValueFormatError(f"null, but {type_} is required")
    if type_.is_list:
        return _read_list(value, type_)
    if type_.scalar == "Vector":
        if not isinstance(value, list):
            raise _wrong(value, type_)
        return read_vector(value, type_)
    try:
        return KINDS[type_.scalar].read(value)
    except WrongJsonType:
        raise _wrong(value, type_) from None


def _read_list(value: Any, type_: PropertyType) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(value, type_)
    if any(item is None for item in value):
        raise ValueFormatError("a list may not hold null")
    return [read_json(item, type_.item) for item in value]


def is_json(value: Any) -> bool:
    """Return True if the value has a type that JSON documents have."""
    return type(value) in _JSON


def _from_python(value: Any, type_: PropertyType) -> Any:
    """Convert an object of Python's own types to the JSON value with the same meaning for `type_`, if there is one."""
    if isinstance(value, Enum):
        return _from_python(value.value, type_)
    module = type(value).__module__.partition(".")[0]
    if module == "numpy":
        return _from_numpy(value, type_)
    if module == "pandas" and type(value).__name__ in ("NaTType", "NAType"):
        return None
    for class_ in (str, int, float):
        if isinstance(value, class_):  # a subclass
            return str.__str__(value) if class_ is str else class_(value)
    if type_.is_list or type_.scalar == "Vector":
        return list(value) if isinstance(value, tuple) else value
    return KINDS[type_.scalar].from_python(value)


def _from_numpy(value: Any, type_: PropertyType) -> Any:
    kind = value.dtype.kind
    if kind == "M":
        value = value.astype("datetime64[ms]")
        if not value.ndim and str(value) == "NaT":
            return None
    if value.ndim:
        return value.tolist() if type_.is_list or type_.scalar == "Vector" else value
    item = value.item()
    return item if type(item) in _JSON else _from_python(item, type_)


def read_vector(value: Sequence[Any], type_: PropertyType) -> list[float]:
    """Return exactly as many finite 32-bit numbers as the type has dimensions."""
    if len(value) != type_.dim:
        raise ValueFormatError(f"expected {type_.dim} dimensions, got {len(value)}")
    if set(map(type, value)) == {float}:
        try:
            numbers = struct.unpack(f"<{len(value)}f", struct.pack(f"<{len(value)}f", *value))
        except OverflowError:
            pass  # reading element by element names the one that fails
        else:
            if all(map(math.isfinite, numbers)):
                return list(numbers)
    for element in value:
        if isinstance(element, bool) or not isinstance(element, int | float):
            raise ValueFormatError(f"vector elements must be numeric, found {describe_json(element)}")
    return [read_f32(element) for element in value]


def managed_blob(value: bytes | str, fetch: Fetch | None = None) -> bytes:
    """Return the bytes of a Blob; `fetch` follows a reference, and without it a reference is refused."""
    if isinstance(value, str):
        if fetch is not None:
            return fetch(value)
        raise ValueFormatError(
            f"'{short_text(value)}' is an external reference, which is not allowed here",
            hint="give the bytes: base64:…",
        )
    return value


def _wrong(value: Any, type_: PropertyType) -> ValueFormatError:
    return ValueFormatError(f"expected {type_}, found {describe_json(value)}", hint=_hint(value, type_))


def _hint(value: Any, type_: PropertyType) -> str | None:
    """Return how to write a value that is often written in another way."""
    if isinstance(value, str) and value.strip().lower() in _NO_VALUE:
        empty = "for no value leave a CSV cell empty, and write null in JSON"
        return empty if type_.nullable else f"{empty}; the type must be {type_}?"
    if type_.is_list:
        return 'a list is a JSON array: ["one", "two"]'
    if type_.scalar == "Vector":
        return "a vector is a JSON array of numbers: [0.5, 1.0]"
    return KINDS[type_.scalar].hint(value)


# -- ids ---------------------------------------------------------------------------------------------


def spell_key(value: Any, type_: PropertyType) -> str:
    """Return the canonical text of a stored key value: equal values, and only equal values, have the same text."""
    assert value is not None, "a key value is never null"
    return KINDS[type_.scalar].spell(value)


def derive_id(spellings: Sequence[str]) -> str:
    """Return the row id of a key, given the texts of its columns in key order."""
    if len(spellings) == 1:
        return spellings[0]
    return json.dumps(list(spellings), ensure_ascii=False, separators=(",", ":"))


# -- writing -----------------------------------------------------------------------------------------


def write_json(value: Any, type_: PropertyType) -> Any:
    """Return the value as query results show it: wide integers and non-finite floats as strings, dates as text."""
    if value is None:
        return None
    if type_.is_list:
        return [write_json(item, type_.item) for item in value]
    return KINDS[type_.scalar].write(value)
