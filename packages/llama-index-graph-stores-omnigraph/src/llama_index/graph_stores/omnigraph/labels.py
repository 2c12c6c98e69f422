"""Labels and keys of LlamaIndex as names of the schema language."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from omnigraph.schema.catalog import RESERVED_COLUMNS

_WORD = re.compile(r"[A-Za-z0-9]+")
_PROPERTY = re.compile(r"[a-z_][A-Za-z0-9_]*")
_RESERVED = frozenset({"id", "src", "dst", "from", "to", *RESERVED_COLUMNS})
"""Names of columns and ends, which properties cannot have."""
_FORBIDDEN_EDGES = frozenset({"Not"})
"""Names that queries cannot write with a lower-case first letter."""


def plain(label: str) -> str:
    """Return the letters and digits of a label in lower case: `WORKS_AT` and `WorksAt` are one label."""
    return "".join(char for char in label.casefold() if char.isalnum())


def type_name(label: str, taken: Collection[str], prefix: str = "T") -> str:
    """Return a free type name for a label: `WORKS_AT` is `WorksAt`."""
    words = _WORD.findall(_ascii(label))
    name = "".join(
        word.capitalize() if word.isupper() or word.islower() else word[0].upper() + word[1:] for word in words
    )
    if not name or not name[0].isalpha():
        name = prefix + name
    if name in _FORBIDDEN_EDGES:
        name += "Edge"
    return _free(name, {each.lower() for each in taken})


def property_name(key: str, taken: Collection[str]) -> str:
    """Return a free property name for a key: `Birth Date` is `birth_date`."""
    if _PROPERTY.fullmatch(key):
        return _free(key, {*taken, *_RESERVED})
    name = re.sub(r"[^A-Za-z0-9_]+", "_", _ascii(key)).strip("_").lower()
    if not name or not name[0].isalpha():
        name = f"p_{name}"
    return _free(name, {*taken, *_RESERVED})


def listing(names: Iterable[str]) -> str:
    """Return names for a message."""
    return ", ".join(f"'{name}'" for name in sorted(names)) or "none"


def quoted(text: str) -> str:
    """Return a string of the schema language."""
    for char, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(char, escape)
    return f'"{text}"'


def _ascii(text: str) -> str:
    """Return a text whose letters outside ASCII are replaced by their code points."""
    return "".join(char if char.isascii() else f"U{ord(char):X}" if char.isalnum() else " " for char in text)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not taken: the name itself, or with a number."""
    if name not in taken and name.lower() not in taken:
        return name
    number = 2
    while f"{name}_{number}".lower() in taken or f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
