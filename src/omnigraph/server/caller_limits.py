"""What rules for rows leave of the figures of a graph: an administrator can be a caller whose rows they limit."""

from __future__ import annotations

from typing import NamedTuple

from omnigraph.errors import Denied
from omnigraph.graph_handle import context_of
from omnigraph.server.caller import Caller
from omnigraph.server.deployment.graphs import ServedGraph
from omnigraph.versioning.model.manifest_objects import MAIN


class CallerLimits(NamedTuple):
    """The tables and the plans in memory that a caller may know of a graph."""

    tables: frozenset[str] = frozenset()
    plans: frozenset[str] = frozenset()


def limits_of(caller: Caller, served: ServedGraph) -> CallerLimits | None:
    """Return what a caller may know of a graph by its rules for `main`; None if it may know everything."""
    if served.graph is None or not served.has_row_rules:
        return None
    graph = served.graph.with_access(caller.state.graph_access(served, caller.principal))
    context = context_of(graph)
    snapshot = context.repository.snapshot(MAIN)
    try:
        visibility = context.visibility_of(snapshot)
    except Denied:
        return CallerLimits()
    if visibility is None:
        return None
    tables = frozenset(type_.table_key for type_ in context.catalog(snapshot).tables())
    return CallerLimits(tables, context.plans.hashes(visibility))
