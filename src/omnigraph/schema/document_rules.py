"""Consistency rules of a schema document.

One pass over parsed records checks that numbers are unique and below the counter, lists are in canonical order, every
reference leads to the declaration that it names, and every declaration is valid in the schema language. The first
violation is raised. A document that passes can be converted to a catalog without further checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from omnigraph.schema import document
from omnigraph.schema.catalog import RESERVED_COLUMNS, SYSTEM_FIELDS, Metadata
from omnigraph.schema.constraints import Check, Index, Key, Range, Unique, Valid, constraint_order
from omnigraph.schema.document_parser import bad_document
from omnigraph.schema.patterns import why_bad_pattern


def check_parts(
    next_id: int,
    interfaces: Sequence[document.IRInterface],
    nodes: Sequence[document.IRNode],
    edges: Sequence[document.IREdge],
) -> None:
    """Raise `SchemaChangeError` if the records do not form a valid schema."""
    types: tuple[document.IRType, ...] = (*interfaces, *nodes, *edges)
    _check_numbers(next_id, types)
    for kind, of_kind in (("interfaces", interfaces), ("nodes", nodes), ("edges", edges)):
        _ascending(kind, [type_.name for type_ in of_kind])
    interface_by_id = {interface.id: interface for interface in interfaces}
    node_names = {node.id: node.name for node in nodes}
    folded: dict[str, str] = {}
    for type_ in types:
        _check_members(type_)
        match type_:
            case document.IRInterface():
                _check_interface(type_)
            case document.IRNode():
                _check_notes(_spell(type_), type_.notes)
                _check_satisfaction(type_, interface_by_id)
            case document.IREdge():
                _check_notes(_spell(type_), type_.notes)
                for ref in (type_.from_type, type_.to_type):
                    _check_ref(f"an endpoint of {_spell(type_)}", ref, node_names)
                bounds = type_.cardinality
                if bounds.max is not None and bounds.max < bounds.min:
                    raise bad_document(f"the cardinality {bounds} of {_spell(type_)} is upside down")
                other = folded.setdefault(type_.name.lower(), type_.name)
                if other != type_.name:
                    raise bad_document(f"edges '{other}' and '{type_.name}' differ only in case")


def _spell(type_: document.IRType, property_: document.IRProperty | None = None) -> str:
    return f"{type_.kind} '{type_.name}'" if property_ is None else f"'{type_.name}.{property_.name}'"


def _check_numbers(next_id: int, types: Iterable[document.IRType]) -> None:
    seen: dict[int, str] = {}
    for type_ in types:
        numbered = [(type_.id, _spell(type_))]
        numbered += [(property_.id, _spell(type_, property_)) for property_ in type_.properties]
        if not isinstance(type_, document.IRInterface):
            numbered.append((type_.incarnation_id, f"the table of {_spell(type_)}"))
        for number, what in numbered:
            if not 1 <= number < next_id:
                raise bad_document(f"id {number} of {what} is not between 1 and the counter {next_id}")
            if number in seen:
                raise bad_document(f"id {number} belongs to both {seen[number]} and {what}")
            seen[number] = what


def _ascending(what: str, keys: Sequence[Any]) -> None:
    for before, after in pairwise(keys):
        if not before < after:
            raise bad_document(f"{what} are not in ascending order without repeats")


def _check_ref(what: str, ref: document.Ref, names: Mapping[int, str]) -> None:
    if ref.id not in names:
        raise bad_document(f"{what} refers to id {ref.id}, which is nothing of the right kind")
    if ref.name != names[ref.id]:
        raise bad_document(f"{what} calls id {ref.id} '{ref.name}', but its name is '{names[ref.id]}'")


def _check_notes(what: str, notes: Sequence[Metadata]) -> None:
    _ascending(f"the annotations of {what}", [document.note_order(note) for note in notes])


# -- properties and constraints ----------------------------------------------------------------------


def _check_members(type_: document.IRType) -> None:
    _ascending(f"the properties of {_spell(type_)}", [property_.name for property_ in type_.properties])
    for property_ in type_.properties:
        what = _spell(type_, property_)
        if property_.name in RESERVED_COLUMNS or property_.name in SYSTEM_FIELDS[type_.kind]:
            raise bad_document(f"{what} has the name of a system column")
        _check_notes(what, property_.notes)
        if property_.embed is not None:
            _check_embed(type_, property_, property_.embed)
        if type_.kind != "node" and (property_.injected or property_.satisfies):
            raise bad_document(f"{what} cannot come from an interface")
    by_id = {property_.id: property_ for property_ in type_.properties}
    for constraint in type_.constraints:
        _check_constraint(type_, constraint, by_id)
    _ascending(
        f"the constraints of {_spell(type_)}",
        [constraint_order(constraint.constraint) for constraint in type_.constraints],
    )
    if type_.kind == "node" and sum(isinstance(c.constraint, Key) for c in type_.constraints) > 1:
        raise bad_document(f"{_spell(type_)} has more than one key")


def _check_embed(type_: document.IRType, property_: document.IRProperty, embed: document.IREmbed) -> None:
    what = f"the embedding of {_spell(type_, property_)}"
    if type_.kind == "edge" or property_.type.scalar != "Vector":
        raise bad_document(f"{what} is not on a vector of a node")
    source = next((p for p in type_.properties if p.name == embed.source_name), None)
    if embed.source_id != (source.id if source else None):
        raise bad_document(f"{what} refers to id {embed.source_id}, which is not '{embed.source_name}'")
    if type_.kind == "interface":
        return  # only nodes that inherit the property must have the text
    if source is None or not source.type.is_text or source.type.enum_values is not None:
        raise bad_document(f"{what} is not made from a String")


def _check_constraint(
    type_: document.IRType, constraint: document.IRConstraint, by_id: Mapping[int, document.IRProperty]
) -> None:
    word = type(constraint.constraint).__name__.lower()
    what = f"@{word} of {_spell(type_)}"
    names = {id_: property_.name for id_, property_ in by_id.items()}
    if not constraint.fields:
        raise bad_document(f"{what} has no columns")
    for column in constraint.fields:
        if isinstance(column, document.Ref):
            _check_ref(what, column, names)
        elif type_.kind != "edge" or not isinstance(constraint.constraint, Unique | Index):
            raise bad_document(f"{what} cannot name '{column.name}'")
    if isinstance(constraint.constraint, Key):
        _ascending(f"the columns of {what}", [c.id for c in constraint.fields if isinstance(c, document.Ref)])
    elif not isinstance(constraint.constraint, Valid):
        _ascending(f"the columns of {what}", [column.name for column in constraint.fields])
    _check_eligible(type_, constraint, by_id, what)


def _check_eligible(
    type_: document.IRType, constraint: document.IRConstraint, by_id: Mapping[int, document.IRProperty], what: str
) -> None:
    covered = [by_id[c.id].type for c in constraint.fields if not isinstance(c, document.SystemField)]
    match constraint.constraint:
        case Key():
            # The key of an interface becomes a key of its nodes and is checked there.
            sound = type_.kind == "interface" or (
                type_.kind == "node"
                and not any(t.nullable or t.is_list or t.scalar in ("Vector", "Blob") for t in covered)
            )
        case Unique():
            sound = not any(t.is_list or t.scalar in ("Vector", "Blob") for t in covered)
        case Index():
            sound = not any(t.scalar == "Blob" for t in covered)
        case Range(_, low, high):
            bounds = [bound for bound in (low, high) if bound is not None]
            sound = type_.kind == "node" and covered[0].is_numeric and bool(bounds)
            sound = sound and bounds == sorted(bounds)
        case Check(_, pattern):
            sound = type_.kind == "node" and covered[0].is_text and why_bad_pattern(pattern) is None
        case Valid():
            start, end = covered
            sound = type_.kind != "interface" and start.scalar == end.scalar and start.scalar in ("Date", "DateTime")
            sound = sound and end.nullable and not start.is_list and not end.is_list and _has_one_text_key(type_)
    if not sound:
        raise bad_document(f"{what} cannot stand on {', '.join(repr(c.name) for c in constraint.fields)}")


def _has_one_text_key(type_: document.IRType) -> bool:
    """Return True if a type has no key, or a key of one String."""
    keys = [c.fields for c in type_.constraints if isinstance(c.constraint, Key)]
    types = {p.name: p.type for p in type_.properties}
    return all(len(fields) == 1 and types[fields[0].name].is_text for fields in keys)


# -- interfaces --------------------------------------------------------------------------------------


def _check_interface(interface: document.IRInterface) -> None:
    for constraint in interface.constraints:
        if len(constraint.fields) > 1:
            raise bad_document(f"{_spell(interface)} has a constraint over several columns")


def _check_satisfaction(node: document.IRNode, interfaces: Mapping[int, document.IRInterface]) -> None:
    names = {interface.id: interface.name for interface in interfaces.values()}
    _ascending(f"the interfaces of {_spell(node)}", [ref.name for ref in node.implements])
    for ref in node.implements:
        _check_ref(f"'implements' of {_spell(node)}", ref, names)
    asked: dict[str, list[tuple[document.Link, document.IRProperty]]] = {
        property_.name: [] for property_ in node.properties
    }
    for ref in node.implements:
        for theirs in interfaces[ref.id].properties:
            if theirs.name not in asked:
                raise bad_document(f"{_spell(node)} lacks '{theirs.name}' of interface '{ref.name}'")
            asked[theirs.name].append((document.Link(ref, document.Ref(theirs.id, theirs.name)), theirs))
    for own in node.properties:
        what = _spell(node, own)
        links = tuple(link for link, _ in asked[own.name])
        if own.satisfies != links:
            raise bad_document(f"{what} is not linked to exactly the interface properties it satisfies")
        if own.injected and not links:
            raise bad_document(f"{what} is injected, but no interface provides it")
        for link, theirs in asked[own.name]:
            if own.type != theirs.type or (own.injected and own.notes != theirs.notes):
                raise bad_document(f"{what} differs from interface '{link.interface.name}'")
