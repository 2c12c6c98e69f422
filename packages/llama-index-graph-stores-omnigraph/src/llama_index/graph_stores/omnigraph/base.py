"""`OmniGraphPropertyGraphStore`: a graph as the property graph store of LlamaIndex."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Self
from uuid import uuid4

from llama_index.core.graph_stores.types import (
    TRIPLET_SOURCE_KEY,
    LabelledNode,
    PropertyGraphStore,
    Relation,
    Triplet,
)
from llama_index.core.prompts import PromptTemplate
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.graph_stores.omnigraph.deletion import Deletion
from llama_index.graph_stores.omnigraph.filters import Conditions
from llama_index.graph_stores.omnigraph.growth import Growth, grow_entity
from llama_index.graph_stores.omnigraph.prompts import TEXT_TO_QUERY
from llama_index.graph_stores.omnigraph.reading import GraphReader, NodeKey, StoredEdge, node_items, read_node
from llama_index.graph_stores.omnigraph.records import (
    PlacedRelation,
    edge_records,
    growth_of_nodes,
    growth_of_relations,
    key_record,
    node_records,
    place_relations,
    placed_pairs,
)
from llama_index.graph_stores.omnigraph.type_map import TypeMap

from omnigraph.errors import InputError

if TYPE_CHECKING:
    from llama_index.graph_stores.omnigraph.reading import AnyGraph

REF_DOC_ID = "ref_doc_id"
EXPIRES = timedelta(days=1)
"""The life of the branch of a transaction whose process ended."""
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)


class OmniGraphPropertyGraphStore(PropertyGraphStore):
    """A property graph store with a schema.

    With `schema="strict"`, labels and keys must be declared; others are refused by name. With `schema="grow"`, an
    upsert declares what is missing; the plan is part of the message of its commit. The id of a node is its key. One
    upsert is one commit of the branch; `transaction` groups several.
    """

    supports_structured_queries: bool = True
    supports_vector_queries: bool = True
    text_to_cypher_template: PromptTemplate = TEXT_TO_QUERY

    def __init__(
        self,
        graph: AnyGraph,
        schema: Literal["strict", "grow"] = "strict",
        *,
        branch: str | None = None,
        chunk_type: str = "Chunk",
    ) -> None:
        """Bind the store to a branch of a graph; `chunk_type` is the node type of text chunks."""
        if schema not in ("strict", "grow"):
            raise InputError(f"'schema' must be strict or grow, not '{schema}'")
        self._graph = graph if branch is None else graph.on(branch)
        self._target: AnyGraph | None = None
        self._grows = schema == "grow"
        self._chunk_type = chunk_type

    @property
    def client(self) -> AnyGraph:
        """The graph, on the branch that the store writes."""
        return self._graph

    # -- reading ---------------------------------------------------------------------------------

    def get(self, properties: dict[str, Any] | None = None, ids: list[str] | None = None) -> list[LabelledNode]:
        """Return the nodes that have all properties and one of the ids; without arguments, all nodes."""
        types = self._types()
        return list(_find_nodes(GraphReader(self._graph, types), types, properties, ids).values())

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Return the triplets that satisfy all arguments: an end is named, the label, a property of a part, an end."""
        if not (entity_names or relation_names or properties or ids):
            return []
        types = self._types()
        reader = GraphReader(self._graph, types)
        chosen = list(types.edges.values())
        if relation_names:
            named = {edge.name for label in relation_names for edge in types.edges_of(label)}
            chosen = [edge for edge in chosen if edge.name in named]
        if entity_names or ids:
            starts = set(entity_names or ids or ())
            edges = reader.edges_at(_keys(reader.places(starts)), chosen)
            if entity_names and ids:
                edges = [edge for edge in edges if {edge.source[1], edge.target[1]} & set(ids)]
        else:
            edges = [edge for type_ in chosen for edge in reader.edges(type_)]
        triplets = reader.triplets(sorted(edges, key=lambda edge: edge.order))
        return [each for each in triplets if _has_property(each, properties)] if properties else triplets

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """Return the triplets within `depth` steps of nodes in either direction, nearest first, at most `limit`."""
        types = self._types()
        reader = GraphReader(self._graph, types)
        places = reader.places([node.id for node in graph_nodes])
        starts: set[NodeKey] = set()
        for node in graph_nodes:
            names = places.get(node.id, [])
            labelled = types.node(node.label)
            own = [name for name in names if labelled is not None and name == labelled.name]
            starts |= {(name, node.id) for name in own or names}
        return reader.triplets(reader.around(starts, depth, limit, ignore_rels or ()))

    def structured_query(self, query: str, param_map: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the rows of a query in the OmniGraph language; a text that writes is refused."""
        fenced = _FENCE.match(query)
        return self._graph.query(fenced[1] if fenced else query, dict(param_map or {})).to_rows()

    def vector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:
        """Return the nearest nodes and their cosine similarities.

        By default entities are searched, not chunks; `types` names other node types. Without an embedding, the text of
        the query is compared with vectors that the graph computes.
        """
        if query.mode != VectorStoreQueryMode.DEFAULT:
            raise InputError(f"the query mode '{query.mode.value}' is not supported", hint="use the default mode")
        question: Any = query.query_embedding
        by_text = question is None
        if by_text and query.query_str is None:
            raise InputError("a vector query has an embedding or a text")
        found: list[tuple[float, str, LabelledNode]] = []
        types = self._types()
        for name in kwargs.get("types") or [each.name for each in types.nodes.values() if not each.is_chunk]:
            type_ = types.nodes.get(name)
            if type_ is None:
                raise InputError(f"the schema has no node type '{name}'")
            if type_.vector is None or not (type_.embeds if by_text else type_.dimension == len(question)):
                continue
            conditions = Conditions(type_)
            where = conditions.of(query.filters)
            documents = conditions.among(REF_DOC_ID, query.doc_ids) if query.doc_ids else ""
            if where is None or documents is None:
                continue
            nodes = "id($n) in $node_ids" if query.node_ids else ""
            ranking = f"nearest($n.{type_.vector}, $question)"
            text = (
                f"match {{ $n: {name} {where} {documents} {nodes} }} "
                f"return {{ {node_items(type_)}, {ranking} as distance }} order {{ {ranking} }} limit $top"
            )
            asked = query.query_str if by_text else [float(element) for element in question]
            values = {**conditions.params, "question": asked, "top": query.similarity_top_k}
            if query.node_ids:
                values["node_ids"] = query.node_ids
            for row in self._graph.query(text, values):
                found.append((float(row["distance"]), row["id"], read_node(type_, row)))
        best = sorted(found, key=lambda hit: hit[:2])[: query.similarity_top_k]
        return [node for _, _, node in best], [1.0 - distance for distance, _, _ in best]

    def get_schema(self, refresh: bool = False) -> str:  # noqa: ARG002 (the schema is read with each call)
        """Return the text of the schema."""
        return str(self._graph.schema)

    def get_schema_str(self, refresh: bool = False) -> str:
        """Return the text of the schema."""
        return self.get_schema(refresh)

    # -- writing ---------------------------------------------------------------------------------

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Add nodes, or set the given properties of existing ones, as one commit."""
        if not nodes:
            return
        growth = growth_of_nodes(self._types(), nodes, self._chunk_type) if self._grows else Growth()
        # Vectors of LlamaIndex and vectors that the graph computes are not comparable.
        embed = all(node.embedding is None for node in nodes)
        with self._grown(growth, f"upsert {_count(len(nodes), 'node')}") as (graph, message):
            graph.load(node_records(self._types(), nodes), mode="merge", message=message, embed=embed)

    def upsert_relations(self, relations: list[Relation]) -> None:
        """Add relations, or set the given properties of existing ones, as one commit.

        An end that does not exist is added: with the type that the edge type requires, else as an `entity`.
        """
        if not relations:
            return
        types = self._types()
        ends = {id_ for relation in relations for id_ in (relation.source_id, relation.target_id)}
        places = GraphReader(self._graph, types).places(ends)
        growth = Growth()
        if self._grows:
            entity = grow_entity(types, growth) if len(places) < len(ends) else None
            placed = place_relations(types, relations, places, entity)
            if not any(entity in (each.source, each.target) for each in placed):
                growth = Growth()  # declared edge types decide about the missing ends
            growth_of_relations(types, growth, placed)
        else:
            placed = place_relations(types, relations, places, None)
        with self._grown(growth, f"upsert {_count(len(relations), 'relation')}") as (graph, message):
            types = self._types()
            known = GraphReader(graph, types).edge_ids(placed_pairs(types, placed))
            records = _missing_ends(types, placed, places) + edge_records(types, placed, known)
            graph.load(records, mode="merge", message=message)

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Delete as one commit: nodes by name or id or with all properties, with their edges; edges by label."""
        types = self._types()
        reader = GraphReader(self._graph, types)
        deletion = Deletion(types)
        deletion.add_nodes(_keys(reader.places({*(entity_names or ()), *(ids or ())})))
        if properties:
            deletion.add_nodes(_find_nodes(reader, types, properties))
        for label in relation_names or ():
            for type_ in types.edges_of(label):
                deletion.add_edge_type(type_)
        deletion.run(self._graph)

    def delete_llama_nodes(self, node_ids: list[str] | None = None, ref_doc_ids: list[str] | None = None) -> None:
        """Delete chunks, by their ids or by their documents, and what was extracted from them, as one commit.

        Relations that come from the chunks are deleted, and entities unless a relation of another chunk uses them.
        """
        types = self._types()
        reader = GraphReader(self._graph, types)
        gone = set(_keys(reader.places({*(node_ids or ()), *(ref_doc_ids or ())})))
        for document in ref_doc_ids or ():
            gone |= set(_find_nodes(reader, types, {REF_DOC_ID: document}))
        sources = sorted({id_ for _, id_ in gone} | set(node_ids or ()))
        extracted: set[NodeKey] = set()
        edges: list[StoredEdge] = []
        for type_ in types.nodes.values():
            condition = Conditions(type_)
            where = condition.among(TRIPLET_SOURCE_KEY, sources)
            if where is not None:
                extracted |= {(type_.name, node.id) for node in reader.nodes(type_, None, where, condition.params)}
        for edge_type in types.edges.values():
            name = edge_type.find(TRIPLET_SOURCE_KEY)
            if name is not None:
                edges += reader.edges(edge_type, f"$e.{name} in $sources", {"sources": sources})
        removed = {(edge.type.name, edge.id) for edge in edges}
        used: set[NodeKey] = set()
        for edge in reader.edges_at(extracted):
            if (edge.type.name, edge.id) not in removed and not {edge.source, edge.target} & gone:
                used |= {edge.source, edge.target}
        deletion = Deletion(types)
        deletion.add_nodes(gone | (extracted - used))
        deletion.add_edges(edges)
        deletion.run(self._graph)

    @contextmanager
    def transaction(self, message: str | None = None) -> Iterator[Self]:
        """Group writes: the branch gets them as one commit at the end, or none of them after an error.

        Reads of the store in between see the writes. They are made on a branch of their own, which is merged; a
        conflict with a concurrent write raises `MergeConflict` and keeps that branch. A store in a transaction is used
        by one thread.
        """
        if self._target is not None:
            raise InputError("the store is in a transaction already")
        target = self._graph
        branch = f"llama-index/{uuid4().hex}"
        head = target.branch_create(branch, description="A transaction of LlamaIndex", expires_in=EXPIRES)
        self._graph, self._target = target.on(branch), target
        try:
            yield self
        except BaseException:
            target.branch_delete(branch, force=True)
            raise
        else:
            if target.head(branch).commit_id == head.commit_id:
                target.branch_delete(branch)
            else:
                target.merge(branch, message=message or "a transaction of LlamaIndex", delete_branch=True)
        finally:
            self._graph, self._target = target, None

    def _types(self) -> TypeMap:
        return TypeMap.of(self._graph.catalog(), self._chunk_type)

    @contextmanager
    def _grown(self, growth: Growth, message: str) -> Iterator[tuple[AnyGraph, str]]:
        """Extend the schema for a write and yield the graph to write to, and the message of the commit.

        The change of the schema and the write reach the branch as one commit.
        """
        if not growth:
            yield self._graph, message
            return
        text = growth.apply_to(str(self._graph.schema))
        plan = self._graph.plan_schema(text)
        noted = f"{message}; schema: {', '.join(step.describe() for step in plan.steps)}"
        if self._target is not None:
            self._graph.apply_schema(text, message=noted)
            yield self._graph, noted
            return
        with self.transaction(noted):
            self._graph.apply_schema(text, message=noted)
            yield self._graph, noted


def _find_nodes(
    reader: GraphReader, types: TypeMap, properties: Mapping[str, Any] | None, ids: Sequence[str] | None = None
) -> dict[NodeKey, LabelledNode]:
    """Return the nodes that have all properties and one of the ids."""
    wanted: dict[str, list[str]] | None = None
    if ids is not None:
        wanted = {}
        for name, id_ in _keys(reader.places(dict.fromkeys(ids))):
            wanted.setdefault(name, []).append(id_)
    found: dict[NodeKey, LabelledNode] = {}
    for name, type_ in types.nodes.items():
        conditions = Conditions(type_)
        clauses = [conditions.equal(key, value) for key, value in (properties or {}).items()]
        if None in clauses or (wanted is not None and name not in wanted):
            continue
        where = " ".join(clause for clause in clauses if clause)
        for node in reader.nodes(type_, None if wanted is None else wanted[name], where, conditions.params):
            if all(node.properties.get(key) == value for key, value in (properties or {}).items()):
                found[name, node.id] = node
    return found


def _missing_ends(types: TypeMap, placed: Sequence[PlacedRelation], places: Mapping[str, Sequence[str]]) -> list[Any]:
    """Return the records of ends that do not exist."""
    missing: dict[NodeKey, Any] = {}
    for each in placed:
        for name, id_ in ((each.source, each.relation.source_id), (each.target, each.relation.target_id)):
            if id_ not in places:
                missing[name, id_] = key_record(types.nodes[name], id_)
    return list(missing.values())


def _keys(places: Mapping[str, Sequence[str]]) -> list[NodeKey]:
    return [(name, id_) for id_, names in places.items() for name in names]


def _has_property(triplet: Triplet, properties: Mapping[str, Any]) -> bool:
    """Return True if a part of a triplet has one of the properties."""
    return any(part.properties.get(key) == value for part in triplet for key, value in properties.items())


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"
