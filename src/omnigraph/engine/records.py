"""Records → columns per type: the shape rules of a load.

A record is `{"type": T, "data": {…}}` or `{"edge": E, "from": id, "to": id, "data": {…}}`. Here it is
decided whether it is one, which type it belongs to, and what its values and its id are. What rows mean
together (uniqueness, endpoints, …) is `constraints`'.

Every mistake is a `RecordError` with its place. `Faults` either raises the first or collects them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.columns import build_column
from omnigraph.errors import RecordError, ValueFormatError
from omnigraph.names import did_you_mean, listing
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import RESERVED_COLUMNS, Catalog, EdgeType, NodeType
from omnigraph.values import derive_id, describe_json, parse_date, parse_datetime, spell_key

LINE_BYTES_MAX = 32 * 1024 * 1024

AnyType = NodeType | EdgeType


@dataclass
class Faults:
    """What to do about a wrong record: raise (the default), or note it and leave it out."""

    collect: bool = False
    found: list[RecordError] = field(default_factory=list)

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


@dataclass
class Rows:
    """The rows of one type, with the line each came from."""

    type: AnyType
    source: str | None
    lines: pa.Array
    table: pa.Table
    aliases: dict[str, str] = field(default_factory=dict)
    """Old spelling of an id → the id; edges of the same input may still use it."""


# -- reading lines -----------------------------------------------------------------------------------


def read_jsonl(
    lines: Iterable[bytes], catalog: Catalog, faults: Faults, source: str | None = None
) -> dict[str, Records]:
    """Table key → the records of a JSONL text; blank lines and lines that begin with `//` do not count."""
    sorter = _Sorter(catalog, faults, source)
    decode = msgspec.json.Decoder().decode
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith(b"//"):
            continue
        try:
            if len(text) > LINE_BYTES_MAX:
                raise sorter.error(number, f"a line may have at most {LINE_BYTES_MAX} bytes, this one has {len(text)}")
            try:
                record = decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise sorter.error(number, f"not valid JSON: {error}") from None
            _refuse_repeats(text, record, number, sorter)
            sorter.add(number, record)
        except RecordError as error:
            faults.add(error)
    return sorter.records


def read_dicts(records: Iterable[Any], catalog: Catalog, faults: Faults) -> dict[str, Records]:
    """Table key → the records of a stream of dicts, numbered from 1."""
    sorter = _Sorter(catalog, faults, None)
    for number, record in enumerate(records, 1):
        try:
            sorter.add(number, record)
        except RecordError as error:
            faults.add(error)
    return sorter.records


def _refuse_repeats(text: bytes, record: Any, number: int, sorter: _Sorter) -> None:
    """A member name twice in one object is an error; the decoder keeps the last and says nothing.

    If every quote-colon in the text is accounted for by a member, nothing is repeated. Only when it is not
    (white space before a colon, or one inside a string) is the text read again, slowly.
    """
    if type(record) is dict:
        data = record.get("data")
        members = len(record) + (len(data) if type(data) is dict else 0)
        if text.count(b'":') == members and b'" ' not in text and b'"\t' not in text:
            return
    json.loads(text, object_pairs_hook=_unique_members(number, sorter))


def _unique_members(number: int, sorter: _Sorter) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise sorter.error(number, f"'{twice}' is given twice")
        return found

    return hook


class _Sorter:
    """Checks the shape of records and sorts them by type."""

    def __init__(self, catalog: Catalog, faults: Faults, source: str | None) -> None:
        self.catalog = catalog
        self.faults = faults
        self.source = source
        self.records: dict[str, Records] = {}
        self._types: dict[tuple[str, str], tuple[Records, frozenset[str]]] = {}

    def error(self, number: int, message: str, hint: str | None = None, **where: Any) -> RecordError:
        return RecordError(message, source=self.source, line=number, hint=hint, **where)

    def add(self, number: int, record: Any) -> None:
        if type(record) is not dict:
            raise self.error(number, f"a record is an object, not {describe_json(record)}")
        kind = "type" if "type" in record else "edge"
        name = record.get(kind)
        if ("type" in record) == ("edge" in record) or type(name) is not str:
            raise self.error(
                number,
                "neither a node nor an edge record",
                'write {"type": "Name", "data": {…}} or {"edge": "Name", "from": "id", "to": "id", "data": {…}}',
            )
        known = self._types.get((kind, name))
        if known is None:
            known = self._types[kind, name] = self._type(number, kind, name)
        records, allowed = known
        data = record.get("data", {})
        if type(data) is not dict:
            raise self.error(number, f"'data' is an object, not {describe_json(data)}", type_name=name)
        expected = 2 if kind == "type" else 4
        if len(record) > expected or (len(record) < expected and "data" in record) or kind == "edge":
            self._members(number, kind, record)
        if not data.keys() <= allowed:
            raise self._unknown_property(number, records.type, data, allowed)
        records.lines.append(number)
        records.data.append(data)
        if kind == "edge":
            records.src.append(record["from"])
            records.dst.append(record["to"])

    def _members(self, number: int, kind: str, record: Mapping[str, Any]) -> None:
        allowed = {"type", "data"} if kind == "type" else {"edge", "from", "to", "data"}
        strange = [name for name in record if name not in allowed]
        if strange:
            raise self.error(number, f"'{strange[0]}' does not belong in a record", hint="properties go inside 'data'")
        for end in ("from", "to") if kind == "edge" else ():
            if type(record.get(end)) is not str:
                given = describe_json(record[end]) if end in record else "nothing"
                raise self.error(
                    number, f"edge {record['edge']}: '{end}' must be the id of a node, a string; {given} was given"
                )

    def _type(self, number: int, kind: str, name: str) -> tuple[Records, frozenset[str]]:
        type_: AnyType | None = self.catalog.nodes.get(name) if kind == "type" else self.catalog.find_edge(name)
        if type_ is None:
            names = self.catalog.nodes if kind == "type" else self.catalog.edges
            word = "node type" if kind == "type" else "edge type"
            hint = did_you_mean(name, names) or f"the {word}s are {listing(names)}"
            raise self.error(number, f"there is no {word} '{name}'", hint, type_name=name)
        records = self.records.setdefault(type_.table_key, Records(type_, self.source))
        return records, frozenset({"id", *type_.properties})

    def _unknown_property(
        self, number: int, type_: AnyType, data: Mapping[str, Any], allowed: frozenset[str]
    ) -> RecordError:
        name = next(name for name in data if name not in allowed)
        if name in RESERVED_COLUMNS or name in ("src", "dst", "_tombstone"):
            message = f"'{name}' cannot be given in the data of a {type_.kind}"
        else:
            message = f"{type_.kind} type '{type_.name}' has no property '{name}'"
        hint = did_you_mean(name, type_.properties)
        return self.error(number, message, hint, type_name=type_.name, property_name=name, rule="unknown_property")


# -- records to rows ---------------------------------------------------------------------------------


def build_rows(records: Records, faults: Faults, new_id: Callable[[], str]) -> Rows:
    """Type every value and derive every id; wrong rows are reported and left out."""
    type_ = records.type
    wrong: set[int] = set()

    def say(position: int, message: str, property_name: str | None, rule: str, hint: str | None = None) -> None:
        if position not in wrong:
            wrong.add(position)
            faults.add(
                RecordError(
                    message,
                    source=records.source,
                    line=records.lines[position],
                    type_name=type_.name,
                    property_name=property_name,
                    rule=rule,
                    hint=hint,
                )
            )

    fields: dict[str, pa.Array] = {}
    for property_ in type_.properties.values():
        name = property_.name

        def bad(position: int, error: ValueFormatError, name: str = name) -> None:
            say(position, f"{type_.name}.{name}: {error.message}", name, "value", error.hint)

        column = build_column([data.get(name) for data in records.data], property_.type, bad)
        if column.null_count and not property_.type.nullable and property_.embed is None:
            for position, missing in enumerate(pc.is_null(column).to_pylist()):
                if missing:
                    say(position, f"{type_.name}.{name} is required", name, "required")
        fields[name] = column
    if isinstance(type_, EdgeType):
        fields["src"] = pa.array(records.src, pa.utf8())
        fields["dst"] = pa.array(records.dst, pa.utf8())
    ids, aliases = _ids(records, fields, wrong, say, new_id)
    fields["id"] = ids
    schema = pa.schema([f.with_nullable(True) for f in table_schema(type_)])
    table = pa.table({name: fields[name] for name in schema.names}, schema=schema)
    lines = pa.array(records.lines, pa.int64())
    if wrong:
        keep = pa.array([position not in wrong for position in range(len(records.lines))])
        table, lines = table.filter(keep), lines.filter(keep)
    return Rows(type_, records.source, lines, table, aliases)


Say = Callable[[int, str, str | None, str], None]


def _ids(
    records: Records, fields: Mapping[str, pa.Array], wrong: set[int], say: Say, new_id: Callable[[], str]
) -> tuple[pa.Array, dict[str, str]]:
    type_ = records.type
    given = [data.get("id") for data in records.data]
    for position, id_ in enumerate(given):
        if id_ is not None and type(id_) is not str:
            say(position, f"the id of a {type_.name} is a string, not {describe_json(id_)}", "id", "id")
    if not isinstance(type_, NodeType) or not type_.key:
        made = [id_ if type(id_) is str else new_id() for id_ in given]
        return pa.array(made, pa.utf8()), {}
    derived = _derived_ids(type_, fields)
    aliases: dict[str, str] = {}
    if any(id_ is not None for id_ in given):
        ids = derived.to_pylist()
        for position, id_ in enumerate(given):
            if id_ is None or position in wrong or id_ == ids[position]:
                continue
            if not _is_old_spelling(type_, id_, fields, position) or aliases.get(id_, ids[position]) != ids[position]:
                say(position, f"the id '{id_}' of {type_.name} differs from its key '{ids[position]}'", "id", "id")
            else:
                aliases[id_] = ids[position]
    return derived, aliases


def _derived_ids(node: NodeType, fields: Mapping[str, pa.Array]) -> pa.Array:
    if len(node.key) == 1:
        type_, column = node.properties[node.key[0]].type, fields[node.key[0]]
        if type_.is_text:
            return column
        if type_.is_integer:
            return column.cast(pa.utf8())
    spelt: list[list[str | None]] = []
    for name in node.key:
        type_ = node.properties[name].type
        spelt.append([None if value is None else spell_key(value, type_) for value in _stored(fields[name])])
    return pa.array(
        [
            None if None in parts else derive_id([p for p in parts if p is not None])
            for parts in zip(*spelt, strict=True)
        ],
        pa.utf8(),
    )


def _stored(column: pa.Array) -> list[Any]:
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32() if column.type == pa.date32() else pa.int64())
    return list(column.to_pylist())


def _is_old_spelling(node: NodeType, id_: str, fields: Mapping[str, pa.Array], position: int) -> bool:
    """Whether an id is another way to write one key column's value: `00042` for 42, a date as text."""
    for name in node.key:
        type_ = node.properties[name].type
        value = _stored(fields[name].slice(position, 1))[0]
        try:
            if type_.is_integer:
                same = id_.lstrip("-").isdecimal() and len(id_) <= 40 and int(id_) == value
            elif type_.is_float:
                same = float(id_) == value
            elif type_.scalar == "Date":
                same = parse_date(id_) == value
            elif type_.scalar == "DateTime":
                same = parse_datetime(id_) == value
            else:
                same = False
        except (ValueError, ValueFormatError):
            same = False
        if same:
            return True
    return False


def iterate_lines(data: bytes) -> Iterator[bytes]:
    """The lines of a text; only a line feed ends one."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end]
        start = end + 1
