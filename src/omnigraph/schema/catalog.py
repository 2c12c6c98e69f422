"""What a schema means: the catalog every other part of the program looks types up in.

A catalog is plain immutable data in canonical form: types and properties by ascending name, column
lists sorted, enum values sorted, interface properties already copied into the nodes that implement
them. Two sources that differ only in order, comments or rename hints give equal catalogs.

It does not know where it came from: `check` builds it from a tree, `identity` from a stored document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from omnigraph.table_key import TableKey
from omnigraph.types import PropertyType

TypeKind = Literal["interface", "node", "edge"]

RESERVED_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
"""Names the storage layer keeps for itself."""

SYSTEM_FIELDS: Mapping[TypeKind, tuple[str, ...]] = {
    "interface": (),
    "node": ("id",),
    "edge": ("id", "src", "dst"),
}
"""The columns a table has before its properties."""


@dataclass(frozen=True, slots=True, order=True)
class Metadata:
    """An annotation kept as metadata; `arguments` are its keyword arguments, by name."""

    name: str
    value: str | None = None
    arguments: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """`{name, value}`, and `kwargs` when there are any."""
        data: dict[str, Any] = {"name": self.name, "value": self.value}
        if self.arguments:
            data["kwargs"] = dict(self.arguments)
        return data


@dataclass(frozen=True, slots=True)
class Embed:
    """Where the text of a vector property comes from, and which model turns it into the vector."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """The columns that identify a node, in the order its id spells them."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    """No two rows share this tuple."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """An index is wanted over these columns."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive numeric bounds; None is open."""

    column: str
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Check:
    """The text must contain a match of this pattern."""

    column: str
    pattern: str


Constraint = Key | Unique | Index | Range | Check


@dataclass(frozen=True, slots=True)
class Property:
    """A property; `injected_from` names the interfaces it came from when the node did not declare it."""

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
        """The column groups of every `@unique`."""
        return tuple(c.columns for c in self.constraints if isinstance(c, Unique))

    @cached_property
    def indices(self) -> tuple[tuple[str, ...], ...]:
        """The column groups to index: the key's columns one by one, then every `@index`."""
        declared = [c.columns for c in self.constraints if isinstance(c, Index)]
        implied = [(column,) for c in self.constraints if isinstance(c, Key) for column in c.columns]
        return tuple(dict.fromkeys([*implied, *declared]))

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """Every `@range`."""
        return tuple(c for c in self.constraints if isinstance(c, Range))

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Every `@check`."""
        return tuple(c for c in self.constraints if isinstance(c, Check))

    @cached_property
    def blobs(self) -> tuple[str, ...]:
        """The Blob properties, which no query reads as values."""
        return tuple(p.name for p in self.properties.values() if p.type.scalar == "Blob")


@dataclass(frozen=True)
class InterfaceType(_DeclaredType):
    """A property contract; it has no table."""

    kind: Literal["interface"] = field(default="interface", init=False)


@dataclass(frozen=True)
class NodeType(_DeclaredType):
    """A node type: one table, `id` and then the properties."""

    implements: tuple[str, ...] = ()
    kind: Literal["node"] = field(default="node", init=False)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The key columns in the order the id spells them; empty when rows get generated ids."""
        return next((c.columns for c in self.constraints if isinstance(c, Key)), ())

    @cached_property
    def embeds(self) -> Mapping[str, Embed]:
        """Vector property → the text it is made from."""
        return {p.name: p.embed for p in self.properties.values() if p.embed}

    @property
    def table_key(self) -> TableKey:
        """Key of the table."""
        return TableKey.node(self.name)


@dataclass(frozen=True)
class UnionType(NodeType):
    """Node types of which a variable may be any, and the properties they share; it has no table of its own."""

    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cardinality:
    """How many edges a source node may have; no `max` is unbounded."""

    min: int = 0
    max: int | None = None

    def __str__(self) -> str:
        return f"{self.min}..{'' if self.max is None else self.max}"


