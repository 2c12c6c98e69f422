"""Administration: the graphs of the server, the caller, metrics, audit log, policy and reload."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from omnigraph.errors import Conflict, NotFound
from omnigraph.operations.authorization.access import Access
from omnigraph.policy.decide import Policy
from omnigraph.policy.rules import SERVER_ACTIONS, STATEMENT_ACTIONS, WITHOUT_EFFECT
from omnigraph.server.audit import AuditFilter, read_time
from omnigraph.server.auth.tokens import Principal
from omnigraph.server.caller import Caller
from omnigraph.server.deployment.graphs import ServedGraph
from omnigraph.server.messages.answers import Chunks, Content
from omnigraph.server.messages.content_negotiation import CONTENT_TYPES, line_chunks
from omnigraph.server.observability.exposition import CONTENT_TYPE
from omnigraph.server.routes.status import digests_of
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.audit import AuditListDocument
from omnigraph.wire.json_lines import EndDocument, StreamMetadataDocument
from omnigraph.wire.requests.admin import (
    AuditQuery,
    GraphListQuery,
    MeQuery,
)
from omnigraph.wire.server_state import (
    AllowedBranchDocument,
    AllowedGraphDocument,
    AvailabilityDocument,
    GraphDocument,
    GraphListDocument,
    MeDocument,
    ReloadDocument,
)

BRANCHES_MAX = 100
"""Number of branches of a graph whose permitted actions are listed."""
END_OF_TIME_S = 253_402_300_799
"""The end of the year 9999; a claim of an issuer may name a later one."""
RECORDS = 1000
"""Number of audit records of a JSON document without a limit."""


def list_graphs(caller: Caller, body: GraphListQuery) -> GraphListDocument:
    """List the graphs of the server, by id."""
    shown = [graph for graph in caller.state.graphs.values() if graph.is_ready or body.include == "all"]
    return GraphListDocument([_graph(caller, graph, with_state=body.include == "all") for graph in shown])


def _graph(caller: Caller, served: ServedGraph, *, with_state: bool) -> GraphDocument:
    document = GraphDocument(graph_id=served.graph_id)
    if not caller.state.settings.hide_uri:
        document.uri = served.public_uri
    if with_state:
        document.availability = _availability(served)
    return document


def _availability(served: ServedGraph) -> AvailabilityDocument:
    if served.failure is None:
        return AvailabilityDocument(state="ready", read_ready=True, write_ready=not served.read_only)
    return AvailabilityDocument(
        state="quarantined",
        read_ready=False,
        write_ready=False,
        failure_class=served.failure.code,
        retry_at=round(served.failure.retry_at * 1_000_000),
    )


def get_me(caller: Caller, body: MeQuery) -> MeDocument:
    """Return the actor of the token and what is allowed to it; graphs without a permitted action are not listed."""
    state, principal = caller.state, caller.principal
    graphs = [_allowed(caller, served, body.branch) for served in state.graphs.values()]
    access = state.server_access(principal)
    return MeDocument(
        actor_id=caller.actor,
        groups=_groups(caller),
        attributes=dict(principal.attributes) if principal is not None else {},
        actions=[action for action in SERVER_ACTIONS if access.decide(action).allowed],
        graphs=[graph for graph in graphs if graph.actions or graph.branches],
        token_expires_at=_expiry(principal),
    )


def _expiry(principal: Principal | None) -> int | UnsetType:
    end = principal.not_after if principal is not None else None
    return round(min(end, END_OF_TIME_S) * 1_000_000) if end is not None else UNSET


def _groups(caller: Caller) -> list[str]:
    """Return the groups of the token, and those in which a policy lists the actor."""
    state, principal = caller.state, caller.principal
    if principal is None:
        return []
    policies: list[Policy | None] = [state.server_policy, *(served.policy for served in state.graphs.values())]
    listed = (policy.rules.groups_of.get(principal.actor, ()) for policy in policies if policy is not None)
    return sorted({*principal.groups, *(group for groups in listed for group in groups)})


def _allowed(caller: Caller, served: ServedGraph, branch: str | None) -> AllowedGraphDocument:
    access = caller.state.graph_access(served, caller.principal)
    scoped = {action: scope for action, scope in STATEMENT_ACTIONS.items() if action not in WITHOUT_EFFECT}
    on_graph = [action for action, scope in scoped.items() if scope is None and access.decide(action).allowed]
    branches = []
    for name in [branch] if branch is not None else _branches(served, access):
        actions = [
            action
            for action, scope in scoped.items()
            if (scope == "branch_scope" and access.decide(action, branch=name).allowed)
            or (scope == "target_branch_scope" and access.decide(action, target=name).allowed)
        ]
        if actions:
            branches.append(AllowedBranchDocument(name, actions))
    return AllowedGraphDocument(served.graph_id, on_graph, branches)


def _branches(served: ServedGraph, access: Access) -> list[str]:
    """Return the first branches of a graph, or `main` if the caller may not list them."""
    if served.graph is None or not access.decide("read").allowed:
        return [MAIN]
    return served.graph.branches()[:BRANCHES_MAX]


def get_metrics(caller: Caller) -> Content:
    """Return the metrics of the server in the text format of Prometheus."""
    metrics = caller.server.metrics
    if metrics is None:
        raise NotFound(
            "the server collects no metrics",
            code="no_metrics",
            hint="set 'server.metrics.enabled' or 'server.metrics.bind' in the configuration",
        )
    return Content(metrics.text(), CONTENT_TYPE)


def read_audit(caller: Caller, body: AuditQuery) -> Chunks | AuditListDocument:
    """Return records of the audit log, oldest first."""
    audit = caller.state.audit
    if audit is None:
        raise NotFound(
            "the server has no audit log", code="no_audit_log", hint="set 'server.audit.dir' in the configuration"
        )
    wanted = AuditFilter(
        read_time(body.since) if body.since is not None else None,
        read_time(body.until) if body.until is not None else None,
        body.actor,
        body.action,
        body.decision,
    )
    is_document = caller.negotiated.form == "json"
    limit = body.limit or (RECORDS if is_document else None)
    reader = audit.read(wanted, after=body.after, limit=limit)
    if is_document:
        return AuditListDocument(list(reader), reader.cursor)

    def end(count: int) -> EndDocument:
        return EndDocument(rows=count, graph_commit_id=None, next=reader.cursor or UNSET)

    return Chunks(line_chunks(StreamMetadataDocument(content="audit"), reader, end), CONTENT_TYPES["ndjson"])


def reload(caller: Caller) -> ReloadDocument:
    """Load configuration, tokens and policies again; if they are not valid, those in force stay."""
    report = caller.server.holder.reload("POST /admin/reload")
    if not report.ok:
        raise Conflict(
            f"the reload failed, and the previous state stays in force: {report.error}",
            code="reload_failed",
            hint="correct the configuration and reload again",
        )
    return ReloadDocument(digests_of(report.digests), list(report.changed), list(report.warnings))
