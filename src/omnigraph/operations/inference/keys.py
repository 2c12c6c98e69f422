"""The key of a table, and the columns that refer to keys of tables.

The key is a column that is unique and never empty, and of which there is evidence that it identifies a row: its name,
such as `id`, `order_id`, `email` or `code`; its values, such as UUIDs or codes; or a column of another table that
refers to it. A text that is only unique in the rows that were read, such as a first name, is no key. A column refers
to a key if at least 99 % of its values are keys of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.ingest.csv_table import cell_reader, end_value
from omnigraph.errors import ValueFormatError
from omnigraph.operations.inference.column_type import ColumnType
from omnigraph.operations.inference.names import words_of
from omnigraph.operations.inference.table_sample import TableSample
from omnigraph.table_format import TableFormat
from omnigraph.types import PropertyType
from omnigraph.values import read_json, spell_key

FOUND_MIN = 0.99
"""Share of the values of a column that must be keys of a table, for the column to refer to it."""
_PREFERRED = (
    re.compile(r"id|uuid|guid|key"),
    re.compile(r".*_id|.*[a-z](Id|ID)|.*_(uuid|key)"),
    re.compile(r"e-?mail|code|.*_code|isbn|issn|doi|sku|iata|icao|url|uri|slug"),
)
_SHAPES = {
    "URLs": r"^https?://\S+$",
    "email addresses": r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    "ISBNs": r"^97[89][- ]?([0-9][- ]?){9}[0-9]$",
}
"""Values that identify something → their form."""
_CODE = r"^[A-Za-z0-9]+([._/-][A-Za-z0-9]+)*$"
_UPPER_CODE = r"^[A-Z0-9]{2,12}$"
_END_SHARE_MIN = 0.5
"""Share of the values of an end of edges that must be values of a column, for the column to be a key."""
_KEY_SCALARS = ("String", "I32", "I64", "U32", "U64", "Date", "DateTime", "Uuid")
_REFERENCE_SCALARS = ("String", "I32", "I64", "U32", "U64", "Uuid")


@dataclass
class TypedTable:
    """A table, the types of its columns and its key."""

    name: str
    """The name that the caller gave the table."""
    type_name: str
    sample: TableSample
    format: TableFormat
    columns: dict[str, ColumnType]
    """Column → type."""
    properties: dict[str, str]
    """Column → property."""
    key: str | None = None
    """The column that is the key."""
    key_reason: str = ""
    """The evidence for the key, if it is not its name."""
    unique: list[str] = field(default_factory=list)
    """The columns that are unique and never empty."""
    also_unique: list[str] = field(default_factory=list)
    """The unique columns beside the key, without integers that are measurements."""

    def nulls(self, column: str) -> int:
        """The number of empty cells of a column."""
        return int(self.sample.table[column].null_count)

    def is_nullable(self, column: str) -> bool:
        """True if a column has empty cells, or no cells at all."""
        return not self.sample.rows or bool(self.nulls(column))

    @property
    def key_type(self) -> PropertyType:
        """The type of the key."""
        assert self.key is not None
        found = self.columns[self.key].type
        assert found is not None
        return found


def choose_keys(nodes: Sequence[TypedTable], tables: Iterable[TypedTable], ends: Mapping[str, Sequence[str]]) -> None:
    """Set the keys of node tables; the type of a key is never an enum.

    `ends` has the columns of the ends of edges, by the name of their table.
    """
    for table in nodes:
        table.unique = [name for name in table.columns if _is_unique(table, name)]
    others = list(tables)
    for table in nodes:
        evidence = [(found, at) for at, name in enumerate(table.unique) if (found := _evidence(table, name))]
        if not evidence:
            references = ((_referring(table, name, others, ends), at) for at, name in enumerate(table.unique))
            evidence = [((0, reason), at) for reason, at in references if reason][:1]
        if evidence:
            (_, table.key_reason), at = min(evidence, key=lambda each: (each[0][0], each[1]))
            table.key = table.unique[at]
        table.also_unique = [name for name in table.unique if name != table.key and _is_dense(table, name)]


def _evidence(table: TypedTable, column: str) -> tuple[int, str] | None:
    """Return the rank of the evidence that a unique column identifies a row, and its text; None without evidence.

    The evidence is the name of the column, of which the text says nothing, or the form of its values.
    """
    rank = _rank(column, table)
    if rank is not None:
        return rank, ""
    kind = table.columns[column].type
    assert kind is not None
    if table.sample.rows < 2 or not (kind.is_text or kind.scalar == "Uuid"):
        return None
    shape = "UUIDs" if kind.scalar == "Uuid" else _shape(table.sample.table[column].cast(pa.large_string()))
    return None if shape is None else (len(_PREFERRED) + 2, f"its values are {shape}")


def _shape(values: pa.ChunkedArray) -> str | None:
    def all_match(form: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(values, form)).as_py())

    shape = next((name for name, form in _SHAPES.items() if all_match(form)), None)
    if shape is not None or not all_match(_CODE):
        return shape
    if all_match("[A-Za-z]") and all_match("[0-9]"):
        return "codes"
    lengths = pc.min_max(pc.utf8_length(values)).as_py()
    is_code = all_match(_UPPER_CODE) and all_match("[A-Z]") and lengths["min"] == lengths["max"]
    return "codes" if is_code else None


def _referring(
    table: TypedTable, key: str, tables: Iterable[TypedTable], ends: Mapping[str, Sequence[str]]
) -> str | None:
    """Return the text of the first column of another table that holds values of a unique column; None if there is none.

    A column that is unique itself can be the same property of other things, unless it is an end of edges.
    """
    if table.sample.rows < 2:
        return None
    target = replace(table, key=key)
    ids = ids_of(table, key)
    for other in tables:
        for column in other.columns:
            is_end = column in ends.get(other.name, ())
            if other.name == table.name or (column in other.unique and not is_end):
                continue
            if not is_end and not may_refer(other, column, target):
                continue
            if share_found(other, column, ids, target.key_type) >= (_END_SHARE_MIN if is_end else FOUND_MIN):
                return f"{other.type_name}.{column} refers to it"
    return None


def _is_unique(table: TypedTable, column: str) -> bool:
    found, values = table.columns[column], table.sample.table[column]
    if found.type is None or found.type.scalar not in _KEY_SCALARS or found.type.is_list or found.is_indexed:
        return False
    if not len(values) or values.null_count:
        return False
    if pc.count_distinct(values).as_py() < len(values) or (found.type.is_text and pc.any(pc.equal(values, "")).as_py()):
        return False
    if not table.sample.is_text or found.type.is_text:
        return True
    # `7.0` is a measurement, and it is the same integer as `7`.
    return not pc.any(pc.match_substring(values, ".")).as_py() and len(ids_of(table, column)) == len(values)


def _rank(column: str, table: TypedTable) -> int | None:
    """Return the rank of a name that keys have; None for another name."""
    if column.lower() == "id":
        return 0
    if words_of(column) in ([*words_of(table.type_name), "id"], words_of(table.type_name)):
        return 1
    for rank, form in enumerate(_PREFERRED, 2):
        if form.fullmatch(column) or form.fullmatch(column.lower()):
            return rank
    return None


def _is_dense(table: TypedTable, column: str) -> bool:
    kind = table.columns[column].type
    assert kind is not None
    if not kind.is_integer:
        return True
    numbers = [int(text) for text in ids_of(table, column)]
    return max(numbers) - min(numbers) < 2 * len(numbers)


def ids_of(table: TypedTable, column: str) -> dict[str, int]:
    """Return the ids that the values of a key column become, with their numbers of rows."""
    kind = table.columns[column].type
    assert kind is not None
    read = cell_reader(kind, table.format) if table.sample.is_text else None
    found: dict[str, int] = {}
    for value, count in _counts(table, column):
        try:
            spelled = spell_key(read_json(value if read is None else read(value), kind), kind)
        except ValueFormatError:
            continue
        found[spelled] = found.get(spelled, 0) + count
    return found


def share_found(table: TypedTable, column: str, keys: Mapping[str, int], key: PropertyType) -> float:
    """Return the share of the values of a column that `load` reads as one of the keys; 0 without values."""
    total = found = 0
    for value, count in _counts(table, column):
        total += count
        found += count if _end_text(value, key, is_cell=table.sample.is_text) in keys else 0
    return found / total if total else 0.0


def _end_text(value: Any, key: PropertyType, *, is_cell: bool) -> str | None:
    """Return the id that `load` reads from the end of an edge; None if it refuses the value."""
    if is_cell:
        return end_value(value, key)
    if isinstance(value, str):
        return value
    try:
        return spell_key(read_json(value, key), key)
    except ValueFormatError:
        return None


def _counts(table: TypedTable, column: str) -> Iterable[tuple[Any, int]]:
    values = table.sample.table[column].drop_null()
    counts = pc.value_counts(values)
    return zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)


def may_refer(table: TypedTable, column: str, target: TypedTable) -> bool:
    """Return True if a column may hold keys of a table, by its type and its name.

    Small integers occur by chance among the keys of any table, so an integer also needs a name: that of the key, one
    with the name of the table, or one that ends in `id`.
    """
    kind = table.columns[column].type
    if target.key is None or kind is None or kind.scalar not in _REFERENCE_SCALARS or kind.is_list:
        return False
    if table is target and column == target.key:
        return False
    if kind.is_integer != target.key_type.is_integer:
        return False
    if not kind.is_integer:
        values = table.sample.table[column].drop_null()
        return len(values) > 0 and bool(pc.count_distinct(values).as_py() > 1)
    words, named = words_of(column), words_of(target.type_name)
    return column == target.key or words[-1:] == ["id"] or any(word in words for word in named)
