"""`GraphHandle`: the state of a `Graph` (its parts, branch and actor) and the resolution of points in time."""

from __future__ import annotations

from typing import Any

from omnigraph.graph_history import GraphHistory
from omnigraph.graph_io import GraphIO
from omnigraph.graph_maintenance import GraphMaintenance
from omnigraph.graph_queries import GraphQueries
from omnigraph.graph_tables import GraphTables
from omnigraph.operations.graph_context import GraphContext
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import At
from omnigraph.versioning.write.transaction import WriteOptions


class GraphHandle:
    """The parts of one opened graph, a branch and an actor."""

    def __init__(self, context: GraphContext, *, branch: str = MAIN, actor: str | None = None) -> None:
        self._context = context
        self._repository = context.repository
        self._queries = GraphQueries(context)
        self._io = GraphIO(context)
        self._history = GraphHistory(context)
        self._tables = GraphTables(context)
        self._maintenance = GraphMaintenance(context)
        self.branch = branch
        self.actor = actor

    @property
    def uri(self) -> str:
        """The location of the graph."""
        return self._repository.location.uri

    @property
    def newest_version(self) -> int:
        """The newest manifest version; every write to any branch increases it."""
        return self._repository.state().version

    def snapshot(self, branch: str | None = None, at: At = None) -> Snapshot:
        """Return the graph at a branch's head, or at a point: branch, tag, commit id, snapshot id, version or time.

        The first eight or more characters of a commit id name the commit if no other id begins with them.
        """
        return self._repository.snapshot(branch or self.branch, at)

    def _options(self, branch: str | None, actor: str | None, message: str | None, **more: Any) -> WriteOptions:
        return WriteOptions(branch=branch or self.branch, actor=actor or self.actor, message=message, **more)
