"""`OmniGraph`: graph documents as nodes and edges, and queries, by the names that LangChain's graph stores use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from uuid import NAMESPACE_URL, uuid5

from langchain_core.documents import Document

from langchain_omnigraph.handles import find_label, key_of, listing, node_type, on_branch
from omnigraph.errors import InputError

if TYPE_CHECKING:
    from langchain_omnigraph.handles import AnyGraph
    from omnigraph.schema.catalog import Catalog, EdgeType, NodeType


class GraphNode(Protocol):
    """A node of a graph document, as LangChain's graph transformers make it."""

    id: Any
    type: str
    properties: dict[str, Any]


class GraphRelationship(Protocol):
    """A relationship of a graph document."""

    source: Any
    target: Any
    type: str
    properties: dict[str, Any]


class GraphDocument(Protocol):
    """Nodes and relationships that were extracted from a document."""

    nodes: Sequence[Any]
    relationships: Sequence[Any]
    source: Any


class OmniGraph:
    """A graph as a LangChain graph store: `add_graph_documents`, `query`, `get_schema`.

    LangChain has no base class for graph stores; the methods have the names and arguments that its chains and graph
    transformers call.
    """

    def __init__(
        self,
        graph: AnyGraph,
        *,
        branch: str | None = None,
        source_type: str | None = None,
        source_text: str = "text",
        mentions: Sequence[str] = (),
    ) -> None:
        """Bind the store to a graph.

        `source_type` is the node type of source documents, `source_text` its text property, and `mentions` the edge
        types from it to the types of nodes; `add_graph_documents(…, include_source=True)` uses them.
        """
        self.graph = on_branch(graph, branch)
        self._source_type = source_type
        self._source_text = source_text
        self._mentions = (mentions,) if isinstance(mentions, str) else tuple(mentions)

    @property
    def get_schema(self) -> str:
        """The text of the schema."""
        return str(self.graph.schema)

    def refresh_schema(self) -> None:
        """Do nothing: the schema is read with each call."""

    def query(self, query: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the rows of a query, given as text; a text that writes is refused."""
        return self.graph.query(query, dict(params or {})).to_rows()

    def add_graph_documents(
        self, graph_documents: Sequence[GraphDocument], include_source: bool = False, *, message: str | None = None
    ) -> str | None:
        """Add the nodes and relationships of documents as one commit and return the commit.

        The type of a node and of a relationship is a declared type of the same name, apart from case and separators:
        `WORKS_AT` is `WorksAt`. Other types and undeclared properties are refused by name. The id of a node is its key.
        """
        catalog = self.graph.catalog()
        records: dict[tuple[str, ...], dict[str, Any]] = {}
        for document in graph_documents:
            for node in document.nodes:
                _add(records, _node_record(catalog, node))
            for relationship in document.relationships:
                for end in (relationship.source, relationship.target):
                    _add(records, _node_record(catalog, end))
                _add(records, _edge_record(catalog, relationship))
            if include_source:
                self._add_source(catalog, records, document)
        if not records:
            return None
        # Edges follow the nodes that they connect.
        ordered = sorted(records.values(), key=lambda record: "edge" in record)
        note = message or f"add {len(graph_documents)} graph documents"
        return self.graph.load(ordered, mode="merge", message=note).commit_id

    def _add_source(self, catalog: Catalog, records: dict[tuple[str, ...], Any], document: GraphDocument) -> None:
        source = document.source
        if self._source_type is None:
            raise InputError(
                "the type of source documents is not known", hint="pass source_type=… and mentions=… to OmniGraph"
            )
        if not isinstance(source, Document):
            raise InputError(f"the source of a graph document is a Document, not {type(source).__name__}")
        type_ = node_type(catalog, self._source_type)
        id_ = source.id or str(uuid5(NAMESPACE_URL, source.page_content))
        data = {key_of(type_): id_, self._source_text: source.page_content, **source.metadata}
        _check_properties(type_, data)
        _add(records, {"type": type_.name, "data": data})
        for node in document.nodes:
            target = _declared_node(catalog, node.type)
            edge = self._mention(catalog, target.name)
            _add(records, {"edge": edge.name, "from": id_, "to": str(node.id)})

    def _mention(self, catalog: Catalog, target: str) -> EdgeType:
        for name in self._mentions:
            edge = catalog.edges.get(name)
            if edge is not None and (edge.from_type, edge.to_type) == (self._source_type, target):
                return edge
        raise InputError(
            f"no edge type of 'mentions' leads from '{self._source_type}' to '{target}'",
            hint=f"declare one: edge Mentions{target}: {self._source_type} -> {target}, and pass it in mentions=…",
        )


def _node_record(catalog: Catalog, node: GraphNode) -> dict[str, Any]:
    type_ = _declared_node(catalog, node.type)
    data = {key_of(type_): str(node.id), **node.properties}
    _check_properties(type_, data)
    return {"type": type_.name, "data": data}


def _edge_record(catalog: Catalog, relationship: GraphRelationship) -> dict[str, Any]:
    source, target = (_declared_node(catalog, end.type) for end in (relationship.source, relationship.target))
    fitting = {
        name: edge
        for name, edge in catalog.edges.items()
        if (edge.from_type, edge.to_type) == (source.name, target.name)
    }
    type_ = find_label(relationship.type, fitting)
    if type_ is None:
        raise InputError(
            f"the schema has no edge type '{relationship.type}' from '{source.name}' to '{target.name}'",
            hint=f"the edge types between them are {listing(fitting)}",
        )
    _check_properties(type_, relationship.properties)
    ends = {"from": str(relationship.source.id), "to": str(relationship.target.id)}
    return {"edge": type_.name, **ends, "data": dict(relationship.properties)}


def _declared_node(catalog: Catalog, label: str) -> NodeType:
    found = find_label(label, catalog.nodes)
    if found is None:
        raise InputError(f"the schema has no node type '{label}'", hint=f"the node types are {listing(catalog.nodes)}")
    return found


def _check_properties(type_: NodeType | EdgeType, names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in type_.properties]
    if unknown:
        raise InputError(
            f"'{type_.name}' has no property {listing(unknown)}", hint=f"its properties are {listing(type_.properties)}"
        )


def _add(records: dict[tuple[str, ...], dict[str, Any]], record: dict[str, Any]) -> None:
    """Add a record: a node once, with the properties of all its records, and each different edge once."""
    if "edge" in record:
        properties = repr(sorted(record.get("data", {}).items()))
        records.setdefault(("edge", record["edge"], record["from"], record["to"], properties), record)
    else:
        known = records.setdefault(("node", record["type"], next(iter(record["data"].values()))), record)
        known["data"].update(record["data"])