@dataclass(frozen=True)
class EdgeType(_DeclaredType):
    """An edge type: one table, `id`, `src`, `dst` and then the properties."""

    from_type: str = ""
    to_type: str = ""
    cardinality: Cardinality = Cardinality()
    kind: Literal["edge"] = field(default="edge", init=False)

    @property
    def table_key(self) -> TableKey:
        """Key of the table."""
        return TableKey.edge(self.name)

    @property
    def word(self) -> str:
        """How a query writes the edge: its name with a small first letter."""
        return self.name[0].lower() + self.name[1:]


AnyType = InterfaceType | NodeType | EdgeType


@dataclass(frozen=True)
class Catalog:
    """All types of a schema, each map by ascending name."""

    interfaces: Mapping[str, InterfaceType]
    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]

    @cached_property
    def _edges_by_folded_name(self) -> Mapping[str, EdgeType]:
        return {name.lower(): edge for name, edge in self.edges.items()}

    def find_edge(self, word: str) -> EdgeType | None:
        """The edge a query word means: the exact name first, then whatever its case."""
        return self.edges.get(word) or self._edges_by_folded_name.get(word.lower())

    @cached_property
    def edges_touching(self) -> Mapping[str, tuple[EdgeType, ...]]:
        """Node type → every edge type that starts or ends there."""
        touching: dict[str, list[EdgeType]] = {name: [] for name in self.nodes}
        for edge in self.edges.values():
            for end in {edge.from_type, edge.to_type}:
                touching[end].append(edge)
        return {name: tuple(edges) for name, edges in touching.items()}

    @cached_property
    def implementers(self) -> Mapping[str, tuple[str, ...]]:
        """Interface → the node types that implement it."""
        return {
            name: tuple(node.name for node in self.nodes.values() if name in node.implements)
            for name in self.interfaces
        }

    def node(self, name: str) -> NodeType:
        """A node type, or what those of a union `A|B` share; interfaces nobody implements are a union of no nodes."""
        found = self.nodes.get(name)
        if found is None:
            found = self._unions.get(name)
        if found is None:
            found = self._unions[name] = self._union(name)
        return found

    def members(self, name: str) -> tuple[str, ...]:
        """The node types a node of this type, or of this union, can be of."""
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

    def tables(self) -> Iterator[NodeType | EdgeType]:
        """Every type that has a table: edges, then nodes, each by name."""
        yield from self.edges.values()
        yield from self.nodes.values()

    def of_kind(self, kind: TypeKind) -> Mapping[str, AnyType]:
        """The types of one kind."""
        by_kind: dict[TypeKind, Mapping[str, AnyType]] = {
            "interface": self.interfaces,
            "node": self.nodes,
            "edge": self.edges,
        }
        return by_kind[kind]


def union_name(names: Iterable[str]) -> str:
    """What the union of some node types is called."""
    return "|".join(sorted(set(names)))


def share(properties: Sequence[Property]) -> Property | None:
    """What properties of one name are together: of one type, null where any may be; None when they differ."""
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


def constraint_to_json(constraint: Constraint) -> dict[str, Any]:
    """`{"Key": […]}`, `{"Range": {property, min, max}}` and so on."""
    match constraint:
        case Range(column, low, high):
            return {"Range": {"property": column, "min": low, "max": high}}
        case Check(column, pattern):
            return {"Check": {"property": column, "pattern": pattern}}
        case _:
            return {type(constraint).__name__: list(constraint.columns)}


def constraint_columns(constraint: Constraint) -> tuple[str, ...]:
    """The columns a constraint speaks of."""
    match constraint:
        case Range() | Check():
            return (constraint.column,)
        case _:
            return constraint.columns


def constraint_order(constraint: Constraint) -> tuple[Any, ...]:
    """The canonical order of a type's constraints: key, unique, index, range, check, then columns."""
    rank = (Key, Unique, Index, Range, Check).index(type(constraint))
    return rank, constraint_columns(constraint), repr(constraint)
