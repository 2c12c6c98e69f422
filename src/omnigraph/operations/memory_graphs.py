"""Graphs of other libraries: rustworkx and SciPy from exported rows, records from networkx."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InputError
from omnigraph.operations.period_graphs import refuse_periods
from omnigraph.optional_packages import get_package
from omnigraph.schema.catalog import Catalog, EdgeType
from omnigraph.suggestions import did_you_mean

NodeIndex = dict[tuple[str, str], int]
"""(type, id) of a node → its index in the graph of a library."""


def rustworkx_of(
    catalog: Catalog, nodes: Iterable[dict[str, Any]], edges: Iterable[dict[str, Any]]
) -> tuple[Any, NodeIndex]:
    """Return the `PyDiGraph` of exported records, and the index of each node; properties are the payloads."""
    graph = get_package("rustworkx").PyDiGraph(multigraph=True)
    payloads = [{"type": record["type"], **record["data"]} for record in nodes if "type" in record]
    added = graph.add_nodes_from(payloads)
    index = {(data["type"], data["id"]): at for data, at in zip(payloads, added, strict=True)}
    triples = []
    for record in edges:
        if "edge" in record:
            edge = catalog.edges[record["edge"]]
            ends = index[edge.from_type, record["from"]], index[edge.to_type, record["to"]]
            triples.append((*ends, {"type": edge.name, **record["data"]}))
    graph.add_edges_from(triples)
    return graph, index


def sparse_edge(catalog: Catalog, edge_name: str, weight: str | None) -> EdgeType:
    """Return the edge type of a matrix; `InputError` if there is none or its weight is no number."""
    edge = catalog.edges.get(edge_name)
    if edge is None:
        raise InputError(f"there is no edge type '{edge_name}'", hint=did_you_mean(edge_name, catalog.edges))
    refuse_periods(catalog, [edge])
    if weight is not None:
        found = edge.properties.get(weight)
        if found is None:
            raise InputError(f"'{edge_name}' has no property '{weight}'", hint=did_you_mean(weight, edge.properties))
        if not found.type.is_numeric:
            raise InputError(f"the weight '{weight}' must be a number, not {found.type}")
    return edge


def sparse_of(
    edges: pa.Table, sources: pa.Array, targets: pa.Array, weight: str | None
) -> tuple[Any, pa.Array, pa.Array]:
    """Return a `csr_array` of sources and targets, with the ids of its rows and columns.

    A value is the number of parallel edges, or the sum of their weights; a null weight is 0.
    """
    package = get_package("scipy.sparse")
    rows = pc.index_in(edges["src"], sources).to_numpy()
    columns = pc.index_in(edges["dst"], targets).to_numpy()
    if weight is None:
        values = np.ones(len(rows), np.int64)
    else:
        values = edges[weight].cast(pa.float64()).fill_null(0.0).to_numpy()
    matrix = package.coo_array((values, (rows, columns)), shape=(len(sources), len(targets))).tocsr()
    return matrix, sources, targets


def from_networkx(
    graph: Any, types: Mapping[Any, str] | str | None = None, edges: str | None = None, *, key: str | None = None
) -> list[dict[str, Any]]:
    """Return the records of a networkx graph, for `Graph.load`: nodes, then edges.

    The type of a node or an edge is its attribute `type`; `types` gives it for nodes without one, as one name or by
    node, and `edges` for edges. The id of a node is its attribute `id`, the second part of (type, id), as
    `Graph.to_networkx` returns nodes, or the text of the node; `key` names the property that holds it. Parallel edges
    stay apart; an undirected edge is one edge from the first end to the second.
    """
    records: list[dict[str, Any]] = []
    ids: dict[Any, str] = {}
    for node, attributes in graph.nodes(data=True):
        data = dict(attributes)
        type_ = data.pop("type", None) or (types if isinstance(types, str) or types is None else types.get(node))
        if type_ is None:
            raise InputError(
                f"the node {node!r} has no type",
                hint="set its attribute 'type', or pass from_networkx(…, types='Person')",
            )
        ids[node] = str(data.pop("id", None) or (node[1] if _is_typed(node) else node))
        records.append({"type": type_, "data": {key or "id": ids[node], **_present(data)}})
    for source, target, attributes in graph.edges(data=True):
        data = dict(attributes)
        type_ = data.pop("type", None) or edges
        if type_ is None:
            raise InputError(
                f"the edge {source!r} -> {target!r} has no type",
                hint="set its attribute 'type', or pass from_networkx(…, edges='Knows')",
            )
        records.append({"edge": type_, "from": ids[source], "to": ids[target], "data": _present(data)})
    return records


def _is_typed(node: Any) -> bool:
    return isinstance(node, tuple) and len(node) == 2 and all(isinstance(part, str) for part in node)


def _present(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that have a value: a record without a property has a null there."""
    return {name: value for name, value in data.items() if value is not None}
