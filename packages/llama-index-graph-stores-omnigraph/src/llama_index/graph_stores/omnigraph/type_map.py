"""The types of a schema by the labels of LlamaIndex."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llama_index.graph_stores.omnigraph.labels import plain

if TYPE_CHECKING:
    from omnigraph.schema.catalog import Catalog, EdgeType, Metadata, NodeType, Property

LABEL = "label"
"""The annotation with the original label of a type or property: `node Person @label("PERSON")`."""
JSON = "json"
"""The annotation of a String property with values as JSON."""
TEXT = "text"
"""The property with the text of a chunk."""
CHUNK_LABEL = "text_chunk"
ENTITY_LABEL = "entity"


@dataclass(frozen=True)
class MappedType:
    """A node or edge type and the labels of its properties."""

    name: str
    label: str
    properties: Mapping[str, str]
    """Label → property, without the key, the text of a chunk and vectors."""
    json: frozenset[str]
    """The properties with values as JSON."""
    lists: frozenset[str]
    """The properties that are lists."""
    scalars: Mapping[str, str]
    """Property → its type, or the type of its items."""

    def find(self, label: str) -> str | None:
        """Return the property of a key of LlamaIndex."""
        return self.properties.get(label)


@dataclass(frozen=True)
class MappedNode(MappedType):
    """A node type."""

    key: str
    is_chunk: bool
    vector: str | None
    dimension: int | None
    embeds: bool
    """True if the graph computes the vector from a text."""


@dataclass(frozen=True)
class MappedEdge(MappedType):
    """An edge type."""

    word: str
    source: str
    target: str
    is_matched: bool
    """True if a load finds an existing edge by its ends, because a constraint makes them unique."""


@dataclass(frozen=True)
class TypeMap:
    """All types that the store can write; node types without a single text key are left out."""

    nodes: Mapping[str, MappedNode]
    edges: Mapping[str, MappedEdge]
    taken: frozenset[str]
    """The names of all declared types."""
    _by_label: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, catalog: Catalog, chunk_type: str) -> TypeMap:
        """Return the types of a catalog."""
        nodes = {
            name: _node(type_, is_chunk=name == chunk_type)
            for name, type_ in catalog.nodes.items()
            if _has_text_key(type_)
        }
        edges = {
            name: _edge(type_)
            for name, type_ in catalog.edges.items()
            if type_.from_type in nodes and type_.to_type in nodes
        }
        by_label: dict[str, str] = {}
        for name, node in nodes.items():
            by_label.setdefault(plain(node.label), name)
            by_label.setdefault(plain(name), name)
        taken = frozenset((*catalog.nodes, *catalog.edges, *catalog.interfaces))
        return cls(nodes, edges, taken, by_label)

    def node(self, label: str) -> MappedNode | None:
        """Return the node type of a label; labels that differ in case and separators only are one."""
        exact = next((node for node in self.nodes.values() if node.label == label), None)
        if exact is not None:
            return exact
        name = self._by_label.get(plain(label))
        return None if name is None else self.nodes[name]

    def chunk(self) -> MappedNode | None:
        """Return the type of chunks."""
        return next((node for node in self.nodes.values() if node.is_chunk), None)

    def edges_of(self, label: str) -> list[MappedEdge]:
        """Return the edge types of a label."""
        wanted = plain(label)
        return [edge for edge in self.edges.values() if wanted in (plain(edge.label), plain(edge.name))]

    def touching(self, types: Iterable[str]) -> list[MappedEdge]:
        """Return the edge types that start or end at some node types."""
        wanted = set(types)
        return [edge for edge in self.edges.values() if edge.source in wanted or edge.target in wanted]


def _has_text_key(type_: NodeType) -> bool:
    return len(type_.key) == 1 and type_.properties[type_.key[0]].type.scalar in ("String", "Uuid")


def _node(type_: NodeType, *, is_chunk: bool) -> MappedNode:
    vectors = {
        name: property_.type.dim for name, property_ in type_.properties.items() if property_.type.scalar == "Vector"
    }
    vector = "embedding" if "embedding" in vectors else min(vectors, default=None)
    hidden = {type_.key[0], *vectors, *((TEXT,) if is_chunk else ())}
    return MappedNode(
        type_.name,
        _label(type_.notes) or (CHUNK_LABEL if is_chunk else type_.name),
        *_properties(type_.properties, hidden),
        type_.key[0],
        is_chunk,
        vector,
        None if vector is None else vectors[vector],
        vector is not None and type_.properties[vector].embed is not None,
    )


def _edge(type_: EdgeType) -> MappedEdge:
    return MappedEdge(
        type_.name,
        _label(type_.notes) or type_.name,
        *_properties(type_.properties, ()),
        type_.word,
        type_.from_type,
        type_.to_type,
        _is_matched(type_),
    )


def _is_matched(type_: EdgeType) -> bool:
    return any({"src", "dst"} <= set(columns) for columns in type_.unique)


def _properties(
    properties: Mapping[str, Property], hidden: Iterable[str]
) -> tuple[dict[str, str], frozenset[str], frozenset[str], dict[str, str]]:
    left_out = set(hidden)
    shown = {
        name: property_
        for name, property_ in properties.items()
        if name not in left_out and property_.type.scalar not in ("Blob", "Vector")
    }
    labels = {_label(property_.notes) or name: name for name, property_ in shown.items()}
    packed = {name for name, property_ in shown.items() if any(note.name == JSON for note in property_.notes)}
    lists = {name for name, property_ in shown.items() if property_.type.is_list}
    scalars = {name: str(property_.type.scalar) for name, property_ in shown.items()}
    return labels, frozenset(packed), frozenset(lists), scalars


def _label(notes: Iterable[Metadata]) -> str | None:
    value: Any = next((note.value for note in notes if note.name == LABEL), None)
    return value if isinstance(value, str) else None
