"""Deletion of nodes and edges as one mutation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llama_index.graph_stores.omnigraph.reading import NodeKey, StoredEdge
from llama_index.graph_stores.omnigraph.type_map import MappedEdge, TypeMap

if TYPE_CHECKING:
    from llama_index.graph_stores.omnigraph.reading import AnyGraph


class Deletion:
    """Collects what is deleted; `run` deletes it as one commit."""

    def __init__(self, types: TypeMap) -> None:
        self._types = types
        self._nodes: dict[str, set[str]] = {}
        self._edges: dict[str, set[tuple[str, str]]] = {}
        self._edge_types: set[str] = set()

    def add_nodes(self, keys: Iterable[NodeKey]) -> None:
        """Delete nodes and their edges."""
        for name, id_ in keys:
            self._nodes.setdefault(name, set()).add(id_)

    def add_edges(self, edges: Iterable[StoredEdge]) -> None:
        """Delete edges."""
        for edge in edges:
            self._edges.setdefault(edge.type.name, set()).add((edge.source[1], edge.target[1]))

    def add_edge_type(self, type_: MappedEdge) -> None:
        """Delete all edges of a type."""
        self._edge_types.add(type_.name)

    def run(self, graph: AnyGraph) -> None:
        """Delete everything as one commit; nothing to delete makes no commit."""
        statements: list[str] = []
        params: dict[str, Any] = {}

        def param(value: Any) -> str:
            name = f"p{len(params)}"
            params[name] = value
            return f"${name}"

        for name in sorted(self._edge_types):
            statements.append(f'delete {name} where from != ""')
        for name, ends in sorted(self._edges.items()):
            if name not in self._edge_types:
                for source, target in sorted(ends):
                    statements.append(f"delete {name} where from = {param(source)} and to = {param(target)}")
        for name, ids in sorted(self._nodes.items()):
            key = self._types.nodes[name].key
            statements.append(f"delete {name} where {key} in {param(sorted(ids))}")
        if statements:
            total = sum(len(ids) for ids in self._nodes.values())
            graph.mutate("\n".join(statements), params, message=f"delete {total:,} nodes of LlamaIndex")
