"""`TableFormat`: how the columns and cells of a table become properties and values.

`columns` maps the name of a column to a property (for an edge also `from`, `to` or `id`), or to None to leave it out.
A name may be limited to one type: `Person:zip`. Columns without an entry are matched with properties by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}

GraphFileFormat = Literal["neo4j", "graphml"]
"""Formats of files with nodes and edges of several types."""
GRAPH_FILE_FORMATS: tuple[GraphFileFormat, ...] = get_args(GraphFileFormat)
ARRAY_DELIMITER = ";"
"""Separates the items of a list in a cell of Neo4j admin CSV."""

Columns = Mapping[str, str | None]
"""Column → property; None leaves the column out."""
_PROBE = datetime(2001, 12, 31)


@dataclass(frozen=True)
class TableFormat:
    """The format of the tables of a load. `delimiter`, `nulls` and `date_format` concern CSV."""

    delimiter: str | None = None
    """Separates cells; None if the header decides."""
    nulls: tuple[str, ...] = ()
    """Texts of cells without quotes that are null, besides the empty cell."""
    date_format: str | None = None
    """Form of Date and DateTime cells, as in `datetime.strptime`; None for ISO 8601."""
    columns: tuple[tuple[str, str | None], ...] = ()
    """Column, or `Type:column` → property."""
    skip_null_ends: bool = False
    """True if rows of an edge type without one of its ends are left out."""
    graph_format: GraphFileFormat | None = None
    """The format of files with nodes and edges of several types; None if their names say it."""
    array_delimiter: str = ARRAY_DELIMITER
    """Separates the items of a list in a cell of Neo4j admin CSV."""

    @classmethod
    def of(
        cls,
        delimiter: str | None = None,
        null: str | Sequence[str] = (),
        date_format: str | None = None,
        columns: Columns | None = None,
        *,
        skip_null_ends: bool = False,
        graph_format: str | None = None,
        array_delimiter: str = ARRAY_DELIMITER,
    ) -> TableFormat:
        """Check the parts of a format; raise `InputError` if one is invalid."""
        return cls(
            check_delimiter(delimiter),
            _check_nulls(null),
            _check_date_format(date_format),
            _check_columns(columns or {}),
            skip_null_ends,
            check_graph_format(graph_format),
            _check_array_delimiter(array_delimiter),
        )

    def property_of(self, type_name: str, column: str) -> tuple[str | None] | None:
        """Return the property that a column is mapped to, in a tuple; None if the column is not mapped."""
        found = dict(self.columns)
        for name in (f"{type_name}:{column}", column):
            if name in found:
                return (found[name],)
        return None

    def check_mapping(self, tables: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Raise `InputError` if a mapped column is in none of the tables, given as type and column names."""
        known = {name for type_, names in tables for column in names for name in (column, f"{type_}:{column}")}
        for name, _ in self.columns:
            if name not in known:
                there = ", ".join(f"'{column}'" for _, names in tables for column in names)
                raise InputError(
                    f"the column '{name}' is mapped, but no table has it",
                    code="no_such_column",
                    hint=f"the columns are {there or 'none'}",
                )


PLAIN = TableFormat()
"""Columns are matched by name, cells are those of RFC 4180."""


def check_graph_format(format: str | None) -> GraphFileFormat | None:
    """Return one of the formats of files with several types, or None; raise `InputError` otherwise."""
    for known in GRAPH_FILE_FORMATS:
        if format == known:
            return known
    if format is not None:
        raise InputError(
            f"there is no format '{format}' of files to load",
            hint=f"the formats are {', '.join(GRAPH_FILE_FORMATS)}; other formats are known by the names of the files",
        )
    return None


def _check_array_delimiter(delimiter: str) -> str:
    text = "\t" if delimiter == "\\t" else delimiter
    if len(text) != 1 or text in '"\r\n':
        raise InputError("the array delimiter must be one character, and not a quote", hint="write ';' or '|'")
    return text


def check_delimiter(delimiter: str | None) -> str | None:
    """Return a supported delimiter, or None for automatic detection; raise `InputError` otherwise."""
    if delimiter == "\\t":
        return "\t"
    if delimiter is not None and delimiter not in DELIMITERS:
        raise InputError(
            f"the delimiter must be one of {', '.join(DELIMITERS.values())}",
            hint=r"write ',' ';' '|' or '\t'",
        )
    return delimiter


def read_columns(entries: Sequence[str]) -> dict[str, str | None]:
    """Return the mapping of texts `COLUMN=PROPERTY`; `COLUMN=` leaves a column out."""
    found: dict[str, str | None] = {}
    for entry in entries:
        column, sign, name = entry.rpartition("=")
        if not sign or not column:
            raise InputError(
                f"'{entry}' does not map a column", hint="write COLUMN=PROPERTY, or COLUMN= to leave the column out"
            )
        found[column] = name or None
    return found


def write_columns(columns: Columns) -> list[str]:
    """Return a mapping as texts `COLUMN=PROPERTY`."""
    return [f"{column}={name or ''}" for column, name in columns.items()]


def _check_nulls(null: str | Sequence[str]) -> tuple[str, ...]:
    words = (null,) if isinstance(null, str) else tuple(null)
    if not all(isinstance(word, str) for word in words):
        raise InputError("the text of null cells is a str or a list of str", hint="write null='NA'")
    return tuple(dict.fromkeys(word for word in words if word))


def _check_date_format(date_format: str | None) -> str | None:
    """Return a format that determines a date; raise `InputError` otherwise."""
    if date_format is None:
        return None
    try:
        whole = datetime.strptime(_PROBE.strftime(date_format), date_format).date() == _PROBE.date()
    except (ValueError, TypeError):
        whole = False
    if not whole:
        raise InputError(
            f"the date format '{date_format}' does not determine a date",
            hint="write it as in datetime.strptime, such as %d.%m.%Y or %m/%d/%Y %H:%M",
        )
    return date_format


def _check_columns(columns: Mapping[Any, Any]) -> tuple[tuple[str, str | None], ...]:
    for column, name in columns.items():
        if not (isinstance(column, str) and isinstance(name, str | None)):
            raise InputError(
                "columns are a mapping from the name of a column to a property or None",
                hint="write columns={'Full Name': 'name', 'notes': None}",
            )
    return tuple((column, name or None) for column, name in columns.items())
