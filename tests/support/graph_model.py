"""A graph as plain dicts: what the specification says a write does to it, written from that text alone.

Nothing here is fast and nothing here looks at the program. A schema is a few frozen records that print
themselves; a graph is `{table key: {id: row}}`; a write is judged by looking at the whole graph it would
leave. Where the specification names no order between two violations, either may be reported: `judge`
returns every one that may come first.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

Row = dict[str, Any]
"""Stored values by property; an edge also has `src` and `dst`."""

Tables = dict[str, dict[str, Row]]

RULES = ("range", "check", "enum", "unique", "endpoint", "orphan", "cardinality")

_numbers = count(1)


# -- schemas -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prop:
    """A property: `type` as the schema writes it, or `enum` with its `values`."""

    type: str
    nullable: bool = True
    values: tuple[str, ...] = ()
    indexed: bool = False

    def text(self) -> str:
        name = f"enum({', '.join(self.values)})" if self.type == "enum" else self.type
        return name + ("?" if self.nullable else "")


@dataclass(frozen=True)
class NodeType:
    """A node type; `key` has the order of the id, `number` distinguishes tables of the same name."""

    name: str
    props: Mapping[str, Prop]
    key: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def table(self) -> str:
        return f"node:{self.name}"


@dataclass(frozen=True)
class EdgeType:
    """An edge type; `card` is the minimum and maximum number of edges per source."""

    name: str
    source: str
    target: str
    props: Mapping[str, Prop] = field(default_factory=dict)
    unique: tuple[tuple[str, ...], ...] = ()
    card: tuple[int, int | None] = (0, None)
    note: str | None = None
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def table(self) -> str:
        return f"edge:{self.name}"


AnyType = NodeType | EdgeType


@dataclass(frozen=True)
class Schema:
    """The types of a branch by name."""

    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]

    def types(self) -> list[AnyType]:
        return [*self.nodes.values(), *self.edges.values()]

    def put(self, *types: AnyType) -> Schema:
        """With these types added or replaced."""
        nodes = {**self.nodes, **{t.name: t for t in types if isinstance(t, NodeType)}}
        edges = {**self.edges, **{t.name: t for t in types if isinstance(t, EdgeType)}}
        return Schema(nodes, edges)

    def without(self, *types: AnyType) -> Schema:
        gone = {t.table for t in types}
        return Schema(
            {name: t for name, t in self.nodes.items() if t.table not in gone},
            {name: t for name, t in self.edges.items() if t.table not in gone},
        )

    def touching(self, node: str) -> list[EdgeType]:
        return [edge for edge in self.edges.values() if node in (edge.source, edge.target)]

    def text(self, renamed: Mapping[str, str] | None = None) -> str:
        """The schema text; `renamed` maps a type or `Type.property` to its previous name."""
        return "\n".join(_declaration(type_, renamed or {}) for type_ in self.types()) + "\n"


def _declaration(type_: AnyType, renamed: Mapping[str, str]) -> str:
    hint = f' @rename_from("{renamed[type_.table]}")' if type_.table in renamed else ""
    note = f' @description("{type_.note}")' if type_.note else ""
    if isinstance(type_, NodeType):
        head = f"node {type_.name}{note}{hint}"
    else:
        low, high = type_.card
        card = f" @card({low}..{'' if high is None else high})" if type_.card != (0, None) else ""
        head = f"edge {type_.name}: {type_.source} -> {type_.target}{card}{note}{hint}"
    lines = []
    for name, prop in type_.props.items():
        was = renamed.get(f"{type_.table}.{name}")
        line = f"  {name}: {prop.text()}" + (f' @rename_from("{was}")' if was else "")
        lines.append(line + (" @index" if prop.indexed else ""))
    if isinstance(type_, NodeType):
        lines += [f"  @key({', '.join(type_.key)})"] if type_.key else []
        lines += [f"  @range({name}, {_bound(low)}..{_bound(high)})" for name, (low, high) in type_.ranges.items()]
        lines += [f'  @check({name}, "{pattern}")' for name, pattern in type_.checks.items()]
    lines += [f"  @unique({', '.join(columns)})" for columns in type_.unique]
    return "\n".join([head + " {", *lines, "}"])


def _bound(value: float | None) -> str:
    return "" if value is None else str(value)


def rename_property(type_: AnyType, old: str, new: str) -> AnyType:
    """The type with one property renamed in all its rules."""

    def named(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in names)

    props = {new if name == old else name: prop for name, prop in type_.props.items()}
    unique = tuple(named(columns) for columns in type_.unique)
    if isinstance(type_, EdgeType):
        return replace(type_, props=props, unique=unique)
    ranges = {new if name == old else name: bounds for name, bounds in type_.ranges.items()}
    checks = {new if name == old else name: pattern for name, pattern in type_.checks.items()}
    return replace(type_, props=props, unique=unique, key=named(type_.key), ranges=ranges, checks=checks)


def drop_property(type_: AnyType, gone: str) -> AnyType:
    """The type without a property and without rules on that property alone."""
    props = {name: prop for name, prop in type_.props.items() if name != gone}
    unique = tuple(columns for columns in type_.unique if columns != (gone,))
    if isinstance(type_, EdgeType):
        return replace(type_, props=props, unique=unique)
    ranges = {name: bounds for name, bounds in type_.ranges.items() if name != gone}
    checks = {name: pattern for name, pattern in type_.checks.items() if name != gone}
    return replace(type_, props=props, unique=unique, ranges=ranges, checks=checks)


# -- identity and comparison -------------------------------------------------------------------------


def spell(value: Any) -> str:
    """The spelling of a value in an id."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(np.format_float_positional(value + 0.0, unique=True, trim="-"))
    return str(value)


