"""The compact form of a schema: one line per type.

    Person(name String key, age I64?, bio String? text, meaning Vector(4)? of bio)
    Knows: Person -> Person (since Date?)

A schema that exceeds its budget is shown by the names of its types; `schema` with a type shows the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.errors import TypeNotFound
from omnigraph.mcp.budget import TOKEN_BYTES
from omnigraph.schema.catalog import Catalog, EdgeType, InterfaceType, NodeType, Property
from omnigraph.suggestions import did_you_mean

SCHEMA_TOKENS = 2_000
_LEGEND = "A property: name, type, '?' if it can be null; marks: key, unique, text (full-text index), vector of TEXT."


def schema_text(catalog: Catalog, tokens: int = SCHEMA_TOKENS) -> tuple[str, bool]:
    """Return the compact form of a schema, and True if it shows every property."""
    combines = ["Merges combine edits of different properties."] if catalog.merge_properties == "combine" else []
    nodes, edges = map(_node_line, catalog.nodes.values()), map(_edge_line, catalog.edges.values())
    whole = "\n".join([_LEGEND, *combines, *nodes, *edges, *map(_interface_line, catalog.interfaces.values())])
    if _fits(whole, tokens):
        return whole, True
    intro = "The schema is large: these are its types; call 'schema' with 'type' for the properties of one."
    for named in (_names_with_ends(catalog), _names(catalog)):
        text = "\n".join([intro, *named])
        if _fits(text, tokens):
            return text, False
    return _cut(intro, list(_names(catalog)), tokens), False


def type_text(catalog: Catalog, name: str) -> str:
    """Return one type with its properties, and the edges that touch it."""
    node = catalog.nodes.get(name)
    if node is not None:
        return "\n".join([_node_line(node), *map(_edge_line, catalog.edges_touching[name])])
    interface = catalog.interfaces.get(name)
    if interface is not None:
        return "\n".join([_interface_line(interface), f"implemented by: {', '.join(catalog.implementers[name])}"])
    edge = catalog.find_edge(name)
    if edge is not None:
        ends = dict.fromkeys((edge.from_type, edge.to_type))
        return "\n".join([_edge_line(edge), *(_node_line(catalog.nodes[end]) for end in ends)])
    known = [*catalog.nodes, *catalog.edges, *catalog.interfaces]
    raise TypeNotFound(f"there is no type '{name}'", hint=did_you_mean(name, known))


def type_names(catalog: Catalog) -> list[str]:
    """Return the names of all types, nodes first."""
    return list(dict.fromkeys([*catalog.nodes, *catalog.edges, *catalog.interfaces]))


def _node_line(node: NodeType) -> str:
    implements = f" implements {', '.join(node.implements)}" if node.implements else ""
    return f"{node.name}({_properties(node, node.key)}){implements}{_note(node)}"


def _edge_line(edge: EdgeType) -> str:
    properties = f" ({_properties(edge, ())})" if edge.properties else ""
    bounds = "" if str(edge.cardinality) == "0.." else f" [{edge.cardinality} per {edge.from_type}]"
    return f"{edge.name}: {edge.from_type} -> {edge.to_type}{properties}{bounds}{_note(edge)}"


def _interface_line(interface: InterfaceType) -> str:
    return f"interface {interface.name}({_properties(interface, ())}){_note(interface)}"


def _properties(type_: NodeType | EdgeType | InterfaceType, key: tuple[str, ...]) -> str:
    order = sorted(type_.properties.values(), key=lambda each: (each.name not in key, each.name))
    return ", ".join(_property(each, type_, key) for each in order)


def _property(property: Property, type_: NodeType | EdgeType | InterfaceType, key: tuple[str, ...]) -> str:
    marks = []
    if property.name in key:
        marks.append("key")
    if (property.name,) in type_.unique:
        marks.append("unique")
    if property.type.scalar == "String" and (property.name,) in type_.indices and property.name not in key:
        marks.append("text")
    if property.embed is not None:
        marks.append(f"vector of {property.embed.source}")
    return " ".join([property.name, str(property.type), *marks])


def _note(type_: NodeType | EdgeType | InterfaceType) -> str:
    """Return the description of a type, as its schema gives it."""
    found = next((note.value for note in type_.notes if note.name == "description" and note.value), None)
    return f" -- {' '.join(found.split())[:200]}" if found else ""


def _names_with_ends(catalog: Catalog) -> Iterable[str]:
    yield f"nodes: {', '.join(catalog.nodes)}"
    yield from (f"{edge.name}: {edge.from_type} -> {edge.to_type}" for edge in catalog.edges.values())


def _names(catalog: Catalog) -> Iterable[str]:
    yield f"nodes: {', '.join(catalog.nodes)}"
    yield f"edges: {', '.join(catalog.edges)}"


def _fits(text: str, tokens: int) -> bool:
    return len(text.encode()) <= tokens * TOKEN_BYTES


def _cut(intro: str, lines: list[str], tokens: int) -> str:
    """Return the beginning of a list of names that is too long itself."""
    left = max(int(tokens * TOKEN_BYTES) - len(intro.encode()) - 60, 0)
    text = "\n".join(lines).encode()[:left].decode(errors="ignore").rpartition(",")[0]
    return f"{intro}\n{text}, … (cut to the budget)"
