"""The input of an algorithm: the nodes and edges of chosen types, as numbers.

The nodes of all types share one numbering, in the order of the types, so that a rank flows across types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.adjacency.adjacency import EdgeAdjacency
from omnigraph.engine.algorithms.edge_list import EdgeList, Floats
from omnigraph.engine.cache.table_cache import Mask
from omnigraph.engine.cache.visibility import StoredTable, base_of
from omnigraph.errors import InputError, TypeNotFound
from omnigraph.operations.analysis.request import AnalysisRequest
from omnigraph.operations.graph_context import GraphContext
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot

RowsOfNodes = np.ndarray[Any, np.dtype[np.int32]]
"""Row numbers of nodes, one for each edge."""
Type = TypeVar("Type", NodeType, EdgeType)


def chosen_types(catalog: Catalog, request: AnalysisRequest) -> tuple[list[NodeType], list[EdgeType]]:
    """Return the node types and edge types of a request."""
    nodes = _named(request.nodes, catalog.nodes, "node")
    edges = _named(request.edges, catalog.edges, "edge")
    if nodes is None and edges is None:
        return [*catalog.nodes.values()], [*catalog.edges.values()]
    if edges is None:
        names = {node.name for node in nodes or ()}
        return nodes or [], [e for e in catalog.edges.values() if {e.from_type, e.to_type} <= names]
    ends = [end for edge in edges for end in (edge.from_type, edge.to_type)]
    if nodes is None:
        return [catalog.nodes[end] for end in dict.fromkeys(ends)], edges
    names = {node.name for node in nodes}
    for edge in edges:
        for end in (edge.from_type, edge.to_type):
            if end not in names:
                raise InputError(
                    f"edge '{edge.name}' ends at '{end}', which is not among the node types", hint=f"add '{end}'"
                )
    return nodes, edges


def _named(names: Sequence[str] | None, known: Mapping[str, Type], kind: str) -> list[Type] | None:
    if names is None:
        return None
    for name in names:
        if name not in known:
            raise TypeNotFound(f"the schema has no {kind} type '{name}'", hint=did_you_mean(name, known))
    return [known[name] for name in dict.fromkeys(names)]


class AnalysisTables:
    """The tables of a snapshot, or what the caller may see of them; visible nodes are numbered from 0."""

    def __init__(self, context: GraphContext, snapshot: Snapshot) -> None:
        self.view = context.view(snapshot)
        self._cache = context.cache
        self._snapshot = snapshot

    def _table(self, key: str) -> StoredTable:
        if self.view is not None:
            return self.view.context.type_table(key)
        return self._cache.table(self._snapshot.table(key))

    def count(self, node: NodeType) -> int:
        """Return the number of visible nodes."""
        data = self._table(node.table_key)
        return data.row_count if data.visible is None else int(np.count_nonzero(data.visible))

    def ids(self, of_type: NodeType | EdgeType) -> pa.Array:
        """Return the ids of the visible nodes or edges."""
        data = self._table(of_type.table_key)
        return data.column("id") if data.visible is None else data.column("id").filter(pa.array(data.visible))

    def ends(self, edge: EdgeType) -> tuple[RowsOfNodes, RowsOfNodes]:
        """Return the numbers of the sources and targets of the visible edges."""
        data = self._table(edge.table_key)
        tables = [self._table(TableKey.node(name)) for name in (edge.from_type, edge.to_type)]
        ends = EdgeAdjacency(base_of(data), base_of(tables[0]), base_of(tables[1]), self._cache).ends()
        seen = data.visible
        source, target = (
            _renumbered(of_edge if seen is None else of_edge[seen], table.visible)
            for of_edge, table in zip(ends, tables, strict=True)
        )
        return source, target

    def values(self, edge: EdgeType, name: str) -> pa.Array:
        """Return the values of a property of the visible edges."""
        data = self._table(edge.table_key)
        return data.column(name) if data.visible is None else data.column(name).filter(pa.array(data.visible))


def _renumbered(rows: RowsOfNodes, seen: Mask | None) -> RowsOfNodes:
    """Return the positions of rows among the visible ones."""
    return rows if seen is None else (np.cumsum(seen, dtype=np.int32) - np.int32(1))[rows]


def edge_list(tables: AnalysisTables, nodes: list[NodeType], edges: list[EdgeType], weight: str | None) -> EdgeList:
    """Return the edges of the chosen types."""
    counts = [tables.count(node) for node in nodes]
    first = dict(zip((node.name for node in nodes), np.cumsum([0, *counts]).tolist(), strict=False))
    sources, targets, weights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for edge in edges:
        src, dst = tables.ends(edge)
        sources.append(src + first[edge.from_type])
        targets.append(dst + first[edge.to_type])
        if weight is not None:
            check_weight(edge, weight)
            weights.append(_weights(edge, tables.values(edge, weight), weight))
    weighting = np.concatenate(weights) if weight is not None else None
    return EdgeList(sum(counts), np.concatenate(sources), np.concatenate(targets), weighting)


def check_weight(edge: EdgeType, name: str) -> None:
    """Raise `InputError` if a property of an edge type cannot be a weight."""
    if name not in edge.properties:
        raise InputError(f"edge '{edge.name}' has no property '{name}'", hint=did_you_mean(name, edge.properties))
    if not (edge.properties[name].type.is_integer or edge.properties[name].type.is_float):
        raise InputError(f"'{edge.name}.{name}' is {edge.properties[name].type}; a weight must be a number")


def wrong_weights(edges: Sequence[EdgeType], name: str) -> InputError:
    """Return the error for weights that are negative or not finite."""
    names = " or ".join(f"'{edge.name}.{name}'" for edge in edges)
    return InputError(f"{names} has values below zero or not finite", hint="weights are 0 or more; null is 0")


def _weights(edge: EdgeType, column: pa.Array, name: str) -> Floats:
    values: Floats = pc.fill_null(column, 0).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise wrong_weights([edge], name)
    return values
