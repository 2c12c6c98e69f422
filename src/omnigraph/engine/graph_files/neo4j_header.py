"""Headers of Neo4j admin CSV: `name:type(space){options}` for each column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import RecordError

Role = Literal["property", "ID", "LABEL", "START_ID", "END_ID", "TYPE", "IGNORE"]
ROLES: tuple[Role, ...] = ("ID", "LABEL", "START_ID", "END_ID", "TYPE", "IGNORE")

_COLUMN = re.compile(
    r"(?P<name>.*?)\s*(?::\s*(?P<type>[A-Za-z_]+)\s*(?P<list>\[\s*\])?\s*(?:\((?P<space>[^)]*)\))?\s*"
    r"(?P<options>\{.*\})?)?\s*",
    re.DOTALL,
)
_ID_TYPE = re.compile(r"id-type\s*:\s*([a-z]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Column:
    """A column of a header."""

    text: str
    name: str
    role: Role
    type: str = "string"
    """The type of a property, in lower case; of an id, the type of its values."""
    is_list: bool = False
    space: str = ""
    """The id space of an id; the global one is empty."""


@dataclass(frozen=True)
class Header:
    """The columns of the nodes or of the relationships of a file."""

    columns: tuple[Column, ...]
    is_edges: bool

    def find(self, role: Role) -> int | None:
        """Return the place of the column with a role; None if there is none."""
        return next((at for at, column in enumerate(self.columns) if column.role == role), None)

    def column(self, role: Role) -> Column | None:
        """Return the column with a role; None if there is none."""
        at = self.find(role)
        return None if at is None else self.columns[at]

    @property
    def properties(self) -> list[tuple[int, Column]]:
        """The places and columns of properties, without that of the id."""
        return [(at, column) for at, column in enumerate(self.columns) if column.role == "property"]


def parse_header(cells: Sequence[str], source: str) -> Header:
    """Parse the cells of a header; raise `RecordError` if they are not one of Neo4j admin CSV."""
    columns = tuple(_column(cell, source) for cell in cells)
    roles = [column.role for column in columns]
    for role in ("ID", "START_ID", "END_ID", "TYPE"):
        if roles.count(role) > 1:
            raise _error(f"the header has several columns ':{role}'", source)
    is_edges = "START_ID" in roles or "END_ID" in roles
    if is_edges and not {"START_ID", "END_ID"} <= set(roles):
        raise _error("the header of relationships needs both ':START_ID' and ':END_ID'", source)
    if is_edges and "ID" in roles:
        raise _error("the header has ':ID' beside ':START_ID': it is neither of nodes nor of relationships", source)
    if not is_edges and not {"ID", "LABEL"} & set(roles):
        raise _error(
            "the header is not one of Neo4j admin CSV: it has no ':ID', and no ':START_ID' and ':END_ID'",
            source,
            "name the columns as in 'personId:ID,name,:LABEL', or leave out the format neo4j",
        )
    named = [column.name for column in columns if column.role == "property"]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise _error(f"the header has several columns '{twice}'", source)
    return Header(columns, is_edges)


def _column(text: str, source: str) -> Column:
    match = _COLUMN.fullmatch(text.strip())
    assert match is not None, "every text matches"
    name, word = match["name"].strip(), match["type"]
    role = next((role for role in ROLES if word is not None and word.upper() == role), None)
    if role is not None:
        id_type = _ID_TYPE.search(match["options"] or "")
        kind = id_type[1].lower() if id_type is not None else "string"
        return Column(text, name, role, kind, space=(match["space"] or "").strip())
    if not name:
        raise _error(f"the column '{text}' has no name", source)
    return Column(text, name, "property", (word or "string").lower(), match["list"] is not None)


def _error(message: str, source: str, hint: str | None = None) -> RecordError:
    return RecordError(message, source=source, line=1, rule="columns", hint=hint)
