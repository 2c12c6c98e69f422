"""Growth of a schema: declarations for labels and keys that it does not have yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from llama_index.graph_stores.omnigraph.labels import property_name, quoted, type_name
from llama_index.graph_stores.omnigraph.type_map import (
    CHUNK_LABEL,
    ENTITY_LABEL,
    JSON,
    LABEL,
    TEXT,
    MappedEdge,
    MappedNode,
    MappedType,
    TypeMap,
)

from omnigraph.schema.format import format_schema
from omnigraph.schema.parser import parse_schema

NAME = "name"
CHUNK_ID = "chunk_id"
VECTOR = "embedding"
_I64 = range(-(2**63), 2**63)


@dataclass
class WantedType:
    """A node or edge type and what it must hold: the values by key of LlamaIndex, and vectors of a dimension."""

    label: str
    values: dict[str, list[Any]] = field(default_factory=dict)
    dimension: int | None = None

    def add(self, properties: Mapping[str, Any]) -> None:
        """Require the keys of a node or relation."""
        for key, value in properties.items():
            if value is not None:
                self.values.setdefault(key, []).append(value)


@dataclass
class Growth:
    """Additions to a schema: new declarations, and properties of existing types."""

    declarations: list[str] = field(default_factory=list)
    members: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Kind and name of an existing type → its new properties."""

    def __bool__(self) -> bool:
        return bool(self.declarations or self.members)

    def apply_to(self, source: str) -> str:
        """Return the schema text with the additions; comments and order stay."""
        pieces: list[str] = []
        at = 0
        for declaration in parse_schema(source).declarations:
            kind = type(declaration).__name__.removesuffix("Decl").lower()
            added = self.members.get((kind, declaration.name.text))
            if not added:
                continue
            lines, end = "\n".join(added), declaration.span.end
            has_body = source[end - 1] == "}"
            pieces += [source[at : end - 1 if has_body else end], f"\n{lines}\n" if has_body else f" {{\n{lines}\n}}"]
            at = end - 1 if has_body else end
        text = "".join([*pieces, source[at:], *(f"\n{declaration}\n" for declaration in self.declarations)])
        return format_schema(text)


def chunk_declaration(name: str = "Chunk", dimension: int | None = None) -> str:
    """Return the declaration of the type of chunks, for a schema that is written by hand.

    It has the properties that LlamaIndex stores with every chunk. Add one for each metadata key of the documents.
    """
    vector = [f'{VECTOR}: Vector({dimension})? @embed("{TEXT}")'] if dimension is not None else []
    kept = [f"{key}: String?" for key in ("_node_content", "_node_type", "doc_id", "document_id", "ref_doc_id")]
    members = [f"{CHUNK_ID}: String @key", f"{TEXT}: String @index", *vector, *kept]
    return format_schema(_body(f"node {name} @{LABEL}({quoted(CHUNK_LABEL)})", members))


def grow_nodes(types: TypeMap, growth: Growth, wanted: Iterable[WantedType]) -> None:
    """Add what node types lack; equal labels of `wanted` must be one entry."""
    taken = set(types.taken)
    for each in wanted:
        known = types.node(each.label)
        if known is not None:
            _extend(growth, "node", known, each)
            continue
        name = type_name(each.label, taken)
        taken.add(name)
        growth.declarations.append(_node_declaration(name, each))


def grow_chunks(types: TypeMap, growth: Growth, name: str, wanted: WantedType) -> None:
    """Add what the type of chunks lacks."""
    known = types.chunk()
    if known is not None:
        _extend(growth, "node", known, wanted)
        return
    head = f"node {name} @{LABEL}({quoted(CHUNK_LABEL)})"
    vector = [f'{VECTOR}: Vector({wanted.dimension})? @embed("{TEXT}")'] if wanted.dimension is not None else []
    members = [f"{CHUNK_ID}: String @key", f"{TEXT}: String @index", *vector]
    growth.declarations.append(_body(head, [*members, *_members(wanted, {CHUNK_ID, TEXT, VECTOR})]))


