"""Values of records as texts that a load reads back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from omnigraph.types import PropertyType

Spelling = Callable[[Any], str]
"""Stored form of a value that is not null → its text."""


def scalar_text(type_: PropertyType) -> Spelling:
    """Return the function that formats a scalar, or an item of a list or vector."""
    if type_.scalar == "Vector" or type_.kind.is_float:
        return str
    return type_.kind.text


def value_text(type_: PropertyType) -> Spelling:
    """Return the function that formats a value; lists and vectors are JSON."""
    if type_.scalar == "Vector":
        return lambda value: json.dumps(value)
    if type_.is_list:
        write = type_.kind.write if type_.kind.is_json_text else None
        if write is None:
            return lambda value: json.dumps(value)
        return lambda value: json.dumps([write(item) for item in value], ensure_ascii=False)
    return scalar_text(type_)
