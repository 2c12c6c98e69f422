"""Blocks of JSONL → columns, for blocks in which every line is valid.

Most blocks contain valid records of one type. Such a block is decoded directly into columns. If any line is invalid,
the reader returns None, and the caller reads the block line by line to report the error.

A block is valid if every line is exactly one object, is not too long, has the members of a record and no others, each
once, and values that fit their properties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.decodable import decodable
from omnigraph.engine import tuning
from omnigraph.engine.ingest.json_columns import build_column
from omnigraph.engine.ingest.records import TEXT, RecordColumns
from omnigraph.errors import ValueFormatError
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.types import INTEGER_RANGES, PropertyType

STRUCTURE_MAX = 131_072
"""Maximum number of brackets, commas and colons of a line outside strings."""

_NEWLINE, _RETURN, _SPACE, _QUOTE, _OPEN, _CLOSE = b'\n\r "{}'
_SPACED_COLON = re.compile(rb'"[ \t\r]+:')
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_DATA: Callable[[Any], Any] = attrgetter("data")


class _Kind(msgspec.Struct, frozen=True, gc=False):
    """The type name of a line."""

    type: str | None = None
    edge: str | None = None

    @property
    def word(self) -> str:
        """The member that contains the type name."""
        return "type" if self.edge is None else "edge"


_KINDS = msgspec.json.Decoder(decodable(_Kind))


@dataclass(frozen=True)
class _Shape:
    """The decoder of the lines of one type, and accessors of its properties and ends."""

    type: NodeType | EdgeType
    decode_lines: Callable[[bytes], list[Any]]
    no_data: Any
    properties: Mapping[str, tuple[PropertyType, Callable[[Any], Any]]]
    ends: Mapping[str, Callable[[Any], Any]]


class BlockReader:
    """Reads the blocks of one text."""

    def __init__(self, catalog: Catalog, source: str | None) -> None:
        self.catalog = catalog
        self.source = source
        self._shapes: dict[_Kind, _Shape | None] = {}

    def read(self, block: bytes, first: int) -> list[RecordColumns] | None:
        """Return the records of a block whose first line has the number `first`; None if one is invalid."""
        count = _plain_lines(block)
        if not count:
            return None
        numbers = range(first, first + count)
        try:
            only = self._read_kind(_KINDS.decode(block.split(b"\n", 1)[0]), block, numbers)
            if only is not None:
                return [only]
            kinds = _KINDS.decode_lines(block)
        except _UNREADABLE:
            return None
        if len(kinds) != count:
            return None
        lines = block.split(b"\n")[:count]
        found: list[RecordColumns] = []
        for kind in dict.fromkeys(kinds):
            here = [other == kind for other in kinds]
            part = self._read_kind(kind, b"\n".join(compress(lines, here)), list(compress(numbers, here)))
            # An edge type spelled in two ways: its rows would not be in line order.
            if part is None or any(part.type is other.type for other in found):
                return None
            found.append(part)
        return found

    def _read_kind(self, kind: _Kind, text: bytes, numbers: Sequence[int]) -> RecordColumns | None:
        """Return the records of lines that all name this type; None if a line does not, or is invalid."""
        if kind not in self._shapes:
            self._shapes[kind] = self._shape(kind)
        shape = self._shapes[kind]
        if shape is None:
            return None
        try:
            lines = shape.decode_lines(text)
        except _UNREADABLE:
            return None
        # Each line begins with `{` and ends with `}`, so an equal number of objects and lines means one object per
        # line.
        if len(lines) != len(numbers):
            return None
        try:
            fields, masks, members = _columns(shape, lines)
        except ValueFormatError:
            return None
        # The decoder keeps the last of repeated members; then the text has more names than members.
        if text.count(b'":') != members:
            return None
        return RecordColumns(shape.type, self.source, numbers, fields, masks)

    def _shape(self, kind: _Kind) -> _Shape | None:
        type_: NodeType | EdgeType | None = None
        if kind.type is not None and kind.edge is None:
            type_ = self.catalog.nodes.get(kind.type)
        elif kind.edge is not None and kind.type is None:
            type_ = self.catalog.find_edge(kind.edge)
        if type_ is None:
            return None
        properties = {"id": TEXT} | {name: property_.type for name, property_ in type_.properties.items()}
        # Fields are numbered: a property name may be a Python keyword.
        data = msgspec.defstruct(
            "Data",
            [(f"p{n}", Any, msgspec.field(default=msgspec.UNSET, name=name)) for n, name in enumerate(properties)],
            forbid_unknown_fields=True,
            gc=False,
        )
        members: list[Any] = [("kind", Literal[kind.type or kind.edge], msgspec.field(name=kind.word))]
        ends: dict[str, Callable[[Any], Any]] = {}
        if isinstance(type_, EdgeType):
            for end, word, node in (("src", "from", type_.from_type), ("dst", "to", type_.to_type)):
                members.append((end, _end_kind(self.catalog.nodes[node]), msgspec.field(name=word)))
            ends = {end: attrgetter(end) for end in ("src", "dst")}
        members.append(("data", data | msgspec.UnsetType, msgspec.UNSET))
        line = msgspec.defstruct("Line", members, forbid_unknown_fields=True, gc=False)
        getters = {name: (given, attrgetter(f"p{n}")) for n, (name, given) in enumerate(properties.items())}
        return _Shape(type_, msgspec.json.Decoder(line).decode_lines, data(), getters, ends)


def _columns(shape: _Shape, lines: list[Any]) -> tuple[dict[str, pa.Array], dict[str, pa.Array], int]:
    """Return (columns, masks of columns that only some lines have, number of members); raise `ValueFormatError`."""
    data, members, _, _ = _given(list(map(_DATA, lines)), shape.no_data)
    members += (1 + len(shape.ends)) * len(lines)
    fields: dict[str, pa.Array] = {}
    masks: dict[str, pa.Array] = {}
    for name, (property_type, get) in shape.properties.items():
        values, count, kinds, mask = _given(list(map(get, data)), None)
        if not count:
            continue
        members += count
        fields[name] = build_column(values, property_type, _refuse, kinds)
        if mask is not None:
            masks[name] = mask
    for name, get in shape.ends.items():
        fields[name] = build_column(_ids(list(map(get, lines))), TEXT, _refuse, {str})
    return fields, masks, members


def _end_kind(node: NodeType) -> Any:
    """Return the JSON type of an end: an id or, if the key is one integer, that integer."""
    if len(node.key) != 1 or not node.properties[node.key[0]].type.is_integer:
        return str
    low, high = INTEGER_RANGES[node.properties[node.key[0]].type.scalar]
    return str | Annotated[int, msgspec.Meta(ge=max(low, -(2**63)), le=min(high, 2**63 - 1))]


def _ids(values: list[Any]) -> list[str]:
    return values if set(map(type, values)) == {str} else list(map(str, values))


def _given(values: list[Any], otherwise: Any) -> tuple[list[Any], int, set[type], pa.Array | None]:
    """Return (values with `otherwise` for absent ones, number of given values, types, mask if some are absent)."""
    kinds = set(map(type, values))
    if msgspec.UnsetType not in kinds:
        return values, len(values), kinds, None
    if len(kinds) == 1:
        return [otherwise] * len(values), 0, {type(otherwise)}, None
    mask = [value is not msgspec.UNSET for value in values]
    filled = [otherwise if value is msgspec.UNSET else value for value in values]
    return filled, sum(mask), kinds - {msgspec.UnsetType} | {type(otherwise)}, pa.array(mask)


def split_blocks(text: bytes) -> Iterator[bytes]:
    """Split the text into blocks of complete lines."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + tuning.current.jsonl_block_bytes)
        end = len(text) if end < 0 else end + 1
        yield text[start:end]
        start = end


def _plain_lines(block: bytes) -> int:
    """Return the number of lines; 0 if one is too long, is not enclosed in braces, or has a space before a colon."""
    codes = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(codes == _NEWLINE)
    if codes[-1] != _NEWLINE:
        ends = np.append(ends, len(codes))
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    if lengths.min() < 3 or lengths.max() > STRUCTURE_MAX:
        return 0
    last = ends - 1 - (codes[ends - 1] == _RETURN)
    if not ((codes[starts] == _OPEN) & (codes[last] == _CLOSE)).all():
        return 0
    spaced = ((codes[:-1] == _QUOTE) & (codes[1:] <= _SPACE)).any() and _SPACED_COLON.search(block)
    return 0 if spaced else len(ends)


def _refuse(_position: int, error: ValueFormatError) -> None:
    raise error
