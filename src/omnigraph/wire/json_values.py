"""Stored values as JSON values: for messages, and for rows of documents."""

from __future__ import annotations

import datetime
import math
from base64 import b64encode
from typing import Any

from omnigraph.scalar_types.registry import JS_SAFE_MAX


def json_value(value: Any) -> Any:
    """Convert a stored value to a JSON value for a message; bytes become their number."""
    if isinstance(value, dict):
        return {key: json_value(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    return value


def row_value(value: Any) -> Any:
    """Convert a value of a row to the JSON value that query results, diffs and the change feed show.

    Bytes become `base64:` text, and integers beyond ±(2^53 - 1) decimal text: a number of JavaScript does not hold
    them.
    """
    match value:
        case dict():
            return {key: row_value(member) for key, member in value.items()}
        case list():
            return [row_value(item) for item in value]
        case bytes():
            return "base64:" + b64encode(value).decode()
        case int() if abs(value) > JS_SAFE_MAX:
            return str(value)
    return json_value(value)
