"""Rows of a graph as nodes and triplets of LlamaIndex."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llama_index.core.graph_stores.types import ChunkNode, EntityNode, LabelledNode, Relation, Triplet
from llama_index.graph_stores.omnigraph.type_map import TEXT, MappedEdge, MappedNode, MappedType, TypeMap

if TYPE_CHECKING:
    from omnigraph import Graph, RemoteGraph

    AnyGraph = Graph | RemoteGraph

NodeKey = tuple[str, str]
"""Type and id of a node."""


@dataclass(frozen=True)
class StoredEdge:
    """An edge of the graph."""

    type: MappedEdge
    id: str
    source: NodeKey
    target: NodeKey
    relation: Relation

    @property
    def order(self) -> tuple[str, str, str, str]:
        """The place among the edges of one distance."""
        return (self.type.label, self.source[1], self.target[1], self.id)


class GraphReader:
    """Reads nodes and edges of a graph by the types of its schema."""

    def __init__(self, graph: AnyGraph, types: TypeMap) -> None:
        self._graph = graph
        self._types = types

    def places(self, ids: Collection[str]) -> dict[str, list[str]]:
        """Return the node types of ids, by name."""
        if not ids or not self._types.nodes:
            return {}
        union = "|".join(self._types.nodes)
        kind = "type($n)" if len(self._types.nodes) > 1 else f'"{union}"'
        text = f"match {{ $n: {union} id($n) in $ids }} return {{ id($n) as id, {kind} as type }} order {{ id, type }}"
        found: dict[str, list[str]] = {}
        for row in self._graph.query(text, {"ids": list(ids)}):
            found.setdefault(row["id"], []).append(row["type"])
        return found

    def nodes(
        self, type_: MappedNode, ids: Collection[str] | None = None, where: str = "", params: Mapping[str, Any] = {}
    ) -> Iterator[LabelledNode]:
        """Yield the nodes of a type with some ids, or that satisfy conditions on `$n`, by id."""
        clause = "id($n) in $node_ids" if ids is not None else ""
        returned = ", ".join(["id($n) as id", *_items("$n", type_)])
        text = f"match {{ $n: {type_.name} {clause} {where} }} return {{ {returned} }} order {{ id }}"
        values = {**params, **({"node_ids": list(ids)} if ids is not None else {})}
        for row in self._graph.query(text, values):
            yield read_node(type_, row)

    def by_keys(self, keys: Iterable[NodeKey]) -> dict[NodeKey, LabelledNode]:
        """Return nodes by type and id."""
        ids: dict[str, list[str]] = {}
        for type_name, id_ in keys:
            ids.setdefault(type_name, []).append(id_)
        return {
            (name, node.id): node
            for name, wanted in ids.items()
            for node in self.nodes(self._types.nodes[name], wanted)
        }

    def edges(self, type_: MappedEdge, where: str = "", params: Mapping[str, Any] = {}) -> list[StoredEdge]:
        """Return the edges of a type that satisfy conditions on `$a`, `$e` and `$b`."""
        returned = ", ".join(["id($e) as id", "id($a) as a", "id($b) as b", *_items("$e", type_)])
        text = (
            f"match {{ $a: {type_.source} $b: {type_.target} $a $e:{type_.word} $b {where} }} return {{ {returned} }}"
        )
        return [
            StoredEdge(
                type_,
                row["id"],
                (type_.source, row["a"]),
                (type_.target, row["b"]),
                Relation(label=type_.label, source_id=row["a"], target_id=row["b"], properties=_values(type_, row)),
            )
            for row in self._graph.query(text, dict(params))
        ]

    def edge_ids(self, pairs: Mapping[str, Collection[tuple[str, str]]]) -> dict[tuple[str, str, str], str]:
        """Return the ids of existing edges by type and ends; of parallel edges, the smallest."""
        found: dict[tuple[str, str, str], str] = {}
        for name, ends in pairs.items():
            sources = sorted({source for source, _ in ends})
            for edge in self.edges(self._types.edges[name], "id($a) in $ids", {"ids": sources}):
                key = (name, edge.source[1], edge.target[1])
                found[key] = min(edge.id, found.get(key, edge.id))
        return found

    def edges_at(self, keys: Collection[NodeKey], types: Iterable[MappedEdge] | None = None) -> list[StoredEdge]:
        """Return the edges that start or end at some nodes."""
        ids: dict[str, list[str]] = {}
        for type_name, id_ in keys:
            ids.setdefault(type_name, []).append(id_)
        found: dict[tuple[str, str], StoredEdge] = {}
        for type_ in self._types.touching(ids) if types is None else types:
            for variable, end in (("$a", type_.source), ("$b", type_.target)):
                if end in ids:
                    for edge in self.edges(type_, f"id({variable}) in $ids", {"ids": ids[end]}):
                        found[type_.name, edge.id] = edge
        return list(found.values())

    def triplets(self, edges: Sequence[StoredEdge]) -> list[Triplet]:
        """Return edges with the nodes at their ends."""
        nodes = self.by_keys({key for edge in edges for key in (edge.source, edge.target)})
        return [(nodes[edge.source], edge.relation, nodes[edge.target]) for edge in edges]

    def around(self, start: Iterable[NodeKey], depth: int, limit: int, ignored: Collection[str]) -> list[StoredEdge]:
        """Return the edges within `depth` steps of some nodes in either direction, nearest first.

        Edges of an ignored label are neither returned nor followed.
        """
        followed = [edge for edge in self._types.edges.values() if edge.label not in ignored]
        frontier = set(start)
        visited: set[NodeKey] = set()
        seen: set[tuple[str, str]] = set()
        found: list[StoredEdge] = []
        for _ in range(depth):
            if not frontier or len(found) >= limit:
                break
            level = [edge for edge in self.edges_at(frontier, followed) if (edge.type.name, edge.id) not in seen]
            seen |= {(edge.type.name, edge.id) for edge in level}
            found += sorted(level, key=lambda edge: edge.order)
            visited |= frontier
            frontier = {key for edge in level for key in (edge.source, edge.target)} - visited
        return found[: max(limit, 0)]


def read_node(type_: MappedNode, row: Mapping[str, Any]) -> LabelledNode:
    """Return the node of a row of `node_items`."""
    properties = _values(type_, row)
    if type_.is_chunk:
        return ChunkNode(id_=row["id"], text=row[f"p_{TEXT}"] or "", label=type_.label, properties=properties)
    return EntityNode(name=row["id"], label=type_.label, properties=properties)


def node_items(type_: MappedNode) -> str:
    """Return the items of a query whose rows are nodes `$n`."""
    return ", ".join(["id($n) as id", *_items("$n", type_)])


def _items(variable: str, type_: MappedType) -> list[str]:
    names = [*type_.properties.values()]
    if isinstance(type_, MappedNode) and type_.is_chunk:
        names.append(TEXT)
    return [f"{variable}.{name} as p_{name}" for name in names]


def _values(type_: MappedType, row: Mapping[str, Any]) -> dict[str, Any]:
    values = {}
    for label, name in type_.properties.items():
        value = row[f"p_{name}"]
        if value is not None:
            values[label] = json.loads(value) if name in type_.json else value
    return values
