"""The state of webhooks, read from the progress that the graphs keep; every process answers the same."""

from __future__ import annotations

from typing import Any

from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.server.caller import Caller
from omnigraph.server.webhooks.dispatcher import progress_of, stream_keys
from omnigraph.server.webhooks.targets import Webhook
from omnigraph.wire.webhooks import WebhookDocument, WebhookFailureDocument, WebhookListDocument


def list_webhooks(caller: Caller) -> WebhookListDocument:
    """Return the progress of every webhook in every graph."""
    return WebhookListDocument([_status(key.webhook, key.graph_id, key.graph) for key in stream_keys(caller.state)])


def _status(webhook: Webhook, graph_id: str, graph: Graph) -> WebhookDocument:
    document = WebhookDocument(
        name=webhook.name, graph_id=graph_id, origin=webhook.origin, state="starting", delivered=0, dropped=0
    )
    try:
        content = progress_of(graph, webhook.name).read()
    except OmniGraphError:
        document.state = "failed"
        return document
    if content is None:
        return document
    document.state = "ready"
    document.delivered, document.dropped = content["delivered"], content["dropped"]
    last, failure = content["last"], content["failure"]
    if last is not None:
        document.last_event_id, document.last_delivered_at = last["event_id"], _us(last["at"])
    if failure is not None:
        document.state = "retrying"
        document.failure = _failure(failure)
    return document


def _failure(failure: dict[str, Any]) -> WebhookFailureDocument:
    return WebhookFailureDocument(
        error=failure["error"],
        tries=failure["tries"],
        since=_us(failure["since"]),
        next_try_at=_us(failure["next_at"]),
    )


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
