"""Descriptions of the types, properties and words of a schema, for editors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from omnigraph.lang.editor_hints import Candidate
from omnigraph.schema.catalog import Catalog, EdgeType, InterfaceType, Metadata, NodeType, Property
from omnigraph.schema.constraints import constraint_columns
from omnigraph.schema.migration_steps import spell_constraint

ANNOTATIONS: Mapping[str, tuple[str, str]] = {
    "key": ("@key or @key(a, …)", "Identifies a row; the columns are indexed."),
    "unique": ("@unique or @unique(a, …)", "No two rows have the same values in all columns."),
    "index": ("@index or @index(a, …)", "Declares an index; it affects speed, never results."),
    "range": ("@range(p, low..high)", "The number is within the inclusive bounds, either of which may be absent."),
    "check": ('@check(p, "regex")', "The text contains a match of the regular expression."),
    "card": ("@card(min..max)", "The number of edges of this type per source node."),
    "valid": ("@valid(from: p, to: q)", "A row holds from the one date to the other; an absent date is open."),
    "embed": ('@embed("text")', "Stores a vector of a text property, computed whenever the text is written."),
    "description": ('@description("…")', "A description for readers and language models."),
    "instruction": ('@instruction("…")', "An instruction for language models."),
    "rename_from": ('@rename_from("old")', "The former name: the data of the old name is kept."),
}
"""Annotation of a schema → its usage and meaning."""
SCALAR_TYPES: Mapping[str, str] = {
    "String": "A Unicode text.",
    "Blob": "Bytes of any length, read in ranges.",
    "Bool": "true or false.",
    "I32": "An integer of 32 bits.",
    "I64": "An integer of 64 bits.",
    "U32": "An integer of 32 bits, not negative.",
    "U64": "An integer of 64 bits, not negative.",
    "F32": "A floating-point number of 32 bits.",
    "F64": "A floating-point number of 64 bits.",
    "Date": "A day.",
    "DateTime": "A time in UTC with milliseconds.",
    "Uuid": "A UUID.",
    "Vector": "Vector(n): n floating-point numbers, for search by meaning.",
}
"""Scalar type → its meaning."""

AnyType = NodeType | EdgeType | InterfaceType


def scalar_words() -> list[Candidate]:
    """Return the scalar types."""
    return [Candidate(name, "scalar", None, text) for name, text in SCALAR_TYPES.items()]


def find_type(catalog: Catalog, name: str) -> AnyType | None:
    """Return a node type, an edge type or an interface by its name."""
    return catalog.nodes.get(name) or catalog.edges.get(name) or catalog.interfaces.get(name)


def type_word(type_: AnyType) -> Candidate:
    """Return a type as a word of an editor."""
    if isinstance(type_, EdgeType):
        return Candidate(type_.name, "edge", f"{type_.from_type} -> {type_.to_type}", noted(type_.notes))
    return Candidate(type_.name, "type", type_.kind, noted(type_.notes))


def type_words(types: Iterable[AnyType]) -> list[Candidate]:
    """Return types as words of an editor."""
    return [type_word(type_) for type_ in types]


def edge_word(edge: EdgeType) -> Candidate:
    """Return the word of an edge type in a hop."""
    return Candidate(edge.word, "edge", f"{edge.from_type} -> {edge.to_type}", noted(edge.notes))


def property_words(type_: AnyType) -> list[Candidate]:
    """Return the properties of a type as words of an editor."""
    return [property_word(each) for each in type_.properties.values()]


def property_word(property_: Property) -> Candidate:
    """Return a property as a word of an editor."""
    return Candidate(property_.name, "property", str(property_.type), noted(property_.notes))


def declaration(type_: AnyType) -> str:
    """Return the first line of the declaration of a type."""
    if isinstance(type_, EdgeType):
        return f"edge {type_.name}: {type_.from_type} -> {type_.to_type}"
    implements = (
        f" implements {', '.join(type_.implements)}" if isinstance(type_, NodeType) and type_.implements else ""
    )
    return f"{type_.kind} {type_.name}{implements}"


def type_description(type_: AnyType) -> str | None:
    """Return the description of a type and its properties."""
    properties = [f"{each.name}: {each.type}" for each in type_.properties.values()]
    found = [text for text in (noted(type_.notes), "\n".join(properties)) if text]
    return "\n\n".join(found) or None


def property_description(type_: AnyType, property_: Property) -> str | None:
    """Return the description of a property, its constraints and the property that its vector is computed from."""
    rules = [spell_constraint(each) for each in type_.constraints if property_.name in constraint_columns(each)]
    if property_.embed is not None:
        rules.append(f'@embed("{property_.embed.source}")')
    found = [text for text in (noted(property_.notes), "\n".join(f"`{rule}`" for rule in rules)) if text]
    return "\n\n".join(found) or None


def noted(notes: Iterable[Metadata]) -> str | None:
    """Return the text of `@description`."""
    return next((note.value for note in notes if note.name == "description"), None)
