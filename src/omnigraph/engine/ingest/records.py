"""Data structures of a load: decoded records, columns of records, and rows.

A record is `{"type": T, "data": {…}}` or `{"edge": E, "from": id, "to": id, "data": {…}}`. `record_reader` decodes
records and sorts them by type; `row_builder` converts their values and derives their ids. `constraints` has the rules
about several rows (uniqueness, endpoints, …).

Every error is a `RecordError` with its source and line. `Faults` raises the first one or collects all of them.
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
RowFault = tuple[str, str | None, str, str | None]
"""An error of a row: reason, property, rule, hint."""

NewIds = Callable[[int], pa.Array]
"""Generates a number of new ids."""

ENDS = (("src", "from"), ("dst", "to"))
"""The columns of the ends of an edge, and the record members they come from."""


@dataclass
class Faults:
    """Handling of wrong records: raise the first error (the default), or collect errors and omit the records."""

    collect: bool = False
    found: list[RecordError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Notes for the summary of the load."""

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, error: RecordError) -> None:
        """Raise the error or collect it."""
        if not self.collect:
            raise error
        self.found.append(error)


@dataclass
class Records:
    """The records of one type, as decoded."""

    type: AnyType
    source: str | None
    lines: list[int] = field(default_factory=list)
    data: list[Mapping[str, Any]] = field(default_factory=list)
    src: list[str] = field(default_factory=list)
    dst: list[str] = field(default_factory=list)
    size: int = 0
    """Approximate size of the source text in bytes."""

    def split_at(self, count: int) -> tuple[Records, Records]:
        """Split into the first `count` records and the rest."""
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
    """Valid records of one type as columns: properties, `id`, and the ends of edges.

    A column that no record has is absent from `fields`. `given` has a mask for each column that only some records have;
    the other rows are null.
    """

    type: AnyType
    source: str | None
    lines: Sequence[int]
    fields: dict[str, pa.Array]
    given: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The size of the columns in bytes."""
        return sum(column.nbytes for column in self.fields.values())


RecordSet = Records | RecordColumns


@dataclass(frozen=True)
class WithheldProperties:
    """Properties of a type that an actor cannot read, or not in every row. Absent ones keep their values."""

    hidden: frozenset[str] = frozenset()
    """Properties that do not exist for the actor; messages do not name them."""
    masked: frozenset[str] = frozenset()
    """Properties whose values the actor sees in some rows."""

    @property
    def kept(self) -> frozenset[str]:
        """All of them."""
        return self.hidden | self.masked

    def required(self, type_: AnyType, name: str) -> tuple[str, str | None]:
        """Return the reason of an error about an absent required property, and the property that it may name."""
        if name in self.hidden:
            return f"'{type_.name}' requires a property that you cannot read", None
        return f"{type_.name}.{name} is required ({type_.properties[name].type})", name


NOTHING_WITHHELD = WithheldProperties()
"""The actor reads all properties."""


@dataclass
class LoadedRows:
    """The rows of one type, with the source and line of each record."""

    type: AnyType
    table: pa.Table
    sources: pa.Array
    lines: pa.Array
    aliases: dict[str, str] = field(default_factory=dict)
    """Alternative form of an id → the id. Edges of the same input may use it."""
    fresh: bool = False
    """True if all ids were generated here, so that no row exists yet."""
    given: dict[str, pa.Array] = field(default_factory=dict)
    """Property → mask of the records that have it, for properties that some record does not have."""
    present: dict[str, pa.Array] = field(default_factory=dict)
    """As `given`, also if absent properties do not keep their values; emptied when records are merged."""
    made: pa.Array | None = None
    """Mask of the rows with a generated id; None if there are none."""
    records: pa.ListArray | None = None
    """The records of each row, as positions in `sources` and `lines`; None if each row has one record, in order."""
    adds_again: bool = False
    """True if loading the same records again would add some of them again."""

    def keep(self, which: pa.Array) -> None:
        """Keep the rows for which `which` is true."""
        self.table = self.table.filter(which)
        kept = {name: mask.filter(which) for name, mask in self.given.items()}
        self.given = {name: mask for name, mask in kept.items() if mask.false_count}
        self.present = {name: mask.filter(which) for name, mask in self.present.items()}
        if self.made is not None:
            self.made = self.made.filter(which)
        if self.records is not None:
            self.records = self.records.filter(which)
        else:
            self.sources, self.lines = self.sources.filter(which), self.lines.filter(which)

    def rule_input(self) -> pa.Table:
        """Return the rows as input of the integrity rules."""
        return self.table if self.made is None else self.table.append_column(MADE, self.made)

    @property
    def record_count(self) -> int:
        """The number of records of all rows."""
        return self.table.num_rows if self.records is None else len(self.records.flatten())

    def records_of(self, position: int) -> list[int]:
        """Return the records of a row, as positions in `sources` and `lines`."""
        return [position] if self.records is None else self.records[position].as_py()

    def origin_of(self, position: int) -> tuple[str | None, int]:
        """Return the source and line of the last record of a row."""
        record = self.records_of(position)[-1]
        return self.sources[record].as_py(), self.lines[record].as_py()

    def faults(
        self, position: int, message: str, property_name: str | None, rule: str, hint: str | None = None
    ) -> list[RecordError]:
        """Return an error of a row, once for each of its records."""
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
"""`src` and `dst` → the type that an end may have besides text; empty for a node type."""


def end_types(type_: AnyType, catalog: Catalog) -> EndTypes:
    """Return the types of the ends of an edge: the type of a key with one column, otherwise text."""
    if not isinstance(type_, EdgeType):
        return {}
    ends: dict[str, PropertyType] = {}
    for end, name in (("src", type_.from_type), ("dst", type_.to_type)):
        node = catalog.nodes[name]
        ends[end] = node.properties[node.key[0]].type if len(node.key) == 1 else TEXT
    return ends


def end_id(value: Any, key: PropertyType, edge: AnyType, word: str) -> str:
    """Return the id of a node from its id or its key; raise `ValueFormatError` if it is neither."""
    if type(value) is str:
        return value
    try:
        stored = None if value is None else read_json(value, key)
    except ValueFormatError:
        stored = None
    if stored is None:
        raise ValueFormatError(f"edge {edge.name}: '{word}' must be the id of a node, a string")
    return spell_key(stored, key)
