"""Stored values as typed JSON values, which keep the type of every value, and their conversion back.

A value that JSON has no type for is an object with one member, whose name is the type:

    {"$date": "2026-01-31"}    {"$datetime": "2026-01-31T12:30:00+00:00"}    {"$int": "9007199254740993"}
    {"$float": "NaN"}          {"$bytes": "aGk="}                            {"$object": {"$date": 1}}
    {"$written": "29"}

`$object` encloses an object that could be taken for one of these. `$written` is a parameter that is a number or a text,
depending on the query.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from omnigraph.scalar_types.registry import JS_SAFE_MAX
from omnigraph.scalar_types.written_value import WrittenValue

_OBJECT = "$object"
_READERS: dict[str, Callable[[str], Any]] = {
    "$date": date.fromisoformat,
    "$datetime": lambda text: _in_utc(datetime.fromisoformat(text)),
    "$int": int,
    "$float": float,
    "$bytes": lambda text: b64decode(text, validate=True),
    "$written": WrittenValue.read,
}


def typed_value(value: Any) -> Any:
    """Convert a value, a row or a container of them to typed JSON values; `untyped_value` is the inverse."""
    match value:
        case WrittenValue():
            return {"$written": str(value)}
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= JS_SAFE_MAX else {"$int": str(value)}
        case float():
            return value if math.isfinite(value) else {"$float": _spelled(value)}
        case dict():
            members = {name: typed_value(member) for name, member in value.items()}
            return {_OBJECT: members} if _looks_typed(value) else members
        case list() | tuple():
            return [typed_value(item) for item in value]
        case datetime():
            return {"$datetime": value.isoformat()}
        case date():
            return {"$date": value.isoformat()}
        case bytes():
            return {"$bytes": b64encode(value).decode()}
    return value


def untyped_value(value: Any) -> Any:
    """Convert a typed JSON value back to the stored value; `ValueError` if a typed value is not valid."""
    if isinstance(value, list):
        return [untyped_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _looks_typed(value):
        ((name, content),) = value.items()
        if name == _OBJECT and isinstance(content, dict):
            return {inner: untyped_value(member) for inner, member in content.items()}
        if name not in _READERS or not isinstance(content, str):
            raise ValueError(f"there is no typed value {name!r}")
        return _READERS[name](content)
    return {name: untyped_value(member) for name, member in value.items()}


def _in_utc(time: datetime) -> datetime:
    """Return a time in UTC with the zone that times of stored rows have."""
    return time.replace(tzinfo=ZoneInfo("UTC")) if time.tzinfo is UTC else time


def _looks_typed(value: dict[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)).startswith("$")


def _spelled(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
