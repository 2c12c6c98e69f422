"""The catalog: the resolved, validated types of a schema.

A catalog is immutable data in canonical form: types and properties by ascending name, column lists sorted, enum values
sorted, interface properties copied into the nodes that implement them. Two sources that differ only in order, comments
or rename hints give equal catalogs.

A catalog is independent of its origin: `check` builds it from a tree, `identity` from a stored document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Literal

from omnigraph.fast_dataclass import dataclass
from omnigraph.schema.constraints import Check, Constraint, Index, Key, Range, Unique, Valid
from omnigraph.table_key import TableKey
from omnigraph.types import PropertyType

TypeKind = Literal["interface", "node", "edge"]
MergeProperties = Literal["conflict", "combine"]
MERGE_PROPERTIES = ("conflict", "combine")

RESERVED_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
"""Column names that are reserved for the storage layer."""

SYSTEM_FIELDS: Mapping[TypeKind, tuple[str, ...]] = {
    "interface": (),
    "node": ("id",),
    "edge": ("id", "src", "dst"),
}
"""Columns of a table that precede its properties."""


@dataclass(frozen=True, slots=True, order=True)
class Metadata:
    """Annotation that is kept as metadata; `arguments` are its keyword arguments, by name."""

    name: str
    value: str | None = None
    arguments: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return `{name, value}`, and `kwargs` if there are keyword arguments."""
        data: dict[str, Any] = {"name": self.name, "value": self.value}
        if self.arguments:
            data["kwargs"] = dict(self.arguments)
        return data


@dataclass(frozen=True, slots=True)
class Embed:
    """Source property and model of an embedded vector property."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Property:
    """Property of a type; `injected_from` names the interfaces it comes from if the node does not declare it."""

    name: str
    type: PropertyType
    notes: tuple[Metadata, ...] = ()
    embed: Embed | None = None
    injected_from: tuple[str, ...] = ()
    rename_from: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class _DeclaredType:
    name: str
    properties: Mapping[str, Property]
    constraints: tuple[Constraint, ...] = ()
    notes: tuple[Metadata, ...] = ()
    rename_from: str | None = field(default=None, compare=False, kw_only=True)

    @cached_property
    def unique(self) -> tuple[tuple[str, ...], ...]:
        """Column groups of all `@unique` constraints."""
        return tuple(c.columns for c in self.constraints if isinstance(c, Unique))

    @cached_property
    def indices(self) -> tuple[tuple[str, ...], ...]:
        """Column groups to index: each column of the key, then every `@index`."""
        declared = [c.columns for c in self.constraints if isinstance(c, Index)]
        implied = [(column,) for c in self.constraints if isinstance(c, Key) for column in c.columns]
        return tuple(dict.fromkeys([*implied, *declared]))

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """All `@range` constraints."""
        return tuple(c for c in self.constraints if isinstance(c, Range))

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """All `@check` constraints."""
        return tuple(c for c in self.constraints if isinstance(c, Check))

    @cached_property
    def valid(self) -> Valid | None:
        """The properties that hold the period of a row; None if the type has no valid time."""
        return next((c for c in self.constraints if isinstance(c, Valid)), None)

    @cached_property
    def blobs(self) -> tuple[str, ...]:
        """Names of the Blob properties, which queries cannot read as values."""
        return tuple(p.name for p in self.properties.values() if p.type.scalar == "Blob")


@dataclass(frozen=True)
class InterfaceType(_DeclaredType):
    """Interface: a set of properties that node types implement. It has no table."""

    kind: Literal["interface"] = field(default="interface", init=False)


@dataclass(frozen=True)
class NodeType(_DeclaredType):
    """Node type. Its table has the column `id` and then the properties."""

    implements: tuple[str, ...] = ()
    kind: Literal["node"] = field(default="node", init=False)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Key columns in the order in which the id lists them; empty if ids are generated."""
        return next((c.columns for c in self.constraints if isinstance(c, Key)), ())

    @cached_property
    def has_periods(self) -> bool:
        """True if several rows can have one key, each for another period of valid time."""
        return bool(self.key) and self.valid is not None

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """The columns that give the id of a row: the key, and the start of its period if a key has several rows."""
        return (*self.key, self.valid.start) if self.key and self.valid is not None else self.key

    @cached_property
    def id_column(self) -> str | None:
        """The only property whose text is the id of a row; None if there is none."""
        return self.identity[0] if len(self.identity) == 1 else None

    @cached_property
    def end_column(self) -> str:
        """The column whose value edges have as an end: the id, or the key if a key has several rows."""
        return self.key[0] if self.has_periods else "id"

    @cached_property
    def embeds(self) -> Mapping[str, Embed]:
        """Vector property → source and model of its embedding."""
        return {p.name: p.embed for p in self.properties.values() if p.embed}

    @property
    def table_key(self) -> TableKey:
        """Key of the table."""
        return TableKey.node(self.name)


@dataclass(frozen=True)
class UnionType(NodeType):
    """Union of node types, with the properties they share, for variables of several types. It has no table."""

    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cardinality:
    """Bounds on the number of edges of a source node; None as `max` means unbounded."""

    min: int = 0
    max: int | None = None

    def __str__(self) -> str:
        return f"{self.min}..{'' if self.max is None else self.max}"


