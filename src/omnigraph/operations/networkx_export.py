"""Export of a snapshot as a networkx graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.errors import InputError
from omnigraph.operations.export import export_records
from omnigraph.schema.catalog import Catalog
from omnigraph.versioning.model.snapshot import Snapshot


def to_networkx(snapshot: Snapshot, catalog: Catalog, types: Sequence[str] | None) -> Any:
    """Return a `MultiDiGraph`: nodes are (type, id) with their properties; edges have their type and id as key.

    `types` selects node types and the edges between them. If it also names edge types, only these edges are selected.
    """
    try:
        import networkx  # noqa: PLC0415
    except ImportError:
        raise InputError("networkx is not installed", code="missing_library", hint="pip install networkx") from None
    nodes = [name for name in catalog.nodes if types is None or name in types]
    named = [name for name in catalog.edges if types is not None and name in types]
    edges = [
        edge.name
        for edge in catalog.edges.values()
        if edge.from_type in nodes and edge.to_type in nodes and (not named or edge.name in named)
    ]
    graph = networkx.MultiDiGraph()
    # Nodes first: networkx creates missing ends of an edge.
    for record in export_records(snapshot, catalog, [*(types or nodes)]) if nodes or types else ():
        if "type" in record:
            data = dict(record["data"])
            graph.add_node((record["type"], data["id"]), **{"type": record["type"], **data})
    for record in export_records(snapshot, catalog, edges) if edges else ():
        if "edge" in record:
            data, edge = dict(record["data"]), catalog.edges[record["edge"]]
            ends = (edge.from_type, record["from"]), (edge.to_type, record["to"])
            graph.add_edge(*ends, key=(edge.name, data["id"]), **{"type": edge.name, **data})
    return graph
