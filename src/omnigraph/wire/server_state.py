"""Documents of a server: health, graphs, the caller, operations, status and reload."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from omnigraph.wire.document import Document
from omnigraph.wire.errors import ErrorDocument

NotReady = Literal["recovery_pending", "graph_unavailable", "shutting_down", "schema_apply", "memory_high"]
OperationState = Literal["queued", "running", "done", "failed", "cancelled"]


class HealthDocument(Document, kw_only=True):
    """A running server; `source_version` is absent if it is unknown."""

    status: Literal["ok"] = "ok"
    version: str
    internal_schema_version: int
    source_version: str | UnsetType = UNSET


class ReadyDocument(Document, kw_only=True):
    """Whether a server can answer, and if not, why."""

    status: Literal["ready", "not_ready"]
    reasons: list[NotReady] | UnsetType = UNSET


class AvailabilityDocument(Document, kw_only=True):
    """The state of a graph; `retry_at` is in microseconds since 1970."""

    state: str
    read_ready: bool
    write_ready: bool
    role: str | UnsetType = UNSET
    failure_class: str | UnsetType = UNSET
    retry_at: int | UnsetType = UNSET


class GraphDocument(Document, kw_only=True):
    """One graph of a server; `uri` is absent if the server hides it."""

    graph_id: str
    uri: str | UnsetType = UNSET
    availability: AvailabilityDocument | UnsetType = UNSET


class GraphListDocument(Document):
    """The graphs of a server, by id."""

    graphs: list[GraphDocument]


class AllowedBranchDocument(Document):
    """The actions that the caller may perform on a branch."""

    branch: str
    actions: list[str]


class AllowedGraphDocument(Document):
    """The actions that the caller may perform on a graph, and on its branches."""

    graph_id: str
    actions: list[str]
    branches: list[AllowedBranchDocument]


class MeDocument(Document, kw_only=True):
    """The caller: actor, groups, attributes, and what is allowed; `actor_id` is null without authentication."""

    actor_id: str | None
    groups: list[str]
    attributes: dict[str, Any]
    actions: list[str]
    graphs: list[AllowedGraphDocument]


class OperationDocument(Document, kw_only=True):
    """Work of a server; times are in microseconds since 1970.

    `result` or `error` is present when it has ended; `graph_id` is null for a request that concerns the server.
    """

    id: str
    kind: str
    state: OperationState
    graph_id: str | None
    branch: str | None = None
    actor_id: str | None
    request_id: str
    started_at: int
    finished_at: int | UnsetType = UNSET
    result: Any = UNSET
    error: ErrorDocument | UnsetType = UNSET


class OperationListDocument(Document):
    """Running and recent operations, newest first."""

    operations: list[OperationDocument]
    next: str | UnsetType = UNSET


class LaneDocument(Document):
    """The requests of one kind: running, waiting, and the largest number that runs."""

    name: str
    running: int
    queued: int
    limit: int


class ServedGraphDocument(Document, kw_only=True):
    """One graph of a server, with its newest commit of `main`."""

    graph_id: str
    state: str
    graph_commit_id: str | UnsetType = UNSET
    branches: int | UnsetType = UNSET
    failure: str | UnsetType = UNSET


class ServerStatusDocument(Document, kw_only=True):
    """The state of a server process; `digests` identify its configuration, tokens and policies."""

    version: str
    mode: str
    started_at: int
    uptime_s: float
    draining: bool
    lanes: list[LaneDocument]
    operations: list[OperationDocument]
    graphs: list[ServedGraphDocument]
    digests: dict[str, str]


class ReloadDocument(Document):
    """The digests of configuration, tokens and policies after a reload, and the names of those that changed."""

    digests: dict[str, str]
    changed: list[str]
    warnings: list[str]
