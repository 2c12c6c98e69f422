"""Descriptions of values for error messages."""

from __future__ import annotations

from typing import Any


class InvalidText:
    """Placeholder for text that is not valid UTF-8, so that its record can be rejected."""


class UnmatchedDate:
    """A cell that does not have the date format of a load, so that its record can be rejected."""

    def __init__(self, text: str, format: str) -> None:
        self.text, self.format = text, format

    def __str__(self) -> str:
        return self.text


def describe_json(value: Any) -> str:
    """Return a phrase for a JSON value, for an error message."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            shown = short_integer(value)
            return shown if shown.startswith("an ") else f"the integer {shown}"
        case float():
            return f"the number {value!r}"
        case str():
            return f"the string '{short_text(value)}'"
        case list() | tuple():
            return "an array"
        case InvalidText():
            return "text that is not valid UTF-8"
        case UnmatchedDate():
            return f"'{short_text(value.text)}', which does not have the form '{value.format}'"
        case dict():
            return "an object"
        case _:
            return type(value).__name__


def short_text(text: str) -> str:
    """Return at most 120 printable characters of a text."""
    shown = text if len(text) <= 120 else text[:119] + "…"
    return shown if shown.isprintable() else ascii(shown)[1:-1]


def short_integer(value: int) -> str:
    """Return the digits of an integer, or its size if they are too many to read (Python refuses to print huge ones)."""
    return str(value) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"