def derived_id(node: NodeType, row: Row) -> str:
    """The id of a keyed node."""
    spellings = [spell(row[name]) for name in node.key]
    return spellings[0] if len(spellings) == 1 else json.dumps(spellings, ensure_ascii=False, separators=(",", ":"))


def f32(number: float) -> float:
    """The number rounded to a 32-bit float."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def holds(stored: Any, op: str, given: Any, prop: Prop) -> bool:
    """`stored op given` by mathematical value; a comparison with null is not true."""
    if stored is None or given is None:
        return False
    if prop.type == "F32":
        given = f32(float(given))
    return {
        "=": stored == given,
        "!=": stored != given,
        "<": stored < given,
        "<=": stored <= given,
        ">": stored > given,
        ">=": stored >= given,
    }[op]


# -- rules -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusal:
    """An expected error: its code and required words of its message."""

    code: str
    words: tuple[str, ...] = ()


@dataclass
class TableWrite:
    """The effect of a write on one table: `rows` are (id, row); `replaced` removes all other rows."""

    rows: list[tuple[str, Row]] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    replaced: bool = False


Write = dict[str, TableWrite]


def apply_write(before: Tables, write: Write) -> Tables:
    """The graph after a write."""
    after = {key: dict(rows) for key, rows in before.items()}
    for key, change in write.items():
        kept = {} if change.replaced else after[key]
        for id_ in change.deleted:
            del kept[id_]
        after[key] = kept | dict(change.rows)
    return after


def judge(schema: Schema, before: Tables, write: Write) -> list[Refusal]:
    """The violations that may be reported first; empty for a valid write."""
    after = apply_write(before, write)
    nodes = [schema.nodes[name] for name in sorted(schema.nodes)]
    edges = [schema.edges[name] for name in sorted(schema.edges)]
    for stage in _stages(schema, nodes, edges, before, write, after):
        found = list(stage)
        if found:
            return found
    return []


def _stages(
    schema: Schema,
    nodes: Sequence[NodeType],
    edges: Sequence[EdgeType],
    before: Tables,
    write: Write,
    after: Tables,
) -> Iterator[Iterator[Refusal]]:
    for type_ in (*nodes, *edges):
        rows = [row for _, row in write[type_.table].rows] if type_.table in write else []
        if isinstance(type_, NodeType):
            yield _ranges(type_, rows)
            yield _checks(type_, rows)
        yield _enums(type_, rows)
    for node in nodes:
        yield _keys(node, write)
        yield _uniques(node, write, after)
    for edge in edges:
        yield _uniques(edge, write, after)
        yield _endpoints(edge, write, after)
        yield _cards(edge, before, write, after)


def _ranges(node: NodeType, rows: Sequence[Row]) -> Iterator[Refusal]:
    for name, (low, high) in node.ranges.items():
        for row in rows:
            value = row[name]
            if value is not None and ((low is not None and value < low) or (high is not None and value > high)):
                yield Refusal("range_violation", (f"@range violation on {node.name}.{name}",))


def _checks(node: NodeType, rows: Sequence[Row]) -> Iterator[Refusal]:
    for name, pattern in node.checks.items():
        for row in rows:
            if row[name] is not None and not re.search(pattern, row[name]):
                yield Refusal("check_violation", (f"@check violation on {node.name}.{name}", pattern))


def _enums(type_: AnyType, rows: Sequence[Row]) -> Iterator[Refusal]:
    for name, prop in type_.props.items():
        for row in rows:
            if prop.type == "enum" and row[name] is not None and row[name] not in prop.values:
                yield Refusal("enum_violation", (f"invalid enum value '{row[name]}' for {type_.name}.{name}",))


def _keys(node: NodeType, write: Write) -> Iterator[Refusal]:
    ids = [id_ for id_, _ in write[node.table].rows] if node.key and node.table in write else []
    if len(set(ids)) < len(ids):
        for order in (node.key, tuple(sorted(node.key))):
            yield Refusal("unique_violation", (f"@unique violation on {node.name}.{_where(order)}",))


def _where(columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"


def _uniques(type_: AnyType, write: Write, after: Tables) -> Iterator[Refusal]:
    change = write.get(type_.table)
    if change is None:
        return
    written = {id_ for id_, _ in change.rows}
    for columns in type_.unique:
        holders: dict[tuple[Any, ...], list[str]] = {}
        for id_, row in after[type_.table].items():
            held = tuple(row[name] for name in columns)
            if None not in held:
                holders.setdefault(held, []).append(id_)
        for ids in holders.values():
            if len(ids) > 1 and written.intersection(ids):
                both = tuple(f"'{id_}'" for id_ in ids if not is_unknown(id_)) if len(ids) == 2 else ()
                where = _where(tuple(sorted(columns)))
                yield Refusal("unique_violation", (f"@unique violation on {type_.name}.{where}:", *both))


def _endpoints(edge: EdgeType, write: Write, after: Tables) -> Iterator[Refusal]:
    change = write.get(edge.table, TableWrite())
    written = {id_ for id_, _ in change.rows}
    for id_, row in after[edge.table].items():
        for column, node in (("src", edge.source), ("dst", edge.target)):
            if row[column] not in after[f"node:{node}"]:
                code = "endpoint_violation" if id_ in written else "orphan_violation"
                yield Refusal(code, (f"edge {edge.name}:", f"{column} '{row[column]}' not found in {node}"))


def _cards(edge: EdgeType, before: Tables, write: Write, after: Tables) -> Iterator[Refusal]:
    change = write.get(edge.table)
    if change is None:
        return
    touched = [row["src"] for _, row in change.rows]
    gone = [*before[edge.table]] if change.replaced else [*change.deleted, *(id_ for id_, _ in change.rows)]
    touched += [before[edge.table][id_]["src"] for id_ in gone if id_ in before[edge.table]]
    low, high = edge.card
    for source in dict.fromkeys(touched):
        if source not in after[f"node:{edge.source}"]:
            continue
        edges = sum(row["src"] == source for row in after[edge.table].values())
        bound = f"min {low}" if edges < low else f"max {high}" if high is not None and edges > high else None
        if bound is not None:
            words = (f"@card violation on edge {edge.name}", f"'{source}'", f"{edges} edge", bound)
            yield Refusal("cardinality_violation", words)


# -- ids only the program knows ----------------------------------------------------------------------


def unknown_id() -> str:
    """A placeholder for a generated id."""
    return f"?{next(_numbers)}"


def is_unknown(id_: str) -> bool:
    return id_.startswith("?")


def bind_ids(table: dict[str, Row], actual: Mapping[str, Row]) -> dict[str, Row]:
    """The table with its unknown ids replaced by those of the actual rows that hold the same values.

    Rows with equal values are interchangeable.
    """
    free: dict[str, list[str]] = {}
    for id_, row in actual.items():
        if id_ not in table:
            free.setdefault(repr(sorted(row.items())), []).append(id_)
    bound: dict[str, Row] = {}
    for id_, row in table.items():
        same = free.get(repr(sorted(row.items())))
        bound[same.pop(0) if is_unknown(id_) and same else id_] = row
    return bound


# -- mutations ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Where:
    """One comparison; the ends of an edge are `src` and `dst`."""

    name: str
    op: str
    value: Any
    prop: Prop


@dataclass(frozen=True)
class Insert:
    type: AnyType
    values: Row


@dataclass(frozen=True)
class Upsert:
    """Insert a node, or set these values of the node with the same key."""

    type: NodeType
    values: Row


@dataclass(frozen=True)
class Update:
    type: AnyType
    values: Row
    where: Where


@dataclass(frozen=True)
class Delete:
    type: AnyType
    where: Where


Statement = Insert | Upsert | Update | Delete


class KeyTaken(Exception):
    """An insert of an existing key."""

    def __init__(self, id_: str) -> None:
        super().__init__(id_)
        self.id = id_


def run_statements(schema: Schema, before: Tables, statements: Sequence[Statement]) -> tuple[int, int, Write]:
    """The affected nodes and edges and the resulting write; each statement sees the earlier ones.

    Raises `KeyTaken` for an insert of a key that exists.
    """
    now = {key: dict(rows) for key, rows in before.items()}
    written: dict[str, dict[str, Row]] = {}
    deleted: dict[str, set[str]] = {}
    nodes = edges = 0

    def put(key: str, id_: str, row: Row) -> None:
        now[key][id_] = written.setdefault(key, {})[id_] = row

    def matching(key: str, where: Where) -> list[str]:
        return [id_ for id_, row in now[key].items() if holds(row[where.name], where.op, where.value, where.prop)]

    def remove(key: str, ids: Iterable[str]) -> int:
        gone = list(ids)
        for id_ in gone:
            del now[key][id_]
        if gone:
            deleted.setdefault(key, set()).update(gone)
        return len(gone)

    for statement in statements:
        type_ = statement.type
        if isinstance(statement, Insert):
            row = dict.fromkeys(type_.props) | statement.values
            id_ = derived_id(type_, row) if isinstance(type_, NodeType) and type_.key else unknown_id()
            if id_ in now[type_.table]:
                raise KeyTaken(id_)
            put(type_.table, id_, row)
            nodes, edges = nodes + isinstance(type_, NodeType), edges + isinstance(type_, EdgeType)
        elif isinstance(statement, Upsert):
            id_ = derived_id(statement.type, statement.values)
            put(type_.table, id_, now[type_.table].get(id_, dict.fromkeys(type_.props)) | statement.values)
            nodes += 1
        elif isinstance(statement, Update):
            found = matching(type_.table, statement.where)
            for id_ in found:
                put(type_.table, id_, now[type_.table][id_] | statement.values)
            if isinstance(type_, EdgeType):
                edges += len(found)
            else:
                nodes += len(found)
        elif isinstance(type_, EdgeType):
            edges += remove(type_.table, matching(type_.table, statement.where))
        else:
            gone = set(matching(type_.table, statement.where))
            nodes += remove(type_.table, gone)
            for edge in schema.touching(type_.name):
                ends = [end for end, node in (("src", edge.source), ("dst", edge.target)) if node == type_.name]
                lost = [id_ for id_, row in now[edge.table].items() if any(row[end] in gone for end in ends)]
                edges += remove(edge.table, lost)
    write: Write = {}
    for key, rows in written.items():
        write[key] = TableWrite(list(rows.items()))
    for key, ids in deleted.items():
        write[key] = TableWrite(deleted=ids)
    return nodes, edges, write


# -- loads -------------------------------------------------------------------------------------------


@dataclass
class Record:
    """A record of a load as the model reads it; `faults` are what is wrong with it by itself.

    `given` are the properties it gives; None if it gives all of them. The shape of a record (stage 1) is judged before
    any value (stage 2).
    """

    line: int
    type: AnyType | None
    row: Row = field(default_factory=dict)
    id: str | None = None
    shape: Refusal | None = None
    faults: list[Refusal] = field(default_factory=list)
    given: frozenset[str] | None = None


@dataclass
class Loaded:
    """The outcome of a load: possible refusals, or a write with counts."""

    refusals: list[Refusal]
    write: Write
    counts: dict[str, int]


def load_records(schema: Schema, before: Tables, mode: str, records: Sequence[Record], named: Sequence[str]) -> Loaded:
    """Validate and apply a load; `named` are the tables it names, possibly without records."""
    misshapen = next((record for record in records if record.shape is not None), None)
    if misshapen is not None:
        assert misshapen.shape is not None
        return Loaded([misshapen.shape], {}, {})
    by_table: dict[str, list[Record]] = {key: [] for key in named}
    for record in records:
        assert record.type is not None
        by_table.setdefault(record.type.table, []).append(record)
    aliases = {key: _identify(found) for key, found in by_table.items()}
    wrong = [next((r for r in found if r.faults), None) for found in by_table.values()]
    refusals = [fault for record in wrong if record is not None for fault in record.faults]
    if refusals:
        return Loaded(refusals, {}, {})
    write: Write = {}
    repeated: list[Refusal] = []
    for key, found in by_table.items():
        rows: list[tuple[str, Row]] = []
        for record in found:
            if isinstance(record.type, EdgeType):
                ends = (("src", record.type.source), ("dst", record.type.target))
                renamed = {end: aliases.get(f"node:{node}", {}).get(record.row[end]) for end, node in ends}
                record.row |= {end: id_ for end, id_ in renamed.items() if id_ is not None}
            assert record.id is not None
            rows.append((record.id, record.row))
        if mode == "merge":
            _match_edges(found, before[key])
            write[key] = TableWrite(_folded(found, before[key]))
            continue
        keyed = bool(found) and isinstance(found[0].type, NodeType) and bool(found[0].type.key)
        last = dict(rows)
        if not keyed and len(last) < len(rows):
            taken = before[key] if mode == "append" else ()
            conflicts = [*_twice(id_ for id_, _ in rows), *(id_ for id_ in last if id_ in taken)]
            repeated += [Refusal("key_conflict", (f"'{id_}'",)) for id_ in conflicts]
            rows = list(last.items())
        write[key] = TableWrite(rows, replaced=mode == "overwrite")
    refusals = judge(schema, before, write)
    if repeated:
        # For an id given twice with a rule violation in one of its rows, the order of the errors is undefined.
        return Loaded([*repeated, *(Refusal(f"{rule}_violation") for rule in RULES)], {}, {})
    if not refusals and mode == "append":
        for key, change in write.items():
            there = next((id_ for id_, _ in change.rows if id_ in before[key]), None)
            refusals += [Refusal("key_conflict", (f"'{there}'",))] if there is not None else []
    return Loaded(refusals, write, {key: len(found) for key, found in by_table.items()})


def _folded(records: Sequence[Record], before: Mapping[str, Row]) -> list[tuple[str, Row]]:
    """The rows of a merge: records for one id are applied in order, and absent properties keep their values."""
    rows: dict[str, Row] = {}
    for record in records:
        assert record.id is not None
        assert record.type is not None
        old = rows.pop(record.id, None) or before.get(record.id) or {}
        given = {name: value for name, value in record.row.items() if record.given is None or name in record.given}
        ends = {end: record.row[end] for end in ("src", "dst") if end in record.row}
        rows[record.id] = {**dict.fromkeys(record.row), **old, **given, **ends}
    return list(rows.items())


def _match_edges(records: Sequence[Record], before: Mapping[str, Row]) -> None:
    """Give edges without an id that of the committed edge with the same tuple, or one of their own for each tuple."""
    type_ = records[0].type if records else None
    unique = [columns for columns in type_.unique if {"src", "dst"} <= {*columns}] if type_ is not None else []
    if not isinstance(type_, EdgeType) or not unique:
        return
    columns = min(tuple(sorted(columns)) for columns in unique)
    ids = {tuple(row[name] for name in columns): id_ for id_, row in before.items()}
    for record in records:
        values = tuple(record.row[name] for name in columns)
        if record.id is not None and is_unknown(record.id) and None not in values:
            record.id = ids.setdefault(values, record.id)


def _twice(ids: Iterable[str]) -> list[str]:
    return [id_ for id_, times in Counter(ids).items() if times > 1]


def _identify(records: Sequence[Record]) -> dict[str, str]:
    """Assign ids to valid records; return old spellings of ids."""
    aliases: dict[str, str] = {}
    for record in records:
        type_ = record.type
        if not isinstance(type_, NodeType) or not type_.key:
            record.id = record.id if record.id is not None else unknown_id()
        elif not record.faults:
            id_ = derived_id(type_, record.row)
            if record.id is not None and record.id != id_:
                if not _old_spelling(type_, record.row, record.id) or aliases.get(record.id, id_) != id_:
                    record.faults.append(Refusal("bad_record", (f"line {record.line}:", f"'{record.id}'")))
                aliases[record.id] = id_
            record.id = id_
    return aliases


def _old_spelling(node: NodeType, row: Row, id_: str) -> bool:
    for name in node.key:
        type_ = node.props[name].type
        if type_ in ("I32", "I64", "U32", "U64") and re.fullmatch("-?[0-9]+", id_) and int(id_) == row[name]:
            return True
        if type_ == "Date" and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", id_):
            return int((np.datetime64(id_) - np.datetime64("1970-01-01")).astype(int)) == row[name]
    return False
