"""Figures of a served graph: its head and its storage stamp."""

from __future__ import annotations

from omnigraph.graph import Graph
from omnigraph.versioning.model.manifest_objects import MAIN


def graph_head(graph: Graph) -> tuple[str, str | None]:
    """Return the newest commit of `main` and the storage stamp of the graph."""
    state = graph._repository.state()
    return state.get_head(MAIN).commit_id, state.manifest.stamp
