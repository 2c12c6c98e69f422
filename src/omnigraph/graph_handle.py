"""`GraphHandle`: the state of a `Graph` (its parts, branch, actor and access) and the resolution of points in time.

Every public method of a graph asks the access of its handle before it reads or writes. A handle without an access asks
nothing: each check is one test of an attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.graph_queries import GraphQueries
from omnigraph.versioning.model.manifest_objects import MAIN

if TYPE_CHECKING:
    from omnigraph.engine.cache.table_cache import DataCache
    from omnigraph.graph_history import GraphHistory
    from omnigraph.graph_io import GraphIO
    from omnigraph.graph_maintenance import GraphMaintenance
    from omnigraph.graph_tables import GraphTables
    from omnigraph.operations.graph_context import GraphContext
    from omnigraph.versioning.model.snapshot import Snapshot
    from omnigraph.versioning.write.ref_changes import RefRequest
    from omnigraph.versioning.write.repository import At
    from omnigraph.versioning.write.transaction import WriteOptions


def context_of(graph: GraphHandle) -> GraphContext:
    """Return the state of an opened graph, which all its handles share."""
    return graph._context


def cache_of(graph: GraphHandle) -> DataCache:
    """Return the cache of an opened graph, which all its handles share."""
    return graph._context.cache


def set_staleness(graph: GraphHandle, seconds: float) -> None:
    """Let the reads of all handles of an opened graph use a look at the branches that is up to `seconds` old."""
    graph._context.repository.staleness_s = seconds


class GraphHandle:
    """The parts of one opened graph, a branch and an actor, which an access in the context determines."""

    def __init__(self, context: GraphContext, *, branch: str = MAIN, actor: str | None = None) -> None:
        self._context = context
        self._repository = context.repository
        self._queries = GraphQueries(context)
        self.branch = branch
        self.actor = actor if context.access is None else context.access.actor

    @property
    def _io(self) -> GraphIO:
        from omnigraph.graph_io import GraphIO

        return GraphIO(self._context)

    @property
    def _history(self) -> GraphHistory:
        from omnigraph.graph_history import GraphHistory

        return GraphHistory(self._context)

    @property
    def _tables(self) -> GraphTables:
        from omnigraph.graph_tables import GraphTables

        return GraphTables(self._context)

    @property
    def _maintenance(self) -> GraphMaintenance:
        from omnigraph.graph_maintenance import GraphMaintenance

        return GraphMaintenance(self._context)

    @property
    def uri(self) -> str:
        """The location of the graph."""
        return self._repository.location.uri

    @property
    def newest_version(self) -> int:
        """The newest manifest version; every write to any branch increases it."""
        self._context.check("read")
        return self._repository.state().version

    def snapshot(self, branch: str | None = None, at: At = None) -> Snapshot:
        """Return the graph at a branch's head, or at a point: branch, tag, commit id, snapshot id, version or time.

        The first eight or more characters of a commit id name the commit if no other id begins with them.
        Under rules for rows, the snapshot has the visible tables and the numbers of their visible rows, and its tables
        cannot be opened.
        """
        return self._context.visible_snapshot(self._context.snapshot(branch or self.branch, at))

    def _point(self, action: str, branch: str | None, at: At = None) -> Snapshot:
        """Return the graph at a point on which the caller may perform an action."""
        return self._context.snapshot(branch or self.branch, at, action)

    def _branch(self, branch: str | None) -> str:
        """Return the branch of a call: the given one, else that of the handle."""
        return self._name(branch or self.branch)

    def _name(self, branch: str) -> str:
        """Return the name of a branch. With an access it is trimmed: what is judged is what is used."""
        if self._context.access is None:
            return branch
        from omnigraph.policy.rules import branch_name

        return branch_name(branch)

    def _options(self, branch: str | None, actor: str | None, message: str | None, **more: Any) -> WriteOptions:
        """Return the options of a write that concerns all rows of a branch, such as a change of its schema.

        It is refused to a caller that may not see and change everything of the branch.
        """
        options = self._guarded_options(branch, actor, message, **more)
        if self._context.has_row_rules:
            self._context.check_whole("a change of the schema", self._repository.snapshot(options.branch))
        return options

    def _guarded_options(
        self,
        branch: str | None,
        actor: str | None,
        message: str | None,
        *,
        action: str = "change",
        source: str | None = None,
        **more: Any,
    ) -> WriteOptions:
        """Return the options of a write that applies rules for rows, or treats the whole graph as maintenance does.

        `source` is the branch that a merge reads.
        """
        from omnigraph.policy.rules import ACTIONS
        from omnigraph.versioning.write.transaction import WriteOptions

        self._check_actor(actor)
        name = self._branch(branch)
        if ACTIONS[action] == "target_branch_scope":
            self._context.check(action, source, name)
        else:
            self._context.check(action, name)
        author, metadata = actor or self.actor, self._context.metadata
        return WriteOptions(branch=name, actor=author, message=message, metadata=metadata, **more)

    def _ref_request(self, actor: str | None, message: str | None, key: str | None) -> RefRequest:
        """Return the author and the idempotency key of a change of a branch or tag."""
        from omnigraph.versioning.write.idempotency import RequestKey
        from omnigraph.versioning.write.ref_changes import RefRequest

        self._check_actor(actor)
        author = actor or self.actor
        key_of = RequestKey(key, author) if key is not None else None
        return RefRequest(author, message, self._context.metadata, key_of)

    def _check_actor(self, actor: str | None) -> None:
        """Refuse a call in the name of another actor than that of the access."""
        if self._context.access is not None:
            self._context.access.check_actor(actor)

    def _base(self, branch: str, from_branch: str) -> str | None:
        """Return the branch from which a load may create its own; None if it may not, because its own exists."""
        from omnigraph.policy.rules import branch_name

        access = self._context.access
        if access is None:
            return from_branch
        base = branch_name(from_branch)
        exists = self._repository.state().find_head(branch) is not None
        decision = (
            access.decide("branch_create", base, branch) if exists else access.check("branch_create", base, branch)
        )
        return base if decision.allowed else None
