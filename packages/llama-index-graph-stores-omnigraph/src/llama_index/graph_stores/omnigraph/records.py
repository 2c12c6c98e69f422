"""Nodes and relations of LlamaIndex as records of a load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.graph_stores.types import ChunkNode, LabelledNode, Relation
from llama_index.graph_stores.omnigraph.growth import (
    Growth,
    WantedType,
    find_edge,
    grow_chunks,
    grow_edges,
    grow_nodes,
    packed,
)
from llama_index.graph_stores.omnigraph.labels import listing, plain
from llama_index.graph_stores.omnigraph.type_map import TEXT, MappedNode, MappedType, TypeMap

from omnigraph.errors import InputError

Places = Mapping[str, Sequence[str]]
"""Id → the node types that have a node with this id."""


@dataclass(frozen=True)
class PlacedRelation:
    """A relation with the labels of the node types at its ends."""

    relation: Relation
    source: str
    target: str


def growth_of_nodes(types: TypeMap, nodes: Iterable[LabelledNode], chunk_type: str) -> Growth:
    """Return what a schema lacks for some nodes."""
    growth = Growth()
    entities: dict[str, WantedType] = {}
    chunks: WantedType | None = None
    for node in nodes:
        if isinstance(node, ChunkNode):
            wanted = chunks = chunks or WantedType(chunk_type)
        else:
            wanted = entities.setdefault(plain(node.label), WantedType(node.label))
        wanted.add(_properties(node))
        if node.embedding is not None:
            wanted.dimension = len(node.embedding)
    if chunks is not None:
        grow_chunks(types, growth, chunk_type, chunks)
    grow_nodes(types, growth, entities.values())
    return growth


def growth_of_relations(types: TypeMap, growth: Growth, placed: Iterable[PlacedRelation]) -> None:
    """Add what a schema lacks for some relations."""
    wanted: dict[tuple[str, str], dict[str, WantedType]] = {}
    for each in placed:
        labels = wanted.setdefault((each.source, each.target), {})
        labels.setdefault(plain(each.relation.label), WantedType(each.relation.label)).add(each.relation.properties)
    grow_edges(types, growth, {ends: list(labels.values()) for ends, labels in wanted.items()})


def node_records(types: TypeMap, nodes: Iterable[LabelledNode]) -> list[dict[str, Any]]:
    """Return the records of nodes; `InputError` names labels and keys that the schema does not have."""
    return [_node_record(_type_of(types, node), node) for node in nodes]


def key_record(type_: MappedNode, id_: str) -> dict[str, Any]:
    """Return the record of a node of which only the id is known."""
    return {"type": type_.name, "data": {type_.key: id_}}


def placed_pairs(types: TypeMap, placed: Iterable[PlacedRelation]) -> dict[str, set[tuple[str, str]]]:
    """Return the ends of relations by edge type, for the types whose edges a load does not find by their ends."""
    pairs: dict[str, set[tuple[str, str]]] = {}
    for each in placed:
        edge = find_edge(types, each.relation.label, each.source, each.target)
        if edge is not None and not edge.is_matched:
            pairs.setdefault(edge.name, set()).add((each.relation.source_id, each.relation.target_id))
    return pairs


def edge_records(
    types: TypeMap, placed: Iterable[PlacedRelation], known: Mapping[tuple[str, str, str], str]
) -> list[dict[str, Any]]:
    """Return the records of relations; `InputError` names labels and keys that the schema does not have.

    `known` has the ids of existing edges by type and ends. A relation that is given twice is one edge.
    """
    records: dict[tuple[str, str, str], dict[str, Any]] = {}
    for each in placed:
        relation = each.relation
        edge = find_edge(types, relation.label, each.source, each.target)
        if edge is None:
            raise unknown_relation(types, relation, each.source, each.target)
        key = (edge.name, relation.source_id, relation.target_id)
        data = _data(edge, relation.properties)
        if key in known:
            data["id"] = known[key]
        record = {"edge": edge.name, "from": relation.source_id, "to": relation.target_id, "data": data}
        records.setdefault(key, record)["data"].update(data)
    return list(records.values())


def place_relations(
    types: TypeMap, relations: Sequence[Relation], places: Places, entity: str | None
) -> list[PlacedRelation]:
    """Return the relations with the node types at their ends.

    An edge type of the label decides between several nodes of one id, and about the type of an end that does not exist.
    Without one, a missing end is of the type `entity`; None refuses it.
    """
    placed = []
    for relation in relations:
        sources, targets = (list(places.get(id_, ())) for id_ in (relation.source_id, relation.target_id))
        fitting = [
            edge
            for edge in types.edges_of(relation.label)
            if (not sources or edge.source in sources) and (not targets or edge.target in targets)
        ]
        if fitting:
            placed.append(PlacedRelation(relation, fitting[0].source, fitting[0].target))
            continue
        source, target = (ends[0] if ends else entity for ends in (sources, targets))
        if source is None or target is None:
            raise unknown_relation(types, relation, source, target)
        placed.append(PlacedRelation(relation, source, target))
    return placed


def unknown_relation(types: TypeMap, relation: Relation, source: str | None, target: str | None) -> InputError:
    """Return the error of a relation without an edge type."""
    between = [edge.label for edge in types.edges.values() if (edge.source, edge.target) == (source, target)]
    ends = f"from '{source}' to '{target}'" if source and target else "for its ends"
    return InputError(
        f"the schema has no edge type '{relation.label}' {ends} "
        f"(relation of '{relation.source_id}' and '{relation.target_id}')",
        hint=f'the labels between them are {listing(between)}; or pass schema="grow"',
    )


def _type_of(types: TypeMap, node: LabelledNode) -> MappedNode:
    found = types.chunk() if isinstance(node, ChunkNode) else types.node(node.label)
    if found is None:
        label = node.label
        raise InputError(
            f"the schema has no node type '{label}' (node '{node.id}')",
            hint=f'the labels are {listing(each.label for each in types.nodes.values())}; or pass schema="grow"',
        )
    return found


def _node_record(type_: MappedNode, node: LabelledNode) -> dict[str, Any]:
    data: dict[str, Any] = {type_.key: node.id}
    if isinstance(node, ChunkNode):
        data[TEXT] = node.text
    if node.embedding is not None:
        if type_.vector is None or type_.dimension != len(node.embedding):
            raise InputError(
                f"'{type_.name}' has no vector of {len(node.embedding)} numbers (node '{node.id}')",
                hint=f"declare embedding: Vector({len(node.embedding)})?, or use the model of the stored vectors",
            )
        data[type_.vector] = [float(element) for element in node.embedding]
    return {"type": type_.name, "data": {**data, **_data(type_, _properties(node))}}


def _properties(node: LabelledNode) -> dict[str, Any]:
    """Return the properties of a node; a property that repeats its name is left out."""
    name = getattr(node, "name", None)
    return {key: value for key, value in node.properties.items() if not (key == "name" and value == name)}


def _data(type_: MappedType, properties: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [key for key, value in properties.items() if type_.find(key) is None and value is not None]
    if unknown:
        raise InputError(
            f"'{type_.name}' has no property {listing(unknown)}",
            hint=f'its properties are {listing(type_.properties)}; or pass schema="grow"',
        )
    data: dict[str, Any] = {}
    for key, value in properties.items():
        name = type_.find(key)
        if name is not None:
            data[name] = packed(value) if name in type_.json and value is not None else value
    return data
