"""Records → columns per type: the shape rules of a load.

A record is `{"type": T, "data": {…}}` or `{"edge": E, "from": id, "to": id, "data": {…}}`. Here it is
decided whether it is one, which type it belongs to, and what its values and its id are. What rows mean
together (uniqueness, endpoints, …) is `constraints`'.

Every mistake is a `RecordError` with its place. `Faults` either raises the first or collects them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.ingest.csv_text import BOM
from omnigraph.engine.ingest.json_columns import build_column
from omnigraph.engine.ingest.jsonl_fast import STRUCTURE_MAX, BlockReader, Columns, cut_blocks
from omnigraph.engine.write.delta import MADE
from omnigraph.engine.write.fill_vectors import has_text
from omnigraph.errors import RecordError, ValueFormatError
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import RESERVED_COLUMNS, Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.types import PropertyType
from omnigraph.values import (
    Fetch,
    derive_id,
    describe_json,
    parse_date,
    parse_datetime,
    read_float,
    read_json,
    spell_key,
)

LINE_BYTES_MAX = 32 * 1024 * 1024

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_STRUCTURE = re.compile(rb"[{}\[\],:]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?")

AnyType = NodeType | EdgeType
Wrong = tuple[str, str, str, str | None]
"""What is wrong with a row: the reason, the property, the rule, a hint."""

NewIds = Callable[[int], pa.Array]
"""Makes up as many ids as are asked for."""

_TEXT = PropertyType("String", nullable=True)
_ENDS = (("src", "from"), ("dst", "to"))


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


Part = Records | Columns


@dataclass
class Rows:
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
        ends[end] = node.properties[node.key[0]].type if len(node.key) == 1 else _TEXT
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


# -- reading lines -----------------------------------------------------------------------------------


def read_text(
    text: bytes, catalog: Catalog, faults: Faults, source: str | None = None, first: int = 1
) -> dict[str, list[Part]]:
    """Table key → the records of a JSONL text; blank lines and lines that begin with `//` do not count.

    Lines are numbered from `first`. Blocks whose lines are all sound become columns at once; the others are read
    line by line.
    """
    reader = BlockReader(catalog, source)
    found: dict[str, list[Part]] = {}
    number = first
    for block in cut_blocks(text.removeprefix(BOM)):
        parts: Iterable[Part]
        columns = reader.read(block, number)
        if columns is not None:
            parts, count = columns, sum(len(part.lines) for part in columns)
        else:
            sorter = _Sorter(catalog, faults, source)
            _read_lines(iterate_lines(block), number, sorter)
            parts, count = sorter.records.values(), block.count(b"\n")
        for part in parts:
            found.setdefault(part.type.table_key, []).append(part)
        number += count
    return found


def read_jsonl(
    lines: Iterable[bytes], catalog: Catalog, faults: Faults, source: str | None = None
) -> dict[str, Records]:
    """Table key → the records of lines of JSON; blank ones and those that begin with `//` do not count."""
    sorter = _Sorter(catalog, faults, source)
    _read_lines(lines, 1, sorter)
    return sorter.records


def _read_lines(lines: Iterable[bytes], first: int, sorter: _Sorter) -> None:
    decode = msgspec.json.Decoder().decode
    for number, line in enumerate(lines, first):
        text = line.strip() if number > 1 else line.removeprefix(BOM).strip()
        if not text or text.startswith(b"//"):
            continue
        try:
            _check_size(text, number, sorter)
            try:
                record = decode(text)
                _refuse_repeats(text, record, number, sorter)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise sorter.error(number, f"not valid JSON: {error}") from None
            sorter.add(number, record, len(text))
        except RecordError as error:
            sorter.faults.add(error)


def read_dicts(records: Iterable[Any], catalog: Catalog, faults: Faults) -> dict[str, Records]:
    """Table key → the records of a stream of dicts, numbered from 1."""
    sorter = _Sorter(catalog, faults, None)
    for number, record in enumerate(records, 1):
        try:
            sorter.add(number, record)
        except RecordError as error:
            faults.add(error)
    return sorter.records


def _check_size(text: bytes, number: int, sorter: _Sorter) -> None:
    if len(text) > LINE_BYTES_MAX:
        raise sorter.error(number, f"a line may have at most {LINE_BYTES_MAX} bytes, this one has {len(text)}")
    # A line that is short enough cannot have too many.
    if len(text) > STRUCTURE_MAX and len(_STRUCTURE.findall(_STRING.sub(b"", text))) > STRUCTURE_MAX:
        raise sorter.error(number, f"a line may have at most {STRUCTURE_MAX} brackets, commas and colons")


def _refuse_repeats(text: bytes, record: Any, number: int, sorter: _Sorter) -> None:
    """A member name twice in one object is an error; the decoder keeps the last and says nothing.

    If every quote-colon in the text is accounted for by a member, nothing is repeated. Only when it is not
    (white space before a colon, or one inside a string) is the text read again, slowly.
    """
    if type(record) is dict:
        data = record.get("data")
        members = len(record) + (len(data) if type(data) is dict else 0)
        if text.count(b'":') == members and not any(space in text for space in (b'" ', b'"\t', b'"\r')):
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
        self._types: dict[tuple[str, str], tuple[Records, frozenset[str], EndTypes]] = {}

    def error(self, number: int, message: str, hint: str | None = None, **where: Any) -> RecordError:
        return RecordError(message, source=self.source, line=number, hint=hint, **where)

    def add(self, number: int, record: Any, size: int = 0) -> None:
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
        records, allowed, ends = known
        data = record.get("data", {})
        if type(data) is not dict:
            raise self.error(number, f"'data' is an object, not {describe_json(data)}", type_name=name)
        members = (1 if kind == "type" else 3) + ("data" in record)
        if len(record) != members or (ends and not ("from" in record and "to" in record)):
            raise self._members(number, kind, record)
        if not data.keys() <= allowed:
            raise self._unknown_property(number, records.type, data, allowed)
        if ends:
            src, dst = (self._end(number, record, word, ends[end]) for end, word in _ENDS)
            records.src.append(src)
            records.dst.append(dst)
        records.lines.append(number)
        records.data.append(data)
        records.size += size

    def _end(self, number: int, record: Mapping[str, Any], word: str, key: PropertyType) -> str:
        value = record[word]
        if type(value) is str:
            return value
        try:
            return end_id(value, key, self._types["edge", record["edge"]][0].type, word)
        except ValueFormatError:
            raise self._not_an_end(number, record, word) from None

    def _members(self, number: int, kind: str, record: Mapping[str, Any]) -> RecordError:
        allowed = {"type", "data"} if kind == "type" else {"edge", "from", "to", "data"}
        strange = [name for name in record if name not in allowed]
        if strange:
            hint = "properties go inside 'data'"
            if kind == "edge" and not ("from" in record and "to" in record):
                hint = 'the ends of an edge are \'from\' and \'to\': {"edge": "Name", "from": "id", "to": "id"}'
            return self.error(number, f"'{strange[0]}' does not belong in a record", hint=hint)
        return self._not_an_end(number, record, "from" if "from" not in record else "to")

    def _not_an_end(self, number: int, record: Mapping[str, Any], end: str) -> RecordError:
        given = describe_json(record[end]) if end in record else "nothing"
        message = f"edge {record['edge']}: '{end}' must be the id of a node, a string; {given} was given"
        return self.error(number, message, type_name=record["edge"], rule="endpoint")

    def _type(self, number: int, kind: str, name: str) -> tuple[Records, frozenset[str], EndTypes]:
        type_: AnyType | None = self.catalog.nodes.get(name) if kind == "type" else self.catalog.find_edge(name)
        if type_ is None:
            names = self.catalog.nodes if kind == "type" else self.catalog.edges
            word = "node type" if kind == "type" else "edge type"
            hint = did_you_mean(name, names) or f"the {word}s are {listing(names)}"
            raise self.error(number, f"there is no {word} '{name}'", hint, type_name=name)
        records = self.records.setdefault(type_.table_key, Records(type_, self.source))
        return records, frozenset({"id", *type_.properties}), end_types(type_, self.catalog)

    def _unknown_property(
        self, number: int, type_: AnyType, data: Mapping[str, Any], allowed: frozenset[str]
    ) -> RecordError:
        name = next(name for name in data if name not in allowed)
        if name in RESERVED_COLUMNS or name in ("src", "dst", "_tombstone"):
            message = f"'{name}' cannot be given as {type_.kind} data"
        else:
            message = f"{type_.kind} type '{type_.name}' has no property '{name}'"
        hint = did_you_mean(name, type_.properties)
        if hint is None and type_.properties:
            hint = f"the properties are {listing(type_.properties)}"
        return self.error(number, message, hint, type_name=type_.name, property_name=name, rule="unknown_property")


# -- records to rows ---------------------------------------------------------------------------------


def build_rows(
    parts: Sequence[Part],
    faults: Faults,
    new_ids: NewIds,
    fetch: Fetch | None = None,
    *,
    keep: bool = False,
    match: bool = False,
) -> Rows:
    """Type every value and derive every id of one type's records; wrong ones are reported, in order, and left out.

    With `keep`, a required property may be absent from a record whose row may exist. With `match`, ids that are not
    given stay null: the caller finds the rows that are meant.
    """
    type_ = parts[0].type
    wrong: dict[int, Wrong] = {}
    schema = pa.schema([f.with_nullable(True) for f in table_schema(type_)])
    typed: list[Columns] = []
    count = 0
    for part in parts:
        typed.append(part if isinstance(part, Columns) else _typed(part, count, wrong, fetch))
        count += len(part.lines)
    fields = {field.name: _concatenated(typed, field) for field in schema}
    given = _presence(type_, typed)
    if not keep:
        given = {}
    explicit = fields["id"]
    key = type_.key if isinstance(type_, NodeType) else ()
    is_keyed = bool(key)
    may_exist = pa.repeat(True, count) if is_keyed or match else pc.is_valid(explicit)
    kept = {name: pc.and_not(may_exist, mask) for name, mask in given.items() if name not in key}
    for name, missing in _missing(type_, fields, kept):
        for position in pc.indices_nonzero(missing).to_pylist():
            reason = f"{type_.name}.{name} is required ({type_.properties[name].type})"
            wrong.setdefault(position, (reason, name, "required", None))
    aliases: dict[str, str] = {}
    if is_keyed or not match:
        fields["id"], aliases = _ids(type_, explicit, fields, wrong, new_ids)
    rows = Rows(
        type_,
        pa.table({name: fields[name] for name in schema.names}, schema=schema),
        pa.concat_arrays([pa.repeat(pa.scalar(part.source, pa.utf8()), len(part.lines)) for part in parts]),
        pa.concat_arrays([_numbers(part.lines) for part in parts]),
        aliases,
        fresh=not (is_keyed or match) and explicit.null_count == count,
        given=given,
        adds_again=not (is_keyed or match) and explicit.null_count > 0,
        made=pc.is_null(explicit) if explicit.null_count and not is_keyed else None,
    )
    for position in sorted(wrong):
        for error in rows.faults(position, *wrong[position]):
            faults.add(error)
    if wrong:
        rows.keep(pa.array([position not in wrong for position in range(count)]))
    return rows


def _numbers(lines: Sequence[int]) -> pa.Array:
    return pa.array(np.arange(lines.start, lines.stop) if isinstance(lines, range) else lines, pa.int64())


def _concatenated(parts: Sequence[Columns], field: pa.Field) -> pa.Array:
    """One column of all parts; null where a part does not have it."""
    columns = [part.fields.get(field.name) for part in parts]
    return pa.concat_arrays(
        [
            pa.nulls(len(part.lines), field.type) if column is None else column
            for part, column in zip(parts, columns, strict=True)
        ]
    )


def _presence(type_: AnyType, parts: Sequence[Columns]) -> dict[str, pa.Array]:
    """Property → which records give it, for every property that some record does not give."""
    found: dict[str, pa.Array] = {}
    for name in type_.properties:
        if all(name in part.fields and name not in part.given for part in parts):
            continue
        masks = [
            part.given[name] if name in part.given else pa.repeat(name in part.fields, len(part.lines))
            for part in parts
        ]
        mask = pa.concat_arrays(masks)
        if mask.false_count:
            found[name] = mask
    return found


def _typed(records: Records, first: int, wrong: dict[int, Wrong], fetch: Fetch | None) -> Columns:
    """The columns of some records, the first of which is number `first`; what is wrong with a value is noted."""
    type_, data = records.type, records.data
    present = set[str]().union(*data)
    fields: dict[str, pa.Array] = {}
    given: dict[str, pa.Array] = {}

    def add(name: str, property_type: PropertyType, values: Sequence[Any], rule: str, word: str | None = None) -> None:
        def bad(position: int, error: ValueFormatError) -> None:
            reason = f"{type_.name}.{word or name}: {error.message}"
            wrong.setdefault(first + position, (reason, word or name, rule, error.hint))

        fields[name] = build_column(values, property_type, bad, fetch=fetch)

    for property_ in type_.properties.values():
        if property_.name in present:
            values, mask = _values(data, property_.name)
            add(property_.name, property_.type, values, "value")
            if mask is not None:
                given[property_.name] = mask
    if isinstance(type_, EdgeType):
        add("src", _TEXT, records.src, "endpoint", "from")
        add("dst", _TEXT, records.dst, "endpoint", "to")
    if "id" in present:
        add("id", _TEXT, _values(data, "id")[0], "id")
    return Columns(type_, records.source, records.lines, fields, given)


def _values(data: Sequence[Mapping[str, Any]], name: str) -> tuple[Sequence[Any], pa.Array | None]:
    """One property of every record, and a mask if only some records give it."""
    try:
        return list(map(itemgetter(name), data)), None
    except KeyError:
        return [values.get(name) for values in data], pa.array([name in values for values in data])


def _missing(
    type_: AnyType, fields: Mapping[str, pa.Array], kept: Mapping[str, pa.Array]
) -> Iterator[tuple[str, pa.Array]]:
    """Required properties and the rows that lack them; a vector may still come from its text.

    `kept` are the rows that may have a committed value of a property.
    """
    for property_ in type_.properties.values():
        column = fields[property_.name]
        if property_.type.nullable or not column.null_count:
            continue
        missing = pc.is_null(column)
        for name in (property_.name, *([property_.embed.source] if property_.embed is not None else ())):
            if name in kept:
                missing = pc.and_not(missing, kept[name])
        if property_.embed is not None:
            missing = pc.and_not(missing, has_text(fields[property_.embed.source]))
        yield property_.name, missing


def _ids(
    type_: AnyType,
    explicit: pa.Array,
    fields: Mapping[str, pa.Array],
    wrong: dict[int, Wrong],
    new_ids: NewIds,
) -> tuple[pa.Array, dict[str, str]]:
    if not isinstance(type_, NodeType) or not type_.key:
        made = new_ids(explicit.null_count)
        return made if len(made) == len(explicit) else pc.replace_with_mask(explicit, pc.is_null(explicit), made), {}
    derived = _derived_ids(type_, fields)
    aliases: dict[str, str] = {}
    for position in pc.indices_nonzero(pc.fill_null(pc.not_equal(explicit, derived), False)).to_pylist():
        if position in wrong:
            continue
        old, id_ = explicit[position].as_py(), derived[position].as_py()
        if not _is_old_spelling(type_, old, fields, position):
            reason = f"the id '{old}' of {type_.name} differs from its key '{id_}'"
        elif aliases.setdefault(old, id_) != id_:
            reason = f"the id '{old}' of {type_.name} stands for two keys, '{aliases[old]}' and '{id_}'"
        else:
            continue
        wrong[position] = (reason, "id", "id", None)
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
    """Whether an id is a way to write one key column's value: `00042` for 42, a date as text."""
    for name in node.key:
        type_ = node.properties[name].type
        value = _stored(fields[name].slice(position, 1))[0]
        try:
            if type_.is_integer:
                same = _INTEGER.fullmatch(id_) is not None and int(id_) == value
            elif type_.is_float:
                same = _NUMBER.fullmatch(id_) is not None and read_float(float(id_), type_) == value
            elif type_.scalar == "Date":
                same = parse_date(id_) == value
            elif type_.scalar == "DateTime":
                same = parse_datetime(id_) == value
            else:
                same = id_ == spell_key(value, type_)
        except ValueFormatError:
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
