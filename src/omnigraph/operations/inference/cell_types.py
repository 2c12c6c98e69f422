"""The type of a CSV column: the first of a fixed list that the value parsers of `load` accept for every cell.

The list is Bool, I32, I64, U64, F64, Date, DateTime, Uuid, lists and vectors, String. Texts that a parser would change
stay texts: numbers with a leading zero or plus sign, and dates in another form than that of the load.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from omnigraph.engine.ingest.csv_table import cell_reader
from omnigraph.errors import ValueFormatError
from omnigraph.operations.inference.column_type import ColumnType, text_type
from omnigraph.operations.inference.list_types import list_type
from omnigraph.scalar_types.dates import format_date, format_datetime
from omnigraph.scalar_types.registry import ScalarName
from omnigraph.table_format import TableFormat
from omnigraph.types import PropertyType
from omnigraph.values import read_json

_INTEGERS: tuple[ScalarName, ...] = ("I32", "I64", "U64")
_ZEROS = re.compile(r"[+-]?0[0-9]+(\.[0-9]*)?")
_PLUS = re.compile(r"\+[0-9. ]+")
_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"[+-]?[0-9]{1,3}(\.[0-9]{3})*,[0-9]+")
_DAYS = (
    *(day.replace("/", sign) for sign in "/.-" for day in ("%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y")),
    *("%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%b %d %Y", "%b %d, %Y", "%d %b %Y", "%d-%b-%Y", "%B %d, %Y", "%d %B %Y"),
)
_DATE_FORMS = tuple(day + time for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S"))
"""Forms of dates that a note recognises."""
_DATES_COMPARED = 2_000
NULL_WORDS = frozenset({"na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "-", "--", "?", ".", "\\n"})
"""Texts, in lower case, that often stand for no value."""
_TIMES = re.compile(r"%[HIMSpfTXcs]")


def cell_type(counts: Mapping[str, int], format: TableFormat) -> ColumnType:
    """Return the type of a column of CSV, given its distinct cells with their numbers of rows."""
    if not counts:
        return ColumnType(PropertyType("String"), "empty in every row")
    found = _parsed_type(counts, format)
    if found is not None:
        return found
    kept = {cell: count for cell, count in counts.items() if cell.lower() not in NULL_WORDS}
    if len(kept) < len(counts):
        return _with_null_words(counts, kept, format)
    return text_type(counts, _text_note(counts))


def _with_null_words(counts: Mapping[str, int], kept: Mapping[str, int], format: TableFormat) -> ColumnType:
    """Return the text type of a column in which some cells seem to stand for no value."""
    words = [cell for cell in counts if cell not in kept]
    rows = sum(counts[word] for word in words)
    shown = ", ".join(f"'{word}'" for word in words)
    meant = _parsed_type(kept, format) if kept else None
    where = f"{shown} in {rows:,} {'row' if rows == 1 else 'rows'}"
    note = f"text because of {where}, otherwise {meant.type}?" if meant is not None else f"{where}: no value?"
    return ColumnType(PropertyType("String"), note, null_word=words[0])


def _parsed_type(counts: Mapping[str, int], format: TableFormat) -> ColumnType | None:
    """Return the first type other than String that holds every cell; None if there is none."""
    if _fits(counts, PropertyType("Bool"), format):
        true = sum(count for cell, count in counts.items() if cell.lower() == "true")
        return ColumnType(PropertyType("Bool"), f"true in {true:,} of {sum(counts.values()):,} rows")
    if any(map(_ZEROS.fullmatch, counts)) or any(map(_PLUS.fullmatch, counts)):
        return None
    for judge in (_integer_type, _float_type, _date_type, _uuid_type, _list_type):
        found = judge(counts, format)
        if found is not None:
            return found
    return None


def _integer_type(counts: Mapping[str, int], format: TableFormat) -> ColumnType | None:
    for name in _INTEGERS:
        kind = PropertyType(name)
        values = _values(counts, kind, format)
        if values is not None:
            return ColumnType(kind, f"{min(values)}..{max(values)}")
    return None


def _float_type(counts: Mapping[str, int], format: TableFormat) -> ColumnType | None:
    kind = PropertyType("F64")
    values = _values(counts, kind, format)
    # An integer that no integer type holds is an identifier, not a measurement.
    if values is None or all(cell.lstrip("-").isdigit() for cell in counts):
        return None
    return ColumnType(kind, f"{min(values)!r}..{max(values)!r}")


def _date_type(counts: Mapping[str, int], format: TableFormat) -> ColumnType | None:
    if format.date_format is not None:
        has_time = bool(_TIMES.search(format.date_format))
    else:
        # A Date reads the day of a longer text as well.
        has_time = any(len(cell) != len("2026-01-31") for cell in counts)
    kind = PropertyType("DateTime" if has_time else "Date")
    values = _values(counts, kind, format)
    if values is None:
        return None
    shown: Callable[[Any], str] = format_datetime if has_time else format_date
    return ColumnType(kind, f"{shown(min(values))}..{shown(max(values))}")


def _uuid_type(counts: Mapping[str, int], format: TableFormat) -> ColumnType | None:
    kind = PropertyType("Uuid")
    return ColumnType(kind, f"{len(counts):,} distinct values") if _fits(counts, kind, format) else None


def _list_type(counts: Mapping[str, int], format: TableFormat) -> ColumnType | None:
    if not all(cell.lstrip().startswith("[") for cell in counts):
        return None
    lists: list[Any] = []
    for cell in counts:
        try:
            lists.append(json.loads(cell))
        except (ValueError, RecursionError):
            return None
    found = list_type(lists) if all(isinstance(value, list) for value in lists) else None
    if found is None or found.type is None or not _fits(counts, found.type, format):
        return None
    return found


def _fits(cells: Iterable[str], kind: PropertyType, format: TableFormat) -> bool:
    return _values(cells, kind, format) is not None


def _values(cells: Iterable[str], kind: PropertyType, format: TableFormat) -> list[Any] | None:
    """Return the values of cells as `load` reads them; None if it refuses one."""
    read = cell_reader(kind, format)
    found: list[Any] = []
    for cell in cells:
        try:
            found.append(read_json(read(cell), kind))
        except ValueFormatError:
            return None
    return found


def _text_note(counts: Mapping[str, int]) -> str:
    """Return why texts that look like numbers or dates stay texts; empty if they do not look like them."""
    for form, words in ((_ZEROS, "start with 0"), (_PLUS, "start with +")):
        rows = sum(count for cell, count in counts.items() if form.fullmatch(cell))
        if rows and all(_NUMBER.fullmatch(cell.replace(" ", "")) for cell in counts):
            return f"looks like a number, but {rows:,} {words}"
    if all(map(_NUMBER.fullmatch, counts)):
        return "looks like a number, but no number type holds every value"
    if all(_COMMA.fullmatch(cell) or _NUMBER.fullmatch(cell) for cell in counts):
        return "looks like a number with a decimal comma; the decimal separator is a point"
    return _date_note(counts)


def _date_note(counts: Mapping[str, int]) -> str:
    """Return the date format of the cells, if they are dates in another form than ISO 8601."""
    if not all(any(map(str.isdigit, cell)) for cell in counts):
        return ""
    cells = list(islice(counts, _DATES_COMPARED))
    possible = [form for form in _DATE_FORMS if all(_has_form(cell, form) for cell in cells)]
    if not possible:
        return ""
    if len(possible) == 1:
        return f"looks like a date; date format {possible[0]} makes it one"
    return f"looks like a date: day or month first? date format {' or '.join(possible)}"


def _has_form(cell: str, form: str) -> bool:
    try:
        datetime.strptime(cell, form)
    except ValueError:
        return False
    return True
