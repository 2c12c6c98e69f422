"""Stored values as JSON values."""

from __future__ import annotations

import datetime
import math
from typing import Any


def json_value(value: Any) -> Any:
    """Convert a stored value to a JSON value."""
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
