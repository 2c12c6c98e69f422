"""Values as they are written, before their type is known."""

from __future__ import annotations

import json
import re
from typing import Any

_LENGTH_MAX = 400
_NUMBER_OR_BOOL = re.compile(r"true|false|-?Infinity|NaN|-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class WrittenValue(str):
    """A number or Bool as written, for a parameter whose type decides whether the value is a text."""

    @classmethod
    def read(cls, text: str) -> WrittenValue:
        """Return a text as a written value; `ValueError` if it is neither a number nor a Bool."""
        if len(text) > _LENGTH_MAX or _NUMBER_OR_BOOL.fullmatch(text) is None:
            raise ValueError(f"{text[:40]!r} is neither a number nor a Bool")
        written = cls(text)
        json.loads(written)
        return written

    @property
    def value(self) -> Any:
        """The JSON value of the text."""
        return json.loads(self)


def read_word(word: str, declared: str | None) -> Any:
    """Return the value of a parameter that is written as text: parsed as JSON, else as it is.

    A parameter of a declared type whose JSON form is text, such as `String` or `Date`, keeps its text.
    """
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return word
    is_text = declared is not None and declared.rstrip("?") in _text_types()
    return word if is_text and value is not None and not isinstance(value, str) else value


def _text_types() -> frozenset[str]:
    from omnigraph.scalar_types.registry import KINDS  # noqa: PLC0415 (only for declared types)

    return frozenset(kind.name for kind in KINDS.values() if kind.is_json_text)
