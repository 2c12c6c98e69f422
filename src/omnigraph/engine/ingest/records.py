"""Shapes of a load: decoded records, typed columns of records, and the rows made from them.

A record is `{"type": T, "data": {…}}` or `{"edge": E, "from": id, "to": id, "data": {…}}`. `record_reader` decodes
records and sorts them by type; `row_builder` types their values and derives their ids. Rules about several rows
(uniqueness, endpoints, …) belong to `constraints`.

Every mistake is a `RecordError` with its source and line. `Faults` either raises the first one or collects all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.engine.write.delta import MADE
from omnigraph.errors import RecordError, ValueFormatError
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.types import PropertyType
from omnigraph.values import read_json, spell_key

TEXT = PropertyType("String", nullable=True)

AnyType = NodeType | EdgeType
Wrong = tuple[str, str, str, str | None]
"""What is wrong with a row: the reason, the property, the rule, a hint."""

NewIds = Callable[[int], pa.Array]
"""Makes up as many ids as are asked for."""

ENDS = (("src", "from"), ("dst", "to"))
"""The columns of the ends of an edge, and the record members they come from."""


@dataclass
class Faults:
    """What to do about a wrong record: raise (the default), or note it and leave it out."""

    collect: bool = False
    found: list[RecordError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the summary of the load reports beside its counts."""

    def note(self, text: str) -> None:
        """Report something once."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, error: RecordError) -> None:
        """Raise the error, or keep it."""
        if not self.collect:
            raise error
        self.found.append(error)


@dataclass
class Records:
    """The records of one type, as they came."""

    type: AnyType
    source: str | None
    lines: list[int] = field(default_factory=list)
    data: list[Mapping[str, Any]] = field(default_factory=list)
    src: list[str] = field(default_factory=list)
    dst: list[str] = field(default_factory=list)
    size: int = 0
    """About how many bytes of text the records come from."""

    def cut(self, count: int) -> tuple[Records, Records]:
        """The first so many, and the rest."""
        halves = slice(count), slice(count, None)
        one, other = (
            Records(self.type, self.source, self.lines[half], self.data[half], self.src[half], self.dst[half])
            for half in halves
        )
        one.size = self.size * len(one.lines) // len(self.lines)
        other.size = self.size - one.size
        return one, other


@dataclass(frozen=True)
class RecordColumns:
    """Sound records of one type as columns: properties, `id`, and the ends of edges.

    A column that no record gives is absent from `fields`. `given` has a mask for each column that only some records
    give; their value elsewhere is null.
    """

    type: AnyType
    source: str | None
    lines: Sequence[int]
    fields: dict[str, pa.Array]
    given: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of bytes of the columns."""
        return sum(column.nbytes for column in self.fields.values())


RecordSet = Records | RecordColumns


@dataclass
class LoadedRows:
    """The rows of one type, with the file and the line each came from."""

    type: AnyType
    table: pa.Table
    sources: pa.Array
    lines: pa.Array
    aliases: dict[str, str] = field(default_factory=dict)
    """Old spelling of an id → the id; edges of the same input may still use it."""
    fresh: bool = False
    """Whether every id was made up here, and so is nobody else's."""
    given: dict[str, pa.Array] = field(default_factory=dict)
    """Property → which records give it; a property that every record gives is left out."""
    made: pa.Array | None = None
    """Which rows have an id that was generated here; None if no row has."""
    records: pa.ListArray | None = None
    """The records of each row, by their places in `sources` and `lines`; None if every row has one, in order."""
    adds_again: bool = False
    """Whether a second load of the same records would add some of them again."""

    def keep(self, which: pa.Array) -> None:
        """Leave out the rows for which `which` is not true."""
        self.table = self.table.filter(which)
        kept = {name: mask.filter(which) for name, mask in self.given.items()}
        self.given = {name: mask for name, mask in kept.items() if mask.false_count}
        if self.made is not None:
            self.made = self.made.filter(which)
        if self.records is not None:
            self.records = self.records.filter(which)
        else:
            self.sources, self.lines = self.sources.filter(which), self.lines.filter(which)

    def judged(self) -> pa.Table:
        """The rows as rules see them."""
        return self.table if self.made is None else self.table.append_column(MADE, self.made)

    @property
    def record_count(self) -> int:
        """How many records the rows come from."""
        return self.table.num_rows if self.records is None else len(self.records.flatten())

    def records_of(self, position: int) -> list[int]:
        """The records of a row, by their places in `sources` and `lines`."""
        return [position] if self.records is None else self.records[position].as_py()

    def place_of(self, position: int) -> tuple[str | None, int]:
        """The file and line of the last record of a row."""
        record = self.records_of(position)[-1]
        return self.sources[record].as_py(), self.lines[record].as_py()

    def faults(
        self, position: int, message: str, property_name: str | None, rule: str, hint: str | None = None
    ) -> list[RecordError]:
        """What is wrong with a row, once for each of its records."""
        return [
            RecordError(
                message,
                source=self.sources[record].as_py(),
                line=self.lines[record].as_py(),
                type_name=self.type.name,
                property_name=property_name,
                rule=rule,
                hint=hint,
            )
            for record in self.records_of(position)
        ]


# -- ends of edges ------------------------------------------------------------------------------------

EndTypes = Mapping[str, PropertyType]
"""`src` and `dst` → the type in which an end may be given beside text; empty for a node type."""


def end_types(type_: AnyType, catalog: Catalog) -> EndTypes:
    """The types of the ends of an edge: that of the key, where the key is one column; otherwise text."""
    if not isinstance(type_, EdgeType):
        return {}
    ends: dict[str, PropertyType] = {}
    for end, name in (("src", type_.from_type), ("dst", type_.to_type)):
        node = catalog.nodes[name]
        ends[end] = node.properties[node.key[0]].type if len(node.key) == 1 else TEXT
    return ends


def end_id(value: Any, key: PropertyType, edge: AnyType, word: str) -> str:
    """The id of a node, given as its id or as its key; `ValueFormatError` if it is neither."""
    if type(value) is str:
        return value
    try:
        stored = None if value is None else read_json(value, key)
    except ValueFormatError:
        stored = None
    if stored is None:
        raise ValueFormatError(f"edge {edge.name}: '{word}' must be the id of a node, a string")
    return spell_key(stored, key)
