"""Refusal of graphs that have one vertex for each node, for edges at nodes with periods."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.errors import InputError
from omnigraph.schema.catalog import Catalog, EdgeType


def refuse_periods(catalog: Catalog, edges: Iterable[EdgeType]) -> None:
    """Raise `InputError` if an edge joins nodes that have several rows, one for each period of valid time."""
    for edge in edges:
        if catalog.joins_periods(edge):
            raise InputError(
                f"edge '{edge.name}' joins nodes with periods, and a graph of vertices has no valid time",
                code="graph_with_periods",
                hint="read the edges of one instant by a query with 'valid at $t'",
            )
