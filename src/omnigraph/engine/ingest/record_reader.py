"""JSONL text and dicts → records by type. Checks the shape of every record.

A block in which every line is valid is decoded into columns (`jsonl_fast`). Other blocks are read line by line, so that
each error is reported with its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from omnigraph.checkpoints import checked, paced
from omnigraph.engine import tuning
from omnigraph.engine.ingest.csv_text import BOM
from omnigraph.engine.ingest.jsonl_fast import STRUCTURE_MAX, BlockReader, split_blocks
from omnigraph.engine.ingest.records import ENDS, AnyType, EndTypes, Faults, Records, RecordSet, end_id, end_types
from omnigraph.errors import RecordError, ValueFormatError
from omnigraph.scalar_types.describe import describe_json
from omnigraph.schema.catalog import RESERVED_COLUMNS, Catalog
from omnigraph.suggestions import did_you_mean, known_types, listing
from omnigraph.types import PropertyType

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?')
"""A string, or the rest of a line without its end. The possessive quantifier keeps time and memory linear."""
_STRUCTURE = re.compile(rb"[{}\[\],:]")


def read_text(
    text: bytes, catalog: Catalog, faults: Faults, source: str | None = None, first: int = 1
) -> dict[str, list[RecordSet]]:
    """Return table key → records of a JSONL text. Blank lines and lines that begin with `//` are skipped.

    Lines are numbered from `first`.
    """
    reader = BlockReader(catalog, source)
    found: dict[str, list[RecordSet]] = {}
    number = first
    for block in checked(split_blocks(text.removeprefix(BOM))):
        parts: Iterable[RecordSet]
        columns = reader.read(block, number)
        if columns is not None:
            parts, count = columns, sum(len(part.lines) for part in columns)
        else:
            sorter = _RecordSorter(catalog, faults, source)
            _read_lines(iterate_lines(block), number, sorter)
            parts, count = sorter.records.values(), block.count(b"\n")
        for part in parts:
            found.setdefault(part.type.table_key, []).append(part)
        number += count
    return found


def read_jsonl(
    lines: Iterable[bytes], catalog: Catalog, faults: Faults, source: str | None = None
) -> dict[str, Records]:
    """Return table key → records of JSON lines. Blank lines and lines that begin with `//` are skipped."""
    sorter = _RecordSorter(catalog, faults, source)
    _read_lines(lines, 1, sorter)
    return sorter.records


def _read_lines(lines: Iterable[bytes], first: int, sorter: _RecordSorter) -> None:
    decode = msgspec.json.Decoder().decode
    for number, line in enumerate(paced(lines), first):
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


def read_dicts(records: Iterable[Any], catalog: Catalog, faults: Faults, first: int = 1) -> dict[str, Records]:
    """Return table key → records of dicts, numbered from `first`."""
    sorter = _RecordSorter(catalog, faults, None)
    for number, record in enumerate(paced(records), first):
        try:
            sorter.add(number, record)
        except RecordError as error:
            faults.add(error)
    return sorter.records


def _check_size(text: bytes, number: int, sorter: _RecordSorter) -> None:
    limit = tuning.current.record_bytes_max
    if len(text) > limit:
        raise sorter.error(number, f"a line may have at most {limit} bytes, this one has {len(text)}")
    # The structure is counted only if the line is long enough to exceed the limit.
    if len(text) > STRUCTURE_MAX and len(_STRUCTURE.findall(_STRING.sub(b"", text))) > STRUCTURE_MAX:
        raise sorter.error(number, f"a line may have at most {STRUCTURE_MAX} brackets, commas and colons")


def _refuse_repeats(text: bytes, record: Any, number: int, sorter: _RecordSorter) -> None:
    """Raise an error if an object has a member twice. The decoder silently keeps the last one.

    If every `":` in the text belongs to a member, no member is repeated. Otherwise (white space before a colon, or `":`
    inside a string) the text is decoded again with a slower decoder.
    """
    if type(record) is dict:
        data = record.get("data")
        members = len(record) + (len(data) if type(data) is dict else 0)
        if text.count(b'":') == members and not any(space in text for space in (b'" ', b'"\t', b'"\r')):
            return
    json.loads(text, object_pairs_hook=_unique_members(number, sorter))


def _unique_members(number: int, sorter: _RecordSorter) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise sorter.error(number, f"'{twice}' is given twice")
        return found

    return hook


class _RecordSorter:
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
            raise self._wrong_members(number, kind, record)
        if not data.keys() <= allowed:
            raise self._unknown_property(number, records.type, data, allowed)
        if ends:
            src, dst = (self._end_id(number, record, word, ends[end]) for end, word in ENDS)
            records.src.append(src)
            records.dst.append(dst)
        records.lines.append(number)
        records.data.append(data)
        records.size += size

    def _end_id(self, number: int, record: Mapping[str, Any], word: str, key: PropertyType) -> str:
        value = record[word]
        if type(value) is str:
            return value
        try:
            return end_id(value, key, self._types["edge", record["edge"]][0].type, word)
        except ValueFormatError:
            raise self._not_an_end(number, record, word) from None

    def _wrong_members(self, number: int, kind: str, record: Mapping[str, Any]) -> RecordError:
        allowed = {"type", "data"} if kind == "type" else {"edge", "from", "to", "data"}
        unknown = [name for name in record if name not in allowed]
        if unknown:
            hint = "properties go inside 'data'"
            if kind == "edge" and not ("from" in record and "to" in record):
                hint = 'the ends of an edge are \'from\' and \'to\': {"edge": "Name", "from": "id", "to": "id"}'
            return self.error(number, f"'{unknown[0]}' does not belong in a record", hint=hint)
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
            hint = did_you_mean(name, names) or known_types(word, names)
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


def iterate_lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines of a text; only a line feed ends a line."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end]
        start = end + 1