@dataclass(frozen=True)
class EdgeType(_DeclaredType):
    """Edge type. Its table has the columns `id`, `src`, `dst` and then the properties."""

    from_type: str = ""
    to_type: str = ""
    cardinality: Cardinality = Cardinality()
    kind: Literal["edge"] = field(default="edge", init=False)

    @property
    def table_key(self) -> TableKey:
        """Key of the table."""
        return TableKey.edge(self.name)

    @cached_property
    def can_repeat(self) -> bool:
        """True if the schema permits several edges from one node to another."""
        return self.cardinality.max not in (0, 1) and not any({"src", "dst"} >= {*columns} for columns in self.unique)

    @property
    def word(self) -> str:
        """Name of the edge in queries: the type name with a lower-case first letter."""
        return self.name[0].lower() + self.name[1:]


AnyType = InterfaceType | NodeType | EdgeType


@dataclass(frozen=True)
class Catalog:
    """All types and settings of a schema; each map is ordered by name."""

    interfaces: Mapping[str, InterfaceType]
    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    merge_properties: MergeProperties = "conflict"
    """How edits of different properties of one row merge."""

    @cached_property
    def _edges_by_folded_name(self) -> Mapping[str, EdgeType]:
        return {name.lower(): edge for name, edge in self.edges.items()}

    def find_edge(self, word: str) -> EdgeType | None:
        """Return the edge type that a query names: an exact match first, then a match that ignores case."""
        return self.edges.get(word) or self._edges_by_folded_name.get(word.lower())

    @cached_property
    def edges_touching(self) -> Mapping[str, tuple[EdgeType, ...]]:
        """Node type → all edge types that start or end there."""
        touching: dict[str, list[EdgeType]] = {name: [] for name in self.nodes}
        for edge in self.edges.values():
            for end in {edge.from_type, edge.to_type}:
                touching[end].append(edge)
        return {name: tuple(edges) for name, edges in touching.items()}

    def joins_periods(self, edge: EdgeType) -> bool:
        """True if an end of an edge type is a node type whose keys have several rows."""
        return self.nodes[edge.from_type].has_periods or self.nodes[edge.to_type].has_periods

    @cached_property
    def implementers(self) -> Mapping[str, tuple[str, ...]]:
        """Interface → the node types that implement it."""
        return {
            name: tuple(node.name for node in self.nodes.values() if name in node.implements)
            for name in self.interfaces
        }

    def node(self, name: str) -> NodeType:
        """Return a node type, or the union type of `A|B` or an interface; an interface without implementations is an
        empty union.
        """
        found = self.nodes.get(name)
        if found is None:
            found = self._unions.get(name)
        if found is None:
            found = self._unions[name] = self._union(name)
        return found

    def members(self, name: str) -> tuple[str, ...]:
        """Return the node types that a type name, interface or union can stand for."""
        node = self.node(name)
        return node.members if isinstance(node, UnionType) else (name,)

    @cached_property
    def _unions(self) -> dict[str, UnionType]:
        return {}

    def _union(self, name: str) -> UnionType:
        names = name.split("|")
        types = [self.nodes.get(one) or self.interfaces[one] for one in names]
        candidates = ([type_.properties.get(p) for type_ in types] for p in types[0].properties)
        shared = (share([p for p in each if p is not None]) for each in candidates if None not in each)
        members = tuple(one for one in names if one in self.nodes)
        return UnionType(name, {p.name: p for p in shared if p is not None}, members=members)

    @cached_property
    def declares_embeddings(self) -> bool:
        """True if a vector property is computed from a text."""
        return any(node.embeds for node in self.nodes.values())

    def tables(self) -> Iterator[NodeType | EdgeType]:
        """Return all types that have a table: edges, then nodes, each by name."""
        yield from self.edges.values()
        yield from self.nodes.values()

    def of_kind(self, kind: TypeKind) -> Mapping[str, AnyType]:
        """Return the types of one kind."""
        by_kind: dict[TypeKind, Mapping[str, AnyType]] = {
            "interface": self.interfaces,
            "node": self.nodes,
            "edge": self.edges,
        }
        return by_kind[kind]


def union_name(names: Iterable[str]) -> str:
    """Return the name of the union of some node types."""
    return "|".join(sorted(set(names)))


def share(properties: Sequence[Property]) -> Property | None:
    """Return the property that stands for properties of one name in a union: nullable if any is; None if their types
    differ.
    """
    first = properties[0]
    types = [p.type for p in properties]
    if len({(t.scalar, t.is_list, t.dim) for t in types}) > 1:
        return None
    models = {p.embed.model for p in properties if p.embed and p.embed.model}
    if len(models) > 1:
        return None
    values = first.type.enum_values if len({t.enum_values for t in types}) == 1 else None
    type_ = replace(first.type, nullable=any(t.nullable for t in types), enum_values=values)
    embeds = sorted((p.embed for p in properties if p.embed), key=lambda embed: embed.model is None)
    return Property(first.name, type_, embed=embeds[0] if embeds else None)
