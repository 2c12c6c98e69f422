"""Export of a snapshot as a networkx graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.engine.exec.view import View
from omnigraph.operations.export import export_records
from omnigraph.operations.period_graphs import refuse_periods
from omnigraph.optional_packages import get_package
from omnigraph.schema.catalog import Catalog
from omnigraph.versioning.model.snapshot import Snapshot


@dataclass(frozen=True)
class NetworkTypes:
    """The types whose records make a network: nodes first, because networkx creates missing ends of an edge."""

    nodes: Sequence[str]
    edges: Sequence[str]

    @classmethod
    def of(cls, catalog: Catalog, types: Sequence[str] | None) -> NetworkTypes:
        """Select node types and the edges between them; if `types` names edge types, only these edges."""
        nodes = [name for name in catalog.nodes if types is None or name in types]
        named = [name for name in catalog.edges if types is not None and name in types]
        edges = [
            edge.name
            for edge in catalog.edges.values()
            if edge.from_type in nodes and edge.to_type in nodes and (not named or edge.name in named)
        ]
        refuse_periods(catalog, (catalog.edges[name] for name in edges))
        return cls([*(types or nodes)] if nodes or types else [], edges)


def to_networkx(snapshot: Snapshot, catalog: Catalog, types: Sequence[str] | None, view: View | None = None) -> Any:
    """Return a `MultiDiGraph`: nodes are (type, id) with their properties; edges have their type and id as key.

    `types` selects node types and the edges between them. If it also names edge types, only these edges are selected.
    """
    chosen = NetworkTypes.of(catalog, types)
    nodes = export_records(snapshot, catalog, chosen.nodes, view) if chosen.nodes else ()
    edges = export_records(snapshot, catalog, chosen.edges, view) if chosen.edges else ()
    return network_of(catalog, nodes, edges)


def network_of(catalog: Catalog, nodes: Iterable[dict[str, Any]], edges: Iterable[dict[str, Any]]) -> Any:
    """Return the `MultiDiGraph` of exported records."""
    graph = get_package("networkx").MultiDiGraph()
    for record in nodes:
        if "type" in record:
            data = dict(record["data"])
            graph.add_node((record["type"], data["id"]), **{"type": record["type"], **data})
    for record in edges:
        if "edge" in record:
            data, edge = dict(record["data"]), catalog.edges[record["edge"]]
            ends = (edge.from_type, record["from"]), (edge.to_type, record["to"])
            graph.add_edge(*ends, key=(edge.name, data["id"]), **{"type": edge.name, **data})
    return graph
