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


class ProtectedResourceDocument(Document, kw_only=True):
    """The metadata of a protected resource (RFC 9728): the issuers whose tokens it accepts."""

    resource: str
    authorization_servers: list[str]
    bearer_methods_supported: list[str]
    resource_name: str = "OmniGraph"


class AvailabilityDocument(Document, kw_only=True):
    """The state of a graph; `retry_at` is in microseconds since 1970."""

    state: str
    read_ready: bool
    write_ready: bool
    role: str | UnsetType = UNSET
    failure_class: str | UnsetType = UNSET
    retry_at: int | UnsetType = UNSET


class SignInDocument(Document, kw_only=True):
    """An issuer at which the web explorer signs in, as a public client."""

    issuer: str
    client_id: str
    scopes: list[str]


class ExplorerConfigDocument(Document, kw_only=True):
    """The settings of the web explorer, which a page without a token reads.

    The paths of a server of a single graph have no `/graphs/{graph_id}`. `query_s` is the time limit of a query.
    """

    version: str
    needs_token: bool
    single_graph: bool
    default_graph: str | None
    read_only: bool
    query_s: float
    sign_in: list[SignInDocument]


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
    """The caller: actor, groups, attributes, and what is allowed; `actor_id` is null without authentication.

    `token_expires_at` is in microseconds since 1970; it is absent if the token does not expire.
    """

    actor_id: str | None
    groups: list[str]
    attributes: dict[str, Any]
    actions: list[str]
    graphs: list[AllowedGraphDocument]
    token_expires_at: int | UnsetType = UNSET


class OperationDocument(Document, kw_only=True):
    """Work of a server; times are in microseconds since 1970.

    `result` or `error` is present when it has ended; `graph_id` is null for a request that concerns the server.
    `age_s` is the time since its arrival in a queue or its start. A query has a name, the hash of its plan and the
    number of its rows so far.
    """

    id: str
    kind: str
    state: OperationState
    graph_id: str | None
    branch: str | None = None
    actor_id: str | None
    request_id: str
    started_at: int
    lane: str | UnsetType = UNSET
    age_s: float | UnsetType = UNSET
    query: str | UnsetType = UNSET
    plan_hash: str | UnsetType = UNSET
    rows: int | UnsetType = UNSET
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


class CacheDocument(Document, kw_only=True):
    """A cache of a graph: `tables` holds columns and indexes, `plans` holds compiled queries and has no size."""

    kind: Literal["tables", "plans"]
    entries: int
    bytes: int | UnsetType = UNSET
    hits: int
    misses: int


class ServedTableDocument(Document, kw_only=True):
    """A table of `main`: `version` is that of its newest commit; the rows are absent if rules limit rows."""

    table_key: str
    version: int
    fragments: int
    rows: int | UnsetType = UNSET
    uncovered_rows: int | UnsetType = UNSET
    """Rows that the least complete of the wanted indexes does not cover."""


class ServedGraphDocument(Document, kw_only=True):
    """One graph of a server, with the newest commit, the fragments and the uncovered rows of `main`.

    `last_maintenance_at` is in microseconds since 1970; it is absent if no recent commit is one of maintenance.
    """

    graph_id: str
    state: str
    graph_commit_id: str | UnsetType = UNSET
    storage_stamp: str | UnsetType = UNSET
    branches: int | UnsetType = UNSET
    fragments: int | UnsetType = UNSET
    uncovered_rows: int | UnsetType = UNSET
    last_maintenance_at: int | UnsetType = UNSET
    caches: list[CacheDocument] | UnsetType = UNSET
    tables: list[ServedTableDocument] | UnsetType = UNSET
    failure: str | UnsetType = UNSET


class PlanDocument(Document, kw_only=True):
    """The executions of one plan in the last hour; queries that differ only in constants have one plan."""

    graph_id: str
    plan_hash: str
    query: str | None
    count: int
    total_ms: float
    max_ms: float
    rows: int


class ReloadStateDocument(Document, kw_only=True):
    """The last reload of a process; `at` is in microseconds since 1970."""

    ok: bool
    reason: str
    at: int
    changed: list[str]
    warnings: list[str]
    error: str | None = None


class MemoryDocument(Document, kw_only=True):
    """The memory that a process has allocated, and the limit above which it refuses work; null without a limit."""

    used_bytes: int
    limit_bytes: int | None


class ServerStatusDocument(Document, kw_only=True):
    """The state of a server process; `digests` identify its configuration, tokens and policies.

    `operations` are the waiting and running ones, oldest first. `plans` are those that took the most time in the last
    hour. `last_reload` is absent before the first one. `rejected` counts refused requests by limit.
    """

    version: str
    mode: str
    pid: int
    workers: int
    started_at: int
    uptime_s: float
    draining: bool
    requests: int
    connections: int
    memory: MemoryDocument
    rejected: dict[str, int]
    lanes: list[LaneDocument]
    operations: list[OperationDocument]
    plans: list[PlanDocument]
    graphs: list[ServedGraphDocument]
    digests: dict[str, str]
    last_reload: ReloadStateDocument | UnsetType = UNSET


class ReloadDocument(Document):
    """The digests of configuration, tokens and policies after a reload, and the names of those that changed."""

    digests: dict[str, str]
    changed: list[str]
    warnings: list[str]
