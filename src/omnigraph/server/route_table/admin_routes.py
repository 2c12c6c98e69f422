"""Routes of administration."""

from __future__ import annotations

from omnigraph.server.route import Gate, Route
from omnigraph.server.routes import admin, policy, status, webhooks
from omnigraph.wire.audit import AuditListDocument
from omnigraph.wire.policies import PolicyExplainDocument, PolicyTestDocument
from omnigraph.wire.queries import ExplainDocument
from omnigraph.wire.requests.admin import (
    AuditQuery,
    GraphListQuery,
    MeQuery,
    PolicyExplainRequest,
    PolicyTestRequest,
)
from omnigraph.wire.server_state import GraphListDocument, MeDocument, ReloadDocument, ServerStatusDocument
from omnigraph.wire.webhooks import WebhookListDocument

_ADMIN = Gate("admin")

ROUTES: tuple[Route, ...] = (
    Route(
        name="listGraphs",
        method="GET",
        path="/graphs",
        handler=admin.list_graphs,
        tag="admin",
        summary="List the graphs of the server.",
        input=GraphListQuery,
        answer=GraphListDocument,
        gates=(Gate("graph_list"),),
        scope="server",
        several_graphs=True,
    ),
    Route(
        name="getMe",
        method="GET",
        path="/me",
        handler=admin.get_me,
        tag="admin",
        summary="Return the actor of the token and the actions that are allowed to it.",
        input=MeQuery,
        answer=MeDocument,
        scope="server",
    ),
    Route(
        name="getStatus",
        method="GET",
        path="/status",
        handler=status.get_status,
        tag="admin",
        summary="Return the state of this process: work, lanes, costly plans, caches, graphs and reloads.",
        answer=ServerStatusDocument,
        gates=(_ADMIN,),
        scope="server",
        lane="streams",  # it has slots when reads wait
    ),
    Route(
        name="getPlan",
        method="GET",
        path="/plans/{plan_hash}",
        handler=status.get_plan,
        tag="admin",
        summary="Return the plan of a query that ran before, by the hash that operations and the status list.",
        answer=ExplainDocument,
        gates=(_ADMIN,),
        statuses=(404,),
    ),
    Route(
        name="getMetrics",
        method="GET",
        path="/metrics",
        handler=admin.get_metrics,
        tag="admin",
        summary="Return the metrics of the server in the text format of Prometheus.",
        gates=(_ADMIN,),
        scope="server",
        lane="streams",  # as above
        statuses=(404,),
    ),
    Route(
        name="listWebhooks",
        method="GET",
        path="/webhooks",
        handler=webhooks.list_webhooks,
        tag="admin",
        summary="Return the progress of every webhook in every graph.",
        answer=WebhookListDocument,
        gates=(_ADMIN,),
        scope="server",
    ),
    Route(
        name="readAudit",
        method="GET",
        path="/audit",
        handler=admin.read_audit,
        tag="admin",
        summary="Return records of the audit log, oldest first.",
        input=AuditQuery,
        answer=AuditListDocument,
        gates=(Gate("audit_read"),),
        scope="server",
        lane="exports",
        forms=("ndjson", "json"),
    ),
    Route(
        name="explainPolicy",
        method="POST",
        path="/policy/explain",
        handler=policy.explain_policy,
        tag="policy",
        summary="Return the decision of the policy in force on one request; for another actor, with all rules.",
        input=PolicyExplainRequest,
        answer=PolicyExplainDocument,
        gates=(Gate("admin", given="actor"),),
        body="json",
    ),
    Route(
        name="testPolicy",
        method="POST",
        path="/policy/test",
        handler=policy.check_policy,
        tag="policy",
        summary="Compare the decisions of the policy in force with expected ones.",
        input=PolicyTestRequest,
        answer=PolicyTestDocument,
        gates=(_ADMIN,),
        body="json",
    ),
    Route(
        name="reload",
        method="POST",
        path="/admin/reload",
        handler=admin.reload,
        tag="admin",
        summary="Load configuration, tokens and policies again; if they are not valid, those in force stay.",
        answer=ReloadDocument,
        gates=(_ADMIN,),
        scope="server",
        lane="slow",
        statuses=(409,),
    ),
)
