"""Names of types and properties for the names of tables and columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from omnigraph.schema.catalog import RESERVED_COLUMNS

_PROPERTY = re.compile(r"[a-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z0-9]+")
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d"})
"""Letters that do not decompose into an ASCII letter and a mark."""
_RESERVED_NODE = frozenset({"id", *RESERVED_COLUMNS})
_RESERVED_EDGE = _RESERVED_NODE | {"src", "dst", "from", "to"}


def type_name(table: str) -> str:
    """Return the name of the type of a table: `order items` is `OrderItems`."""
    words = _WORD.findall(_ascii(table))
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name and name[0].isalpha() else f"T{name}" if name else "Table"


def property_names(columns: Sequence[str], table: str, *, is_edge: bool) -> dict[str, str]:
    """Return column → property: the name itself if it is one, else in lower case with underscores.

    A reserved name is prefixed with the name of the table, a repeated one is numbered.
    """
    reserved = _RESERVED_EDGE if is_edge else _RESERVED_NODE
    found: dict[str, str] = {}
    taken: set[str] = set()
    for position, column in enumerate(columns, 1):
        name = column if _PROPERTY.fullmatch(column) else _snake(column) or f"column_{position}"
        name = f"c_{name}" if name[0].isdigit() else name
        name = f"{_snake(table)}_{name.strip('_')}" if name in reserved else name
        base, number = name, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        found[column] = name
    return found


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case, without the plural `s`: `planeIds` is plane, id."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", _ascii(name))
    return [part.lower().removesuffix("s") if len(part) > 3 else part.lower() for part in parts]


def _snake(name: str) -> str:
    return "_".join(word.lower() for word in _WORD.findall(_ascii(name)))


def _ascii(name: str) -> str:
    return unicodedata.normalize("NFKD", name.translate(_LETTERS)).encode("ascii", "ignore").decode()