def grow_entity(types: TypeMap, growth: Growth) -> str:
    """Return the type of nodes without a label, and add it if there is none."""
    known = types.node(ENTITY_LABEL)
    if known is not None:
        return known.name
    grow_nodes(types, growth, [WantedType(ENTITY_LABEL)])
    return _declared_name(growth.declarations[-1])


def grow_edges(types: TypeMap, growth: Growth, wanted: Mapping[tuple[str, str], Sequence[WantedType]]) -> None:
    """Add what edge types lack; `wanted` has the labels between two node types."""
    taken = set(types.taken) | {_declared_name(each) for each in growth.declarations}
    for (source, target), labels in sorted(wanted.items()):
        for each in labels:
            known = find_edge(types, each.label, source, target)
            if known is not None:
                _extend(growth, "edge", known, each)
                continue
            name = type_name(each.label, ())
            if name in taken or any(name.lower() == one.lower() for one in taken):
                name = type_name(f"{each.label} {source} {target}", taken)
            taken.add(name)
            head = f"edge {name}: {source} -> {target} @{LABEL}({quoted(each.label)})"
            growth.declarations.append(_body(head, [*_members(each, set()), "@unique(src, dst)"]))


def find_edge(types: TypeMap, label: str, source: str, target: str) -> MappedEdge | None:
    """Return the edge type of a label between two node types."""
    found = (edge for edge in types.edges_of(label) if (edge.source, edge.target) == (source, target))
    return next(found, None)


def property_type(values: Sequence[Any]) -> str | None:
    """Return the property type that holds all values; None if only JSON does."""
    kinds = {_kind(value) for value in values}
    if kinds <= {"I64", "F64"}:
        return "I64" if kinds == {"I64"} else "F64"
    if kinds <= {"[I64]", "[F64]"}:
        return "[I64]" if kinds == {"[I64]"} else "[F64]"
    return kinds.pop() if len(kinds) == 1 else None


def packed(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "Bool"
    if isinstance(value, int):
        return "I64" if value in _I64 else None
    if isinstance(value, float):
        return "F64"
    if isinstance(value, str):
        return "String"
    if isinstance(value, datetime):
        return "DateTime"
    if isinstance(value, date):
        return "Date"
    if isinstance(value, (list, tuple)) and value:
        item = property_type(value)
        return None if item is None or item.startswith("[") else f"[{item}]"
    return None


def _node_declaration(name: str, wanted: WantedType) -> str:
    vector = [f"{VECTOR}: Vector({wanted.dimension})?"] if wanted.dimension is not None else []
    members = [f"{NAME}: String @key", *vector, *_members(wanted, {NAME, VECTOR})]
    return _body(f"node {name} @{LABEL}({quoted(wanted.label)})", members)


def _extend(growth: Growth, kind: str, known: MappedType, wanted: WantedType) -> None:
    """Add the properties that an existing type lacks."""
    hidden = set(known.properties.values())
    missing = {key: values for key, values in wanted.values.items() if known.find(key) is None}
    added: list[str] = []
    if isinstance(known, MappedNode):
        hidden |= {known.key, TEXT, VECTOR, *((known.vector,) if known.vector is not None else ())}
        if wanted.dimension is not None and known.vector is None:
            embed = f' @embed("{TEXT}")' if known.is_chunk else ""
            added.append(f"{VECTOR}: Vector({wanted.dimension})?{embed}")
    added += _members(WantedType(wanted.label, missing), hidden)
    if added:
        growth.members.setdefault((kind, known.name), []).extend(added)


def _members(wanted: WantedType, taken: set[str]) -> list[str]:
    """Return the declarations of the properties of keys."""
    used = set(taken)
    lines: list[str] = []
    for key, values in sorted(wanted.values.items()):
        name = property_name(key, used)
        used.add(name)
        kind = property_type(values)
        label = f" @{LABEL}({quoted(key)})" if name != key else ""
        lines.append(f"{name}: {kind or 'String'}?{label}{'' if kind is not None else f' @{JSON}'}")
    return lines


def _body(head: str, members: Sequence[str]) -> str:
    return "\n".join([f"{head} {{", *(f"    {member}" for member in members), "}"])


def _declared_name(declaration: str) -> str:
    return declaration.split()[1].rstrip(":")
