"""The columns of a table as properties of a type, and its rows as records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.engine.ingest.records import EndTypes, Faults, Records, end_id
from omnigraph.errors import Hint, RecordError, TypeNotFound, ValueFormatError
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean, known_types, listing
from omnigraph.table_format import TableFormat
from omnigraph.types import PropertyType

_NO_NAME = re.compile(r"[^0-9a-z]+")
_TEXT = PropertyType("String")


_NAMED = "the name of a table file, up to the first dot, is the type; give it"


def find_type(name: str, catalog: Catalog, file: str | None = None) -> NodeType | EdgeType:
    """Return the node or edge type with a name, which may come from a file name."""
    found = catalog.nodes.get(name) or catalog.find_edge(name)
    if found is None:
        known = [*catalog.nodes, *catalog.edges]
        hint = did_you_mean(name, known) or known_types("type", known)
        if file is None:
            raise TypeNotFound(f"there is no node or edge type '{name}'", hint=hint)
        raise TypeNotFound(
            f"'{file}': there is no node or edge type '{name}'",
            hint=Hint(f"{_NAMED} {{'TYPE': 'FILE'}}: {hint}", cli=f"{_NAMED} (--data TYPE=FILE): {hint}"),
        )
    return found


def columns_of(
    type_: NodeType | EdgeType, given: Sequence[str], source: str | None, format: TableFormat
) -> dict[str, str]:
    """Return property (and `id`, `src`, `dst`) → the column that contains it."""
    found: dict[str, str] = {}
    ends = {"from": "src", "to": "dst", "src": "src", "dst": "dst"} if isinstance(type_, EdgeType) else {}
    known = {"id": "id", **ends, **{name: name for name in type_.properties}}
    normalized = _unique_normalized(known)
    for name in given:
        mapped = format.property_of(type_.name, name)
        if mapped == (None,):
            continue
        wanted = name if mapped is None or mapped[0] is None else mapped[0]
        property_name = known.get(wanted) or (normalized.get(normalized_name(wanted)) if mapped is None else None)
        if property_name is None:
            raise _unknown_property(type_, name, wanted, given, source=source)
        if property_name in found:
            message = f"columns '{found[property_name]}' and '{name}' have the same meaning"
            raise RecordError(message, source=source, type_name=type_.name, rule="columns")
        found[property_name] = name
    for end, word in (("src", "from"), ("dst", "to")) if ends else ():
        if end not in found:
            message = f"edge {type_.name}: there is no column '{word}'"
            raise RecordError(message, source=source, type_name=type_.name, rule="endpoint", hint=_ENDS_HINT)
    return found


def _unknown_property(
    type_: NodeType | EdgeType,
    column: str,
    wanted: str,
    given: Sequence[str],
    *,
    source: str | None,
    line: int | None = None,
) -> RecordError:
    """Return the error for a column that is no property of a type."""
    ends = {"from": "src", "to": "dst", "src": "src", "dst": "dst"} if isinstance(type_, EdgeType) else {}
    known = {"id": "id", **ends, **{name: name for name in type_.properties}}
    via = "" if wanted == column else f", which the column '{column}' is mapped to"
    return RecordError(
        f"{type_.kind} type '{type_.name}' has no property '{wanted}'{via}",
        source=source,
        line=line,
        type_name=type_.name,
        property_name=wanted,
        rule="unknown_property",
        hint=_column_hint(type_, wanted, given, known),
    )


class ColumnFinder:
    """Finds the properties of a type for the names of values in a file with several types."""

    def __init__(self, type_: NodeType | EdgeType, format: TableFormat) -> None:
        self._type = type_
        self._format = format
        self._known = {name: name for name in ("id", *type_.properties)}
        self._normalized = _unique_normalized(self._known)

    def find(self, column: str) -> str | None:
        """Return the property (or `id`) of a name; None if the name is left out. Raises `KeyError` if none has it."""
        mapped = self._format.property_of(self._type.name, column)
        if mapped is not None:
            return None if mapped[0] is None else self._known[mapped[0]]
        return self._known.get(column) or self._normalized[normalized_name(column)]

    def unknown(self, column: str, source: str | None, line: int) -> RecordError:
        """Return the error for a name that `find` does not know."""
        mapped = self._format.property_of(self._type.name, column)
        wanted = column if mapped is None or mapped[0] is None else mapped[0]
        # The ends are known, so that the hint is about the properties.
        return _unknown_property(self._type, column, wanted, ("src", "dst"), source=source, line=line)


_ENDS = "the ends of an edge are the columns 'from' and 'to': rename the columns, or map them"
_ENDS_HINT = Hint(f"{_ENDS}: columns={{'NAME': 'from'}}", cli=f"{_ENDS} (--column NAME=from)")


def _column_hint(type_: NodeType | EdgeType, name: str, given: Sequence[str], known: Mapping[str, str]) -> str:
    """Return the hint for a column that is not a property."""
    meant = did_you_mean(name, type_.properties)
    if meant is not None:
        return meant
    if isinstance(type_, EdgeType):
        found = {known[column] for column in given if column in known}
        if not {"src", "dst"} <= found:
            return _ENDS_HINT
    properties = f"the properties are {listing(type_.properties)}; " if type_.properties else ""
    add = "or add the property to the schema"
    return Hint(
        f"{properties}leave the column out, columns={{{name!r}: None}}, {add}",
        cli=f"{properties}leave the column out (--column {name}=), {add}",
    )


def normalized_name(name: str) -> str:
    """Normalize a column name to the form of a property name: `Sepal Length (cm)` is `sepal_length_cm`."""
    return _NO_NAME.sub("_", name.lower()).strip("_")


def _unique_normalized(known: dict[str, str]) -> dict[str, str]:
    """Return normalized name → property, for names that are unique when normalized."""
    folds = Counter(map(normalized_name, known))
    return {
        normalized_name(name): property_name
        for name, property_name in known.items()
        if folds[normalized_name(name)] == 1
    }


def type_of(type_: NodeType | EdgeType, property_name: str) -> PropertyType:
    """Return the type of a property; ids are texts."""
    return type_.properties[property_name].type if property_name in type_.properties else _TEXT


def table_records(
    type_: NodeType | EdgeType,
    columns: dict[str, list[Any]],
    lines: list[int],
    faults: Faults,
    source: str | None,
    ends: EndTypes,
) -> Records:
    """Return the rows of a table, given as values by column, as records; the ends of edges become ids."""
    records = Records(type_, source)
    given = [(columns.pop(end), word, ends[end]) for end, word in (("src", "from"), ("dst", "to")) if end in ends]
    names = list(columns)
    rows = zip(*columns.values(), strict=True) if columns else iter([()] * len(lines))
    for position, (line, row) in enumerate(zip(lines, rows, strict=True)):
        try:
            ids = [end_id(values[position], key, type_, word) for values, word, key in given]
        except ValueFormatError as error:
            wrong = RecordError(error.message, source=source, line=line, type_name=type_.name, rule="endpoint")
            ends_given = {word: values[position] for values, word, _ in given}
            wrong.record = {"edge": type_.name, **ends_given, "data": dict(zip(names, row, strict=True))}
            faults.add(wrong)
            continue
        records.lines.append(line)
        records.data.append(dict(zip(names, row, strict=True)))
        if given:
            records.src.append(ids[0])
            records.dst.append(ids[1])
    return records
